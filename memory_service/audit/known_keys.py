"""The audit log's record of API keys, read from its entries and from a summary of earlier ones.

The summary is written beside the log when the log is opened, from entries that it has already. So it is never
ahead of the log, and files of the log can be moved elsewhere. With the data folder's key it is sealed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from memory_service.audit.entries import SEALED_FOR, BadLine, Line, opened, read_line
from memory_service.audit.files import files_of
from memory_service.data_key import DataKey
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.files import write_whole
from memory_service.sealing import Opener, Seal

SUMMARY = "keys"
"""The name of the summary in the log's folder."""
_SUMMARY_SEALED_FOR = "audit log keys"
_MAGIC = b"MSKNOWN1"

_log = EventLog(__name__)


class KnownKeys(msgspec.Struct):
    """The recorded values of keys by id, up to the entry `sequence`. `first`: no key was ever recorded."""

    sequence: int = 0
    keys: dict[str, dict[str, str]] = {}
    first: bool = True

    def take(self, line: Line) -> None:
        """Apply an entry about keys."""
        for key_id in line.ids:
            if line.event == "key_removed":
                self.keys.pop(key_id, None)
                continue
            told = self.keys.setdefault(key_id, {})
            for name in line.before:
                told.pop(name, None)
            told |= line.after
            # Only says that the secret was replaced; the log never has secrets.
            told.pop("secret", None)
        self.first = self.first and line.event != "key_present"


def read_known_keys(folder: Path, sequence: int, key: DataKey | None) -> KnownKeys:
    """Return the log's record of keys up to its last entry, `sequence`, and write the summary.

    Raises OSError.
    """
    known = _read_summary(folder, key)
    if known is None or known.sequence > sequence:
        known = KnownKeys()
    for line in _lines_of_keys(folder, known.sequence, key):
        known.take(line)
    known.sequence = sequence
    if not known.first:
        _write_summary(folder, known, key)
    return known


def _lines_of_keys(folder: Path, behind: int, key: DataKey | None) -> Iterator[Line]:
    """Yield the entries about keys after a sequence, without lines that are invalid or cannot be opened."""
    opener = None if key is None else Opener(key, SEALED_FOR)
    files = files_of(folder)
    for at, (_, path) in enumerate(files):
        if at + 1 < len(files) and files[at + 1][0] <= behind + 1:
            continue
        with path.open("rb") as lines:
            for raw in lines:
                if b'"event":"key_' not in raw and b'"sealed":' not in raw:
                    continue
                try:
                    line = read_line(raw.rstrip(b"\n"))
                    line = line if opener is None or line.sequence <= behind else opened(line, opener)
                except BadLine:
                    continue
                if line.sequence > behind and line.event.startswith("key_"):
                    yield line


def _read_summary(folder: Path, key: DataKey | None) -> KnownKeys | None:
    try:
        raw = (folder / SUMMARY).read_bytes()
    except FileNotFoundError:
        return None
    try:
        if raw.startswith(_MAGIC):
            if key is None:
                raise ValueError("the summary is sealed")
            raw = Opener(key, _SUMMARY_SEALED_FOR).open(raw[len(_MAGIC) :], _MAGIC)
        return msgspec.json.decode(raw, type=KnownKeys)
    except (ValueError, RecursionError) as error:
        # The entries have the same information, as long as their files exist.
        _log.warning("audit_log_keys_unreadable", problem=str(error))
        return None


def _write_summary(folder: Path, known: KnownKeys, key: DataKey | None) -> None:
    raw = msgspec.json.encode(known)
    if key is not None:
        raw = _MAGIC + Seal(key, _SUMMARY_SEALED_FOR).seal(raw, _MAGIC)
    write_whole(folder / SUMMARY, raw)
