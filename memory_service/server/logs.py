"""Logging: one JSON object per line on stderr, never with data from callers or records."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from types import TracebackType
from typing import Any

import structlog

from memory_service.runtime.log_causes import cause_of, places_of

_log = structlog.get_logger(__name__)


def _is_of_interest(record: logging.LogRecord) -> bool:
    # A response to a disconnected caller is no error; under load there are thousands, each with a traceback.
    return not str(record.msg).startswith("ExecuteBatchError")


def configure_logging(level: str) -> None:
    """Log JSON lines to stderr, including records of libraries and uncaught exceptions."""
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_of_interest)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_values,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_LibraryHandler()], level=logging.WARNING, force=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda found: _uncaught(found.exc_type, found.exc_value, found.exc_traceback)


def log_of_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a callback or task; asyncio's own text shows arguments and results."""
    error = context.get("exception")
    _log.error("loop_error", exc_info=error) if error else _log.error("loop_error")


def _without_values(logger: Any, name: str, event: Any) -> Any:
    """Replace an exception by its type and locations, without its text and values."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["exception"] = cause_of(error)
        event["places"] = places_of(error)
    return event


class _LibraryHandler(logging.Handler):
    """Logs records of libraries by logger, location and exception, but without their texts."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        place = f"{record.module}:{record.lineno} {record.funcName}"
        _log.log(record.levelno, "library_message", library=record.name, place=place, exc_info=error)


def _uncaught(kind: type[BaseException], error: BaseException | None, _: TracebackType | None) -> None:
    _log.critical("uncaught_exception", kind=kind.__name__, exc_info=error)
