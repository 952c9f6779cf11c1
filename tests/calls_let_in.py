"""Makes calls to a server that lets in so many, prints how many came, and stops it while the others wait."""

from __future__ import annotations

import asyncio

import grpc

from memory_service.server.inlet import Inlet
from memory_service.server.intake import intake_server
from raw_http2 import calls_that_came

_CALLS = 40


class Handler(grpc.GenericRpcHandler):
    """Counts the calls."""

    def __init__(self) -> None:
        self.came_in = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> None:
        """There are no methods: each call is answered with UNIMPLEMENTED."""
        self.came_in += 1


async def main() -> None:
    """Let in three, then five more."""
    handler, inlet = Handler(), Inlet()
    inlet.limit(0)
    server = intake_server([], inlet)
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    connection = calls_that_came(f"127.0.0.1:{port}", _CALLS)
    for more in (0, 3, 5):
        inlet.limit(more)
        async with asyncio.timeout(30):
            while not inlet.used_up:  # noqa: ASYNC110 - calls come one by one
                await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)
        print(handler.came_in)
    async with asyncio.timeout(30):
        await server.stop(0)
    print(handler.came_in)
    connection.close()


asyncio.run(main())
