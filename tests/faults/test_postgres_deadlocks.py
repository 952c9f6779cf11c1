"""Four servers over one PostgreSQL that write all kinds of things at once: no two wait for each other."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

import postgres_server
from faults.postgres_cluster import Node
from faults.scale import drawn, rounds
from faults.test_postgres_connections import flags
from grpc_api import Api, eventually, json_value
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")

SERVERS = 4
WRITERS = 6
"""For each server."""
WRITES = rounds(50, 1_000)
"""Of each writer."""
NAMESPACES = [f"ring/{number}" for number in range(6)]
NAMES = [f"name-{number}" for number in range(8)]
REFUSED = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
}
"""How a write without a condition may end that another one has made impossible."""


@pytest.fixture
def node() -> Iterator[Node]:
    folder, programs = postgres_server.prepared_folder()
    node = Node(folder, "ring", programs, ["deadlock_timeout=100ms"]).create().start()
    yield node
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Writer:
    """Writes at one server whatever comes to mind."""

    def __init__(self, api: Api, chance: random.Random, name: str) -> None:
        self._api, self._chance, self._name = api, chance, name
        self._number = 0
        self.done = Counter[str]()

    def run(self) -> None:
        often = [self._add, self._add, self._replace, self._delete, self._save, self._drop]
        writes = [*often * 6, self._undo, self._undo, self._reset, self._delete_namespace]
        for self._number in range(WRITES):
            write = self._chance.choice(writes)
            try:
                write(self._chance.choice(NAMESPACES))
                self.done[write.__name__] += 1
            except grpc.RpcError as error:
                if error.code() not in REFUSED:
                    raise

    def _some(self) -> list[str]:
        return self._chance.sample(NAMES, 3)

    def _add(self, namespace: str) -> None:
        """Some of a few ids in any order, and the writer's own one that soon expires."""
        items = [pb.MemoryItem(id=name, text=f"{name} {self._name}") for name in self._some()]
        own = f"{self._name}-{self._number}"
        items.append(pb.MemoryItem(id=own, text=own, ttl=Duration(seconds=1)))
        self._chance.shuffle(items)
        request: Any = pb.BatchAddRequest(namespace=namespace, items=items, request_id=own)
        self._api.memory.BatchAdd(request)

    def _replace(self, namespace: str) -> None:
        item = pb.MemoryItem(id=self._chance.choice(NAMES), text=f"new {self._name}")
        self._api.memory.Update(pb.UpdateRequest(namespace=namespace, item=item))

    def _delete(self, namespace: str) -> None:
        self._api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=self._chance.choice(NAMES)))

    def _save(self, namespace: str) -> None:
        for key in self._some():
            self._api.save(namespace, key, json_value(self._number).number_value)

    def _drop(self, namespace: str) -> None:
        key = self._chance.choice(NAMES)
        self._api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=namespace, key=key))

    def _undo(self, namespace: str) -> None:
        since = Timestamp()
        since.FromNanoseconds(time.time_ns() - 100_000_000)
        request = admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True, since=since)
        self._api.admin.UndoWrites(request)

    def _reset(self, namespace: str) -> None:
        self._api.memory.Reset(pb.ResetRequest(namespace=namespace))

    def _delete_namespace(self, namespace: str) -> None:
        self._api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))


@pytest.mark.timeout(600)
def test_no_two_servers_wait_for_each_other(node: Node, tmp_path: Path) -> None:
    chance = drawn("deadlocks")
    servers = [
        ServerProcess(tmp_path / f"{number}", flags=[*flags(node.dsn), "--sweep", "0.2"])
        for number in range(SERVERS)
    ]
    with ThreadPoolExecutor(SERVERS * WRITERS) as pool:
        try:
            for started in [pool.submit(server.start) for server in servers]:
                started.result()
            apis = [Api.connect(server.address) for server in servers]
            writers = [
                Writer(api, random.Random(chance.random()), f"w{at}x{number}")
                for at, api in enumerate(apis)
                for number in range(WRITERS)
            ]
            for done in [pool.submit(writer.run) for writer in writers]:
                done.result()
            check_swept(node)
            for namespace in NAMESPACES:
                listed = [[(item.id, item.revision) for item in api.items(namespace)] for api in apis]
                assert listed == [listed[0]] * SERVERS
            for api in apis:
                api.channel.close()
        finally:
            for server in servers:
                server.__exit__()
    assert node.ask("SELECT sum(deadlocks)::int FROM pg_stat_database") == [(0,)]
    log = node.log.read_text()
    assert "deadlock detected" not in log
    assert "ERROR" not in log
    told = sum((writer.done for writer in writers), Counter[str]())
    print(f"{dict(told)}; {log.count('still waiting')} waits for locks of over 0.1 s")


def check_swept(node: Node) -> None:
    """All that has expired is removed, each of it once."""
    expiring = "SELECT count(*) FROM memory_service.items WHERE expire_us IS NOT NULL"
    eventually(lambda: node.ask(expiring) == [(0,)], "what has expired to be removed")
    twice = (
        "SELECT subject FROM memory_service.changes WHERE type = 4 GROUP BY part, uid, subject"
        " HAVING count(*) > 1"
    )
    assert node.ask(twice) == []
