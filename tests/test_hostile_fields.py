"""Each field of each request gets each hostile value of its type; every outcome is a foreseen code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from grpc_api import FORESEEN, METHODS, Api, is_map, path, valid_request
from memory_service.v1 import state_pb2
from server_process import ServerProcess

TEXTS = [
    "",
    " \t\n",
    "a\0b",
    "\u202eabc\u2066\u200b\ufeff",
    "e" + "\u0301" * 500,
    "../../etc/passwd",
    "C:\\CON",
    "%2e%2e%2f",
    "-rf",
    '"',
    "AND NEAR(a b) text:secret ^*",
    "%_\\",
    "') OR '1'='1'; --",
    "a\" = 1 OR labels['x'] != \"",
    "(a+)+$" * 20,
    "[" * 300,
    "\\u0000\ud7ff\U0010ffff",
    "x" * 4096,
    "ZmFrZQ==",
]
INTEGERS = [0, 1, -1, 2**31 - 1, -(2**31)]
LONG_INTEGERS = [*INTEGERS, 2**63 - 1, -(2**63), 253_402_300_800]
FLOATS = [0.0, -0.0, -1.0, 1e-45, 1e38, math.nan, math.inf, -math.inf]
HOSTILE: dict[int, list[Any]] = {
    FieldDescriptor.TYPE_STRING: TEXTS,
    FieldDescriptor.TYPE_BYTES: [b"", b"\0", b"\xff" * 64],
    FieldDescriptor.TYPE_BOOL: [False, True],
    FieldDescriptor.TYPE_INT32: INTEGERS,
    FieldDescriptor.TYPE_INT64: LONG_INTEGERS,
    FieldDescriptor.TYPE_FLOAT: FLOATS,
    FieldDescriptor.TYPE_DOUBLE: [*FLOATS, 1e308],
    FieldDescriptor.TYPE_ENUM: [0, 99, -1],
}
DEPTH_MAX = 4
NAMESPACE = "hostile/fields"

Steps = tuple[FieldDescriptor, ...]


@pytest.fixture(scope="module")
def api(server: ServerProcess) -> Iterator[Api]:
    """One store is enough, since these requests do not reach it: thousands of requests take time."""
    api = Api.connect(server.address)
    yield api
    api.channel.close()


def leaves(descriptor: Descriptor, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the path to each field that is not a message; messages within their own type are left out."""
    for field in descriptor.fields:
        inner = field.message_type
        if inner is None or is_map(field):
            yield (*steps, field)
        elif len(steps) < DEPTH_MAX and inner not in [step.message_type for step in steps]:
            yield from leaves(inner, (*steps, field))


def put(message: Any, steps: Steps, value: Any) -> None:
    """Set the field at the end of the path, and create the messages on the way."""
    field, *rest = steps
    if rest:
        inner = getattr(message, field.name)
        put(inner.add() if field.is_repeated else inner, tuple(rest), value)
        if not field.is_repeated:
            inner.SetInParent()
    elif field.is_repeated:
        getattr(message, field.name).extend([value, value])
    else:
        setattr(message, field.name, value)


def put_entry(message: Any, steps: Steps, key: str) -> None:
    """Set an entry of the map at the end of the path, with a hostile key and value."""
    for step in steps[:-1]:
        inner = getattr(message, step.name)
        message = inner.add() if step.is_repeated else inner
    entry = steps[-1].message_type.fields_by_name["value"]
    container = getattr(message, steps[-1].name)
    if entry.message_type:
        container[key].SetInParent()
        if entry.message_type.full_name == "google.protobuf.Value":
            container[key].string_value = key
    elif entry.type == FieldDescriptor.TYPE_STRING:
        container[key] = key
    else:
        container[key] = HOSTILE[entry.type][-1]


def hostile_requests(method: MethodDescriptor) -> Iterator[tuple[str, Message]]:
    """Yield requests with one hostile field, valid otherwise."""
    for steps in leaves(method.input_type):
        name = ".".join(step.name for step in steps)
        for value in TEXTS if is_map(steps[-1]) else HOSTILE[steps[-1].type]:
            request = valid_request(method, NAMESPACE)
            # Lists are cleared first, so that the value does not stand beside the valid one.
            if len(steps) > 1 and steps[0].is_repeated:
                request.ClearField(steps[0].name)
            (put_entry if is_map(steps[-1]) else put)(request, steps, value)
            yield f"{name}={value!r:.40}", request


def prepare(api: Api) -> None:
    """Write what valid requests refer to."""
    for item in api.items(NAMESPACE):
        if item.id == "old":
            break
    else:
        api.add(NAMESPACE, id="old", text="old")
    api.save(NAMESPACE, "old", "old")


def answers(api: Api, method: MethodDescriptor) -> Iterator[tuple[str, grpc.StatusCode]]:
    """Yield the outcome of each hostile request; many run at a time."""
    kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
        "stream" if method.server_streaming else "unary"
    )
    remote = getattr(api.channel, kind)(
        path(method),
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    waiting: list[tuple[str, Any]] = []
    for name, request in hostile_requests(method):
        if method.server_streaming:
            yield name, first(remote(request))
            continue
        call = remote.future(iter([request]) if method.client_streaming else request)
        waiting.append((name, call))
        if len(waiting) == 32:
            yield from ((name, call.code()) for name, call in waiting)
            waiting = []
    yield from ((name, call.code()) for name, call in waiting)


def first(stream: Any) -> grpc.StatusCode:
    """Return how a stream begins, without reading it to its end."""
    try:
        next(stream)
    except StopIteration:
        pass
    except grpc.RpcError as error:
        return error.code()
    stream.cancel()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_hostile_value_of_every_field_is_foreseen(
    api: Api, namespace: str, method: MethodDescriptor
) -> None:
    prepare(api)
    unforeseen = [(name, code) for name, code in answers(api, method) if code not in FORESEEN]
    assert unforeseen == []
    api.add(namespace, text="still here")
    assert api.found(namespace, query_text="still here") == ["still here"]


def test_texts_that_look_alike_are_not_alike(api: Api, namespace: str) -> None:
    """Composed and decomposed, Latin and Cyrillic: names with different bytes are different names."""
    twins = ["caf\u00e9", "cafe\u0301", "paypal", "p\u0430ypal", "\uff41", "a"]
    for twin in twins:
        api.add(namespace, id=twin, text=twin, session_id=twin, labels={twin: twin})
        api.save(namespace, twin, twin)
    for twin in twins:
        assert api.get(namespace, twin).text == twin
        assert api.found(namespace, session_id=twin) == api.found(namespace, labels={twin: twin}) == [twin]
        loaded = api.state.LoadState(state_pb2.LoadStateRequest(namespace=namespace, key=twin))
        assert loaded.entry.value.string_value == twin
