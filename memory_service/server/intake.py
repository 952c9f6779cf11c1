"""A gRPC server that takes in many calls at a time.

gRPC's own asyncio server asks for one call and, when that has come, for the next: a way to another thread and
back for each. While the event loop is busy, or waits for a processor, one call comes in, and the others wait
in a queue in which nobody looks whose turn it is, those of health among them.

And it has a task more for each call, which listens whether the caller goes away. Most calls are answered long
before anybody could: here only those are listened to that take a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import grpc
from grpc._cython import cygrpc
from grpc.aio._server import Server

_ASKED_FOR = 64
# Callers are listened to after one to two rounds.
_ROUND_S = 0.05


def intake_server(options: Sequence[tuple[str, Any]]) -> grpc.aio.Server:
    """Return a server like that of `grpc.aio.server()`, but that it asks for many calls at once."""
    server: Any = _IntakeServer(options)
    return cast("grpc.aio.Server", server)


class _IntakeServer(Server):
    def __init__(self, options: Sequence[tuple[str, Any]]) -> None:
        super().__init__(None, (), None, options, None, None)
        self._handlers: list[grpc.GenericRpcHandler] = []
        # Kept, because the loop itself does not: those that wait for a call, and those that answer one.
        self._tasks: set[asyncio.Task[None]] = set()
        # Calls whose callers are not listened to yet, by their tasks: those of this round, and older ones.
        self._fresh: dict[asyncio.Task[None], Any] = {}
        self._older: dict[asyncio.Task[None], Any] = {}
        self._going_round = False

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Register handlers; before the start."""
        super().add_generic_rpc_handlers(generic_rpc_handlers)
        self._handlers += generic_rpc_handlers

    async def start(self) -> None:
        """Serve."""
        await super().start()
        for _ in range(_ASKED_FOR - 1):
            self._ask()

    def _ask(self) -> None:
        task = asyncio.create_task(self._take_in())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_in(self) -> None:
        """Wait for a call and answer it, while somebody else waits for the next."""
        server, loop = self._server, asyncio.get_running_loop()
        try:
            call = await server._request_call()
        except Exception:
            # So gRPC answers when it stops.
            if server.is_running():
                raise
            return
        if server.is_running():
            self._ask()
        task = asyncio.current_task()
        assert task is not None
        self._fresh[task] = call
        if not self._going_round:
            self._going_round = True
            loop.call_later(_ROUND_S, self._go_round)
        answer = cygrpc._handle_rpc(self._handlers, (), call, loop, False)
        try:
            await cygrpc._handle_exceptions(call, self._settled(task, answer), loop)
        finally:
            self._unheard(task)

    async def _settled(self, task: asyncio.Task[None], answer: Awaitable[None]) -> None:
        """Answer a call; nothing is left of it then."""
        try:
            await answer
        except grpc.aio.AbortError as error:
            # The call knows the error, which would know the call: they would stay until a search for cycles.
            error.__context__ = None
            raise error.with_traceback(None)
        except asyncio.CancelledError:
            # It is not answered. If it were gone now, the caller would be told that it was cancelled.
            if (call := self._unheard(task)) is not None:
                self._listen_to(task, call)
            raise
        except cygrpc.ExecuteBatchError:
            # Who asked has gone.
            return

    def _unheard(self, task: asyncio.Task[None]) -> Any:
        """Return the call of a task and forget it; None where its caller is listened to."""
        return self._fresh.pop(task, None) or self._older.pop(task, None)

    def _listen_to(self, task: asyncio.Task[None], call: Any) -> None:
        """Cancel the task of a call if its caller goes away."""
        listening = asyncio.create_task(cygrpc._handle_cancellation_from_core(task, call, task.get_loop()))
        self._tasks.add(listening)
        listening.add_done_callback(self._tasks.discard)

    def _go_round(self) -> None:
        """Listen to the callers of those calls that have taken longer than a round."""
        for task, call in self._older.items():
            self._listen_to(task, call)
        self._older, self._fresh = self._fresh, {}
        self._going_round = bool(self._older)
        if self._going_round:
            asyncio.get_running_loop().call_later(_ROUND_S, self._go_round)
