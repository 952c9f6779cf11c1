"""Makes calls while its event loop is blocked; prints how many wake-ups it then reads in one turn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvloop

from memory_service.server.admission.intake import EventLoop, intake_server
from raw_http2 import calls_that_came

_CALLS = 40


class Loop(EventLoop):
    """Records the socket through which gRPC wakes it, the only one that it reads here."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Watch a socket for input."""
        self.wake_ups: socket.socket = fd
        super().add_reader(fd, callback, *args)

    def unread(self) -> int:
        """Return the number of unread wake-ups."""
        try:
            return len(self.wake_ups.recv(1 << 12, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return 0


async def main() -> None:
    """Let calls wait in gRPC, then let the loop go on."""
    server = intake_server([])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    await asyncio.sleep(0)
    connection = calls_that_came(f"127.0.0.1:{port}", _CALLS)
    while (unread := loop.unread()) < _CALLS:
        pass
    read_at_once = 0
    while unread:
        await asyncio.sleep(0)
        left = loop.unread()
        read_at_once = max(read_at_once, unread - left)
        unread = left
    print(read_at_once)
    connection.close()
    await server.stop(0)


uvloop.run(main(), loop_factory=Loop)
