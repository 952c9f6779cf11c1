"""Reflection: a client without the protos sees services, comments and error details."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from grpc_reflection.v1alpha import reflection_pb2 as reflection

import memory_service
from grpc_api import SERVICES, Connect
from memory_service import errors
from memory_service.v1 import error_reason_pb2
from server_process import ServerProcess

File = descriptor_pb2.FileDescriptorProto


class Reflection:
    """A stream of reflection in either version: their messages are the same on the wire."""

    def __init__(self, channel: grpc.Channel, version: str) -> None:
        self._remote = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection.ServerReflectionResponse.FromString,
        )

    def ask(self, *requests: reflection.ServerReflectionRequest) -> list[reflection.ServerReflectionResponse]:
        return list(self._remote(iter(requests)))

    def files(self, request: reflection.ServerReflectionRequest) -> list[File]:
        response = self.ask(request)[0]
        assert response.HasField("file_descriptor_response"), response
        return [File.FromString(data) for data in response.file_descriptor_response.file_descriptor_proto]

    def files_of(self, symbol: str) -> list[File]:
        return self.files(reflection.ServerReflectionRequest(file_containing_symbol=symbol))

    def file_named(self, name: str) -> File:
        files = self.files(reflection.ServerReflectionRequest(file_by_filename=name))
        return next(file for file in files if file.name == name)


@pytest.fixture(params=["v1", "v1alpha"])
def reflected(server: ServerProcess, connect: Connect, request: pytest.FixtureRequest) -> Reflection:
    return Reflection(connect(server).channel, request.param)


def test_every_service_is_listed(reflected: Reflection) -> None:
    response = reflected.ask(reflection.ServerReflectionRequest(list_services=""))[0]
    listed = {service.name for service in response.list_services_response.service}
    assert {service.full_name for service in SERVICES} <= listed
    assert {
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    } <= listed


def test_every_listed_service_can_be_described(reflected: Reflection) -> None:
    response = reflected.ask(reflection.ServerReflectionRequest(list_services=""))[0]
    for service in response.list_services_response.service:
        package, _, name = service.name.rpartition(".")
        files = reflected.files_of(service.name)
        assert any(f.package == package and name in [s.name for s in f.service] for f in files)


def load_all(reflected: Reflection, symbol: str) -> descriptor_pool.DescriptorPool:
    """Return what a client fetches: the file of a symbol, and every file that it imports."""
    pool, loaded = descriptor_pool.DescriptorPool(), set()

    def load(file: File) -> None:
        if file.name in loaded:
            return
        loaded.add(file.name)
        for dependency in file.dependency:
            load(reflected.file_named(dependency))
        pool.AddSerializedFile(file.SerializeToString())

    load(next(f for f in reflected.files_of(symbol) if f.package == symbol.rpartition(".")[0]))
    return pool


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_client_can_build_every_message(reflected: Reflection, service: ServiceDescriptor) -> None:
    pool = load_all(reflected, service.full_name)
    found = pool.FindServiceByName(service.full_name)
    assert [m.name for m in found.methods] == [m.name for m in service.methods]
    for method in found.methods:
        assert pool.FindMessageTypeByName(method.input_type.full_name).full_name.endswith("Request")


def comments(file: File) -> dict[tuple[int, ...], str]:
    return {tuple(location.path): location.leading_comments for location in file.source_code_info.location}


def elements(file: File) -> Iterator[tuple[int, ...]]:
    """Yield the paths of services, RPCs, messages and fields, by the field numbers of FileDescriptorProto."""
    for s, service in enumerate(file.service):
        yield (6, s)
        yield from ((6, s, 2, m) for m in range(len(service.method)))
    for m, message in enumerate(file.message_type):
        yield (4, m)
        yield from ((4, m, 2, f) for f in range(len(message.field)))


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_everything_comes_with_its_comment(reflected: Reflection, service: ServiceDescriptor) -> None:
    file = next(f for f in reflected.files_of(service.full_name) if f.package == "memory_service.v1")
    found = comments(file)
    assert [path for path in elements(file) if not found.get(path, "").strip()] == []
    assert "grpcurl" in found[(6, 0)]


@pytest.mark.parametrize("name", ["BadRequest", "ErrorInfo", "RetryInfo"])
def test_error_details_can_be_decoded(reflected: Reflection, name: str) -> None:
    pool = load_all(reflected, f"google.rpc.{name}")
    assert pool.FindMessageTypeByName(f"google.rpc.{name}").fields
    # grpcurl shows details undecoded if this request fails.
    request = reflection.ServerReflectionRequest(all_extension_numbers_of_type=f"google.rpc.{name}")
    response = reflected.ask(request)[0]
    assert response.HasField("all_extension_numbers_response"), response


def test_what_is_unknown_is_told_and_the_stream_goes_on(reflected: Reflection) -> None:
    responses = reflected.ask(
        reflection.ServerReflectionRequest(file_containing_symbol="no.such.Thing"),
        reflection.ServerReflectionRequest(file_by_filename="/etc/passwd"),
        reflection.ServerReflectionRequest(),
        reflection.ServerReflectionRequest(list_services=""),
    )
    kinds = [response.WhichOneof("message_response") for response in responses]
    assert kinds == ["error_response"] * 3 + ["list_services_response"]
    assert responses[0].error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def subclasses(cls: type) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from subclasses(child)


def reasons_in(source: str, classes: set[str]) -> set[str]:
    """Yield the upper-case texts that are passed to an error's constructor."""
    made = {*classes, "cls", "__init__"}
    texts: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in made:
            arguments = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "reason")]
            texts |= {a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)}
        if isinstance(node, ast.arguments):  # "reason" as a default
            named = dict(zip(node.kwonlyargs, node.kw_defaults, strict=True))
            defaults = [default for argument, default in named.items() if argument.arg == "reason"]
            texts |= {str(default.value) for default in defaults if isinstance(default, ast.Constant)}
    return {text for text in texts if text.isupper()}


def test_every_reason_of_an_error_is_in_the_proto() -> None:
    classes = {cls.__name__ for cls in subclasses(errors.MemoryServiceError)}
    package = Path(memory_service.__file__).parent
    sources = [file.read_text() for file in package.rglob("*.py") if file.parent.name != "v1"]
    used = set().union(*(reasons_in(source, classes) for source in sources))
    names = error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_name
    in_proto = {name.removeprefix("ERROR_REASON_") for name in names}
    assert used - in_proto == set()
    assert len(used) > 15  # otherwise the search above finds nothing


@pytest.mark.parametrize("cls", list(subclasses(errors.MemoryServiceError)), ids=lambda cls: cls.__name__)
def test_every_error_class_has_a_reason_of_its_own(cls: type) -> None:
    # A limit has its reason, whichever it is.
    assert (
        reasons_in(inspect.getsource(cls), {cls.__name__})
        or "reason" in inspect.signature(cls).parameters
        or errors.LimitExceeded in cls.__mro__
    )
