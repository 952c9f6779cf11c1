"""The floor: a grpcio server with the same messages that answers with constants.

Run as `python -m benchmarks.bare_server --address 127.0.0.1:0`; it prints the address it listens on.
"""

from __future__ import annotations

import argparse
from typing import Any

import grpc.aio
import uvloop

from benchmarks.items import answered_item
from benchmarks.settings import LIMIT
from memory_service.v1 import memory_pb2, memory_pb2_grpc

_FOUND = memory_pb2.RetrieveResponse(
    results=[
        memory_pb2.RetrieveResult(item=answered_item(number), score=0.9 - number / 100)
        for number in range(LIMIT)
    ],
    revision=100_000,
)
_ADDED = memory_pb2.AddResponse(item=answered_item(1), revision=100_000)


class BareServicer(memory_pb2_grpc.MemoryServiceServicer):
    """Answers two RPCs with prebuilt messages."""

    async def Retrieve(
        self, request: memory_pb2.RetrieveRequest, context: Any
    ) -> memory_pb2.RetrieveResponse:
        """Return ten items."""
        return _FOUND

    async def Add(self, request: memory_pb2.AddRequest, context: Any) -> memory_pb2.AddResponse:
        """Answer as if the item had been written."""
        return _ADDED


async def serve(address: str) -> None:
    """Serve until the process is terminated."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    register: Any = memory_pb2_grpc.add_MemoryServiceServicer_to_server
    register(BareServicer(), server)
    port = server.add_insecure_port(address)
    await server.start()
    print(f"listening on {address.rsplit(':', 1)[0]}:{port}", flush=True)
    await server.wait_for_termination()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1:0")
    uvloop.run(serve(parser.parse_args().address))


if __name__ == "__main__":
    main()
