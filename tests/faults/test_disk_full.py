"""A full disk: nothing grows, everything else works, and with free space writes work again."""

from __future__ import annotations

import os
import subprocess
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import timestamp_pb2

from faults.disk import Disk
from faults.scale import SOAK
from grpc_api import Api, Connect, decode, eventually, outcome, refusal
from memory_service.audit.verification import entries, verify
from memory_service.indexes.hnsw import HnswGraph
from memory_service.v1 import admin_pb2, state_pb2, user_memory_pb2, user_memory_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

MIB = 1 << 20
DISK_BYTES = 64 * MIB
BALLAST_BYTES = 8 * MIB
FREE_BYTES_MIN = 8 * MIB
NS = "full"
FLAGS = [
    "--embedder", "none",
    "--ballast-bytes", str(BALLAST_BYTES),
    "--disk-free-bytes-min", str(FREE_BYTES_MIN),
]  # fmt: skip


class SmallDisk(ABC):
    """A small disk with a data folder on it, and a file of another program that fills it."""

    env: dict[str, str]

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self._stranger = folder / "data" / "stranger"

    @abstractmethod
    def free_bytes(self) -> int:
        """Return the free space."""

    def fill(self, left_bytes: int = 0) -> None:
        """Let another program take all of the disk except for this many bytes."""
        taken = self._stranger.stat().st_size if self._stranger.exists() else 0
        descriptor = os.open(self._stranger, os.O_WRONLY | os.O_CREAT)
        try:
            os.posix_fallocate(descriptor, 0, taken + self.free_bytes() - left_bytes)
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Remove that program's file."""
        self._stranger.unlink()


class Tmpfs(SmallDisk):
    """A file system in memory."""

    env: dict[str, str] = {}

    def free_bytes(self) -> int:
        found = os.statvfs(self.data_dir)
        return found.f_bavail * found.f_frsize

    def fill(self, left_bytes: int = 0) -> None:
        """Fill the disk. The free space is off by some pages, so the last of them are taken one by one."""
        super().fill(left_bytes)
        if not left_bytes:
            with suppress(OSError), self._stranger.open("ab", buffering=0) as file:
                while file.write(bytes(os.sysconf("SC_PAGE_SIZE"))):
                    pass


class Quota(SmallDisk):
    """A quota enforced by the server's own system calls, where nothing can be mounted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        disk = Disk(self.data_dir, folder / "control")
        disk["quota_bytes"] = DISK_BYTES
        self.env = disk.env

    def free_bytes(self) -> int:
        files = [path for path in self.data_dir.rglob("*") if path.is_file()]
        return max(0, DISK_BYTES - sum(path.stat().st_size for path in files))


def is_mounted(folder: Path) -> bool:
    """Mount a file system in memory on a folder; return False if this process may not mount any."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["mounted", "quota"] if SOAK else ["mounted"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk, a real one where possible."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "mounted" and is_mounted(folder):
        yield Tmpfs(folder)
        subprocess.run(["umount", str(folder)], check=True)
    else:
        yield Quota(folder)


