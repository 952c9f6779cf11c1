"""The chain of the audit log detects any later change of its files, and its place."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memory_service.audit.entries import BadLine, Entry, Line, line_of, read_line
from memory_service.audit.files import HEAD, Head, files_of, read_head, written_head
from memory_service.audit.log import REFUSALS_PER_SECOND_MAX, AuditLog
from memory_service.audit.log_file import CannotOpenLog
from memory_service.audit.verification import Verdict, entries
from memory_service.audit.verification import verify as verify_with
from memory_service.data_key import DataKey

FILE_BYTES_MAX = 1000  # three entries
SEALED_FILE_BYTES_MAX = 1600
KEY = DataKey(bytes(range(32)))
SEALED = "sealed"


def key_of(folder: Path) -> DataKey | None:
    """The key that a log is sealed with, if its folder says that it is sealed."""
    return KEY if folder.name == SEALED else None


def file_bytes_max(folder: Path) -> int:
    """Return where a file of a log ends, with three entries."""
    return SEALED_FILE_BYTES_MAX if folder.name == SEALED else FILE_BYTES_MAX


def verify(folder: Path, first_sequence: int = 1, known: Head | None = None) -> Verdict:
    """Verify a log without a key. A key does not change what the chain alone shows."""
    found = verify_with(folder, first_sequence, known)
    with_key = verify_with(folder, first_sequence, known, key_of(folder))
    if found.problem is None:
        assert with_key == found
    assert (with_key.problem is None) == (found.problem is None)
    return found


async def write_log(folder: Path, count: int = 12) -> None:
    """Write entries as a server does, over several files."""
    log = AuditLog(folder, "1", file_bytes_max(folder), key_of(folder))
    log.open()
    for number in range(count):
        await log.write_ahead(Entry(event="call", time_us=number, rpc="/s/Delete", ids=[f"id-{number}"]))
    await log.close()


@pytest.fixture(params=["audit", SEALED])
async def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A valid log of four files or more."""
    folder = tmp_path / request.param
    await write_log(folder)
    verdict = verify(folder)
    assert verdict.problem is None
    assert verdict.entry_count == verdict.last.sequence == 14  # opened, 12, closed
    assert verdict.file_count >= 4
    return folder


def middle(folder: Path) -> Path:
    """A file in the middle."""
    return files_of(folder)[1][1]


def last(folder: Path) -> Path:
    """The file that is being written."""
    return files_of(folder)[-1][1]


