"""Makes calls while its own event loop is blocked, and prints the most calls that arrived in one turn."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from types import SimpleNamespace

import grpc

from memory_service.server.admission import intake
from memory_service.server.logs import configure_logging
from raw_http2 import calls_that_came

_CALLS = 40


class Handler(grpc.GenericRpcHandler):
    """Records in which turn of the event loop each call is looked up."""

    def __init__(self) -> None:
        self.turn = 0
        self.came_in: Counter[int] = Counter()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> None:
        """Return no method: each call fails with UNIMPLEMENTED."""
        self.came_in[self.turn] += 1


async def main() -> None:
    """Let calls wait in gRPC, then let them in."""
    configure_logging("error")
    handler = Handler()
    if missing := os.environ.get("WITHOUT"):
        known = {name: part for name, part in vars(intake.cygrpc).items() if name != missing}
        intake.cygrpc = SimpleNamespace(**known)  # type: ignore[assignment]
    server = intake.intake_server([])
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await asyncio.sleep(0)
    connection = calls_that_came(f"127.0.0.1:{port}", _CALLS)
    while sum(handler.came_in.values()) < _CALLS:
        await asyncio.sleep(0)
        handler.turn += 1
    print(max(handler.came_in.values()))
    connection.close()
    await server.stop(0)


asyncio.run(main())
