"""The transport over stdin and stdout."""

from __future__ import annotations

import anyio.abc
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def serve_stdio(server: Server[anyio.abc.TaskGroup]) -> None:
    """Serve one client until stdin ends. Only the protocol is written to stdout."""
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
