"""PostgreSQL with standbys: what is acknowledged outlives the primary, and every server shows it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

import postgres_server
from faults.postgres_cluster import Cluster, until
from faults.scale import SOAK, drawn, rounds
from faults.test_postgres_connections import OK, add, flags, texts, written
from grpc_api import Api, outcome
from server_process import ServerProcess

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")

FAILOVERS = rounds(2, 20)
WRITERS = 16
AHEAD = (0, 1, 9, 10, 11, 25)
"""How much is written again after ten writes were lost."""
NAMESPACES = ("over/a", "over/b", "over/c")
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def asynchronous() -> Iterator[Cluster]:
    """A cluster whose primary does not wait for standbys."""
    with Cluster(synchronous=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def apis(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Api]]:
    with two_servers(cluster, tmp_path_factory.mktemp("servers")) as apis:
        yield apis


@contextmanager
def two_servers(cluster: Cluster, tmp_path: Path) -> Iterator[list[Api]]:
    """The stubs of two servers over a cluster."""
    with (
        ServerProcess(tmp_path / "0", flags=flags(cluster.dsn)) as first,
        ServerProcess(tmp_path / "1", flags=flags(cluster.dsn)) as second,
    ):
        apis = [Api.connect(server.address) for server in (first, second)]
        yield apis
        for api in apis:
            api.channel.close()


@pytest.mark.parametrize("how", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_cancelled_wait_for_standbys_is_not_acknowledged(
    cluster: Cluster, apis: list[Api], namespace: str, how: str
) -> None:
    add(apis[0], namespace, "before")
    standbys = cluster.standbys
    for standby in standbys:
        standby.stop()
    with ThreadPoolExecutor(2) as pool:
        pending = pool.submit(outcome, lambda: add(apis[0], namespace, "lost", "r-1"))
        (pid,) = until(lambda: cluster.primary.ask(WAITING), "the write to wait for a standby")[0]
        assert not pending.done()
        cluster.primary.ask(f"SELECT {how}({pid})")
        # Only the primary has it by now. A repeated request must not get a different answer.
        again = pool.submit(outcome, lambda: add(apis[1], namespace, "lost", "r-1"))
        if how == "pg_cancel_backend":
            assert pending.result(10) is grpc.StatusCode.UNAVAILABLE
        until(lambda: cluster.primary.ask(WAITING), "whoever asks again to wait, too")
        assert not again.done()
        for standby in standbys:
            standby.start()
        assert again.result(30) is OK
        assert pending.result(30) in (OK, grpc.StatusCode.UNAVAILABLE)
    assert add(apis[0], namespace, "lost", "r-1") == add(apis[1], namespace, "lost", "r-1")
    assert texts(apis[0], namespace) == texts(apis[1], namespace) == ["before", "lost"]


class Writers:
    """Callers who write, at each of some servers in turn, and what was acknowledged to them."""

    def __init__(self, apis: list[Api]) -> None:
        self._apis = apis
        self.acknowledged: dict[str, dict[str, int]] = {name: {} for name in NAMESPACES}
        self.unanswered = 0
        self.longest_s = 0.0
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def stop(self) -> None:
        self._stopped.set()

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def run(self, writer: int) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            namespace = NAMESPACES[(writer + number) % len(NAMESPACES)]
            text = f"w{writer}n{number}"
            self._write(namespace, text, number % len(self._apis))

    def _write(self, namespace: str, text: str, at: int) -> None:
        began = time.monotonic()
        while True:
            try:
                told = self._apis[at].memory.Add(written(namespace, text, text))
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                with self._lock:
                    self.unanswered += 1
                at = (at + 1) % len(self._apis)
                self._stopped.wait(0.02)
            else:
                break
        with self._lock:
            self.acknowledged[namespace][text] = told.revision
            self.longest_s = max(self.longest_s, time.monotonic() - began)


def check_kept(apis: list[Api], writers: Writers) -> None:
    """Each server lists and finds each write once, at the acknowledged revision, and nothing else."""
    for namespace, acknowledged in writers.acknowledged.items():
        for api in apis:
            listed = list(api.items(namespace))
            assert Counter(item.text for item in listed) == Counter(list(acknowledged)), namespace
            assert {item.text: item.revision for item in listed} == acknowledged
            stats = api.stats(namespace)
            assert (stats.item_count, stats.revision) == (len(acknowledged), len(acknowledged))
            for text in list(acknowledged)[:: max(1, len(acknowledged) // 20)]:
                assert text in api.found(namespace, query_text=text)


def test_failovers_lose_and_double_nothing(cluster: Cluster, apis: list[Api]) -> None:
    writers = Writers(apis)
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(writers.run, number) for number in range(WRITERS)]
        try:
            for _ in range(FAILOVERS):
                enough = writers.count + 200
                until(lambda: writers.count >= enough, "writes")  # noqa: B023 - it is called at once
                killed = cluster.fail_over()
                cluster.rejoin(killed)
            enough = writers.count + 200
            until(lambda: writers.count >= enough, "writes after the last failover")
        finally:
            writers.stop()
        for each in running:
            each.result()
    check_kept(apis, writers)
    print(
        f"{FAILOVERS} failovers: {writers.count} acknowledged, {writers.unanswered} unanswered, longest"
        f" {writers.longest_s:.2f} s"
    )


@pytest.mark.parametrize("ahead", AHEAD if SOAK else [drawn("ahead").choice(AHEAD)])
def test_what_a_failover_has_lost_no_server_shows(asynchronous: Cluster, tmp_path: Path, ahead: int) -> None:
    """Nor does it when less, as much or more is written again."""
    with two_servers(asynchronous, tmp_path) as apis:
        for number in range(20):
            add(apis[number % 2], "lossy", f"kept{number}")
        asynchronous.settle()
        has = "SELECT count(*) FROM memory_service.items"
        for node in asynchronous.standbys:
            until(lambda: node.ask(has) == [(20,)], "the standbys to have it")  # noqa: B023 - called at once
            node.stop()
        for number in range(10):
            add(apis[number % 2], "lossy", f"gone{number}")
        # Both have it in their views.
        assert all("gone9" in api.found("lossy", query_text="gone9") for api in apis)
        asynchronous.primary.kill()
        for node in asynchronous.nodes[1:]:
            node.start()
        asynchronous.promote(asynchronous.nodes[1])
        kept = [f"kept{number}" for number in range(20)]
        until(lambda: outcome(lambda: check_shown(apis[:1], kept)) is OK, "a server to go on")
        # Revisions, positions and step numbers of lost writes are reused: the other server has not looked
        # meanwhile.
        for number in range(ahead):
            kept.append(f"again{number}")
            add(apis[0], "lossy", kept[-1])
        check_shown(apis, kept)
        for number in range(4):
            kept.append(f"more{number}")
            add(apis[number % 2], "lossy", kept[-1])
            check_shown(apis, kept)


def check_shown(apis: list[Api], kept: list[str]) -> None:
    """Each server shows this and nothing else."""
    for api in apis:
        assert texts(api, "lossy") == sorted(kept)
        assert set(api.found("lossy", query_text="gone1 gone5 gone9 kept1", limit=50)) == {"kept1"}
        assert api.stats("lossy").revision == len(kept)
