"""Ends calls with an error while the garbage collector is off; prints their number and how many are held."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import grpc

from memory_service.server.admission.intake import intake_server
from raw_http2 import HEADERS, Connection, call, call_headers, message

_CALLS = 20


class Work:
    """An object that a call holds until it is answered."""


_begun: list[weakref.ref[Work]] = []


async def _refuse(request: bytes, context: Any) -> bytes:
    work = Work()
    _begun.append(weakref.ref(work))
    try:
        raise ValueError(work)
    except ValueError:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
    return b""


async def main() -> None:
    """Make the calls, each after the previous one is answered."""
    server = intake_server([])
    method = grpc.unary_unary_rpc_method_handler(_refuse)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.Service", {"Refuse": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    gc.disable()
    await asyncio.to_thread(_make_calls, f"127.0.0.1:{port}")
    # After the stop no call is in progress.
    await server.stop(10)
    print(len(_begun), sum(work() is not None for work in _begun))


def _make_calls(address: str) -> None:
    connection = Connection(address)
    headers = call_headers("/a.Service/Refuse")
    for number in range(_CALLS):
        stream = 2 * number + 1
        connection.send(call(stream, headers, message(b"")))
        for kind, _, of_stream, _ in connection.frames():
            if kind == HEADERS and of_stream == stream:
                break
    connection.close()


asyncio.run(main())
