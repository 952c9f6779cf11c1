"""Logging: one JSON object per line on stderr, never with data from callers or records."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from memory_service.runtime.event_log import EventLog, fields_of
from memory_service.runtime.log_causes import cause_of, places_of

_log = EventLog(__name__)


def _is_of_interest(record: logging.LogRecord) -> bool:
    # A response to a disconnected caller is no error; under load there are thousands, each with a traceback.
    return not str(record.msg).startswith("ExecuteBatchError")


def configure_logging(level: str) -> None:
    """Log JSON lines to stderr, including records of libraries and uncaught exceptions."""
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_of_interest)
    # An error of logging itself would print what it was to log.
    logging.raiseExceptions = False
    lines = logging.StreamHandler(sys.stderr)
    lines.setLevel(level.upper())
    lines.setFormatter(_JsonLine())
    logging.basicConfig(handlers=[lines], level=logging.WARNING, force=True)
    logging.getLogger("memory_service").setLevel(level.upper())
    sys.excepthook = _uncaught
    threading.excepthook = lambda found: _uncaught(found.exc_type, found.exc_value, found.exc_traceback)


def log_of_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a callback or task; asyncio's own text shows arguments and results."""
    error = context.get("exception")
    _log.error("loop_error", exc_info=error) if error else _log.error("loop_error")


class _JsonLine(logging.Formatter):
    """Writes an event as JSON, and a record of a library without its text.

    An exception is replaced by its type and locations, without its text and values.
    """

    def format(self, record: logging.LogRecord) -> str:
        event, fields = str(record.msg), fields_of(record)
        if fields is None:
            event = "library_message"
            fields = {"library": record.name, "place": f"{record.module}:{record.lineno} {record.funcName}"}
        time = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line = {**fields, "event": event, "level": record.levelname.lower(), "timestamp": time}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line |= {"exception": cause_of(error), "places": places_of(error)}
        return json.dumps(line, default=repr)


def _uncaught(kind: type[BaseException], error: BaseException | None, _: TracebackType | None) -> None:
    _log.critical("uncaught_exception", kind=kind.__name__, exc_info=error)
