"""A disk that fails at any system call: typed errors, no partial writes, nothing lost at the next start."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import grpc
import msgspec
import pytest

from faults.disk import ALWAYS, EVERY_CALL, SYNC, WRITE, Disk
from faults.io_errors import Case, Told
from faults.power_loss import LostPower, Record, read_trace
from faults.recovery import look_at, losses
from faults.scale import drawn, rounds
from grpc_api import Api, Connect, decode, eventually, is_serving, refusal
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NS = "failing"
BACKUP = Path("backups", "b", "manifest.json")
CALLS = 300
CASES_AT_ONCE = 60
IMAGES = rounds(2, 5)


def chosen_cases() -> list[Case]:
    """Return the system calls that fail: some of the first 300, or each of them in every way."""
    every = [
        Case(number, number_of, on)
        for number in range(1, CALLS + 1)
        for number_of in (errno.EIO, errno.ENOSPC)
        for on in (1, ALWAYS)
    ]
    return drawn("calls").sample(every, rounds(40, len(every)))


class Worked:
    """A process that ran the cases, and the contents of its disk."""

    def __init__(self, folder: Path, cases: list[Case]) -> None:
        self.folder = folder / "disk"
        self.folder.mkdir()
        disk = Disk(self.folder, folder / "control", trace=folder / "trace")
        report = folder / "report.json"
        command = [sys.executable, "-m", "faults.io_errors", str(report), msgspec.json.encode(cases).decode()]
        ended = subprocess.run(
            command,
            cwd=Path(__file__).parents[1],
            env={**os.environ, **disk.env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-5000:]
        self.told = msgspec.json.decode(report.read_bytes(), type=list[Told])
        self._trace = read_trace(folder / "trace")

    def records(self, told: Told) -> list[Record]:
        """Return the disk's record of a case before its store was closed."""
        return self._trace[told.begin : told.end]


def check(told: Told, data_dir: Path) -> None:
    """Open what is on the disk: all acknowledged writes are there, and all others entirely or not at all."""
    found, known, _ = asyncio.run(look_at(data_dir, told.operations))
    assert losses(told.operations, 0, found, known) == []
    applied = {o.request for o, is_known in zip(told.operations, known, strict=True) if is_known}
    assert applied.isdisjoint(told.full), "a write that was said not to be written is there"


@pytest.mark.timeout(3600)
def test_a_failing_disk_fails_writes_and_loses_none(tmp_path: Path) -> None:
    cases, met = chosen_cases(), Counter[int]()
    for at in range(0, len(cases), CASES_AT_ONCE):
        folder = tmp_path / str(at)
        folder.mkdir()
        met += check_all(folder, cases[at : at + CASES_AT_ONCE])
        shutil.rmtree(folder)
    print(f"{len(cases)} cases by kind of call: {dict(met)}")


def check_all(folder: Path, cases: list[Case]) -> Counter[int]:
    """Run cases in a separate process, and check what each of them left; return the kinds of calls."""
    worked = Worked(folder, cases)
    chance, met = drawn("images"), Counter[int]()
    for at, told in enumerate(worked.told):
        assert told.untyped == [], told.case
        assert told.went_on == [], told.case
        assert told.failed_kind, f"{told.case} was never reached"
        met[told.failed_kind] += 1
        data_dir = worked.folder / str(at)
        check_backup(told, data_dir)
        check(told, data_dir)
        if told.failed_kind == SYNC:
            for _ in range(IMAGES):
                became = chance.choice(("dropped", "torn"))
                shutil.rmtree(folder / "image", ignore_errors=True)
                LostPower(worked.records(told), data_dir, became, chance).write_image(folder / "image")
                check(told, folder / "image")
                assert not told.backed_up or (folder / "image" / BACKUP).exists()
    return met


def check_backup(told: Told, data_dir: Path) -> None:
    """Check that an acknowledged backup is there, and nothing is left of a failed one."""
    assert not told.backed_up or (data_dir / BACKUP).exists()
    assert not list(data_dir.glob("backups/.*"))


