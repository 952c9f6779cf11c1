"""The events that this process logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memory_service.runtime.event_log import fields_of


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.events: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = {"exc_info": record.exc_info} if record.exc_info else {}
        self.events.append({**(fields_of(record) or {}), **error, "event": record.msg})


@contextmanager
def logged_events() -> Iterator[list[dict[str, Any]]]:
    """Collect the events that are logged in the block: their fields, and the name as "event"."""
    logger, kept = logging.getLogger("memory_service"), _Kept()
    level = logger.level
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    try:
        yield kept.events
    finally:
        logger.removeHandler(kept)
        logger.setLevel(level)
