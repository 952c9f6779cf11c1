"""Entries of the audit log: one JSON object a line, each with the hash of the one before.

A line ends with its own hash, which is the SHA-256 of all that stands before it in the line. Where the data
folder has a key, what an entry says is sealed: who has no key can verify the chain, and reads no more than
sequences and what the log tells of itself.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import msgspec

from memory_service.sealing import Opener, Seal

GENESIS = "0" * 64
"""Stands for the hash of the entry before the first."""

SEALED_FOR = "audit log"
"""The purpose of the seal."""

_OF_THE_LOG = frozenset({"opened", "closed", "healed", "head_missing", "missed"})
"""Events that the log tells of itself."""

_HASHED = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL)


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What happened: who called what, on which ids, and whether it was let through. Never contents.

    `event` is "call" (the outcome of a call), "intent" (a call that is let in, before its effect), or of the
    log itself: "opened" (by which `server`, of which `version`), "closed", "healed" (an unfinished end was
    cut off), "head_missing" (it was opened without its head), "missed" (so many entries could not be kept).
    "key_added", "key_changed", "key_revoked", "key_removed" and "key_present" (it was there when the log
    first looked) tell of the API key whose id is in `ids`: whose `principal` it is, and the values that
    differ, `before` and `after`, never a secret; those `at_start` tell what a start found to be other than
    the log had it. `decision` is "allowed", "denied" (the credential is not good for it) or "failed". Ids are
    cut to `ID_CHARS_MAX` and to `IDS_MAX`; `id_count` is how many there were. `parameters` is what the
    request wanted done, where the method alone does not tell. `call` joins an intent to its outcome, within
    one run of a server.
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
    parameters: dict[str, str] = {}
    decision: str = ""
    code: str = ""
    revision: int = 0
    count: int = 0
    version: str = ""
    server: str = ""
    principal: str = ""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    at_start: bool = False


class Line(Entry, kw_only=True):
    """An entry in its place in the chain.

    Of one that is `sealed`, and was not opened, nothing else is known, but the `event` of one that tells of
    the log itself.
    """

    sequence: int
    time: str = ""
    previous: str
    event: str = ""
    sealed: bytes = b""
    hash: str = ""


class _Said(Entry, kw_only=True):
    time: str


def time_of(time_us: int) -> str:
    """Return a time as RFC 3339 has it, in UTC."""
    return f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def line_of(entry: Entry, sequence: int, previous: str, seal: Seal | None = None) -> tuple[bytes, str]:
    """Return an entry as a line, and its hash."""
    time, said = time_of(entry.time_us), msgspec.to_builtins(entry)
    said.pop("time_us", None)
    if seal is None:
        told = {"sequence": sequence, "time": time, "previous": previous} | said
    else:
        event = entry.event if entry.event in _OF_THE_LOG else ""
        plain = msgspec.json.encode({"time": time} | said)
        told = {"sequence": sequence, "previous": previous} | ({"event": event} if event else {})
        told["sealed"] = seal.seal(plain, _place(sequence, previous, event))
    body = msgspec.json.encode(told)[:-1]
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), digest


class BadLine(ValueError):
    """A line that no server wrote; tells what is wrong with it."""


def _place(sequence: int, previous: str, event: str) -> bytes:
    """Return what a sealed entry is bound to: in another place it does not open."""
    return f"{sequence} {previous} {event}".encode()


def read_line(raw: bytes) -> Line:
    """Read a line, without its end of line; what is sealed stays so. Raises BadLine."""
    match = _HASHED.fullmatch(raw)
    if match is None:
        raise BadLine("it is no entry")
    if hashlib.sha256(match[1]).hexdigest().encode() != match[2]:
        raise BadLine("it was changed: its hash is not that of its content")
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise BadLine("it is no entry") from None


def opened(line: Line, opener: Opener) -> Line:
    """Return a line with what is sealed in it; one that is not sealed as it is. Raises BadLine."""
    if not line.sealed:
        return line
    try:
        plain = opener.open(line.sealed, _place(line.sequence, line.previous, line.event))
        said = msgspec.to_builtins(_SAID_DECODER.decode(plain))
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise BadLine("it does not open: it was not sealed with this key, or not in this place") from None
    place = {"sequence": line.sequence, "previous": line.previous, "hash": line.hash}
    return msgspec.convert(said | place, Line)


_DECODER = msgspec.json.Decoder(Line)
_SAID_DECODER = msgspec.json.Decoder(_Said)
