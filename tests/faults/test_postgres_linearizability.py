"""Two servers over one PostgreSQL with standbys: some sequential order explains all of their responses.

Meanwhile servers are killed, and the primary is, and a standby takes over.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

import postgres_server
from faults.altered_server import command
from faults.histories import NEVER
from faults.postgres_cluster import Cluster
from faults.scale import drawn, rounds
from faults.test_linearizability import (
    CLIENTS,
    HISTORIES_MAX,
    NAMESPACES,
    Client,
    History,
    end_all,
    watch,
    wrong_revisions,
)
from faults.test_postgres_connections import flags
from grpc_api import Api
from server_process import ServerProcess

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")

OPERATIONS = rounds(1_200, 12_000)
KILLS = rounds(4, 30)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


class Servers:
    """Servers over one database, each of which is killed and started again."""

    def __init__(self, folder: Path, dsn: str, schema: str, count: int = 2, **how: Any) -> None:
        self._processes = [
            ServerProcess(folder / f"{number}", flags=flags(dsn, schema), **how) for number in range(count)
        ]
        self.apis: list[Api] = []
        self.there = [threading.Event() for _ in self._processes]

    def __enter__(self) -> Servers:
        for process in self._processes:
            process.start()
            self.apis.append(Api.connect(process.address))
        for there in self.there:
            there.set()
        return self

    def __exit__(self, *exc: object) -> None:
        for api, process in zip(self.apis, self._processes, strict=False):
            api.channel.close()
            process.kill()

    def kill(self, number: int) -> None:
        """Kill one, and return when it is there again."""
        self.there[number].clear()
        self._processes[number].kill()
        old, process = self.apis[number], self._processes[number].start()
        self.apis[number] = Api.connect(process.address)
        self.there[number].set()
        old.channel.close()


def asking(client: Client, servers: Servers, number: int, history: History, until: int) -> None:
    """Ask one of the servers, whatever becomes of it."""
    while history.count < until:
        # Of one that is gone the channel may be closed by now.
        with suppress(ValueError):
            client.run(servers.apis[number], until)
        # Calls with unknown outcomes slow the checker down.
        servers.there[number].wait()
        threading.Event().wait(0.1)


def watching(servers: Servers, number: int, namespace: str, history: History, ended: threading.Event) -> None:
    """Watch at one of the servers until all changes were received."""

    def all_told() -> bool:
        told = history.changes[namespace]
        try:
            return bool(told) and told[-1][0] >= servers.apis[number].stats(namespace).revision
        except (grpc.RpcError, ValueError):
            return False

    while not (ended.is_set() and all_told()):
        with suppress(ValueError):
            watch(servers.apis[number], namespace, history, ended)
        threading.Event().wait(0.01)


def recorded(
    servers: Servers,
    chance: random.Random,
    operations: int,
    faults: Sequence[Callable[[], Any]] = (),
) -> History:
    """The history of the clients of all servers during these faults, one after the other."""
    history, values, ended = History(), itertools.count(), threading.Event()
    clients = [Client(history, random.Random(chance.random()), values, 4) for _ in range(CLIENTS)]
    count = len(servers.apis)
    with ThreadPoolExecutor(CLIENTS + len(NAMESPACES)) as pool:
        watchers = [
            pool.submit(watching, servers, number % count, namespace, history, ended)
            for number, namespace in enumerate(NAMESPACES)
        ]
        askers = [
            pool.submit(asking, client, servers, number % count, history, operations)
            for number, client in enumerate(clients)
        ]
        for number, fault in enumerate(faults):
            enough = operations * (number + 1) // (len(faults) + 1)
            while history.count < enough and not all(each.done() for each in askers):
                threading.Event().wait(0.001)
            fault()
        for each in askers:
            each.result()
        ended.set()
        end_all(servers.apis[0], watchers)
        for each in watchers:
            each.result()
    return history


@pytest.mark.timeout(900)
def test_histories_over_kills_and_failovers_are_linearizable(cluster: Cluster, tmp_path: Path) -> None:
    def fail_over() -> None:
        cluster.rejoin(cluster.fail_over())

    with Servers(tmp_path, cluster.dsn, "linear") as servers:
        kinds = [lambda: servers.kill(0), fail_over, lambda: servers.kill(1), fail_over]
        faults = [kinds[number % len(kinds)] for number in range(KILLS)]
        history = recorded(servers, drawn("postgres linearizability"), OPERATIONS, faults)
    operations = [each for one in history.operations.values() for each in one]
    assert any(each.returned == NEVER for each in operations)  # or no kill met a write
    assert history.wrong_keys() == []
    for namespace in NAMESPACES:
        assert wrong_revisions(history, namespace) == []
    results = Counter(each.result for each in operations)
    print(f"{len(operations)} operations over {KILLS} kills of servers and primaries: {dict(results)}")
    print(f"{sum(map(len, history.changes.values()))} changes told by Watch, each once and in order")


@pytest.mark.parametrize("bug", ["unchecked_reading", "early_answer"])
def test_a_planted_bug_is_found(cluster: Cluster, tmp_path: Path, bug: str) -> None:
    chance = drawn(bug)

    def is_found(number: int) -> bool:
        folder, schema = tmp_path / f"{number}", f"{bug}_{number}"
        with Servers(folder, cluster.dsn, schema, command=command(bug)) as servers:
            return recorded(servers, chance, 600).wrong_keys() != []

    assert any(map(is_found, range(HISTORIES_MAX)))
