"""A disk with slow syncs: only calls that wait for the disk wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from credentials import connect as connect_client
from credentials import keys_in
from faults.disk import Disk
from faults.scale import rounds
from grpc_api import Api, Connect, decode, eventually, outcome, refusal
from memory_service.records.sqlite.backup_checks import verify_backup
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NS = "slow"
SLOW_US = 200_000


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """The disk of the tests' server."""
    folder = tmp_path_factory.mktemp("slow")
    return Disk(folder / "data", folder / "control")


@pytest.fixture(scope="module")
def slow_server(disk: Disk) -> Iterator[ServerProcess]:
    """A server on that disk."""
    with ServerProcess(disk.folder, flags=["--embedder", "none"], env=disk.env) as server:
        yield server


@pytest.fixture
def api(disk: Disk, slow_server: ServerProcess, connect: Connect) -> Iterator[Api]:
    """The server's stubs, with something to read. The disk is fast again at the end."""
    api = connect(slow_server)
    api.memory.Reset(pb.ResetRequest(namespace=NS))
    api.add_texts(NS, *(f"kiwi {n}" for n in range(20)))
    yield api
    disk["hold_syncs"] = disk["sync_delay_us"] = 0


def add(api: Api, text: str) -> grpc.Future:
    """Start to add a text."""
    return api.memory.Add.future(pb.AddRequest(namespace=NS, item=pb.MemoryItem(text=text)))


def read_everything(api: Api) -> None:
    """Check health, and make every kind of read."""
    health = health_pb2_grpc.HealthStub(api.channel).Check(health_pb2.HealthCheckRequest())
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    assert "kiwi 7" in api.found(NS, query_text="7 kiwi")
    assert len(api.found(NS, limit=5)) == 5
    assert len(api.items(NS)) == 20
    assert api.stats(NS).item_count == 20


def test_reads_and_health_go_on_while_a_sync_lasts(api: Api, disk: Disk) -> None:
    disk["hold_syncs"] = 1
    begun, done = disk["syncs_begun"], disk["syncs_done"]
    first = add(api, "held")
    eventually(lambda: disk["syncs_begun"] > begun, "a sync")
    others = [add(api, f"behind {n}") for n in range(50)]
    for _ in range(rounds(20, 200)):
        read_everything(api)
    # All of that was answered during one sync, and nothing unsynced was acknowledged or shown.
    assert (disk["syncs_begun"], disk["syncs_done"]) == (begun + 1, done)
    assert not first.done() and not any(other.done() for other in others)
    disk["hold_syncs"] = 0
    assert {f.result().item.text for f in (first, *others)} <= set(api.found(NS, limit=-1))
    # Those that waited shared a sync.
    assert disk["syncs_done"] - done <= 10


def test_writes_that_wait_for_a_sync_are_bounded(
    api: Api, disk: Disk, slow_server: ServerProcess, connect: Connect
) -> None:
    limits = api.limits()
    most = limits["concurrent_calls_max"] + limits["waiting_calls_max"]
    disk["hold_syncs"] = 1
    # Over several connections, because one cannot carry as many calls.
    connections = [connect(slow_server) for _ in range(8)]
    writes = [add(connections[n % 8], f"w{n}") for n in range(most + 40)]
    eventually(lambda: sum(write.done() for write in writes) >= 40, "refusals of what is too much")
    refused = {n for n, write in enumerate(writes) if write.done()}
    told = {(r.code, r.reason) for r in (decode(writes[n].exception()) for n in refused)}
    assert told == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")}
    disk["hold_syncs"] = 0
    acknowledged = {f"w{n}" for n, write in enumerate(writes) if write.exception() is None}
    assert 0 < len(acknowledged) <= most and not acknowledged & {f"w{n}" for n in refused}
    assert acknowledged == set(api.found(NS, limit=-1)) - {f"kiwi {n}" for n in range(20)}


def test_with_slow_syncs_many_reads_are_answered_for_each(api: Api, disk: Disk) -> None:
    read_everything(api)  # The first search loads what it needs.
    disk["sync_delay_us"] = SLOW_US
    syncs, answered = rounds(5, 50), 0
    before = disk["syncs_done"]

    def write_on(name: int) -> int:
        count = 0
        while disk["syncs_done"] < before + syncs:
            add(api, f"{name} {count}").result()
            count += 1
        return count

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write_on, name) for name in range(8)]
        while disk["syncs_done"] < before + syncs:
            assert "kiwi 7" in api.found(NS, query_text="7 kiwi")
            answered += 1
        written = sum(writer.result() for writer in writers)
    print(f"{syncs} syncs of {SLOW_US // 1000} ms: {answered} searches answered, {written} writes")
    # A blocked loop answers one for each sync, or two.
    assert answered >= 5 * syncs


def test_a_backup_goes_on_without_its_caller_and_nobody_gets_in_between(
    api: Api, disk: Disk, slow_server: ServerProcess
) -> None:
    disk["hold_syncs"] = 1
    begun = disk["syncs_begun"]
    left = api.admin.Backup.future(admin_pb2.BackupRequest(name="left"))
    eventually(lambda: disk["syncs_begun"] > begun, "a sync")
    left.cancel()
    for name in ("left", "another"):
        # The server notices later that the caller has gone, but its answer stays the same.
        for _ in range(rounds(10, 100)):
            refused = refusal(api.admin.Backup, admin_pb2.BackupRequest(name=name))
            assert refused.metadata["limit_name"] == "concurrent_backups_max"
    disk["hold_syncs"] = 0
    eventually(lambda: outcome(lambda: backup(api, "next")) is grpc.StatusCode.OK, "the end of the backup")
    backup(api, "after")
    for name in ("left", "next", "after"):
        verify_backup(disk.folder / "backups" / name, None)


def test_how_far_a_backup_is_is_told_to_those_who_may_make_one(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data", tmp_path / "control")
    disk.folder.mkdir()
    keys = keys_in(disk.folder)
    token = keys.token()
    others = [keys.token(namespaces=["a*"]), keys.token(roles=["read", "write", "forget"])]
    flags = ["--embedder", "none", "--auth", "keys", "--no-audit"]
    with ServerProcess(disk.folder, flags=flags, env=disk.env) as server, ThreadPoolExecutor(1) as pool:
        client = connect_client(server.address, token)
        client.call("Add", namespace="n", item=pb.MemoryItem(text="x"))
        disk["hold_syncs"] = 1
        done = pool.submit(client.call, "Backup", name="held")
        eventually(lambda: client.call("GetInfo").HasField("backup"), "the backup")
        assert client.call("GetInfo").backup.name == "held"
        for other in map(client.presenting, others):
            assert not other.call("GetInfo").HasField("backup")
        disk["hold_syncs"] = 0
        assert done.result().name == "held"
        assert not client.call("GetInfo").HasField("backup")
        client.channel.close()


def backup(api: Api, name: str) -> admin_pb2.BackupResponse:
    response: admin_pb2.BackupResponse = api.admin.Backup(admin_pb2.BackupRequest(name=name))
    return response
