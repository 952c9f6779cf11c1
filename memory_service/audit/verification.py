"""Verifying and reading the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memory_service.audit.entries import GENESIS, SEALED_FOR, BadLine, Line, opened, read_line
from memory_service.audit.files import FIRST, HEAD, Head, files_of, read_head
from memory_service.data_key import DataKey
from memory_service.sealing import Opener


@dataclass(frozen=True)
class Problem:
    """The first difference between the log and what was written. `line` counts from 1; 0: the whole file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


@dataclass
class Verdict:
    """The result of a verification. `last` is the last valid entry; store it elsewhere for the next time."""

    problem: Problem | None = None
    entry_count: int = 0
    sealed_count: int = 0
    file_count: int = 0
    last: Head = FIRST
    torn_bytes: int = 0
    healed: list[int] = field(default_factory=list)
    """Sequences of "healed" entries: a start cut off an unfinished end."""


class _Broken(Exception):
    def __init__(self, file: Path, line: int, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(file.name, line, what)


def verify(
    folder: Path, first_sequence: int = 1, known: Head | None = None, key: DataKey | None = None
) -> Verdict:
    """Check each line of a log, up to the first invalid one.

    `first_sequence` is the first entry, if earlier files were moved elsewhere. `known` is an entry that was
    stored elsewhere and must be in the log, or directly before it. With the `key`, sealed lines must open,
    and no unsealed line may follow a sealed one. A server may write meanwhile. Raises OSError.
    """
    verdict = Verdict()
    opener = None if key is None else Opener(key, SEALED_FOR)
    try:
        _verify(folder, first_sequence, known, verdict, opener)
    except _Broken as broken:
        verdict.problem = broken.problem
    return verdict


def _verify(
    folder: Path, first_sequence: int, known: Head | None, verdict: Verdict, opener: Opener | None
) -> None:
    # Read before the files, which are never behind it.
    head = read_head(folder)
    if head is None:
        raise _Broken(folder / HEAD, 0, "missing or damaged: entries at the end may be missing")
    files = files_of(folder)
    hashes = dict.fromkeys((head.sequence, known.sequence if known else 0), "")
    verdict.last = Head(first_sequence - 1, GENESIS if first_sequence == 1 else "")
    if known is not None and known.sequence == first_sequence - 1:
        verdict.last = known
    for at, (named, path) in enumerate(files):
        if named != verdict.last.sequence + 1:
            raise _Broken(path, 0, _missing(verdict.last.sequence + 1, named - 1))
        _verify_file(path, verdict, hashes, opener, head if at == len(files) - 1 else None)
        verdict.file_count += 1
    for expected, where in ((head, f"according to {HEAD}"), (known, "according to the known entry")):
        if expected is None or expected.sequence < first_sequence:
            continue
        last_file = files[-1][1] if files else folder
        if expected.sequence > verdict.last.sequence:
            raise _Broken(last_file, 0, f"{_missing(verdict.last.sequence + 1, expected.sequence)}, {where}")
        if hashes[expected.sequence] != expected.hash:
            raise _Broken(last_file, 0, f"entry {expected.sequence} was replaced, {where}")


def _verify_file(
    path: Path, verdict: Verdict, hashes: dict[int, str], opener: Opener | None, head: Head | None
) -> None:
    """Check each line of a file; `head` is given for the last file, whose end may be unfinished."""
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            if head is not None and _is_torn(raw, verdict.last, head):
                verdict.torn_bytes = len(raw) + len(lines.read())
                return
            line = _verified(path, number, raw, verdict.last)
            if opener is not None:
                _verify_seal(path, number, line, opener, is_expected=verdict.sealed_count > 0)
            verdict.sealed_count += bool(line.sealed)
            if line.sequence in hashes:
                hashes[line.sequence] = line.hash
            if line.event == "healed":
                verdict.healed.append(line.sequence)
            verdict.last = Head(line.sequence, line.hash)
            verdict.entry_count += 1


def _is_torn(raw: bytes, last: Head, head: Head) -> bool:
    """Return whether the unfinished end of the log begins here, which a start would cut off."""
    if not raw.endswith(b"\n"):
        return True
    if last.sequence < head.sequence:
        return False
    try:
        read_line(raw[:-1])
    except BadLine:
        return True
    return False


def _verified(path: Path, number: int, raw: bytes, last: Head) -> Line:
    if not raw.endswith(b"\n"):
        raise _Broken(path, number, "incomplete line")
    try:
        line = read_line(raw[:-1])
    except BadLine as error:
        raise _Broken(path, number, str(error)) from None
    if line.sequence > last.sequence + 1:
        raise _Broken(path, number, f"before this line, {_missing(last.sequence + 1, line.sequence - 1)}")
    if line.sequence <= last.sequence:
        raise _Broken(path, number, f"entry {line.sequence} is repeated or out of order")
    if last.hash and line.previous != last.hash:
        raise _Broken(path, number, "the previous entry is not the one that this was written after")
    if line.event == "head_missing":
        raise _Broken(path, number, "the log was opened without its head: entries before this may be missing")
    return line


def _verify_seal(path: Path, number: int, line: Line, opener: Opener, *, is_expected: bool) -> None:
    if is_expected and not line.sealed:
        raise _Broken(path, number, "not sealed, unlike those before it")
    try:
        opened(line, opener)
    except BadLine as error:
        raise _Broken(path, number, str(error)) from None


def _missing(first: int, last: int) -> str:
    return f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"


def entries(folder: Path, key: DataKey | None = None) -> Iterator[Line]:
    """Yield the entries in order, skipping lines that are invalid or cannot be opened with the key.

    Without the key, sealed entries stay sealed. Raises OSError.
    """
    opener = None if key is None else Opener(key, SEALED_FOR)
    for _, path in files_of(folder):
        with path.open("rb") as lines:
            for raw in lines:
                try:
                    line = read_line(raw.rstrip(b"\n"))
                    yield line if opener is None else opened(line, opener)
                except BadLine:
                    continue
