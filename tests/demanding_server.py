"""A gRPC server that demands a bearer token for every call and returns empty responses."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

_CODES = {
    "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
    "PERMISSION_DENIED": grpc.StatusCode.PERMISSION_DENIED,
}


class DemandingServer(grpc.GenericRpcHandler):
    """Accepts tokens that begin with "good"; one that begins with "weak" is denied permission.

    `asked` has the method and the authorization header of every call, `namespaces` its memory-namespace.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.namespaces: list[str | None] = []
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Record the call; on the wire a call with one message is a stream of one."""
        headers = dict(handler_call_details.invocation_metadata or ())
        authorization = str(headers.get("authorization", ""))
        namespace = headers.get("memory-namespace")
        self.namespaces.append(None if namespace is None else str(namespace))
        self.asked.append((handler_call_details.method.rpartition("/")[2], authorization))

        def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            if not authorization.startswith("Bearer good"):
                _refuse(context, "PERMISSION_DENIED" if "weak" in authorization else "UNAUTHENTICATED")
            for _ in requests:
                pass
            yield b""

        return grpc.stream_stream_rpc_method_handler(answer)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.stop(None).wait()


def _refuse(context: grpc.ServicerContext, code: str) -> Any:
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=f"ERROR_REASON_{code}", domain="memory_service.v1"))
    status = status_pb2.Status(code=_CODES[code].value[0], message="refused", details=[detail])
    context.abort_with_status(rpc_status.to_status(status))
