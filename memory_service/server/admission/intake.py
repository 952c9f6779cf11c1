"""How calls come in from gRPC: many at a time, and none behind unread wake-ups.

Both parts use private functions of grpcio, and do without where those are not there: the server is that of
`grpc.aio.server()` then, and the event loop that of uvloop. Beside 320 callers health takes five times as
long without either of them, and a call costs a fifth more without both.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import grpc
import structlog
import uvloop
from grpc._cython import cygrpc
from grpc.aio import AbortError

_ASKED_FOR = 128
"""Calls that gRPC is asked for. Doubled, more of a crowd come in at a time, and are refused or wait here."""
_WAKE_UPS_MAX = 4096
"""Wake-ups that are read at a time. Doubled, nothing changes: gRPC's socket holds some hundreds."""
_log = structlog.get_logger(__name__)


def intake_server(options: Sequence[tuple[str, Any]]) -> grpc.aio.Server:
    """Return a server like that of `grpc.aio.server()`, but that it asks for many calls at once.

    gRPC's own asks for one call and, when that has come, for the next. Meanwhile the others wait, health too.
    """
    try:
        return cast("grpc.aio.Server", _many_at_a_time(options))
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning("calls_come_one_by_one", cause=str(error), remedy="a release of grpcio that is known")
        return grpc.aio.server(options=options)


def _many_at_a_time(options: Sequence[tuple[str, Any]]) -> Any:
    """Return such a server. Raises ImportError, AttributeError or TypeError where grpcio lacks something."""
    from grpc.aio._server import Server

    handle, schedule = cygrpc._handle_rpc, cygrpc._schedule_rpc_coro

    class IntakeServer(Server):
        def __init__(self) -> None:
            super().__init__(None, (), (), options, None, None)
            self._ask, self._is_running = self._server._request_call, self._server.is_running
            self._handlers: list[grpc.GenericRpcHandler] = []
            self._intakes: list[asyncio.Task[None]] = []

        def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
            super().add_generic_rpc_handlers(generic_rpc_handlers)
            self._handlers += generic_rpc_handlers

        async def start(self) -> None:
            await super().start()
            self._intakes = [asyncio.create_task(self._take_in()) for _ in range(_ASKED_FOR - 1)]

        async def _take_in(self) -> None:
            loop = self._loop
            while self._is_running():
                try:
                    call = await self._ask()
                except Exception:
                    # So gRPC answers when it stops.
                    if self._is_running():
                        raise
                    return
                answer = _answered(handle(self._handlers, (), call, loop, False))
                loop.create_task(schedule(answer, call, loop))

    return IntakeServer()


async def _answered(answer: Awaitable[None]) -> None:
    """Answer a call, and cut the cycle of gRPC's call, which keeps its error, which keeps the call."""
    try:
        await answer
    except AbortError as error:
        error.__context__ = None
        raise error.with_traceback(None)


class EventLoop(uvloop.Loop):
    """uvloop's, but that gRPC's wake-ups are all read when its events are handled.

    gRPC's poller thread writes a byte into a socket for each of its events; the loop handles all the events
    that there are, but reads one byte. When some 280 are unread the poller waits in its write.
    """

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call back when there is something to read."""
        of_grpc = getattr(getattr(callback, "func", None), "__name__", "") == "_handle_events"
        if of_grpc and isinstance(fd, socket.socket):
            callback, args = _after_the_last_wake_up, (fd, callback)
        super().add_reader(fd, callback, *args)


def _after_the_last_wake_up(wake_ups: socket.socket, handle_events: Callable[[], None]) -> None:
    """Handle gRPC's events after all their wake-ups were read, but one, which gRPC reads itself.

    Not before: an event comes before its wake-up, and one whose wake-up is read has to be handled.
    """
    unread = len(wake_ups.recv(_WAKE_UPS_MAX, socket.MSG_PEEK))
    if unread > 1:
        wake_ups.recv(unread - 1)
    handle_events()
