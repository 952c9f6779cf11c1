"""A gRPC server that takes in many calls at a time.

gRPC's own asyncio server asks for one call and, when that has come, for the next: a way to another thread and
back for each. While the event loop is busy, or waits for a processor, one call comes in, and the others wait
in a queue in which nobody looks whose turn it is, those of health among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import grpc
from grpc._cython import cygrpc
from grpc.aio import AbortError
from grpc.aio._server import Server

from memory_service.giving_way import arrive
from memory_service.server.inlet import Inlet

_ASKED_FOR = 128


def intake_server(options: Sequence[tuple[str, Any]], inlet: Inlet | None = None) -> grpc.aio.Server:
    """Return a server like that of `grpc.aio.server()`, but that it asks for many calls at once.

    It asks for as many as `inlet` lets in.
    """
    server: Any = _IntakeServer(options, inlet or Inlet())
    return cast("grpc.aio.Server", server)


class _LimitedServer(cygrpc.AioServer):  # type: ignore[misc]
    inlet: Inlet

    async def _request_call(self) -> Any:
        return await self.inlet.ask(super()._request_call)


class _IntakeServer(Server):
    def __init__(self, options: Sequence[tuple[str, Any]], inlet: Inlet) -> None:
        # Not as `Server` itself does it: that has no place for another class of the server within.
        self._loop = cygrpc.get_working_loop()
        self._server = _LimitedServer(self._loop, None, (), None, tuple(options), None)
        self._server.inlet = self._inlet = inlet
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._intakes: list[asyncio.Task[None]] = []

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Register handlers; before the start."""
        super().add_generic_rpc_handlers(generic_rpc_handlers)
        self._handlers += generic_rpc_handlers

    async def start(self) -> None:
        """Serve."""
        await super().start()
        self._intakes = [asyncio.create_task(self._take_in()) for _ in range(_ASKED_FOR - 1)]

    async def stop(self, grace: float | None) -> None:
        """Stop; gRPC waits for its own request to come back."""
        self._inlet.end()
        await super().stop(grace)

    async def _take_in(self) -> None:
        server, handlers, loop = self._server, self._handlers, asyncio.get_running_loop()
        while server.is_running():
            try:
                call = await server._request_call()
            except Exception:
                # So gRPC answers when it stops.
                if server.is_running():
                    raise
                return
            arrive()
            answer = _answered(cygrpc._handle_rpc(handlers, (), call, loop, False))
            loop.create_task(cygrpc._schedule_rpc_coro(answer, call, loop))


async def _answered(answer: Awaitable[None]) -> None:
    """Answer a call, and leave nothing of it behind.

    gRPC keeps the error that ended a call in the call, and the frames of an error keep the call. What is
    refused by the thousands would wait for the garbage collector, which then stops everything for a while.
    """
    try:
        await answer
    except AbortError as error:
        error.__context__ = None
        raise error.with_traceback(None)
