"""The queue of commits: how groups form, and what happens when a group cannot be rolled back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_service.errors import Overloaded, Unavailable
from memory_service.records.sqlite import commit_queue
from memory_service.records.sqlite.commit_queue import CommitQueue
from memory_service.records.sqlite.connection import PAGE_BYTES, Connection, connect
from memory_service.records.sqlite.disk_space import DiskSpace, SpaceSettings

COMMIT = "commit"


def open_queue(
    folder: Path,
    before_commit: Callable[[Connection], None],
    after_rollback: Callable[[], None] = lambda: None,
    queued_writes_max: int = 10_000,
) -> CommitQueue:
    connection = connect(folder / "records.db", writer=True)
    connection.execute("CREATE TABLE written (number INTEGER)")
    reader = connect(folder / "records.db")
    return CommitQueue(
        connection,
        DiskSpace(folder, SpaceSettings()),
        before_commit,
        after_rollback,
        reader,
        queued_writes_max=queued_writes_max,
    )


class Unforeseen(BaseException):
    pass


class NoSpace(DiskSpace):
    """Fails with an error that no code handles."""

    def look(self, connection: Connection) -> None:
        raise Unforeseen


def insert(number: int) -> Callable[[Connection], None]:
    return lambda db: db.execute("INSERT INTO written VALUES (?)", (number,))


def ignore(_: None) -> None:
    pass


async def test_writes_that_come_in_turns_of_the_loop_share_a_commit(tmp_path: Path) -> None:
    done: list[str] = []
    queue = open_queue(tmp_path, lambda _: done.append(COMMIT))

    async def write_later(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await queue.write(lambda _: done.append("write"), ignore)

    await asyncio.gather(*(write_later(2 * number) for number in range(10)))
    assert done == ["write"] * 10 + [COMMIT]
    await queue.close()


async def test_a_write_that_nothing_follows_is_committed(tmp_path: Path) -> None:
    done: list[str] = []
    queue = open_queue(tmp_path, lambda _: done.append(COMMIT))
    for number in range(2):
        await queue.write(insert(number), ignore)
    assert done == [COMMIT, COMMIT]
    await queue.close()


async def test_many_writes_do_not_wait_for_more(tmp_path: Path) -> None:
    done: list[str] = []
    queue = open_queue(tmp_path, lambda _: done.append(COMMIT))
    stop = asyncio.Event()

    async def write_on() -> None:
        while not stop.is_set():
            others.append(asyncio.ensure_future(queue.write(ignore, ignore)))
            await asyncio.sleep(0)

    others: list[asyncio.Future[None]] = []
    writer = asyncio.ensure_future(write_on())
    await asyncio.wait_for(queue.write(insert(1), ignore), 60)
    stop.set()
    await asyncio.gather(writer, *others)
    assert len(done) > 1
    await queue.close()


async def test_more_writes_than_may_wait_are_refused(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, lambda _: None, queued_writes_max=3)
    done = await asyncio.gather(*(queue.write(insert(n), ignore) for n in range(5)), return_exceptions=True)
    assert [isinstance(result, Overloaded) for result in done] == [False] * 3 + [True] * 2
    await queue.close()


@pytest.mark.parametrize("heavy", [False, True], ids=["on the loop", "in the thread"])
async def test_a_fault_while_a_group_is_undone_fails_it_and_stops_the_queue(
    tmp_path: Path, heavy: bool
) -> None:
    queue = open_queue(tmp_path, lambda _: None, after_rollback=lambda: {}["nobody foresaw it"])

    def fail(_: Connection) -> None:
        raise ZeroDivisionError

    async def write(apply: Callable[[Connection], None]) -> None:
        await asyncio.wait_for(queue.write(apply, ignore, heavy=heavy), 60)

    results = await asyncio.gather(write(fail), write(insert(1)), return_exceptions=True)
    assert isinstance(results[0], ZeroDivisionError)
    assert isinstance(results[1], Unavailable)
    with pytest.raises(Unavailable):
        await write(insert(2))
    await queue.close()


class BrokenLog:
    """A log that cannot be written, such as a closed pipe."""

    def error(self, *_: object, **__: object) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("heavy", [False, True], ids=["on the loop", "in the thread"])
async def test_a_failure_that_cannot_be_logged_leaves_nobody_waiting_and_nothing_written(
    tmp_path: Path, heavy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = open_queue(tmp_path, lambda _: None)
    monkeypatch.setattr(commit_queue, "_log", BrokenLog())

    def insert_and_fail(db: Connection) -> None:
        insert(0)(db)
        raise ZeroDivisionError

    applied = [insert_and_fail] if heavy else [insert(1), insert_and_fail]
    writes = [asyncio.wait_for(queue.write(apply, ignore, heavy=heavy), 60) for apply in applied]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(results.pop(), ZeroDivisionError)
    assert all(isinstance(result, Unavailable) for result in results)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(queue.write(insert(2), ignore), 60)
    await queue.close()
    assert list(connect(tmp_path / "records.db").execute("SELECT number FROM written")) == []


@pytest.mark.parametrize("heavy", [False, True], ids=["on the loop", "in the thread"])
async def test_a_fault_in_the_thread_leaves_nobody_waiting(tmp_path: Path, heavy: bool) -> None:
    connection = connect(tmp_path / "records.db", writer=True)
    connection.execute("CREATE TABLE written (number INTEGER)")
    reader = connect(tmp_path / "records.db")
    queue = CommitQueue(
        connection,
        NoSpace(tmp_path, SpaceSettings()),
        lambda _: None,
        lambda: None,
        reader,
        queued_writes_max=1000,
    )
    for number in range(2):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(queue.write(insert(number), ignore, heavy=heavy), 60)
    await queue.close()


@pytest.mark.parametrize("step", ["hold_view", "rollback"])
async def test_a_fault_where_the_view_of_the_loop_begins_or_ends_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    queue = open_queue(tmp_path, lambda _: None)
    published: list[None] = []

    def fail(connection: Connection) -> None:
        assert connection is queue._reader
        raise Unforeseen

    monkeypatch.setattr(commit_queue, step, fail)
    for number in range(2):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(queue.write(insert(number), published.append), 60)
    # Memory does not get ahead of the records that the loop can read.
    assert published == []
    await queue.close()


async def committed_and_not_published(folder: Path, rows: int) -> None:
    """Return in the loop's turn in which the write is committed, before the loop learns of it."""
    other = connect(folder / "records.db")
    for turn in range(1000):
        await asyncio.sleep(0)
        # The first turns hand over the write. Later ones are long, so that the commit falls into one.
        until = time.monotonic() + (0.02 if turn < 3 else 1)
        while time.monotonic() < until:
            if other.execute("SELECT count(*) FROM written").fetchall() == [(rows,)]:
                other.close()
                return
    raise AssertionError("never committed")


