"""The server as a process: health, failed starts, limits, deadlines, responses that fit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grpc_api import SERVICES, Api, Connect, outcome, refusal, struct
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2
from server_process import ServerProcess

KIB = 1 << 10
MIB = 1 << 20

# Health


@pytest.mark.parametrize("service", ["", *(service.full_name for service in SERVICES)])
def test_every_service_is_healthy(any_server: ServerProcess, connect: Connect, service: str) -> None:
    health = health_pb2_grpc.HealthStub(connect(any_server).channel)
    request = health_pb2.HealthCheckRequest(service=service)
    assert health.Check(request).status == health_pb2.HealthCheckResponse.SERVING
    watch = health.Watch(request)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_the_health_of_an_unknown_service_is_not_found(server: ServerProcess, connect: Connect) -> None:
    health = health_pb2_grpc.HealthStub(connect(server).channel)
    request = health_pb2.HealthCheckRequest(service="no.such.Service")
    assert outcome(lambda: health.Check(request)) is grpc.StatusCode.NOT_FOUND
    assert next(health.Watch(request)).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


# Failed starts


def serve(*flags: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `serve` with flags that it must refuse."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_SERVICE_", "OPENAI_"))}
    command = [sys.executable, "-m", "memory_service", "serve", *flags]
    return subprocess.run(
        command, env={**inherited, **(env or {})}, capture_output=True, text=True, timeout=60, check=False
    )


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the last line for the operator, after an exit with an error."""
    assert ended.returncode > 0, ended
    assert "Traceback" not in ended.stdout + ended.stderr
    return ended.stderr.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--store", "nope"], "store"),
        (["--embedder", "nope"], "embedder"),
        (["--embedder", "openai"], "OPENAI_API_KEY"),
        (["--llm", "nope"], "llm"),
        (["--address", "nonsense"], "address"),
        (["--address", "127.0.0.1:65536"], "address"),
        (["--address", "127.0.0.1:-1"], "address"),
        (["--address", "no.such.host.invalid:50051"], "no.such.host.invalid"),
        (["--data-dir", "/dev/null/x"], "/dev/null/x"),
        (["--no-such-flag"], "--no-such-flag"),
        (["surplus"], "surplus"),
    ],
    ids=str,
)
def test_a_wrong_flag_is_refused_by_its_name(tmp_path: Path, flags: list[str], named: str) -> None:
    defaults = ["--address", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    assert named in last_line(serve(*defaults, *flags))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMORY_SERVICE_STORE", "nope"),
        ("MEMORY_SERVICE_EMBEDDER", "nope"),
        ("MEMORY_SERVICE_ADDRESS", "nonsense"),
        ("MEMORY_SERVICE_EXACT_VECTORS_MAX", "many"),
        ("MEMORY_SERVICE_EXACT_VECTORS_MAX", "-1"),
        ("MEMORY_SERVICE_TAIL_VECTORS_MAX", "1.5"),
    ],
)
def test_a_wrong_environment_variable_is_refused_by_its_name(
    tmp_path: Path, variable: str, value: str
) -> None:
    data_dir = {"MEMORY_SERVICE_DATA_DIR": str(tmp_path / "data")}
    name = variable.removeprefix("MEMORY_SERVICE_").lower()
    line = last_line(serve(env={"MEMORY_SERVICE_ADDRESS": "127.0.0.1:0", **data_dir, variable: value}))
    assert name in line.lower().replace("-", "_")


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as first:
        api = connect(first)
        api.add("ns", text="before")
        line = last_line(serve("--address", "127.0.0.1:0", "--data-dir", str(tmp_path)))
        assert str(tmp_path) in line
        api.add("ns", text="after")
        assert api.found("ns") == ["before", "after"]
        first.kill()
    # The lock must not outlive a killed server.
    with ServerProcess(tmp_path) as second:
        assert connect(second).found("ns") == ["before", "after"]


def test_a_port_in_use_is_refused(server: ServerProcess, connect: Connect, tmp_path: Path) -> None:
    line = last_line(serve("--address", server.address, "--data-dir", str(tmp_path)))
    assert server.address in line
    assert connect(server).limits()


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("something else")
    line = last_line(serve("--address", "127.0.0.1:0", "--data-dir", str(file)))
    assert str(file) in line
    assert file.read_text() == "something else"


def test_a_damaged_database_is_refused_and_left_as_it_is(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as process:
        connect(process).add("ns", text="x")
        assert process.terminate() == 0
    files = [f for f in tmp_path.iterdir() if f.is_file() and f.read_bytes()[:6] == b"SQLite"]
    damaged = b"SQLite format 3\0" + b"\xa5" * 8192
    for file in files:
        file.write_bytes(damaged)
    assert str(tmp_path) in last_line(serve("--address", "127.0.0.1:0", "--data-dir", str(tmp_path)))
    assert [file.read_bytes() for file in files] == [damaged] * len(files) != []


# Limits and deadlines


def test_a_message_that_is_too_large_is_refused(api: Api, namespace: str) -> None:
    text = "x" * (api.limits()["message_bytes_max"] + 1)
    request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text=text))
    assert outcome(lambda: api.memory.Add(request)) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert api.items(namespace) == []


