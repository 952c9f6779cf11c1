"""Refuses calls with the collector of garbage switched off, and prints how many of them are left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

import grpc

from memory_service.server.intake import intake_server

_CALLS = 50
# gRPC's own loop takes in one of so many, in its own way.
_OF_GRPC = 1


async def refuse(request: bytes, context: Any) -> bytes:
    """End a call as the server does: because of an error."""
    try:
        raise LookupError("no")
    except LookupError as error:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
    return request


class Handler(grpc.GenericRpcHandler):
    """Every method refuses."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The one method."""
        return grpc.unary_unary_rpc_method_handler(refuse)


def left_over() -> int:
    """Return how many calls there are."""
    return sum(type(each).__name__ == "_ServicerContext" for each in gc.get_objects())


async def main() -> None:
    """Make calls one after the other."""
    server = intake_server([])
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary("/any.Service/Method")
        gc.disable()
        for _ in range(_CALLS):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await call(b"")
        # The server ends a call after the client has heard of it.
        for _ in range(100):
            if (left := left_over()) <= _OF_GRPC:
                break
            await asyncio.sleep(0.01)
        print(left)
    await server.stop(0)


asyncio.run(main())