@pytest.mark.parametrize("heavy", [False, True], ids=["on the loop", "in the thread"])
async def test_the_loop_reads_nothing_that_is_not_published(tmp_path: Path, heavy: bool) -> None:
    """Otherwise a read from the database would see a write that the next read, from memory, would not."""
    queue = open_queue(tmp_path, lambda _: None)
    reader = queue._reader
    seen: list[object] = []

    def rows() -> object:
        return reader.execute("SELECT count(*) FROM written").fetchone()[0]

    for number in range(1, 4):
        writing = asyncio.create_task(queue.write(insert(number), lambda _: seen.append(rows()), heavy=heavy))
        await committed_and_not_published(tmp_path, number)
        assert (rows(), writing.done()) == (number - 1, False)
        await writing
        assert rows() == number
    assert seen == [1, 2, 3]
    await queue.close()


async def test_the_log_stays_short_though_writes_never_pause_and_the_loop_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite restarts the log only once all of it is in the database file and has no reader."""
    pages = 64
    monkeypatch.setattr(commit_queue, "CHECKPOINT_PAGES", pages)
    queue = open_queue(tmp_path, lambda _: None)
    sizes: list[int] = []

    async def write_on() -> None:
        for _ in range(200):
            await queue.write(lambda db: db.execute("INSERT INTO written VALUES (zeroblob(20000))"), ignore)
            queue._reader.execute("SELECT max(rowid) FROM written").fetchone()
            sizes.append((tmp_path / "records.db-wal").stat().st_size)

    await asyncio.gather(*(write_on() for _ in range(4)))
    assert max(sizes) < 2 * pages * PAGE_BYTES < 200 * 4 * 20_000
    await queue.close()


async def test_who_read_with_a_connection_of_his_own_waits_until_it_is_published(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, lambda _: None)
    published: list[int] = []
    writing = asyncio.create_task(queue.write(insert(1), lambda _: published.append(1)))
    await committed_and_not_published(tmp_path, 1)
    assert published == []
    # Not wait_for, which lets the loop run before the call.
    async with asyncio.timeout(60):
        await queue.published()
        assert published == [1]
        await writing
        await queue.published()
    await queue.close()
