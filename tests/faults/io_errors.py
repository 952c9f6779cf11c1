"""A process that uses stores on a failing disk, each failing at another system call, and reports the results.

Usage: python -m faults.io_errors REPORT CASES; CASES is JSON, its environment is that of a `Disk`.
"""

from __future__ import annotations

import asyncio
import random
import sys
import traceback
from collections.abc import Awaitable
from pathlib import Path

import msgspec

from contract.builders import PLENTY
from contract.cases import find_case
from faults.disk import SYNC, Disk
from faults.store_workload import CASE, NAMESPACES, Operation, Plan
from memory_service.errors import MemoryServiceError, StorageFull, Unavailable
from memory_service.records.base import CannotOpen
from memory_service.stores import SqliteStore

_ROUNDS = 24
_FLUSHED, _BACKED_UP, _REOPENED = (6, 13, 20), (9,), (16,)


class Case(msgspec.Struct):
    """The disk fails with `errno` at the call of this number, and at `on` calls in total."""

    number: int
    errno: int
    on: int


class Told(msgspec.Struct):
    """The result of a case."""

    case: Case
    operations: list[Operation] = []
    full: list[str] = []
    """Requests that failed because the disk was full, and must not have been written."""
    untyped: list[str] = []
    """Errors that no caller should see."""
    backed_up: bool = False
    calls: int = 0
    failed_kind: int = 0
    went_on: list[str] = []
    """Requests that were acknowledged after an earlier sync of the records had failed."""
    begin: int = 0
    end: int = 0
    """The position of the case in the disk's record."""


class Run:
    """One case."""

    def __init__(self, disk: Disk, data_dir: Path, case: Case) -> None:
        self._disk = disk
        self._data_dir = data_dir
        self._store: SqliteStore | None = None
        self.told = Told(case)

    async def _attempt(self, what: Awaitable[object]) -> Exception | None:
        try:
            await what
        except (MemoryServiceError, CannotOpen) as error:
            # After a failed write, another one may find nothing to delete.
            if isinstance(error, Unavailable) and error.reason != "STORAGE_UNAVAILABLE":
                self.told.untyped.append(traceback.format_exc())
            return error
        except Exception as error:
            self.told.untyped.append(traceback.format_exc())
            return error
        return None

    async def _open(self) -> None:
        # A server that cannot open its records exits, and is started again.
        for _ in range(2):
            store = find_case(CASE).make(self._data_dir)
            assert isinstance(store, SqliteStore)
            self._disk["failed_records"] = 0
            if await self._attempt(store.open()) is None:
                self._store = store
                return

    @property
    def _sync_failed(self) -> bool:
        """Whether a sync of the records has failed since the store was opened."""
        return bool(self._disk["failed_records"] & SYNC)

    async def _close(self) -> None:
        if self._store is not None:
            await self._attempt(self._store.close())
            self._store = None

    async def _write(self, operation: Operation, call: object) -> None:
        assert self._store is not None
        had_failed = self._sync_failed
        error = await self._attempt(call(self._store))  # type: ignore[operator]
        if error is None:
            operation.acknowledged = 0
            if had_failed:
                self.told.went_on.append(operation.request)
        elif isinstance(error, StorageFull):
            self.told.full.append(operation.request)

    async def work(self) -> Told:
        """Write, flush, back up and reopen while the disk fails."""
        told, plan = self.told, Plan(random.Random(1))
        told.begin = self._disk["records"]
        self._disk.fail(told.case.number, told.case.errno, on=told.case.on)
        await self._open()
        for number in range(_ROUNDS):
            drawn = plan.round()
            if self._store is None:
                break
            told.operations += (operation for operation, _ in drawn)
            await asyncio.gather(*(self._write(*one) for one in drawn))
            for namespace in NAMESPACES:
                await self._attempt(self._store.read_changes(namespace, 0, PLENTY))
            if number in _FLUSHED:
                await self._attempt(self._store.flush())
            if number in _BACKED_UP:
                told.backed_up = await self._attempt(self._store.backup("b", lambda *_: None)) is None
            if number in _REOPENED:
                await self._close()
                await self._open()
        told.calls, told.failed_kind = self._disk["calls"], self._disk["failed_kind"]
        told.end = self._disk["records"]
        await self._close()
        self._disk.heal()
        return told


async def work_all(cases: list[Case]) -> list[Told]:
    """Run each case in its own folder."""
    disk = Disk.present()
    return [await Run(disk, disk.folder / str(at), case).work() for at, case in enumerate(cases)]


if __name__ == "__main__":
    report, cases = sys.argv[1:]
    Path(report).write_bytes(
        msgspec.json.encode(asyncio.run(work_all(msgspec.json.decode(cases, type=list[Case]))))
    )
