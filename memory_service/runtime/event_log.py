"""Events for the log: a name and fields, passed to Python's logging."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any


class EventLog:
    """Logs the events of a module, as in `log.warning("disk_full", free_bytes=0)`.

    Fields hold what JSON can hold, and never data from callers or records. The field `exc_info` is an
    exception, or True for the one that is being handled.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **fields: Any) -> None:
        """Log what only developers need."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        """Log what happens in normal operation."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        """Log what an operator should look into."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Any) -> None:
        """Log what failed."""
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, /, **fields: Any) -> None:
        """Log what failed, with the exception that is being handled."""
        self._write(logging.ERROR, event, {"exc_info": True, **fields})

    def critical(self, event: str, /, **fields: Any) -> None:
        """Log what ends the process or a thread."""
        self._write(logging.CRITICAL, event, fields)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            error = fields.pop("exc_info", None)
            self._logger.log(level, event, exc_info=error, extra={"fields": fields})


def fields_of(record: logging.LogRecord) -> Mapping[str, Any] | None:
    """Return the fields of an event; None for a record of a library."""
    fields: Mapping[str, Any] | None = getattr(record, "fields", None)
    return fields