def test_deadlines_that_pass_leave_whole_batches_or_none(api: Api, namespace: str) -> None:
    def write(milliseconds: int) -> grpc.StatusCode:
        items = [pb.MemoryItem(text=f"{milliseconds} {i}") for i in range(50)]
        request = pb.BatchAddRequest(namespace=namespace, items=items)
        return outcome(lambda: api.memory.BatchAdd(request, timeout=milliseconds / 1000))

    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(write, range(40)))
    # RESOURCE_EXHAUSTED: it could not start in time, and did not begin.
    refused = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert set(ended) <= {grpc.StatusCode.OK, *refused}
    written = [item.text.split()[0] for item in api.items(namespace)]
    assert all(written.count(batch) == 50 for batch in set(written))
    acknowledged = {str(i) for i, code in enumerate(ended) if code is grpc.StatusCode.OK}
    assert acknowledged <= set(written)


# Responses within a client's default limit


@pytest.fixture(scope="module")
def large_namespace(api: Api) -> str:
    """200 items of 60 KB: 12 MB, of which a client accepts 4 MiB at once."""
    for batch in range(10):
        api.add_texts("large", *(f"{batch * 20 + i:03} " + "x" * 60_000 for i in range(20)))
    return "large"


def test_large_items_are_listed_in_pages_that_fit(api: Api, large_namespace: str) -> None:
    numbers = [item.text[:3] for item in api.items(large_namespace)]
    assert numbers == [f"{i:03}" for i in range(200)]


@pytest.mark.parametrize("query", [{}, {"query_text": "x"}], ids=["recency", "query"])
def test_large_items_are_retrieved_in_pages_that_fit(
    api: Api, large_namespace: str, query: dict[str, str]
) -> None:
    numbers, token = [], None
    while token != "":
        page = api.retrieve(large_namespace, limit=-1, page_token=token or "", **query)
        numbers += [result.item.text[:3] for result in page.results]
        token = page.next_page_token
    assert sorted(numbers) == [f"{i:03}" for i in range(200)]


def test_large_items_are_exported_and_watched(api: Api, large_namespace: str) -> None:
    exported = list(api.memory.Export(pb.ExportRequest(namespace=large_namespace)))
    assert len(exported) == 200
    stream = api.memory.Watch(pb.WatchRequest(namespace=large_namespace, after_revision=0))
    seen = [next(stream) for _ in range(201)]
    stream.cancel()
    assert sum(message.HasField("change") for message in seen) == 200


def test_large_vectors_are_listed_in_pages_that_fit(api: Api, namespace: str) -> None:
    values = [float(i % 7 + 1) for i in range(4096)]
    for _ in range(4):
        item = pb.MemoryItem(text="x", embedding=pb.Embedding(values=values))
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=[item] * 100))
    count, token = 0, None
    while token != "":
        request = pb.ListRequest(
            namespace=namespace, page_size=1000, page_token=token or "", include_embedding=True
        )
        page = api.memory.List(request)
        count += sum(len(item.embedding.values) == 4096 for item in page.items)
        token = page.next_page_token
    assert count == 400


def test_large_states_are_found_in_pages_that_fit(api: Api, namespace: str) -> None:
    for i in range(10):
        api.save(namespace, f"k{i}", "x" * (MIB - 2))
    keys, token = [], None
    while token != "":
        request = state_pb2.SearchStateRequest(
            namespace=namespace, pattern="*", page_size=1000, page_token=token or ""
        )
        page = api.state.SearchState(request)
        keys += [entry.key for entry in page.entries]
        token = page.next_page_token
    assert keys == [f"k{i}" for i in range(10)]


def test_the_biggest_item_fits_into_an_answer(api: Api, namespace: str) -> None:
    """A client with default limits must be able to read every accepted item."""
    binary = pb.Part(binary=pb.BinaryPart(content=bytes(MIB)))
    for count in range(1, 9):
        message = pb.ChatMessage(role=pb.ROLE_USER, parts=[binary] * count)
        request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(id=str(count), chat_message=message))
        if outcome(partial(api.memory.Add, request)) is not grpc.StatusCode.OK:
            assert refusal(api.memory.Add, request).reason == "LIMIT_EXCEEDED"
            break
        assert len(api.get(namespace, str(count)).chat_message.parts) == count
    assert len(api.items(namespace)) >= 1


# A number takes 4 bytes of JSON and 11 of a message: a page whose size is estimated by one may exceed the
# other.


def test_states_of_many_numbers_are_found_in_pages_that_fit(api: Api, namespace: str) -> None:
    for i in range(3):
        api.save(namespace, f"k{i}", [0] * 190_000)
    keys, token = [], None
    while token != "":
        request = state_pb2.SearchStateRequest(namespace=namespace, pattern="*", page_token=token or "")
        page = api.state.SearchState(request)
        keys += [entry.key for entry in page.entries]
        token = page.next_page_token
    assert keys == ["k0", "k1", "k2"]


def test_items_of_many_numbers_are_listed_in_pages_that_fit(tmp_path: Path, connect: Connect) -> None:
    item = pb.MemoryItem(data=struct({"numbers": [0] * 60_000}))
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        for _ in range(8):
            api.memory.BatchAdd(pb.BatchAddRequest(namespace="ns", items=[item] * 3))
        assert len(api.items("ns")) == 24
        server.kill()
    # The items' sizes as messages are no longer in memory.
    with ServerProcess(tmp_path) as server:
        assert len(connect(server).items("ns")) == 24


def test_an_answer_that_would_not_fit_is_no_reason_to_lie(api: Api, namespace: str) -> None:
    """The response to a written batch must be readable for the client."""
    items = [pb.MemoryItem(text="x" * 60_000)] * 100
    ended = outcome(lambda: api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items)))
    assert (ended, len(api.items(namespace))) in {
        (grpc.StatusCode.OK, 100),
        (grpc.StatusCode.INVALID_ARGUMENT, 0),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 0),
    }
