"""Whatever is sent to any RPC, the answer is one that was foreseen, and the server goes on."""

from __future__ import annotations

from functools import partial

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from grpc_api import METHODS, Api, path, refusal

# What is no request at all


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_bytes_that_are_no_message_are_refused_by_every_rpc(
    api: Api, namespace: str, method: MethodDescriptor
) -> None:
    garbage = [
        b"\xff" * 11,
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x07",
        b"\x00" * 64,
        b"\x0b" * 200,
        b"GET / HTTP/1.1\r\n",
    ]
    if method in WITH_NAMESPACE:
        garbage.append(b"\x0a\x02\xc3\x28")  # a namespace that is not UTF-8
    for data in garbage:
        error = refusal(partial(api.call, method), data)
        assert error.code is grpc.StatusCode.INVALID_ARGUMENT, data
    assert api.items(namespace) == []


def test_json_that_is_deeper_than_a_parser_goes_is_refused(api: Api, old: str) -> None:
    # Struct > fields entry > Value > Struct ..., 10,000 levels, made by hand: no library would.
    data = b""
    for _ in range(10_000):
        value = b"\x2a" + varint(len(data)) + data
        entry = b"\x0a\x01a\x12" + varint(len(value)) + value
        data = b"\x0a" + varint(len(entry)) + entry
    item = b"\x32" + varint(len(data)) + data
    request = b"\x0a" + varint(len(old)) + old.encode() + b"\x12" + varint(len(item)) + item
    error = refusal(partial(api.call, method_named("Add")), request)
    assert error.code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert contents(api, old) == (2, 1, 1)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def method_named(name: str) -> MethodDescriptor:
    return next(method for method in METHODS if method.name == name)


def unknown_paths() -> Iterator[str]:
    for method in METHODS[:1]:
        yield path(method) + "All"
        yield path(method).lower()
        yield path(method).replace("v1", "v2")
    yield "/nothing.Here/AtAll"
    yield "/x"


@pytest.mark.parametrize("unknown", unknown_paths())
def test_an_unknown_method_is_unimplemented(api: Api, unknown: str) -> None:
    remote = api.channel.unary_unary(unknown, request_serializer=None, response_deserializer=None)
    with pytest.raises(grpc.RpcError) as caught:
        remote(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
