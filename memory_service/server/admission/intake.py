"""Receives calls from gRPC: many at a time, and not delayed by unread wake-ups.

Both parts use private functions of grpcio and fall back to public ones if those are missing: to the server of
`grpc.aio.server()`, and the event loop of uvloop. Under load from 320 callers, health checks take five times
as long without either part, and a call costs a fifth more without both.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import grpc
import uvloop
from grpc._cython import cygrpc
from grpc.aio import AbortError

from memory_service.runtime.event_log import EventLog

_ASKED_FOR = 128
"""Calls requested from gRPC at a time.

Doubled: more calls of a burst arrive at once, to be queued or refused here.
"""
_WAKE_UPS_MAX = 4096
"""Wake-ups read at a time. Doubled: no effect, because gRPC's socket holds some hundreds."""
_log = EventLog(__name__)


def intake_server(options: Sequence[tuple[str, Any]]) -> grpc.aio.Server:
    """Return a server like that of `grpc.aio.server()` that requests many calls at once.

    gRPC's own requests one call, and the next one when that has arrived. Meanwhile all others wait, including
    health checks.
    """
    try:
        return cast("grpc.aio.Server", _many_at_a_time(options))
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning(
            "calls_come_one_by_one", cause=str(error), remedy="install a supported release of grpcio"
        )
        return grpc.aio.server(options=options)


def _many_at_a_time(options: Sequence[tuple[str, Any]]) -> Any:
    """Return such a server. Raises ImportError, AttributeError or TypeError if grpcio lacks something."""
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
                    # gRPC responds this way when it stops.
                    if self._is_running():
                        raise
                    return
                answer = _answered(handle(self._handlers, (), call, loop, False))
                loop.create_task(schedule(answer, call, loop))

    return IntakeServer()


async def _answered(answer: Awaitable[None]) -> None:
    """Answer a call, and break the reference cycle between gRPC's call and its error."""
    try:
        await answer
    except AbortError as error:
        error.__context__ = None
        raise error.with_traceback(None)


class EventLoop(uvloop.Loop):
    """uvloop's event loop, except that it reads all of gRPC's wake-ups when it handles its events.

    gRPC's poller thread writes a byte to a socket for each event; the loop handles all pending events, but
    reads one byte. With some 280 unread bytes the poller blocks in its write.
    """

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call back when the descriptor is readable."""
        of_grpc = getattr(getattr(callback, "func", None), "__name__", "") == "_handle_events"
        if of_grpc and isinstance(fd, socket.socket):
            callback, args = _after_the_last_wake_up, (fd, callback)
        super().add_reader(fd, callback, *args)


def _after_the_last_wake_up(wake_ups: socket.socket, handle_events: Callable[[], None]) -> None:
    """Handle gRPC's events after reading all their wake-ups except one, which gRPC reads itself.

    Not before: an event precedes its wake-up, and an event whose wake-up was read must be handled.
    """
    unread = len(wake_ups.recv(_WAKE_UPS_MAX, socket.MSG_PEEK))
    if unread > 1:
        wake_ups.recv(unread - 1)
    handle_events()
