"""Health checks on a separate port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from certificates import write_all
from embedding_provider import EmbeddingProvider
from grpc_api import Connect
from memory_service.cli import main
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from server_process import ServerProcess

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = ("", "memory_service.v1.MemoryService", "memory_service.v1.AdminService")
OWN = ("--health-address", "127.0.0.1:0")
LIGHT = ("--store", "memory", "--embedder", "none")


def check(channel: grpc.Channel, service: str = "") -> object:
    """Return the health of a service."""
    request = health_pb2.HealthCheckRequest(service=service)
    return health_pb2_grpc.HealthStub(channel).Check(request, timeout=30).status


@pytest.fixture
def provider() -> Iterator[EmbeddingProvider]:
    """A provider of embeddings."""
    with EmbeddingProvider() as provider:
        yield provider


def test_it_needs_no_tls_and_no_certificate_and_there_is_nothing_else(tmp_path: Path) -> None:
    write_all(tmp_path)
    files = {"certificate": "server.pem", "key": "server.key", "client-ca": "ca.pem"}
    tls = [part for name, file in files.items() for part in (f"--tls-{name}", str(tmp_path / file))]
    with ServerProcess(flags=(*LIGHT, *OWN, *tls)) as server:
        with grpc.insecure_channel(server.health_address) as channel:
            assert [check(channel, service) for service in SERVICES] == [SERVING] * len(SERVICES)
            with pytest.raises(grpc.RpcError) as caught:
                memory_pb2_grpc.MemoryServiceStub(channel).List(pb.ListRequest(namespace="ns"))
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            with pytest.raises(grpc.RpcError) as caught:
                ProtoReflectionDescriptorDatabase(channel).get_services()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        # The other port still requires both.
        with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
            check(channel)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_it_tells_that_a_server_stops_until_it_has_stopped(
    tmp_path: Path, connect: Connect, provider: EmbeddingProvider
) -> None:
    server = ServerProcess(tmp_path, flags=(*provider.flags, *OWN), env=provider.env)
    with server, grpc.insecure_channel(server.health_address) as channel, ThreadPoolExecutor(1) as pool:
        api = connect(server)
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watch).status == SERVING
        provider.hold()
        request = pb.AddRequest(namespace="ns", item=pb.MemoryItem(text="in flight"))
        write = api.memory.Add.future(request)
        assert provider.asked.wait(30)
        stopping = pool.submit(server.terminate)
        assert next(watch).status == NOT_SERVING
        # Long after the main port has been closed to new calls.
        with grpc.insecure_channel(server.address) as own:
            while connected(own):
                assert not stopping.done()
        assert not write.done()
        assert check(channel) == NOT_SERVING
        provider.may_answer.set()
        assert write.result().item.text == "in flight"
        assert stopping.result() == 0


def connected(channel: grpc.Channel) -> bool:
    """Return whether calls on this channel still get a response, even if it is the server's own error."""
    try:
        check(channel)
    except grpc.RpcError:
        return False
    return True


@pytest.mark.parametrize("option", ["--address", "--health-address"])
def test_a_port_that_is_taken_ends_the_start_and_is_named(option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RuntimeError, match=f"cannot listen on {address}"):
            ServerProcess(flags=(*LIGHT, *OWN, option, address)).start()


@pytest.mark.parametrize("address", ["50052", ":50052", "127.0.0.1:x", "127.0.0.1:65536"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(RuntimeError, match="health_address .* is not HOST:PORT"):
        ServerProcess(flags=(*LIGHT, "--health-address", address)).start()


def test_the_command_health_asks_for_no_more_there() -> None:
    with ServerProcess(flags=(*LIGHT, *OWN)) as server:
        asked = CliRunner().invoke(main, ["health", "--address", server.health_address])
    assert (asked.exit_code, asked.output) == (0, "status: serving\n")


def test_a_server_that_is_not_told_to_has_none() -> None:
    with ServerProcess(flags=LIGHT) as server:
        assert server.health_address == ""