class Filled:
    """A server, and its contents according to the acknowledged writes."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.texts: set[str] = set()
        self.facts = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)

    def add(self, text: str = "", **fields: Any) -> pb.MemoryItem:
        """Add an item that can be found by its text."""
        text = text or f"unique{uuid.uuid4().hex} kiwi"
        item = self.api.add(NS, text=text, **fields)
        self.texts.add(text)
        return item

    def is_refused(self) -> None:
        """Check that a write that makes the records larger fails because of the full disk."""
        for request in (
            pb.AddRequest(namespace=NS, item=pb.MemoryItem(text="refused")),
            pb.AddRequest(namespace="new", item=pb.MemoryItem(text="refused")),
        ):
            told = refusal(self.api.memory.Add, request)
            assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")

    def is_readable(self) -> None:
        """Check that every acknowledged write is read and found, and nothing else."""
        assert set(self.api.found(NS, limit=-1)) == self.texts
        assert set(self.api.found(NS, query_text="kiwi", limit=-1)) == self.texts
        one = sorted(self.texts)[0]
        assert self.api.found(NS, query_text=one.split()[0], record_usage=True) == [one]

    def delete(self, item: pb.MemoryItem) -> None:
        """Delete an item."""
        self.api.memory.Delete(pb.DeleteRequest(namespace=NS, id=item.id))
        self.texts.remove(item.text)

    def takes_writes(self) -> bool:
        """Return whether it accepts another write."""
        return outcome(self.add) is grpc.StatusCode.OK

    def flush(self, log: Path) -> None:
        """Move the log into the database. Rewriting that, so that nothing deleted is left, takes space."""
        flushed = outcome(lambda: self.api.admin.Flush(admin_pb2.FlushRequest()))
        assert flushed in (grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED)
        eventually(lambda: log.stat().st_size <= MIB, "a log that is short")


def is_held(small: SmallDisk) -> bool:
    """Return whether the ballast exists and takes space."""
    ballast = small.data_dir / "ballast"
    return ballast.exists() and ballast.stat().st_blocks * 512 >= BALLAST_BYTES


def logged(server: ServerProcess, event: str) -> bool:
    """Return whether the server has logged this event."""
    return any(f'"{event}"' in line for line in server.log)


def test_a_full_disk_stops_what_grows_and_nothing_else(small: SmallDisk, connect: Connect) -> None:
    with ServerProcess(small.data_dir, flags=FLAGS, env=small.env) as server:
        filled = Filled(connect(server))
        items = [filled.add() for _ in range(150)]
        for n in range(40):
            filled.api.save(NS, f"s{n}", "x" * 200_000)
        filled.api.add("other", text="to be gone")
        fact = filled.facts.SaveMemory(
            user_memory_pb2.SaveMemoryRequest(
                namespace="facts", content="User likes tea", category=2, reasoning="A lasting preference"
            )
        ).memory
        assert is_held(small)
        # Otherwise the log may have room for a write that should meet the full disk.
        filled.flush(small.data_dir / "records.db-wal")
        filled.add()

        # Suddenly full: the first write is rejected, and the ballast is released.
        small.fill()
        grow_until_refused(filled)
        assert not is_held(small)
        filled.is_readable()
        for item in items[:75]:
            filled.delete(item)
        filled.facts.DeleteMemory(user_memory_pb2.DeleteMemoryRequest(namespace="facts", id=fact.id))
        filled.api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace="other"))
        for n in range(40):
            filled.api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=NS, key=f"s{n}"))
        filled.flush(small.data_dir / "records.db-wal")
        filled.is_readable()
        assert logged(server, "disk_ballast_released")

        # Free space: the server recovers by itself, with a new ballast.
        small.make_room()
        eventually(filled.takes_writes, "a write that is taken again")
        eventually(lambda: is_held(small), "a new ballast")
        assert logged(server, "disk_space_back")
        soon = timestamp_pb2.Timestamp()
        soon.GetCurrentTime()
        soon.seconds += 2
        filled.api.add("short", text="expires", expire_time=soon)
        filled.api.add("short", text="stays")

        # Little space: nothing grows any more, the ballast stays in place, and expired items are removed.
        small.fill(left_bytes=FREE_BYTES_MIN // 8)
        eventually(lambda: not filled.takes_writes(), "a refusal for little room")
        assert is_held(small)
        filled.is_refused()
        told = refusal(filled.api.admin.Backup, admin_pb2.BackupRequest(name="none"))
        assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
        # No space: a deletion is made nevertheless.
        small.fill()
        for item in items[75:]:
            filled.delete(item)
        eventually(lambda: filled.api.stats("short").item_count == 1, "the removal of what is expired")
        filled.api.memory.Reset(pb.ResetRequest(namespace="short"))
        filled.flush(small.data_dir / "records.db-wal")
        filled.is_readable()
        server.kill()

    # It also starts on a full disk, with all acknowledged writes.
    with ServerProcess(small.data_dir, flags=FLAGS, env=small.env) as server:
        filled.api = connect(server)
        filled.is_readable()
        small.make_room()
        eventually(filled.takes_writes, "a write that is taken again")
        filled.api.admin.Flush(admin_pb2.FlushRequest())
        filled.is_readable()


def test_an_erasure_for_which_there_is_no_room_is_told_and_breaks_nothing(
    small: SmallDisk, connect: Connect
) -> None:
    """There is no reserve: the disk itself fails in the middle of rewriting the database."""
    flags = ["--embedder", "none", "--ballast-bytes", "0", "--disk-free-bytes-min", "0"]
    with ServerProcess(small.data_dir, flags=flags, env=small.env) as server:
        filled = Filled(connect(server))
        item = filled.add()
        filled.add()
        for n in range(60):
            filled.api.save(NS, f"s{n}", "x" * 200_000)
        filled.api.admin.Flush(admin_pb2.FlushRequest())
        filled.delete(item)
        log = small.data_dir / "records.db-wal"
        small.fill(left_bytes=2 * MIB)
        for _ in range(2):
            told = refusal(filled.api.admin.Flush, admin_pb2.FlushRequest())
            assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
            # The log that it started shrinks again.
            eventually(lambda: log.stat().st_size <= MIB, "a log that is short")
            filled.add()
            filled.is_readable()
        small.make_room()
        filled.api.admin.Flush(admin_pb2.FlushRequest())
        filled.is_readable()
        assert server.terminate() == 0


def test_a_deletion_for_which_even_the_ballast_is_too_small_is_refused_and_not_tried_for_ever(
    small: SmallDisk, connect: Connect
) -> None:
    """Moving the log into the records takes more space than there is: a checkpoint frees none."""
    flags = ["--embedder", "none", "--ballast-bytes", str(MIB // 16), "--disk-free-bytes-min", "0"]
    with ServerProcess(small.data_dir, flags=flags, env=small.env) as server:
        filled = Filled(connect(server))
        filled.api.admin.Flush(admin_pb2.FlushRequest())
        items = [filled.add(f"unique{n} kiwi {'x' * 5_000}") for n in range(100)]
        small.fill()
        grow_until_refused(filled)
        refusals = 0
        for item in items:
            try:
                filled.delete(item)
            except grpc.RpcError as error:
                told = decode(error)
                assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
                refusals += 1
        assert refusals
        assert set(filled.api.found(NS, limit=-1)) == filled.texts
        small.make_room()
        eventually(filled.takes_writes, "a write that is taken again")
        for item in [item for item in items if item.text in filled.texts]:
            filled.delete(item)
        filled.is_readable()


DELETIONS = 50


def intents(data_dir: Path) -> list[str]:
    """Return the ids of items whose deletion is in the audit log on disk; the log must be intact."""
    assert verify(data_dir / "audit").problem is None
    return [line.ids[0] for line in entries(data_dir / "audit") if line.event == "intent" and line.ids]


def test_deletions_go_on_where_the_audit_log_is_the_first_to_meet_the_full_disk(
    small: SmallDisk, connect: Connect
) -> None:
    with ServerProcess(small.data_dir, flags=[*FLAGS, "--audit", "--audit-reads"], env=small.env) as server:
        filled = Filled(connect(server))
        items = [filled.add() for _ in range(DELETIONS)]
        assert is_held(small)
        small.fill()
        while not logged(server, "audit_log_failed"):
            filled.api.found(NS, limit=1)
        assert is_held(small), "room that deletions need was given to reads"
        for number, item in enumerate(items):
            filled.delete(item)
            assert intents(small.data_dir)[number:] == [item.id]
        assert logged(server, "disk_ballast_released")
        filled.is_refused()
        small.make_room()
        eventually(filled.takes_writes, "a write that is taken again")
        eventually(lambda: is_held(small), "a new ballast")
        filled.is_readable()
        assert server.terminate() == 0
    assert len(intents(small.data_dir)) == DELETIONS


def test_a_server_with_an_audit_log_starts_on_a_full_disk(small: SmallDisk, connect: Connect) -> None:
    with ServerProcess(small.data_dir, flags=[*FLAGS, "--audit"], env=small.env) as server:
        filled = Filled(connect(server))
        item = filled.add()
        filled.add()
        server.kill()
    small.fill()
    with ServerProcess(small.data_dir, flags=[*FLAGS, "--audit"], env=small.env) as server:
        filled.api = connect(server)
        filled.delete(item)
        filled.is_readable()


def test_refused_writes_use_up_no_room_that_deletions_need(small: SmallDisk, connect: Connect) -> None:
    """Writes rejected because of the full disk are counted, and reported with the next other entry."""
    with ServerProcess(small.data_dir, flags=[*FLAGS, "--audit"], env=small.env) as server:
        filled = Filled(connect(server))
        items = [filled.add() for _ in range(2)]
        small.fill()
        filled.delete(items[0])
        log = small.data_dir / "audit"
        before = sum(1 for _ in entries(log))
        for _ in range(100):
            filled.is_refused()
        filled.delete(items[1])
        assert sum(line.count for line in entries(log) if line.event == "missed") == 200
        assert sum(1 for _ in entries(log)) < before + 10
        small.make_room()
        eventually(filled.takes_writes, "a write that is taken again")
        assert server.terminate() == 0
    assert verify(log).problem is None


def grow_until_refused(filled: Filled) -> None:
    """Write until the disk is full: the log may have some room left."""
    for n in range(200):
        request = state_pb2.SaveStateRequest(namespace="grown", key=f"k{n}")
        request.value.string_value = "x" * 500_000
        if outcome(lambda request=request: filled.api.state.SaveState(request)) is not grpc.StatusCode.OK:
            told = refusal(filled.api.state.SaveState, request)
            assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
            return
    raise AssertionError("the disk is not full")


def test_a_graph_of_which_the_disk_takes_nothing_is_not_taken_for_whole() -> None:
    with pytest.raises(OSError, match="only partly"):
        HnswGraph(dimension=4, m=8, ef_construction=50, capacity=16).save(Path("/dev/full"))
