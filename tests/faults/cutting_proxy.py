"""A proxy in front of a server that passes as many bytes as a test says, and then holds the rest back or
cuts.

It knows nothing of the protocol, only TCP.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Direction:
    """The traffic in one direction, over all connections."""

    bytes_left: int | None = None
    """How many more bytes pass; None: all."""
    cuts: bool = False
    """Whether connections are then cut; otherwise the bytes are held back."""
    withheld: bytearray = field(default_factory=bytearray)


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection without a shutdown."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class CuttingProxy:
    """Use it as a context manager and connect to `address`."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self.requests = Direction()
        self.answers = Direction()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.address = ""

    def __enter__(self) -> CuttingProxy:
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server, self._meet, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *exc: object) -> None:
        self._in_loop(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work: Callable[..., object], *arguments: object) -> object:
        return asyncio.run_coroutine_threadsafe(work(*arguments), self._loop).result(30)

    async def _close(self) -> None:
        self._server.close()
        self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold_answers(self) -> None:
        """Hold back all bytes of responses from now on."""
        self.answers = Direction(bytes_left=0)

    def hold_all(self) -> None:
        """Let nothing pass from now on, without notice: both ends are half open."""
        self.requests, self.answers = Direction(bytes_left=0), Direction(bytes_left=0)

    def pass_all(self) -> None:
        """Let everything pass from now on, except for what was held back."""
        self.requests, self.answers = Direction(), Direction()

    def cut(self) -> None:
        """Reset all connections; new ones are accepted."""

        async def cut() -> None:
            self._cut()

        self._in_loop(cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            reset(writer)
        self._writers.clear()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server, from_server = None, None
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
            self._writers |= {writer, to_server}
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, to_server, lambda: self.requests))
                group.create_task(self._pump(from_server, writer, lambda: self.answers))
        except* (OSError, asyncio.CancelledError):
            pass  # Cut by one of its ends, or by the test.
        finally:
            for each in (writer, to_server):
                if each is not None:
                    each.transport.abort()
                    self._writers.discard(each)
            self._tasks.discard(task)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Callable[[], Direction]
    ) -> None:
        while data := await reader.read(65536):
            way = direction()
            passing = data if way.bytes_left is None else data[: way.bytes_left]
            way.withheld += data[len(passing) :]
            if way.bytes_left is not None:
                way.bytes_left -= len(passing)
            writer.write(passing)
            await writer.drain()
            if way.cuts and way.withheld:
                self._cut()
                return
        # When either side ends the connection, it ends for both.
        raise ConnectionResetError
