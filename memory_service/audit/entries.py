"""Entries of the audit log: one JSON object per line, each with the hash of the previous one.

A line ends with its hash, the SHA-256 of everything before it in the line. If the data folder has a key, the
contents of entries are sealed: without the key one can verify the chain, but read only sequence numbers and
the log's own events.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import msgspec

from memory_service.sealing import Opener, Seal

GENESIS = "0" * 64
"""The `previous` hash of the first entry."""

SEALED_FOR = "audit log"
"""The purpose of the seal."""

_OF_THE_LOG = frozenset({"opened", "closed", "healed", "head_missing", "missed"})
"""Events about the log itself."""

_HASHED = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL)


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An event: the caller, method and ids of a call and its outcome, or a change of the log or a key.

    Entries never have contents of items.

    - Calls: `event` is "call" (the outcome) or "intent" (an admitted call, before its effect). `call` joins
      both within one run of a server. `decision` is "allowed", "denied" (the credential does not permit the
      call) or "failed". `ids` is cut to `IDS_MAX` ids of `ID_CHARS_MAX` characters; `id_count` is their
      number. `parameters` are the request's fields that select what the method does.
    - The log: "opened" (by `server`, of `version`), "closed", "healed" (an unfinished end was cut off),
      "head_missing" (it was opened without its head), "missed" (`count` entries were not recorded).
    - API keys: "key_added", "key_changed", "key_revoked", "key_removed", and "key_present" (it existed when
      the log first recorded keys). `ids` has the key's id, `principal` its owner, `before` and `after` the
      values that differ, never a secret. `at_start`: a start found the key different from the log's record.
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
    """An entry at its place in the chain.

    If it is `sealed` and was not opened, the fields of `Entry` are empty, except the `event` of an entry
    about the log itself.
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
    """Return a time in RFC 3339 format, in UTC."""
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
    """A line that no server wrote; the message describes the problem."""


def _place(sequence: int, previous: str, event: str) -> bytes:
    """Return the associated data of a sealed entry, which does not open at another place."""
    return f"{sequence} {previous} {event}".encode()


def read_line(raw: bytes) -> Line:
    """Parse a line without its line end; sealed contents stay sealed. Raises BadLine."""
    match = _HASHED.fullmatch(raw)
    if match is None:
        raise BadLine("not an entry")
    if hashlib.sha256(match[1]).hexdigest().encode() != match[2]:
        raise BadLine("changed: its hash does not match its content")
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise BadLine("not an entry") from None


def opened(line: Line, opener: Opener) -> Line:
    """Return a line with its sealed contents opened; an unsealed line as it is. Raises BadLine."""
    if not line.sealed:
        return line
    try:
        plain = opener.open(line.sealed, _place(line.sequence, line.previous, line.event))
        said = msgspec.to_builtins(_SAID_DECODER.decode(plain))
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise BadLine("cannot be opened: it was not sealed with this key, or not at this place") from None
    place = {"sequence": line.sequence, "previous": line.previous, "hash": line.hash}
    return msgspec.convert(said | place, Line)


_DECODER = msgspec.json.Decoder(Line)
_SAID_DECODER = msgspec.json.Decoder(_Said)
