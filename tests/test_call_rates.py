"""The rate limit of a caller: a call over it is refused with a delay, and other callers are unaffected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from both_clients import connected
from credentials import BY_NAME, Client, connect, keys_in
from grpc_api import Refusal, decode, eventually, outcome
from memory_client import LimitExceeded, MemoryClient
from memory_service.config import BadConfig, Config
from memory_service.limits import Limits
from memory_service.server.admission.callers import CallRates
from server_process import ServerProcess

RATE = ["--calls-per-s-max", "1", "--embedder", "none"]
CALLERS = 12
KEYS_OF_ONE = 20
TRIES = 1000
"""On any machine, this many sequential calls take fewer seconds than that."""


@dataclass(frozen=True)
class Limited:
    """A server that lets each caller make a call a second, and callers that have made none yet."""

    server: ServerProcess
    nobody: Client
    """A client without credentials."""
    callers: Iterator[str]
    """The key of each caller."""
    keys_of_one: list[str]

    def somebody(self) -> Client:
        """Return a client that has not called yet."""
        return self.nobody.presenting(next(self.callers))


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    folder = tmp_path_factory.mktemp("limited")
    keys = keys_in(folder)
    callers = [keys.token(f"caller-{number}") for number in range(CALLERS)]
    keys_of_one = [keys.token("one") for _ in range(KEYS_OF_ONE)]
    with ServerProcess(folder, flags=["--auth", "keys", *RATE]) as server:
        client = connect(server.address)
        yield Limited(server, client, iter(callers), keys_of_one)
        client.channel.close()


@pytest.fixture(scope="module")
def anonymous_address() -> Iterator[str]:
    with ServerProcess(flags=["--store", "memory", *RATE]) as server:
        yield server.address


@pytest.fixture(scope="module")
def anonymous(anonymous_address: str) -> Iterator[Client]:
    client = connect(anonymous_address)
    yield client
    client.channel.close()


def over_the_rate(call: Callable[[], object]) -> Refusal:
    """Call until the rate limit refuses a call."""
    for _ in range(TRIES):
        try:
            call()
        except grpc.RpcError as error:
            return decode(error)
    raise AssertionError("never refused")


def check(refused: Refusal) -> None:
    """Check that a refusal names the rate limit and a delay."""
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert refused.metadata == {"limit_name": "calls_per_s_max", "limit": "1"}
    assert refused.message == "too many calls: calls_per_s_max of 1 is reached"
    assert refused.retry_after_s is not None
    assert 0 <= refused.retry_after_s <= 1


# The buckets


def test_a_bucket_has_room_for_a_second_s_calls_and_fills_evenly() -> None:
    rates = CallRates(4)
    assert [rates.take("ada", 100.0) for _ in range(4)] == [0, 0, 0, 0]
    assert rates.take("ada", 100.0) == 0.25
    assert rates.take("ada", 100.25) == 0  # A refused call takes no token.
    assert rates.take("ada", 100.375) == 0.125
    # However long it is idle.
    assert [rates.take("ada", 200.0) for _ in range(5)] == [0, 0, 0, 0, 0.25]


def test_each_of_those_that_are_refused_is_due_at_a_time_of_its_own() -> None:
    rates = CallRates(4)
    for _ in range(4):
        rates.take("ada", 100.0)
    # As the bucket fills, but at most a second later.
    assert [rates.take("ada", 100.0) for _ in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert rates.take("ada", 100.125) == 1
    # A caller that comes when it is due gets a token.
    assert [rates.take("ada", 100 + due) for due in (0.25, 0.5, 0.75, 1)] == [0, 0, 0, 0]
    # The times that were given out have passed.
    assert rates.take("ada", 104.0) == 0
    assert [rates.take("ada", 104.0) for _ in range(4)] == [0, 0, 0, 0.25]


def test_each_holder_has_a_bucket_of_its_own() -> None:
    rates = CallRates(1)
    assert rates.take("ada", 5.0) == rates.take(b"", 5.0) == rates.take("bob", 5.0) == 0
    assert rates.take("ada", 5.5) == rates.take(b"", 5.5) == 0.5


def test_who_has_not_called_for_a_second_is_forgotten() -> None:
    rates = CallRates(1)
    for number in range(10_000):
        rates.take(f"caller-{number}", number / 100)
    assert len(rates) <= 100
    # And not before: an empty bucket is still there.
    assert rates.take("caller-9999", 100.0) > 0


# Named callers


def test_who_calls_too_often_is_told_when_to_come_again_and_served_then(limited: Limited) -> None:
    caller = limited.somebody()
    check(over_the_rate(lambda: caller.call("List", namespace="n")))
    eventually(lambda: outcome(lambda: caller.call("List", namespace="n")) is grpc.StatusCode.OK, "a token")


def test_who_comes_again_at_once_is_told_later(limited: Limited) -> None:
    caller, refusals = limited.somebody(), 0
    check(over_the_rate(lambda: caller.call("List", namespace="n")))
    while outcome(lambda: caller.call("List", namespace="n")) is not grpc.StatusCode.OK:
        refusals += 1
    # While there is no token, the server delays refusals. Otherwise there would be a thousand of them.
    assert refusals <= 10


def test_all_keys_of_a_caller_share_a_rate(limited: Limited) -> None:
    refused = []
    for token in limited.keys_of_one:
        try:
            limited.nobody.presenting(token).call("List", namespace="n")
        except grpc.RpcError as error:
            refused.append(decode(error))
    # Each key has made one call.
    assert refused
    check(refused[0])


def test_all_namespaces_of_a_caller_share_a_rate(limited: Limited) -> None:
    caller, numbers = limited.somebody(), iter(range(TRIES))
    check(over_the_rate(lambda: caller.call("List", namespace=f"n{next(numbers)}")))


def test_a_refused_call_did_nothing_and_others_are_served(limited: Limited) -> None:
    greedy, modest = limited.somebody(), limited.somebody()
    written = 0

    def add() -> None:
        nonlocal written
        greedy.call("Add", namespace="shared", item={"text": "x"})
        written += 1

    for _ in range(20):
        check(over_the_rate(add))
    assert modest.texts("shared") == ["x"] * written


def test_whom_no_credential_names_is_refused_for_that_alone(limited: Limited) -> None:
    refusals = {limited.nobody.refused("List", namespace="n").reason for _ in range(5)}
    assert refusals == {"UNAUTHENTICATED"}


def test_health_and_reflection_are_not_counted(limited: Limited) -> None:
    caller = limited.somebody()
    health = health_pb2_grpc.HealthStub(caller.channel)
    reflection = reflection_pb2_grpc.ServerReflectionStub(caller.channel)
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    for _ in range(5):
        answer = health.Check(health_pb2.HealthCheckRequest(), metadata=caller.metadata)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        (listed,) = reflection.ServerReflectionInfo(iter([ask]), metadata=caller.metadata)
        assert listed.HasField("list_services_response")
    caller.call("List", namespace="n")


def import_all(client: Client, texts: list[str]) -> None:
    """Write each text in its own message, all in one Import."""
    method = BY_NAME["Import"]
    request_type = GetMessageClass(method.input_type)
    messages = [request_type(namespace="many", items=[{"text": text}]) for text in texts]
    client.start(method, iter(messages))


def exported(client: Client) -> list[str]:
    """Return the texts of one Export."""
    method = BY_NAME["Export"]
    request = GetMessageClass(method.input_type)(namespace="many")
    return [answer.item.text for answer in client.start(method, request) if answer.HasField("item")]


def test_a_stream_is_one_call_whatever_is_sent_in_it(limited: Limited) -> None:
    texts = [f"text {number}" for number in range(20)]
    importer, exporter = limited.somebody(), limited.somebody()
    import_all(importer, texts)
    assert exported(exporter) == texts
    check(over_the_rate(lambda: exported(exporter)))
    check(over_the_rate(lambda: import_all(importer, ["one more"])))


def test_the_client_tells_how_long_to_wait(limited: Limited) -> None:
    token = next(limited.callers)
    with MemoryClient(limited.server.address, api_key=token, namespace="n", max_attempts=1) as client:
        with pytest.raises(LimitExceeded) as refused:
            for _ in range(TRIES):
                list(client.list_items())
    assert refused.value.reason == "OVERLOADED"
    assert refused.value.retry_after_s is not None
    assert 0 <= refused.value.retry_after_s <= 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_client_comes_again_when_it_is_told_to(anonymous_address: str, kind: str) -> None:
    with contextmanager(connected)(anonymous_address, f"patient-{kind}", kind) as client:
        client.add("one")
        client.add("two")
        assert len(client.retrieve()) == 2


# Unnamed callers


def test_without_names_each_namespace_has_a_rate(anonymous: Client) -> None:
    check(over_the_rate(lambda: anonymous.call("List", namespace="busy")))
    anonymous.call("List", namespace="quiet")


def test_without_names_an_import_is_counted_by_its_connection(anonymous: Client) -> None:
    check(over_the_rate(lambda: import_all(anonymous, ["x"])))


def test_calls_that_name_neither_caller_nor_namespace_share_a_rate(anonymous: Client) -> None:
    check(over_the_rate(lambda: [anonymous.call(name) for name in ("GetInfo", "ListNamespaces")]))


# The setting


def test_the_rate_is_told(limited: Limited) -> None:
    assert limited.somebody().call("GetInfo").limits["calls_per_s_max"] == 1


def test_a_rate_below_nothing_ends_the_start() -> None:
    with pytest.raises(BadConfig, match="calls_per_s_max must not be negative"):
        Config(limits=Limits(calls_per_s_max=-1)).verify()
    with pytest.raises(RuntimeError, match="calls_per_s_max must not be negative"):
        ServerProcess(flags=["--store", "memory", "--calls-per-s-max", "-1"]).start()
