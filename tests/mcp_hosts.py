"""The MCP server as a process, called by the official SDK's client as a host would."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


def parameters(address: str, namespace: str, *options: str, **environment: str) -> StdioServerParameters:
    """Return how a host starts the command; `environment` without the prefix of its names."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_SERVICE_", "OPENAI_"))}
    given = {f"MEMORY_SERVICE_{name}": value for name, value in environment.items()}
    settings = {"MEMORY_SERVICE_ADDRESS": address, "MEMORY_SERVICE_NAMESPACE": namespace}
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "memory_service", "mcp", *options],
        env=inherited | settings | given,
    )


@asynccontextmanager
async def host(
    tmp_path: Path, command: StdioServerParameters, mode: str = "auto", **settings: Any
) -> AsyncIterator[Client]:
    """A client connected to the command, whose stderr goes to the file `tmp_path`/stderr."""
    with (tmp_path / "stderr").open("a") as errors:
        async with Client(stdio_client(command, errlog=errors), mode=mode, **settings) as client:
            yield client


@asynccontextmanager
async def for_fixture(opened: AbstractAsyncContextManager[Client]) -> AsyncIterator[Client]:
    """The same client for a fixture: pytest sets it up and tears it down in different tasks."""
    client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    end = asyncio.Event()

    async def hold() -> None:
        async with opened as connected:
            client.set_result(connected)
            await end.wait()

    task = asyncio.create_task(hold())
    await asyncio.wait([task, client], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    yield client.result()
    end.set()
    await task


async def failure(client: Client, name: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool that must fail; return the text that the model reads."""
    result = await client.call_tool(name, dict(arguments))
    assert result.is_error, (name, arguments, result)
    assert "Traceback" not in result.content[0].text
    text: str = result.content[0].text
    return text


async def answer(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; the SDK compares its structured output with its schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, (name, arguments, result.content[0].text)
    found: dict[str, Any] = result.structured_content
    return found
