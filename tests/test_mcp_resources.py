"""Resources of `memory-service mcp`: read, listed, and followed by both kinds of subscriptions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import mcp_types as types
import pytest
import pytest_asyncio
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import ResourceUpdated

from mcp_hosts import answer, for_fixture, host, parameters
from memory_client import MemoryClient
from server_process import ServerProcess

WAIT_S = 30


@pytest.fixture
def memory(server: ServerProcess, namespace: str) -> MemoryClient:
    """Another client of the namespace."""
    return MemoryClient(server.address, namespace=namespace)


@pytest_asyncio.fixture
async def agent(server: ServerProcess, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """A host with the default tools."""
    async with for_fixture(host(tmp_path, parameters(server.address, namespace))) as client:
        yield client


async def text_at(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def test_resources_are_listed_and_read(agent: Client, memory: MemoryClient) -> None:
    memory.save_memory("User likes green tea", "preference", "They said so")
    memory.add("The train leaves at nine")
    memory.write_file("/notes/my trip.md", "# Trip\n")
    memory.save_state("plan/1", {"step": 1})
    listed = [str(resource.uri) for resource in (await agent.list_resources()).resources]
    assert listed == ["memory://memories", "memory://recent", "memory://files/notes/my%20trip.md"]
    templates = (await agent.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "memory://files{+path}",
        "memory://state/{key}",
    ]
    assert "User likes green tea" in await text_at(agent, "memory://memories")
    assert await text_at(agent, "memory://recent") == "note: The train leaves at nine"
    assert await text_at(agent, "memory://files/notes/my%20trip.md") == "# Trip\n"
    assert await text_at(agent, "memory://state/plan%2F1") == '{"step": 1}'
    for uri in (
        "memory://files/none.md",
        "memory://state/none",
        "memory://knowledge-graph",
        "file:///etc/passwd",
    ):
        with pytest.raises(MCPError, match="Resource not found"):
            await agent.read_resource(uri)


async def test_a_client_that_listens_hears_of_changes_of_its_resources(
    agent: Client, memory: MemoryClient
) -> None:
    uris = ["memory://memories", "memory://files/notes/a.md", "memory://state/plan"]
    assert agent.server_capabilities.resources is not None and agent.server_capabilities.resources.subscribe
    async with asyncio.timeout(WAIT_S), agent.listen(resource_subscriptions=uris) as events:
        changes = (
            lambda: memory.save_state("other", 1) and memory.save_state("plan", 1),
            lambda: memory.add("A note") and memory.write_file("/notes/a.md", "x"),
            lambda: memory.save_memory("User likes green tea", "preference", "They said so"),
        )
        for change, uri in zip(changes, reversed(uris), strict=False):
            await asyncio.to_thread(change)
            event = await anext(aiter(events))
            assert isinstance(event, ResourceUpdated)
            expected = uri if uri != uris[0] else "memory://memories"
            assert event.uri == expected


async def test_an_older_client_subscribes_and_unsubscribes(
    server: ServerProcess, namespace: str, memory: MemoryClient, tmp_path: Path
) -> None:
    updated: asyncio.Queue[str] = asyncio.Queue()

    async def received(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updated.put_nowait(str(message.params.uri))

    command = parameters(server.address, namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with host(tmp_path, command, "legacy", message_handler=received) as client:
            for key in ("a", "a", "b"):
                await client.subscribe_resource(f"memory://state/{key}")
            await answer(client, "save_state", key="a", value=1)
            assert await asyncio.wait_for(updated.get(), WAIT_S) == "memory://state/a"
            await client.unsubscribe_resource("memory://state/a")
            memory.save_state("a", 2)
            memory.save_state("b", 1)
            assert await asyncio.wait_for(updated.get(), WAIT_S) == "memory://state/b"
            assert updated.empty()
            with pytest.raises(MCPError, match="Resource not found"):
                await client.subscribe_resource("memory://nothing")


async def test_a_subscription_survives_a_restart_of_the_server(tmp_path: Path, namespace: str) -> None:
    process = ServerProcess(tmp_path / "data").start()
    address = process.address
    try:
        async with host(tmp_path, parameters(address, namespace)) as client:
            async with (
                asyncio.timeout(WAIT_S),
                client.listen(resource_subscriptions=["memory://recent"]) as events,
            ):
                process.terminate()
                process = ServerProcess(tmp_path / "data", flags=["--address", address]).start()
                with MemoryClient(address, namespace=namespace) as memory:
                    memory.add("After the restart")
                event = await anext(aiter(events))
                assert isinstance(event, ResourceUpdated) and event.uri == "memory://recent"
    finally:
        process.kill()
