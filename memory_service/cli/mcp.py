"""The command that serves agents over the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import click

from memory_service.cli.connection import CONNECTION_ARGUMENTS, connection_settings
from memory_service.cli.options import DEFAULT_NAMESPACE, connection_options, option


@click.command()
@connection_options
@option("--namespace", default=DEFAULT_NAMESPACE, help="Namespace to act on.")
@option("--timeout", default=30.0, help="Seconds to wait for a response.")
@option(
    "--toolset",
    variable="MCP_TOOLSET",
    type=click.Choice(["memory", "knowledge-graph"]),
    default="memory",
    help="Tools to offer; knowledge-graph has those of the reference server server-memory.",
)
@option(
    "--allow-namespace",
    variable="MCP_ALLOW_NAMESPACE",
    is_flag=True,
    help="Let the model choose the namespace of each call. The credential still limits it.",
)
@option(
    "--max-characters",
    variable="MCP_MAX_CHARACTERS",
    type=click.IntRange(2000, 1_000_000),
    default=20_000,
    help="Maximum length of an answer as JSON.",
)
def mcp(
    *,
    address: str,
    namespace: str,
    timeout: float,
    toolset: str,
    allow_namespace: bool,
    max_characters: int,
    **connection: Any,
) -> None:
    """Serve memory to an agent over MCP, on stdin and stdout.

    An MCP host starts this command; see docs/mcp.md. The memory server need not be running.
    """
    import asyncio
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from memory_client import AsyncMemoryClient
    from memory_service.cli.session import reported_errors
    from memory_service.mcp.server import TOOLSETS, MemoryServer
    from memory_service.mcp.stdio import serve_stdio

    settings = connection_settings(**{name: connection[name] for name in CONNECTION_ARGUMENTS})

    async def serve() -> None:
        # Few attempts and no waiting, so that the model soon learns that the server is down.
        async with AsyncMemoryClient(
            address, namespace=namespace, timeout_s=timeout, max_attempts=3, wait_for_ready=False, **settings
        ) as memory:
            server = MemoryServer(
                TOOLSETS[toolset], lambda context: memory, address, allow_namespace, max_characters
            )
            await serve_stdio(server.build())

    with reported_errors(address, encrypted=settings["tls"]):
        asyncio.run(serve())
