"""The server with a planted bug, for tests that must find it; or with instrumentation.

Run as `python altered_server.py ALTERATION serve ...`.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvloop
from jwt import api_jwt

from memory_service.cli import main
from memory_service.domain.change_feed import ChangeFeed
from memory_service.records.sqlite import applying, commit_queue
from memory_service.records.sqlite import connection as sqlite
from memory_service.records.sqlite import records as sqlite_records
from memory_service.runtime import clock, files
from memory_service.server import server
from memory_service.server.access import access
from memory_service.stores import SqliteStore


def broken_compare_and_set() -> None:
    """Every third save of a state ignores the expected version."""
    right, calls = applying.choose_states, 0

    def wrong(writes: Sequence[Any], find: Any, on_duplicate: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            writes = [copy.copy(write) for write in writes]
            for write in writes:
                write.expected_version = None
        return right(writes, find, on_duplicate)

    applying.choose_states = wrong


def stale_read() -> None:
    """Of four loads of the same states, three return the result of the load before."""
    right, before, calls = SqliteStore.load_states, {}, Counter[Any]()

    async def wrong(self: SqliteStore, namespace: str, keys: Sequence[str]) -> Any:
        asked = (namespace, *keys)
        calls[asked] += 1
        if calls[asked] % 4 and asked in before:
            return before[asked]
        before[asked] = await right(self, namespace, keys)
        return before[asked]

    SqliteStore.load_states = wrong  # type: ignore[method-assign]


def lost_write() -> None:
    """Every tenth commit is rolled back, but acknowledged."""
    commits = 0

    def wrong(connection: Any) -> None:
        nonlocal commits
        commits += 1
        (sqlite.rollback if commits % 10 == 0 else sqlite.commit)(connection)

    commit_queue.commit = wrong  # type: ignore[attr-defined]


def stale_view() -> None:
    """List does not see the last write of the namespace."""
    right, last = SqliteStore._publish, dict[str, Any]()

    def wrong(self: SqliteStore, outcome: Any) -> None:
        if outcome.info is None:
            return
        if (before := last.get(outcome.info.name)) is not None:
            right(self, before)
        last[outcome.info.name] = outcome

    SqliteStore._publish = wrong  # type: ignore[method-assign]


def late_publication() -> None:
    """Commits are published late. This is not a bug: they must not be visible before."""
    right = commit_queue.commit  # type: ignore[attr-defined]

    def late(connection: Any) -> None:
        right(connection)
        time.sleep(0.02)

    commit_queue.commit = late  # type: ignore[attr-defined]


def read_before_published() -> None:
    """A commit can be read by its key before the loop publishes it."""
    late_publication()
    commit_queue.hold_view = lambda connection: connection.execute("BEGIN")  # type: ignore[attr-defined]


def skipped_event() -> None:
    """Watch leaves out the tenth change of a namespace."""
    right = ChangeFeed.watch

    async def wrong(self: ChangeFeed, *asked: Any) -> Any:
        async for event in right(self, *asked):
            if event.change is None or event.revision != 10:
                yield event

    ChangeFeed.watch = wrong  # type: ignore[method-assign]


def late_commit() -> None:
    """The server works on a copy of the records, and every fiftieth commit copies it back."""
    right_connect, right_commit, commits = sqlite_records.connect, commit_queue.commit, 0  # type: ignore[attr-defined]
    records = Path()

    def wrong_connect(path: Path, *, writer: bool = False, key: bytes | None = None) -> Any:
        nonlocal records
        records, copied = path, path.with_name("copy.db")
        if writer:
            # Writes that an earlier server acknowledged and did not commit are lost with it.
            for left in path.parent.glob("copy.db*"):
                left.unlink()
            if path.exists():
                shutil.copy(path, copied)
        return right_connect(copied, writer=writer, key=key)

    def wrong_commit(connection: Any) -> None:
        nonlocal commits
        right_commit(connection)
        commits += 1
        if commits % 50 == 0:
            new = records.with_name("new.db")
            sqlite.copy_database(connection, new, lambda *_: None)
            new.replace(records)

    # Otherwise the server would notice that its records are replaced.
    files.InPlace.lost = lambda _: ""  # type: ignore[method-assign]
    sqlite_records.connect = wrong_connect  # type: ignore[attr-defined]
    commit_queue.commit = wrong_commit  # type: ignore[attr-defined]


def unchecked_reading() -> None:
    """Over PostgreSQL: the database is asked only once for the revision of a namespace."""
    from memory_service.records.postgres.checks import Checks

    right, known = Checks.check, dict[str, Any]()

    async def wrong(self: Checks, namespace: str) -> Any:
        if namespace not in known or known[namespace].info is None:
            known[namespace] = await right(self, namespace)
        return known[namespace]

    Checks.check = wrong  # type: ignore[method-assign]


def early_answer() -> None:
    """Over PostgreSQL: a group of writes is acknowledged some time before it is committed."""
    from memory_service.records.postgres.write_queue import WriteQueue

    right_transaction, right_commit = WriteQueue._transaction, WriteQueue._commit
    groups = list[Any]()

    async def transaction(self: WriteQueue, group: Any, known: Any) -> Any:
        groups[:] = group
        return await right_transaction(self, group, known)

    async def commit(self: WriteQueue, connection: Any, pages: Any) -> None:
        self._finish(groups)
        await asyncio.sleep(0.02)
        await right_commit(self, connection, pages)

    WriteQueue._transaction = transaction  # type: ignore[method-assign]
    WriteQueue._commit = commit  # type: ignore[method-assign]


def settable_clock() -> None:
    """The server's clock and its checks of credentials are ahead by the seconds in a file."""
    file = Path(os.environ["CLOCK_FILE"])

    def ahead_s() -> int:
        return int(file.read_text())

    class Datetime(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=ahead_s())

    clock._CLOCK = clock.Clock(lambda: time.time_ns() + ahead_s() * 1_000_000_000)
    access.time = SimpleNamespace(time=lambda: time.time() + ahead_s())  # type: ignore[attr-defined]
    api_jwt.datetime = Datetime  # type: ignore[attr-defined]


