"""Reads pipes in the server's event loop, also with readers named like gRPC's; prints the number of reads."""

from __future__ import annotations

import asyncio
import os
from functools import partial

import uvloop

from memory_service.server.admission.intake import EventLoop


async def main() -> None:
    """Write into three pipes and wait until each has been read."""
    loop, read = asyncio.get_running_loop(), asyncio.Event()
    times = 0

    def _handle_events(reader: int) -> None:
        nonlocal times
        os.read(reader, 1)
        loop.remove_reader(reader)
        times += 1
        read.set()

    def other(reader: int) -> None:
        _handle_events(reader)

    for watch in (_handle_events, partial(_handle_events), other):
        reader, writer = os.pipe()
        loop.add_reader(reader, partial(watch, reader))
        os.write(writer, b".")
        await asyncio.wait_for(read.wait(), 30)
        read.clear()
    print(times)


uvloop.run(main(), loop_factory=EventLoop)
