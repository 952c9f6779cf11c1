"""The parts of an exception that may be logged: types and locations, not texts, which may quote callers."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

_FRAMES_MAX = 30
_CODES = ("extendedresult", "result", "status", "reason")


def cause_of(error: BaseException) -> str:
    """Return the types and codes of an error and its causes, without their texts."""
    kinds: list[str] = []
    while error is not None and len(kinds) < 8:
        kinds.append(_kind(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return " from ".join(kinds)


def _kind(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return f"{name}({errno.errorcode[error.errno]})"
    # SQLite's codes are numbers; our own reasons are names from a fixed list.
    code = next((getattr(error, each) for each in _CODES if hasattr(error, each)), None)
    is_code = isinstance(code, int) or (isinstance(code, str) and code.isupper() and code.isascii())
    return f"{name}({code})" if is_code else name


def places_of(error: BaseException) -> list[str]:
    """Return the locations of an error, innermost last: files, lines and functions, without values."""
    places = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        places.append(f"{'/'.join(Path(code.co_filename).parts[-2:])}:{line} {code.co_name}")
    return places[-_FRAMES_MAX:]