def observed() -> None:
    """At SIGUSR1 the server prints its number of tasks, the first time as "tasks 1 N"."""
    right = server.build_server

    async def build_server(*arguments: Any, **named: Any) -> Any:
        numbers = itertools.count(1)

        def tell() -> None:
            gc.collect()
            print("tasks", next(numbers), len(asyncio.all_tasks()), file=sys.stderr, flush=True)

        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell)
        return await right(*arguments, **named)

    server.build_server = build_server


class _Pieces:
    """Work of the event loop since the last report: its CPU time, and that of its longest piece.

    A piece is one callback, such as a task's work until its next await: other tasks wait for its end.
    """

    def __init__(self) -> None:
        self.longest_s, self.at, self.since_s = 0.0, "", time.thread_time()
        self.listening: asyncio.Server | None = None

    def timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that does the same and is measured."""

        def measured(*arguments: Any) -> Any:
            begin_s = time.thread_time()
            try:
                return callback(*arguments)
            finally:
                spent_s = time.thread_time() - begin_s
                if spent_s > self.longest_s:
                    self.longest_s, self.at = spent_s, repr(getattr(callback, "__self__", callback))

        return measured

    def told(self) -> str:
        """Return the figures in milliseconds, and start again from zero."""
        now_s = time.thread_time()
        told = f"{self.longest_s * 1000:.3f} {(now_s - self.since_s) * 1000:.3f} {self.at}\n"
        self.longest_s, self.at, self.since_s = 0.0, "", now_s
        return told


def pieces() -> None:
    """Report to each client of the socket in PIECES_SOCKET how long the event loop was busy in one piece.

    uvloop has no hook for that, but the callbacks of tasks, futures and gRPC all pass through these methods.
    """
    told = _Pieces()
    for name, at in (
        ("call_soon", 0),
        ("call_soon_threadsafe", 0),
        ("call_later", 1),
        ("call_at", 1),
        ("add_reader", 1),
    ):
        setattr(uvloop.Loop, name, _measuring(getattr(uvloop.Loop, name), at, told))
    right = server.build_server

    async def build_server(*arguments: Any, **named: Any) -> Any:
        async def tell(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(told.told().encode())
            writer.close()

        told.listening = await asyncio.start_unix_server(tell, os.environ["PIECES_SOCKET"])
        return await right(*arguments, **named)

    server.build_server = build_server


def _measuring(right: Callable[..., Any], at: int, told: _Pieces) -> Callable[..., Any]:
    def measured(loop: Any, *arguments: Any, **named: Any) -> Any:
        before, callback, after = arguments[:at], arguments[at], arguments[at + 1 :]
        return right(loop, *before, told.timed(callback), *after, **named)

    return measured


ALTERATIONS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        broken_compare_and_set, stale_read, lost_write, stale_view, late_publication, read_before_published,
        skipped_event, late_commit, unchecked_reading, early_answer, settable_clock, observed, pieces,
    )
}  # fmt: skip


def command(alteration: str) -> Sequence[str]:
    """Return the command of such a server, for ServerProcess."""
    return (sys.executable, __file__, alteration, "serve")


if __name__ == "__main__":
    ALTERATIONS[sys.argv.pop(1)]()
    main()