def change_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Rewrite a file with other lines."""
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def forged(line: bytes, **changes: object) -> bytes:
    """Return a line with other content and a matching hash."""
    old = read_line(line.rstrip(b"\n"))
    entry = msgspec.convert({"event": "call"} | msgspec.to_builtins(old) | changes, Entry, strict=False)
    return line_of(entry, old.sequence, old.previous)[0]


def edited(line: bytes) -> bytes:
    """Return a line with one character of its content changed."""
    at = line.index(b'"sealed":"' if b'"sealed"' in line else b'"ids":["') + 12
    return line[:at] + (b"x" if line[at : at + 1] != b"x" else b"y") + line[at + 1 :]


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "edit a line": lambda f: change_lines(middle(f), lambda lines: [edited(lines[0]), *lines[1:]]),
    "edit a line and its hash": lambda f: change_lines(
        middle(f), lambda lines: [forged(lines[0], ids=["x"]), *lines[1:]]
    ),
    "edit the last line and its hash": lambda f: change_lines(
        last(f), lambda lines: [*lines[:-1], forged(lines[-1], event="call")]
    ),
    "delete a line": lambda f: change_lines(middle(f), lambda lines: [lines[0], *lines[2:]]),
    "delete the first line": lambda f: change_lines(files_of(f)[0][1], lambda lines: lines[1:]),
    "swap two lines": lambda f: change_lines(middle(f), lambda lines: [lines[1], lines[0], *lines[2:]]),
    "insert a line": lambda f: change_lines(
        middle(f), lambda lines: [lines[0], forged(lines[0]), *lines[1:]]
    ),
    "insert something else": lambda f: change_lines(middle(f), lambda lines: [b"{}\n", *lines]),
    "append a line": lambda f: change_lines(last(f), lambda lines: [*lines, lines[0]]),
    "cut off the last line": lambda f: change_lines(last(f), lambda lines: lines[:-1]),
    "cut the last line in two": lambda f: os.truncate(last(f), last(f).stat().st_size - 10),
    "cut a line within the log in two": lambda f: os.truncate(middle(f), middle(f).stat().st_size - 10),
    "empty the last file": lambda f: os.truncate(last(f), 0),
    "drop the first file": lambda f: files_of(f)[0][1].unlink(),
    "drop a file": lambda f: middle(f).unlink(),
    "drop the last file": lambda f: last(f).unlink(),
    "drop all files": lambda f: [path.unlink() for _, path in files_of(f)],
    "swap two files": lambda f: (
        (f / "x").write_bytes(middle(f).read_bytes()),
        shutil.copy(files_of(f)[2][1], middle(f)),
        (f / "x").rename(files_of(f)[2][1]),
    ),
    "drop the head": lambda f: (f / HEAD).unlink(),
    "damage the head": lambda f: (f / HEAD).write_bytes(b"\xff" * 86),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_tampering_is_found_and_stays_found_after_a_restart(folder: Path, tampering: str) -> None:
    TAMPERINGS[tampering](folder)
    assert verify(folder).problem is not None
    await write_log(folder, 1)
    assert verify(folder).problem is not None


async def test_the_first_bad_line_is_named(folder: Path) -> None:
    change_lines(middle(folder), lambda lines: [lines[0], edited(lines[1]), *lines[2:]])
    problem = verify(folder).problem
    assert problem is not None
    assert (problem.file, problem.line) == (middle(folder).name, 2)


async def test_every_byte_of_a_line_counts(folder: Path) -> None:
    path = middle(folder)
    good = path.read_bytes()
    for at in range(len(good.splitlines()[0])):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert verify(folder).problem is not None, at
    path.write_bytes(good)
    assert verify(folder).problem is None


async def test_a_log_whose_head_was_cut_with_it_is_found_by_an_entry_that_was_noted_elsewhere(
    folder: Path,
) -> None:
    noted = verify(folder).last
    change_lines(last(folder), lambda lines: lines[:-1])
    shorter = read_line(last(folder).read_bytes().splitlines()[-1])
    (folder / HEAD).write_bytes(written_head(Head(shorter.sequence, shorter.hash)))
    assert verify(folder).problem is None  # the log alone cannot tell
    assert verify(folder, known=noted).problem is not None


async def test_a_log_that_was_written_anew_is_found_by_an_entry_that_was_noted_elsewhere(
    folder: Path,
) -> None:
    noted = verify(folder).last
    shutil.rmtree(folder)
    await write_log(folder, 30)
    assert verify(folder).problem is None
    assert verify(folder, known=noted).problem is not None


async def test_files_may_be_put_elsewhere_if_one_says_where_the_log_begins(folder: Path) -> None:
    files_of(folder)[0][1].unlink()
    begins = files_of(folder)[0][0]
    assert verify(folder, begins).problem is None
    assert verify(folder, begins + 1).problem is not None
    change_lines(last(folder), lambda lines: lines[:-1])
    assert verify(folder, begins).problem is not None


async def test_an_unfinished_last_line_is_no_tampering_and_healed_at_the_next_start(folder: Path) -> None:
    with last(folder).open("ab") as file:
        file.write(b'{"sequence":15,"ti')
    verdict = verify(folder)
    assert (verdict.problem, verdict.torn_bytes, verdict.entry_count) == (None, 18, 14)
    await write_log(folder, 1)
    verdict = verify(folder)
    assert (verdict.problem, verdict.torn_bytes, verdict.healed) == (None, 0, [15])
    healed = [line for line in entries(folder, key_of(folder)) if line.event == "healed"]
    assert [line.count for line in healed] == [18]


async def test_an_end_with_holes_is_no_tampering_and_healed_at_the_next_start(folder: Path) -> None:
    """A power failure may leave a later entry on disk without an earlier one."""
    line = last(folder).read_bytes().splitlines(keepends=True)[-1]
    with last(folder).open("ab") as file:
        file.write(bytes(300) + line + line)
    torn_bytes = 300 + 2 * len(line)
    verdict = verify(folder)
    assert (verdict.problem, verdict.torn_bytes, verdict.entry_count) == (None, torn_bytes, 14)
    await write_log(folder, 1)
    verdict = verify(folder)
    assert (verdict.problem, verdict.torn_bytes, verdict.healed) == (None, 0, [15])
    healed = [line for line in entries(folder, key_of(folder)) if line.event == "healed"]
    assert [line.count for line in healed] == [torn_bytes]


async def test_the_chain_goes_on_over_restarts_and_files(folder: Path) -> None:
    for _ in range(3):
        await write_log(folder, 7)
    verdict = verify(folder)
    assert verdict.problem is None
    assert [line.sequence for line in entries(folder)] == list(range(1, verdict.entry_count + 1))
    head = read_head(folder)
    assert head == verdict.last
    assert all(path.stat().st_size <= file_bytes_max(folder) for _, path in files_of(folder))
    assert {path.stat().st_mode & 0o777 for _, path in files_of(folder)} == {0o600}


async def test_what_was_restored_is_good_again(folder: Path, tmp_path: Path) -> None:
    whole = last(folder).read_bytes()
    change_lines(last(folder), lambda lines: lines[:-1])
    kept = last(folder).read_bytes()
    await write_log(folder, 1)
    path = next(path for _, path in files_of(folder) if path.read_bytes().startswith(kept))
    path.write_bytes(whole + path.read_bytes()[len(kept) :])
    assert verify(folder).problem is None


async def test_one_server_at_a_time_writes_a_log(folder: Path) -> None:
    log = AuditLog(folder, "1")
    log.open()
    with pytest.raises(CannotOpenLog):
        AuditLog(folder, "1").open()
    await log.close()


async def test_more_refusals_a_second_than_are_kept_are_counted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "1")
    log.open()
    sent = 10 * REFUSALS_PER_SECOND_MAX
    for _ in range(sent):
        log.append_spared(Entry(event="call", rpc="/s/Get", decision="denied"))
    await log.close()
    kept = sum(1 for line in entries(tmp_path) if line.decision == "denied")
    missed = sum(line.count for line in entries(tmp_path) if line.event == "missed")
    assert REFUSALS_PER_SECOND_MAX <= kept <= sent // 2
    assert kept + missed == sent


def test_a_line_says_when_in_utc() -> None:
    line, _ = line_of(Entry(event="call", time_us=1_700_000_000_000_001), 1, "0" * 64)
    assert isinstance(read_line(line[:-1]), Line)
    assert read_line(line[:-1]).time == "2023-11-14T22:13:20.000001Z"


def test_a_forged_line_that_is_nested_deeply_is_bad() -> None:
    body = b'{"sequence":1,"later":' + b"[" * 100_000
    digest = hashlib.sha256(body).hexdigest().encode()
    with pytest.raises(BadLine):
        read_line(b'%b,"hash":"%b"}' % (body, digest))
