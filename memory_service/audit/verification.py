"""Reading the audit log: whether its chain is whole, and what it says."""

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
    """Where the log is first found not to be what was written. `line` counts from 1; 0 is the whole file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


@dataclass
class Verdict:
    """What a verification found. `last` is the last good entry; note it elsewhere, for the next time."""

    problem: Problem | None = None
    entry_count: int = 0
    sealed_count: int = 0
    file_count: int = 0
    last: Head = FIRST
    torn_bytes: int = 0
    healed: list[int] = field(default_factory=list)
    """Sequences of entries that tell of an unfinished end which a start cut off."""


class _Broken(Exception):
    def __init__(self, file: Path, line: int, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(file.name, line, what)


def verify(
    folder: Path, first_sequence: int = 1, known: Head | None = None, key: DataKey | None = None
) -> Verdict:
    """Look at each line of a log, up to the first that is wrong.

    `first_sequence` is where the log begins, if files before it were put elsewhere; `known` is an entry that
    was noted elsewhere and has to be in it, or right before it. With the `key`, sealed lines have to open,
    and no line behind one may be plain. A server may be writing meanwhile. Raises OSError.
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
    # Before the files: they are only ever ahead of it.
    head = read_head(folder)
    if head is None:
        raise _Broken(folder / HEAD, 0, "it is missing or damaged: entries at the end may be missing")
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
    for expected, where in ((head, f"as {HEAD} tells"), (known, "as was noted elsewhere")):
        if expected is None or expected.sequence < first_sequence:
            continue
        last_file = files[-1][1] if files else folder
        if expected.sequence > verdict.last.sequence:
            raise _Broken(last_file, 0, f"{_missing(verdict.last.sequence + 1, expected.sequence)}, {where}")
        if hashes[expected.sequence] != expected.hash:
            raise _Broken(last_file, 0, f"entry {expected.sequence} is another one, {where}")


def _verify_file(
    path: Path, verdict: Verdict, hashes: dict[int, str], opener: Opener | None, head: Head | None
) -> None:
    """Look at each line of a file; `head` is given for the last one, whose end may be unfinished."""
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
    """Whether the unfinished end of the log begins here, as a start would cut it off."""
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
        raise _Broken(path, number, "it is not finished")
    try:
        line = read_line(raw[:-1])
    except BadLine as error:
        raise _Broken(path, number, str(error)) from None
    if line.sequence > last.sequence + 1:
        raise _Broken(path, number, f"before it, {_missing(last.sequence + 1, line.sequence - 1)}")
    if line.sequence <= last.sequence:
        raise _Broken(path, number, f"entry {line.sequence} comes again, or out of order")
    if last.hash and line.previous != last.hash:
        raise _Broken(path, number, "the entry before it is not the one that it was written after")
    if line.event == "head_missing":
        raise _Broken(path, number, "the log was opened without its head: entries before may be missing")
    return line


def _verify_seal(path: Path, number: int, line: Line, opener: Opener, *, is_expected: bool) -> None:
    if is_expected and not line.sealed:
        raise _Broken(path, number, "it is not sealed, and those before it are")
    try:
        opened(line, opener)
    except BadLine as error:
        raise _Broken(path, number, str(error)) from None


def _missing(first: int, last: int) -> str:
    return f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"


def entries(folder: Path, key: DataKey | None = None) -> Iterator[Line]:
    """Return the entries in order, leaving out lines that are none, or that do not open with the key.

    Without the key, sealed ones stay sealed. Raises OSError.
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
