"""Clients of several servers: where calls go, and that callers get no error when one server is down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from both_clients import connected
from demanding_server import DemandingServer
from memory_client import MemoryClient, Unavailable
from memory_client._addresses import addresses_of
from memory_client._calls.servers import PASSED_OVER_S, Attempts, Servers, header_of, order_of, weight_of
from memory_client.errors import ERROR_OF_CODE, MemoryServiceError
from memory_client.options import ClientOptions
from server_process import ServerProcess
from toolchain import ROOT

PLACEMENT = json.loads((ROOT / "clients" / "placement.json").read_text())
MEMORY = ["--store", "memory", "--embedder", "none"]


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def two() -> Iterator[list[ServerProcess]]:
    """Two servers with separate records, which show which of them was called."""
    with ServerProcess(flags=MEMORY) as first, ServerProcess(flags=MEMORY) as second:
        yield [first, second]


def of(servers: list[ServerProcess]) -> str:
    return ", ".join(server.address for server in servers)


def in_order(servers: list[ServerProcess], namespace: str) -> list[ServerProcess]:
    return [servers[index] for index in order_of([server.address for server in servers], namespace)]


def texts(server: ServerProcess, namespace: str) -> list[str]:
    with MemoryClient(server.address, namespace=namespace) as client:
        return [item.text for item in client.list_items()]


def failure(code: str = "UNAVAILABLE", reason: str = "") -> MemoryServiceError:
    return ERROR_OF_CODE.get(code, MemoryServiceError)("away", code=code, reason=reason)


@pytest.mark.parametrize("case", PLACEMENT["placements"], ids=lambda case: case["namespace"] or "none")
def test_a_namespace_has_the_same_order_in_every_client(case: dict[str, Any]) -> None:
    addresses = case["addresses"]
    assert [addresses[index] for index in order_of(addresses, case["namespace"])] == case["order"]
    for address, weight in zip(addresses, case["weights"], strict=False):
        assert f"{weight_of(address, case['namespace']):016x}" == weight


def test_a_namespace_stays_when_other_servers_come_and_go() -> None:
    addresses = [f"memory-{number}.example.org:443" for number in range(5)]
    before = {f"user-{number}": order_of(addresses, f"user-{number}") for number in range(2000)}
    for namespace, order in before.items():
        assert order_of(addresses[:4], namespace) == [server for server in order if server != 4]
    counts = [sum(order[0] == server for order in before.values()) for server in range(5)]
    assert min(counts) > 300


@pytest.mark.parametrize("case", PLACEMENT["headers"], ids=lambda case: case["namespace"][:8] or "none")
def test_the_header_of_a_namespace(case: dict[str, Any]) -> None:
    expected = () if case["header"] is None else (("memory-namespace", case["header"]),)
    assert header_of(case["namespace"]) == expected


@pytest.mark.parametrize("given", PLACEMENT["refused"])
def test_addresses_that_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="^address: "):
        MemoryClient(given)
    with pytest.raises(ValueError, match="^address: "):
        ClientOptions(address=given.split(","))


def test_what_an_address_may_be() -> None:
    assert addresses_of(" a:1 ,b:2") == addresses_of(["a:1", "b:2 "]) == ("a:1", "b:2")
    assert addresses_of("unix:/a,dns:///b:1,[::1]:2") == ("unix:/a", "dns:///b:1", "[::1]:2")
    assert addresses_of(["unix:/a,b"]) == ("unix:/a,b",)
    assert addresses_of("localhost") == ("localhost",)
    with pytest.raises(ValueError, match="^address: "):
        addresses_of([])


def test_credentials_stay_on_this_machine_with_every_address() -> None:
    ClientOptions(address="127.0.0.1:1,localhost:2", api_key="k")
    with pytest.raises(ValueError, match="credentials need tls"):
        ClientOptions(address="127.0.0.1:1,memory.example.org:2", api_key="k")


def test_a_server_that_failed_is_passed_over_for_a_while() -> None:
    now = 100.0
    servers = Servers(["a:1", "b:1", "c:1"], clock=lambda: now)
    first, second, third = servers.order("ada")
    attempts = Attempts(servers, "ada", 5, waits=False)
    assert attempts.delay_after(failure()) == 0
    assert attempts.server == second
    assert servers.order("ada") == [second, third, first]
    assert servers.order("") == sorted(servers.order(""), key=lambda server: server == first)
    now += PASSED_OVER_S
    assert servers.order("ada") == [first, second, third]


def test_each_server_is_tried_at_once_and_then_after_pauses() -> None:
    def delays(attempts_max: int, waits: bool, error: MemoryServiceError) -> list[tuple[int, float]]:
        servers = Servers(["a:1", "b:1", "c:1"])
        attempts = Attempts(servers, "", attempts_max, waits)
        found: list[tuple[int, float]] = []
        while len(found) < 12 and (delay := attempts.delay_after(error)) is not None:
            found.append((attempts.server, delay))
        return found

    assert [server for server, _ in delays(5, False, failure())] == [1, 2, 0, 1]
    pauses = [delay for _, delay in delays(5, False, failure())]
    assert pauses[:2] == [0, 0]
    assert 0.08 <= pauses[2] <= 0.12 and 0.16 <= pauses[3] <= 0.24
    assert len(delays(2, False, failure())) == 2  # At least each server once.
    assert delays(1, True, failure()) == []
    assert len(delays(5, True, failure())) == 12  # It keeps waiting.
    assert len(delays(5, True, failure(reason="SHUTTING_DOWN"))) == 4
    # Another server does not help with a resource that the servers share.
    assert {server for server, _ in delays(5, True, failure(reason="LLM_UNAVAILABLE"))} == {0}
    assert delays(5, True, failure("NOT_FOUND", "ITEM_NOT_FOUND")) == []


def test_calls_go_by_namespace_and_the_rest_to_the_first(two: list[ServerProcess], kind: str) -> None:
    namespaces = [f"user-{number}" for number in range(8)]
    for client in connected(of(two), "none", kind):
        for namespace in namespaces:
            client.namespace(namespace).add(namespace)
            client.namespace(namespace).import_items([])
            assert [item.text for item in client.namespace(namespace).list_items()] == [namespace]
        listed = [summary.namespace for summary in client.list_namespaces()]
    assert listed == [name for name in namespaces if in_order(two, name)[0] is two[0]]
    assert 0 < len(listed) < len(namespaces)
    for namespace in namespaces:
        first, second = in_order(two, namespace)
        assert texts(first, namespace) == [namespace]
        assert texts(second, namespace) == []


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_no_call_fails_when_a_server_goes_away(two: list[ServerProcess], kind: str, end: str) -> None:
    first, second = in_order(two, "ada")
    for client in connected(of(two), "ada", kind):
        client.add("before")
        assert texts(first, "ada") == ["before"]
        getattr(first, end)()
        for number in range(20):
            client.add(f"after {number}")
            client.info()
        assert len(list(client.export())) == 20
    assert len(texts(second, "ada")) == 20


def test_a_server_that_is_away_at_first_is_passed_over(two: list[ServerProcess], kind: str) -> None:
    first, second = in_order(two, "ada")
    first.kill()
    with MemoryClient(second.address, namespace="ada") as own:
        own.add("one")
    for stream in ("watch", "export"):
        for client in connected(of(two), "ada", kind):
            received = getattr(client, stream)(after_revision=0)
            assert next(received)
            received.close()
    for client in connected(of(two), "ada", kind):
        client.save_state("k", 1)
        assert client.load_state("k").value == 1
        # An import is tried once, at a server that is not known to be down.
        client.import_items([])
    with MemoryClient(second.address, namespace="ada") as other:
        assert other.load_state("k").version == 1


def test_a_watch_goes_on_at_the_next_server(tmp_path: Path, kind: str) -> None:
    # Their namespaces have the same revisions, like those of servers that share a database.
    with ExitStack() as running:
        two = [running.enter_context(ServerProcess(flags=MEMORY)) for _ in range(2)]
        first, second = in_order(two, "ada")
        for server in two:
            with MemoryClient(server.address, namespace="ada") as own:
                own.add("one")
                own.add("two")
        for client in connected(of(two), "ada", kind):
            watched = client.watch(after_revision=0)
            assert [next(watched).item.text for _ in range(2)] == ["one", "two"]
            first.kill()
            with MemoryClient(second.address, namespace="ada") as own:
                own.add("three")
            assert next(watched).item.text == "three"
            watched.close()


def test_calls_wait_while_all_servers_are_away(tmp_path: Path, kind: str) -> None:
    with ExitStack() as running:
        folders = [tmp_path / "a", tmp_path / "b"]
        flags = ["--embedder", "none"]
        two = [running.enter_context(ServerProcess(folder, flags=flags)) for folder in folders]
        first = in_order(two, "ada")[0]
        for client in connected(of(two), "ada", kind):
            client.add("before")
            for server in two:
                server.kill()
            back = ServerProcess(folders[two.index(first)], flags=[*flags, "--address", first.address])
            starting = threading.Thread(target=running.enter_context, args=(back,))
            starting.start()
            client.add("after")
            starting.join()
        assert texts(first, "ada") == ["before", "after"]


def test_how_soon_servers_that_were_never_there_are_told(two: list[ServerProcess], kind: str) -> None:
    for server in two:
        server.kill()
    for client in connected(of(two), "ada", kind):
        with pytest.raises(Unavailable):
            client.add("x")
        with pytest.raises(Unavailable):
            next(client.watch())


def test_the_namespace_is_told_with_every_call_that_has_one(kind: str) -> None:
    with DemandingServer() as server:
        for client in connected(server.address, "Zoë", kind, api_key="good"):
            client.reset()
            client.import_items([])
            list(client.export())
            client.info()
            list(client.list_namespaces())
    assert server.namespaces == ["Zo%C3%AB", "Zo%C3%AB", "Zo%C3%AB", None, None]
