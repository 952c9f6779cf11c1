"""Entries of the audit log: one JSON object a line, each with the hash of the one before.

A line ends with its own hash, which is the SHA-256 of all that stands before it in the line.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import msgspec

GENESIS = "0" * 64
"""Stands for the hash of the entry before the first."""

_SEALED = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL)


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What happened: who called what, on which ids, and whether it was let through. Never contents.

    `event` is "call" (the outcome of a call), "intent" (a call that is let in, before its effect), or of the
    log itself: "opened", "closed", "healed" (an unfinished line was cut off), "head_missing" (it was opened
    without its head), "missed" (so many entries could not be kept). `decision` is "allowed", "denied" (the
    credential is not good for it) or "failed". Ids are cut to `ID_CHARS_MAX` and to `IDS_MAX`; `id_count` is
    how many there were. `call` joins an intent to its outcome, within one run of a server.
    """

    event: str
    time_us: int = 0
    rpc: str = ""
    call: int = 0
    caller: str = ""
    credential: str = ""
    peer: str = ""
    namespace: str = ""
    ids: list[str] = []
    id_count: int = 0
    decision: str = ""
    code: str = ""
    revision: int = 0
    count: int = 0
    version: str = ""


class Line(Entry, kw_only=True):
    """An entry in its place in the chain."""

    sequence: int
    time: str
    previous: str
    hash: str = ""


def time_of(time_us: int) -> str:
    """Return a time as RFC 3339 has it, in UTC."""
    return f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def sealed(entry: Entry, sequence: int, previous: str) -> tuple[bytes, str]:
    """Return an entry as a line, and its hash."""
    head = {"sequence": sequence, "time": time_of(entry.time_us), "previous": previous}
    said = msgspec.to_builtins(entry)
    said.pop("time_us", None)
    body = msgspec.json.encode(head | said)[:-1]
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), digest


class BadLine(ValueError):
    """A line that no server wrote; tells what is wrong with it."""


def unsealed(raw: bytes) -> Line:
    """Read a line, without its end of line. Raises BadLine."""
    match = _SEALED.fullmatch(raw)
    if match is None:
        raise BadLine("it is no entry")
    if hashlib.sha256(match[1]).hexdigest().encode() != match[2]:
        raise BadLine("it was changed: its hash is not that of its content")
    try:
        return _DECODER.decode(raw)
    except msgspec.DecodeError:
        raise BadLine("it is no entry") from None


_DECODER = msgspec.json.Decoder(Line)
