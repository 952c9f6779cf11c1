"""Ids made by the server."""

from __future__ import annotations

import hashlib
import os
import re

from memory_service.data_model import ItemKind

_RANDOM_BYTES = 9
# Random bytes of many ids are drawn at once: the system call releases the GIL, which costs more than the
# rest.
_drawn: list[str] = []


# From 2020 on. Derived ids, such as those of fragments, have numbers appended.
_MADE = re.compile(r"([0-9a-f]{14})[0-9a-f]{18}(?:\.[0-9]+)*")
_FIRST_US = 1_577_836_800_000_000
_OF_SESSION = re.compile(r"session:[0-9a-f]{64}")
_OF_FILE_FRAGMENT = re.compile(r"[0-9a-f]{32}\.[0-9]+")


def new_id(now_us: int) -> str:
    """Return a unique id that sorts by the time it was made, so that indexes grow at their end."""
    try:
        random = _drawn.pop()
    except IndexError:
        _drawn.extend(os.urandom(_RANDOM_BYTES * 256).hex("-", _RANDOM_BYTES).split("-"))
        random = _drawn.pop()
    return f"{now_us:014x}{random}"


def is_made(text: str, now_us: int) -> bool:
    """Return whether a text looks like an id of `new_id`. Of other 32 hexadecimal digits few in a thousand
    do.
    """
    match = _MADE.fullmatch(text)
    return match is not None and _FIRST_US <= int(match[1], 16) <= now_us


def session_item_id(session_id: str) -> str:
    """Return the id of a session's own item: ids of sessions may be longer than those of items."""
    return f"session:{hashlib.sha256(session_id.encode()).hexdigest()}"


def file_fragment_id(file_id: str, number: int | str) -> str:
    """Return the id of a fragment of a file."""
    return f"{file_id}.{number}"


def keeper_of(item_id: str, now_us: int) -> ItemKind | None:
    """Return the kind of item for which the server keeps an id that it derives from another; None: any."""
    if _OF_SESSION.fullmatch(item_id):
        return ItemKind.SESSION
    if _OF_FILE_FRAGMENT.fullmatch(item_id) and is_made(item_id, now_us):
        return ItemKind.FILE_FRAGMENT
    return None
