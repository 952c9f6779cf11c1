"""Background tasks that one server does for all: others leave them alone, and take over if it is killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from embedding_provider import EmbeddingProvider
from faults.scale import SOAK
from grpc_api import Api, eventually
from memory_service.v1 import memory_pb2 as pb
from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres

SWEEP_S = 0.5
# After this many missed sweeps a server counts as dead.
LEASE_S = 4 * SWEEP_S
ITEMS = 20


def soon(seconds: float) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(int(seconds * 1000))
    return duration


def changes(api: Api, namespace: str) -> list[pb.Change]:
    """Return all changes of a namespace so far."""
    last = api.stats(namespace).revision
    stream = api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=0))
    told = (message.change for message in stream if message.HasField("change"))
    try:
        return list(islice(told, last))
    finally:
        stream.cancel()


def expired(api: Api, namespace: str) -> Counter[str]:
    return Counter(
        change.item_id or change.state_key
        for change in changes(api, namespace)
        if change.type in (pb.CHANGE_TYPE_ITEM_EXPIRED, pb.CHANGE_TYPE_STATE_EXPIRED)
    )


def write_what_expires(servers: SharedServers, namespaces: list[str], seconds: float) -> None:
    """Write items and states that expire, at all servers in turn."""
    apis = [servers.apis[number] for number in living(servers)]
    for at, namespace in enumerate(namespaces):
        for number in range(ITEMS):
            api = apis[(at + number) % len(apis)]
            api.add(namespace, id=f"item {number}", text="a heron", ttl=soon(seconds))
        apis[at % len(apis)].save(namespace, "key", 1, ttl=soon(seconds))


def living(servers: SharedServers) -> list[int]:
    return [number for number, each in enumerate(servers.processes) if each.process.poll() is None]


def check_each_expired_once(servers: SharedServers, namespaces: list[str]) -> None:
    once = Counter({"key": 1, **{f"item {number}": 1 for number in range(ITEMS)}})
    for namespace in namespaces:
        api = servers.apis[living(servers)[0]]
        eventually(
            lambda api=api, namespace=namespace: sum(expired(api, namespace).values()) > ITEMS, "all gone"
        )
        assert expired(api, namespace) == once


@pytest.mark.parametrize("count", [2, 4] if SOAK else [2])
def test_what_expires_is_removed_once_by_one_server_and_by_another_when_that_is_killed(
    tmp_path: Path, count: int
) -> None:
    with SharedServers(tmp_path, "--embedder", "none", "--sweep", str(SWEEP_S)) as servers:
        for _ in range(count):
            servers.start()
        namespaces = [f"birds/{number}" for number in range(3)]
        write_what_expires(servers, namespaces, 1)
        eventually(lambda: servers.who_has("sweep") is not None, "a sweep")
        sweeper = servers.who_has("sweep")
        assert sweeper is not None
        check_each_expired_once(servers, namespaces)
        assert servers.who_has("sweep") == sweeper

        later = [f"later/{number}" for number in range(3)]
        write_what_expires(servers, later, 1)
        servers.processes[sweeper].kill()
        killed = time.monotonic()
        eventually(lambda: servers.who_has("sweep") not in (None, sweeper), "another's sweep")
        # It renewed its claim just before, at the latest; others look once per sweep.
        assert time.monotonic() - killed < LEASE_S + SWEEP_S + 3
        check_each_expired_once(servers, later)


@pytest.fixture
def providers() -> Iterator[tuple[EmbeddingProvider, EmbeddingProvider]]:
    with EmbeddingProvider() as failing, EmbeddingProvider() as well:
        yield failing, well


MODEL = "openai:text-embedding-3-small-32"
FLAGS = [*EmbeddingProvider.flags, "--embedding-dimension", "32", "--embedder-retries", "0"]


def test_what_the_embedder_of_one_server_failed_is_filled_in_by_another(
    tmp_path: Path, providers: tuple[EmbeddingProvider, EmbeddingProvider]
) -> None:
    failing, well = providers
    failing.failing = True
    with SharedServers(tmp_path, *FLAGS, "--embedder-pause", "0.5") as servers:
        here = servers.start(env=failing.env)
        for number in range(ITEMS):
            here.add("birds", text=f"heron {number}")
        assert here.stats("birds").pending_count == ITEMS
        # A server looks for work at its start; the first one gives up its claim after each failure.
        there = servers.start(env=well.env)
        eventually(lambda: there.stats("birds").pending_count == 0, "vectors")
        assert here.stats("birds").embedded_count == ITEMS
        filled = [text for texts in well.requests for text in texts]
        assert Counter(filled) == Counter(f"heron {number}" for number in range(ITEMS))


@pytest.mark.skipif(not SOAK, reason="a lease and a turn of asking take a minute")
def test_what_a_killed_server_was_filling_in_is_filled_in_by_another(
    tmp_path: Path, providers: tuple[EmbeddingProvider, EmbeddingProvider]
) -> None:
    slow, well = providers
    slow.failing = True
    with SharedServers(tmp_path, *FLAGS, "--embedder-pause", "0.5") as servers:
        # At its start nothing was pending, so it has to look again.
        there = servers.start(env=well.env)
        here = servers.start(env=slow.env)
        for number in range(ITEMS):
            here.add("birds", text=f"heron {number}")
        slow.hold()
        slow.failing = False
        assert slow.asked.wait(60)
        eventually(lambda: servers.who_has(f"backfill {MODEL}") == 1, "a backfill")
        servers.processes[1].kill()
        killed = time.monotonic()
        # The lease is 30 s, and servers look at least every 36 s; then one more attempt every 5 s.
        eventually(lambda: there.stats("birds").pending_count == 0, "vectors", 90)
        assert time.monotonic() - killed < 30 + 36 + 5 + 5
        assert there.stats("birds").embedded_count == ITEMS