class Writes:
    """Makes one write after the other to a server, and records the outcomes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
        self.refused: set[str] = set()
        self.unread = 0

    def run(self, disk: Disk, count: int) -> None:
        """Write that many times, flush now and then, and read after each write."""
        for n in range(count):
            went_on = disk["failed_records"] & SYNC
            answer = self._add(f"kiwi{n}")
            assert not (answer == "OK" and went_on), "acknowledged after a sync that failed"
            if n % 5 == 4:
                self._is_typed(partial(self._api.admin.Flush, admin_pb2.FlushRequest()))
            self.unread += self._is_typed(partial(self._api.found, NS, query_text="kiwi0", limit=3)) != "OK"

    def _add(self, text: str) -> str:
        item = pb.MemoryItem(id=text, text=text)
        answer = self._is_typed(partial(self._api.memory.Add, pb.AddRequest(namespace=NS, item=item)))
        {"OK": self.acknowledged, "STORAGE_FULL": self.refused}.get(answer, self.doubtful).add(text)
        return answer

    def _is_typed(self, call: Callable[[], object]) -> str:
        try:
            call()
        except grpc.RpcError as error:
            reason = decode(error).reason
            assert reason in ("STORAGE_UNAVAILABLE", "STORAGE_FULL")
            return reason
        return "OK"


@pytest.mark.timeout(3600)
def test_a_server_on_a_failing_disk_answers_and_comes_back_with_everything(
    tmp_path: Path, connect: Connect
) -> None:
    """One server after the other on the same disk: each is made to fail, and the next has all the data."""
    disk = Disk(tmp_path / "data", tmp_path / "control")
    chance, kept = drawn("server"), set[str]()
    counts = Counter[str]()
    for number in range(rounds(2, 100)):
        with ServerProcess(disk.folder, flags=["--embedder", "none"], env=disk.env) as server:
            api = connect(server)
            assert set(api.found(NS, limit=-1)) == kept
            api.memory.Reset(pb.ResetRequest(namespace=NS))
            writes = Writes(api)
            kinds = (SYNC, EVERY_CALL, WRITE)[number % 3]
            failing = chance.choice((errno.EIO, errno.ENOSPC))
            at = chance.randint(1, 10 if kinds == SYNC else 60)
            disk.fail(at, failing, on=chance.choice((1, ALWAYS)), kinds=kinds)
            writes.run(disk, 20)
            assert disk["failed_kind"]
            disk.heal()
            (server.kill if chance.random() < 0.5 else server.terminate)()
        with ServerProcess(disk.folder, flags=["--embedder", "none"]) as server:
            api = connect(server)
            kept = set(api.found(NS, limit=-1))
            assert writes.acknowledged <= kept <= writes.acknowledged | writes.doubtful
            assert set(api.found(NS, query_text=" ".join(kept), limit=-1)) == kept
            counts += Counter(looked_for=len(writes.acknowledged), refused=len(writes.refused))
            counts += Counter(in_doubt=len(writes.doubtful), in_doubt_kept=len(kept & writes.doubtful))
            api.add(NS, text="goes on")
            kept.add("goes on")
    print(f"{rounds(2, 100)} servers on a failing disk, writes: {dict(counts)}; none lost")


def test_what_waited_behind_a_sync_that_failed_fails_too(tmp_path: Path, connect: Connect) -> None:
    disk = Disk(tmp_path / "data", tmp_path / "control")
    with ServerProcess(disk.folder, flags=["--embedder", "none"], env=disk.env) as server:
        api = connect(server)
        api.add(NS, text="before")
        disk["hold_syncs"] = 1
        disk.fail(1, errno.EIO, kinds=SYNC)
        begun = disk["syncs_begun"]
        first = add(api, "first")
        eventually(lambda: disk["syncs_begun"] > begun, "a sync")
        behind = [add(api, f"behind {n}") for n in range(20)]
        # They are in the queue once a later call is answered.
        assert api.found(NS, limit=-1) == ["before"]
        disk["hold_syncs"] = 0
        for write in (first, *behind):
            assert decode(write.exception()).reason == "STORAGE_UNAVAILABLE"
        assert api.found(NS, limit=-1) == ["before"]
        told = refusal(api.admin.Flush, admin_pb2.FlushRequest())
        assert told.reason == "STORAGE_UNAVAILABLE"
        eventually(lambda: not is_serving(api), "health that tells")
        assert server.terminate() == 0
    with ServerProcess(disk.folder, flags=["--embedder", "none"]) as server:
        assert set(connect(server).found(NS, limit=-1)) <= {"before", "first"}


def add(api: Api, text: str) -> grpc.Future:
    """Start to add a text."""
    return api.memory.Add.future(pb.AddRequest(namespace=NS, item=pb.MemoryItem(text=text)))
