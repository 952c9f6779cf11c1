"""An open address with encryption and API keys: clients and commands against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from certificates import write_all
from memory_client import AsyncMemoryClient, MemoryClient, MemoryManager, PermissionDenied, Unauthenticated
from memory_service.cli import main
from server_process import ServerProcess


@dataclass(frozen=True)
class Guarded:
    """A server that is open to the network, and what a caller needs for it."""

    address: str
    ca: Path
    key: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server with TLS and API keys, and a key for the namespaces "a/*"."""
    folder, data = tmp_path_factory.mktemp("certificates"), tmp_path_factory.mktemp("data")
    write_all(folder)
    grant = ["--namespace", "a/*", "--role", "read", "--role", "write"]
    made = CliRunner().invoke(main, ["keys", "create", "ada", *grant, "--data-dir", str(data)])
    assert made.exit_code == 0, made.output
    pair = ("--tls-certificate", str(folder / "server.pem"), "--tls-key", str(folder / "server.key"))
    flags = ("--address", "0.0.0.0:0", "--auth", "keys", "--embedder", "none", *pair)
    with ServerProcess(data, flags=flags) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        yield Guarded(address, folder / "ca.pem", made.stdout.strip())


def test_a_key_is_good_for_what_it_was_made_for(guarded: Guarded) -> None:
    settings = {"tls": True, "root_certificates": guarded.ca.read_bytes()}
    with MemoryClient(guarded.address, namespace="a/1", api_key=guarded.key, **settings) as memory:
        assert memory.add("hello").content == "hello"
        with pytest.raises(PermissionDenied):
            memory.namespace("b").add("hello")
        with pytest.raises(PermissionDenied):
            memory.reset()
    with MemoryClient(
        guarded.address, namespace="a/1", api_key=guarded.key[:-4] + "0000", **settings
    ) as other:
        with pytest.raises(Unauthenticated) as raised:
            other.retrieve()
    assert raised.value.reason == "UNAUTHENTICATED"
    connection = {"address": guarded.address, "namespace": "a/1", "api_key": guarded.key, **settings}
    with MemoryManager(connection) as manager:
        manager.store_reflection("I may write.")


def test_the_asynchronous_client_asks_for_a_token_for_each_call(guarded: Guarded) -> None:
    tokens = iter(["", guarded.key, guarded.key])

    async def use() -> None:
        settings = {"tls": True, "root_certificates": guarded.ca.read_bytes()}
        async with AsyncMemoryClient(
            guarded.address, namespace="a/2", token_source=lambda: next(tokens) or "mem_forged", **settings
        ) as memory:
            with pytest.raises(Unauthenticated):
                await memory.add("one")
            await memory.add("two")
            assert [result.text for result in await memory.retrieve()] == ["two"]

    asyncio.run(use())


def test_commands_send_the_key(guarded: Guarded) -> None:
    def run(*words: str, **environment: str) -> Result:
        at = {"MEMORY_SERVICE_ADDRESS": guarded.address, "MEMORY_SERVICE_TLS_CA": str(guarded.ca)}
        return CliRunner(env={**at, **environment}).invoke(main, [*words, "--namespace", "a/3"])

    assert "(UNAUTHENTICATED)" in run("add", "hello").stderr
    assert run("add", "hello", MEMORY_SERVICE_API_KEY=guarded.key).exit_code == 0
    denied = run("reset", "--yes", MEMORY_SERVICE_API_KEY=guarded.key)
    assert "(PERMISSION_DENIED)" in denied.stderr
    assert guarded.key not in denied.output
