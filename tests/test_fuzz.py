"""Whatever is sent to any RPC, the answer is one that was foreseen, and the server goes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grpc_api import METHODS, Api, outcome, path, refusal, valid_request

ADD = next(method for method in METHODS if method.name == "Add")
UNARY = [m for m in METHODS if not m.client_streaming and not m.server_streaming]

# What a request may be answered with. Not among them: UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS.
FORESEEN = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
}

# No messages


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_bytes_that_are_no_message_are_refused_by_every_rpc(
    api: Api, namespace: str, method: MethodDescriptor
) -> None:
    garbage = [
        b"\xff" * 11,  # a tag that does not end
        b"\x0a\xff\xff\xff\xff\x0f",  # a length beyond the end
        b"\x07",  # a wire type that does not exist
        b"\x0b" * 200,  # groups inside groups, never closed
        b"GET / HTTP/1.1\r\n",
    ]
    if method.input_type.fields:  # the parser of a message without fields lets it pass
        garbage.append(b"\x00" * 64)  # field number 0
    if "namespace" in method.input_type.fields_by_name:
        garbage.append(b"\x0a\x02\xc3\x28")  # a namespace that is not UTF-8
    for data in garbage:
        assert refusal(partial(api.call, method), data).code is grpc.StatusCode.INVALID_ARGUMENT, data
    assert api.items(namespace) == []


def field(number: int, data: bytes) -> bytes:
    """A field of bytes on the wire, by hand."""
    length, head = len(data), bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + data


def test_json_deeper_than_any_parser_goes_is_refused(api: Api, namespace: str) -> None:
    # Struct.fields, its entry's value, Value.struct_value, Struct.fields ... as no library would write it.
    data = b""
    for _ in range(10_000):
        data = field(1, field(1, b"a") + field(2, field(5, data)))
    request = field(1, namespace.encode()) + field(2, field(6, data))
    error = refusal(partial(api.call, ADD), request)
    assert error.code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert api.items(namespace) == []


@pytest.mark.parametrize(
    "unknown",
    [path(ADD) + "All", path(ADD).lower(), path(ADD).replace("v1", "v2"), "/nothing.Here/AtAll", "/x"],
)
def test_an_unknown_method_is_unimplemented(api: Api, unknown: str) -> None:
    remote = api.channel.unary_unary(unknown, request_serializer=None, response_deserializer=None)
    with pytest.raises(grpc.RpcError) as caught:
        remote(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


# Messages of all kinds

TEXTS = st.one_of(
    st.sampled_from(["", "a", "../../etc", "a b", "\0", "\u202e🧠", "'; --", "*", "content", "labels"]),
    st.text(max_size=20),
)
INTEGERS = st.sampled_from([0, 1, -1, 2, 10, 99, 2**31 - 1, -(2**31)])
LONG_INTEGERS = st.one_of(INTEGERS, st.sampled_from([2**63 - 1, -(2**63), 253_402_300_800]))
FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 1e-45, 3.4e38, math.nan, math.inf, -math.inf])
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: TEXTS,
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=20),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_INT32: INTEGERS,
    FieldDescriptor.TYPE_INT64: LONG_INTEGERS,
    FieldDescriptor.TYPE_FLOAT: FLOATS,
    FieldDescriptor.TYPE_DOUBLE: FLOATS,
    FieldDescriptor.TYPE_ENUM: st.sampled_from([0, 1, 2, 3, 4, 99, -1]),
}
DEPTH_MAX = 6
FUZZED = ("fuzz/a", "fuzz/b")


def fill(draw: Callable[[st.SearchStrategy[Any]], Any], message: Any, depth: int) -> None:
    """Sets some fields of a message, and of the messages in it."""
    for descriptor in message.DESCRIPTOR.fields:
        # Deep down less and less is set, or a message would have no end.
        if draw(st.integers(0, 3)) > (2, 1, 0)[min(depth, 2)] or depth > DEPTH_MAX:
            continue
        if is_map(descriptor):
            fill_map(draw, message, descriptor, depth)
        elif descriptor.is_repeated:
            fill_repeated(draw, message, descriptor, depth)
        elif descriptor.message_type:
            sub_message = getattr(message, descriptor.name)
            sub_message.SetInParent()
            fill(draw, sub_message, depth + 1)
        else:
            setattr(message, descriptor.name, draw(SCALARS[descriptor.type]))


def is_map(descriptor: FieldDescriptor) -> bool:
    entry: Descriptor | None = descriptor.message_type
    return entry is not None and entry.GetOptions().map_entry


def fill_map(draw: Any, message: Any, descriptor: FieldDescriptor, depth: int) -> None:
    value = descriptor.message_type.fields_by_name["value"]
    container = getattr(message, descriptor.name)
    for key in draw(st.lists(TEXTS, max_size=3)):
        if value.message_type:
            fill(draw, container[key], depth + 1)
        else:
            container[key] = draw(SCALARS[value.type])


def fill_repeated(draw: Any, message: Any, descriptor: FieldDescriptor, depth: int) -> None:
    container = getattr(message, descriptor.name)
    for _ in range(draw(st.integers(0, 3))):
        if descriptor.message_type:
            fill(draw, container.add(), depth + 1)
        else:
            container.append(draw(SCALARS[descriptor.type]))


@st.composite
def requests(draw: Any, method: MethodDescriptor) -> Message:
    """A request of the RPC, half of them a valid one in which some fields are changed."""
    namespace = draw(st.sampled_from(FUZZED))
    if draw(st.booleans()):
        message = valid_request(method, namespace)
        fill(draw, message, 1)
    else:
        message = GetMessageClass(method.input_type)()
        fill(draw, message, 0)
    if hasattr(message, "namespace") and draw(st.integers(0, 9)):
        message.namespace = namespace
    return message


@pytest.mark.parametrize("method", UNARY, ids=lambda method: method.name)
def test_every_answer_to_any_message_was_foreseen(api: Api, namespace: str, method: MethodDescriptor) -> None:
    @settings(
        max_examples=40,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(requests(method))
    def send(request: Message) -> None:
        assert outcome(partial(api.call, method, request)) in FORESEEN

    for fuzzed in FUZZED:
        if outcome(partial(api.get, fuzzed, "old")) is grpc.StatusCode.NOT_FOUND:
            api.add(fuzzed, id="old", text="old")
        api.save(fuzzed, "old", "old")
    send()
    api.add(namespace, text="still here")
    assert api.found(namespace, query_text="still here") == ["still here"]
