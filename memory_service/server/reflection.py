"""Server reflection, v1 and v1alpha, with the comments of the protos.

grpcio's implementation serves v1alpha only, and descriptors without comments. Both versions use the same wire
format.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from importlib import resources
from typing import Any

import grpc
from google.protobuf import descriptor_pool, text_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_reflection.v1alpha import reflection_pb2 as pb

from memory_service.errors import MemoryServiceError
from memory_service.server.errors import abort_of
from memory_service.server.receiving import Receiving

Context = grpc.aio.ServicerContext[Any, Any]
Admit = Callable[[Context], Awaitable[None]]
_VERSIONS = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


STREAMS_MAX = 64
"""Concurrent reflection streams of all clients."""


class Reflection:
    """Lists services, messages and files to callers that `admit` accepts."""

    def __init__(self, services: Sequence[str], admit: Admit, receiving: Receiving) -> None:
        self._admit, self._receiving = admit, receiving
        self._services = sorted([*services, *_VERSIONS])
        self._files: dict[str, FileDescriptorProto] = {}
        self._symbols: dict[str, str] = {}
        raw = resources.files("memory_service.v1").joinpath("descriptors.binpb").read_bytes()
        for file in FileDescriptorSet.FromString(raw).file:
            self._register(file)
        for service in services:
            self._register_loaded(service)
        self._register(_v1(FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)))
        self._register_loaded(_VERSIONS[1])
        self._streams = 0

    def _register_loaded(self, symbol: str) -> None:
        """Register a file that this process has loaded, such as that of the health service."""
        if symbol in self._symbols:
            return
        pool = descriptor_pool.Default()
        pending = [pool.FindFileContainingSymbol(symbol)]
        while pending:
            loaded = pending.pop()
            if loaded.name not in self._files:
                self._register(FileDescriptorProto.FromString(loaded.serialized_pb))
                pending += loaded.dependencies

    def _register(self, file: FileDescriptorProto) -> None:
        self._files[file.name] = file
        for symbol in _symbols(file):
            self._symbols[symbol] = file.name

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve both versions."""
        for version in _VERSIONS:
            handler: Any = grpc.stream_stream_rpc_method_handler(
                self._answer_within_bounds,
                response_serializer=pb.ServerReflectionResponse.SerializeToString,
            )
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(version, {"ServerReflectionInfo": handler}),)
            )

    async def _answer_within_bounds(
        self, _requests: Any, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.ServerReflectionResponse]:
        if self._streams >= STREAMS_MAX:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many reflection streams")
        self._streams += 1
        try:
            async for response in self._answer_all(context):
                yield response
        except MemoryServiceError as error:
            await context.abort(*abort_of(error))
        finally:
            self._streams -= 1

    async def _answer_all(self, context: Context) -> AsyncIterator[pb.ServerReflectionResponse]:
        await self._admit(context)
        async for raw in self._receiving.messages(context, self._receiving.hold(context)):
            await self._admit(context)
            request = pb.ServerReflectionRequest.FromString(raw)
            response = self._answer(request)
            response.valid_host = request.host
            response.original_request.CopyFrom(request)
            yield response

    def _answer(self, request: pb.ServerReflectionRequest) -> pb.ServerReflectionResponse:
        match request.WhichOneof("message_request"):
            case "list_services":
                services = [pb.ServiceResponse(name=name) for name in self._services]
                return pb.ServerReflectionResponse(
                    list_services_response=pb.ListServiceResponse(service=services)
                )
            case "file_by_filename":
                return self._file(request.file_by_filename)
            case "file_containing_symbol":
                return self._file(self._symbols.get(request.file_containing_symbol, ""))
            case "all_extension_numbers_of_type":
                # There are no extensions; an error here would keep grpcurl from decoding error details.
                none = pb.ExtensionNumberResponse(base_type_name=request.all_extension_numbers_of_type)
                return pb.ServerReflectionResponse(all_extension_numbers_response=none)
        return _not_found()

    def _file(self, name: str) -> pb.ServerReflectionResponse:
        if name not in self._files:
            return _not_found()
        needed, pending = dict[str, bytes](), [name]
        while pending:
            file = self._files.get(pending.pop())
            if file is not None and file.name not in needed:
                needed[file.name] = file.SerializeToString()
                pending += file.dependency
        return pb.ServerReflectionResponse(
            file_descriptor_response=pb.FileDescriptorResponse(file_descriptor_proto=needed.values())
        )


def _v1(alpha: FileDescriptorProto) -> FileDescriptorProto:
    """Return the file of reflection v1, which differs from v1alpha only in its name."""
    text = text_format.MessageToString(alpha).replace("v1alpha", "v1")
    return text_format.Parse(text, FileDescriptorProto())


def _not_found() -> pb.ServerReflectionResponse:
    error = pb.ErrorResponse(error_code=grpc.StatusCode.NOT_FOUND.value[0], error_message="not found")
    return pb.ServerReflectionResponse(error_response=error)


def _symbols(file: FileDescriptorProto) -> Iterable[str]:
    for message in file.message_type:
        yield from _message_symbols(f"{file.package}.{message.name}", message)
    for enum in file.enum_type:
        yield f"{file.package}.{enum.name}"
    for service in file.service:
        yield f"{file.package}.{service.name}"
        for method in service.method:
            yield f"{file.package}.{service.name}.{method.name}"


def _message_symbols(name: str, message: DescriptorProto) -> Iterable[str]:
    yield name
    for enum in message.enum_type:
        yield f"{name}.{enum.name}"
    for field in message.field:
        yield f"{name}.{field.name}"
    for inner in message.nested_type:
        yield from _message_symbols(f"{name}.{inner.name}", inner)
