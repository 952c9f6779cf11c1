"""The files of the audit log: `audit-<first sequence>.jsonl`, and `head`, the last durable entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from memory_service.audit.entries import GENESIS, BadLine, read_line
from memory_service.runtime.files import write_whole

HEAD = "head"
_NAME = re.compile(r"audit-(\d{12})\.jsonl")
_HEAD = re.compile(r"(\d{20}) ([0-9a-f]{64})\n")


class Head(NamedTuple):
    """The sequence of an entry and its hash, which covers all entries up to it."""

    sequence: int
    hash: str


FIRST = Head(0, GENESIS)


def file_name(first_sequence: int) -> str:
    """Return the name of the file that begins with this entry."""
    return f"audit-{first_sequence:012}.jsonl"


def files_of(folder: Path) -> list[tuple[int, Path]]:
    """Return the files in order, each with its first sequence according to its name."""
    found = [(match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    return sorted((int(match[1]), path) for match, path in found)


def written_head(head: Head) -> bytes:
    """Return the content of the head file. Its length is constant and far below a disk sector."""
    return f"{head.sequence:020} {head.hash}\n".encode()


def read_head(folder: Path) -> Head | None:
    """Return the head; None if it is missing or unreadable."""
    try:
        match = _HEAD.fullmatch((folder / HEAD).read_text("ascii"))
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return Head(int(match[1]), match[2]) if match else None


def last_entry(files: list[tuple[int, Path]], head: Head | None) -> tuple[Head | None, int]:
    """Return the last complete entry, and the bytes of an unfinished end after it in the last file.

    None: there is no entry, or the last complete line is not an entry.
    """
    torn_bytes = 0
    for number, (first, path) in enumerate(reversed(files)):
        content = path.read_bytes()
        if number == 0:
            whole = content[: _whole_bytes(content, first, head)]
            torn_bytes = len(content) - len(whole)
            content = whole
        lines = content.split(b"\n")
        if len(lines) > 1:
            try:
                line = read_line(lines[-2])
            except BadLine:
                return None, torn_bytes
            return Head(line.sequence, line.hash), torn_bytes
    return None, torn_bytes


def _whole_bytes(content: bytes, first_sequence: int, head: Head | None) -> int:
    """Return where the unfinished end of the last file begins.

    It begins with an incomplete line, or after the head with a line that is not an entry: after a power loss,
    any parts of unsynced data may be on disk, with holes between them.
    """
    end = content.rfind(b"\n") + 1
    at = end if head is None else _behind(head, content, first_sequence)
    while at < end:
        line_end = content.index(b"\n", at)
        try:
            read_line(content[at:line_end])
        except BadLine:
            return at
        at = line_end + 1
    return end


def _behind(entry: Head, content: bytes, first_sequence: int) -> int:
    """Return the offset after an entry in a file; the end of the file if the entry is not in it."""
    if entry.sequence < first_sequence:
        return 0
    before, found, _ = content.partition(_end_of(entry))
    return len(before) + len(found)


def _end_of(entry: Head) -> bytes:
    return f',"hash":"{entry.hash}"}}\n'.encode()


def has_entry(files: list[tuple[int, Path]], entry: Head) -> bool:
    """Return whether an entry is in the file that should have its sequence."""
    path = next((path for first, path in reversed(files) if first <= entry.sequence), None)
    return path is not None and _end_of(entry) in path.read_bytes()


def begin_behind(folder: Path, new_folder: Path) -> Head | None:
    """Create a log that continues the chain of another one, which is not changed; return its last entry.

    The old log must no longer be written. None: it has no entry, and no log was created. Raises OSError.
    """
    if not folder.is_dir():
        return None
    head = read_head(folder)
    last, _ = last_entry(files_of(folder), head)
    end = max(last or FIRST, head or FIRST, key=lambda entry: entry.sequence)
    if end == FIRST:
        return None
    new_folder.mkdir(mode=0o700)
    write_whole(new_folder / file_name(end.sequence + 1), b"")
    write_whole(new_folder / HEAD, written_head(end))
    return end


def is_begun_behind(files: list[tuple[int, Path]], head: Head) -> bool:
    """Return whether a log has no entry yet and continues the chain of another one."""
    return [first for first, _ in files] == [head.sequence + 1] and not files[0][1].stat().st_size
