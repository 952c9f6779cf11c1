"""Whatever is sent to any RPC, the response is an expected one, and rejected calls leave no trace.

The requests come from the descriptors: a new RPC is tested here without being named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from faults.scale import hypothesis_seed, rounds
from grpc_api import (
    FORESEEN,
    METHODS,
    SMALL_GRAPHS,
    Api,
    decode,
    is_map,
    outcome,
    path,
    refusal,
    valid_request,
)
from memory_service.server.methods import SERVED, Reach
from memory_service.v1 import admin_pb2
from server_process import ServerProcess
from wire_format import field_of

BY_NAME = {method.name: method for method in METHODS}
ADD = BY_NAME["Add"]
# Nothing expires by itself: every change was made by a call.
SETTINGS = {**SMALL_GRAPHS, "MEMORY_SERVICE_SWEEP": "3600"}


@pytest.fixture(scope="module", params=["hnsw", "memory"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def api(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The stubs of a server of each store without other writers, because all of its contents are checked."""
    folder = tmp_path_factory.mktemp("data")
    with ServerProcess(folder, flags=["--store", store], env=SETTINGS) as process:
        api = Api.connect(process.address)
        yield api
        api.channel.close()


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


def test_json_deeper_than_any_parser_goes_is_refused(api: Api, namespace: str) -> None:
    # Struct.fields, its entry's value, Value.struct_value, Struct.fields ..., as no library would write it.
    data = b""
    for _ in range(10_000):
        data = field_of(1, field_of(1, b"a") + field_of(2, field_of(5, data)))
    request = field_of(1, namespace.encode()) + field_of(2, field_of(6, data))
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

Draw = Callable[[st.SearchStrategy[Any]], Any]

STORED, SENT = "St0rEdCaNaRy", "S3nTcAnArY"
"""In stored texts, and in texts sent with rejected calls: no error may repeat them."""
TEXTS = st.one_of(
    st.sampled_from(["", "a", "../../etc", "a b", "\0", "\u202e🧠", "'; --", "*", "content", "labels"]),
    st.text(max_size=20),
)
CONTENTS = st.one_of(TEXTS, TEXTS.map(SENT.__add__))
INTEGERS = st.sampled_from([0, 1, -1, 2, 10, 99, 2**31 - 1, -(2**31)])
LONG_INTEGERS = st.one_of(INTEGERS, st.sampled_from([2**63 - 1, -(2**63), 253_402_300_800]))
FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 1e-45, 3.4e38, math.nan, math.inf, -math.inf])
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: CONTENTS,
    FieldDescriptor.TYPE_BYTES: st.one_of(st.binary(max_size=20), st.just(SENT.encode())),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_INT32: INTEGERS,
    FieldDescriptor.TYPE_INT64: LONG_INTEGERS,
    FieldDescriptor.TYPE_FLOAT: FLOATS,
    FieldDescriptor.TYPE_DOUBLE: FLOATS,
    FieldDescriptor.TYPE_ENUM: st.sampled_from([0, 1, 2, 3, 4, 99, -1]),
}
# Errors name the object that they are about, and the position in a filter or a mask.
NAMING = {
    *("namespace", "id", "key", "request_id", "in_response_to", "parent_ids", "filter", "paths"),
    *("session_id", "new_session_id", "until_item_id", "path", "new_path", "time_zone"),
}
NAMES = st.one_of(TEXTS, st.sampled_from(["old", "a", "book", "/file", "/folder/file"]))
DEPTH_MAX = 6
FUZZED = ("fuzz/a", "fuzz|李雷+x@example.com *")


def scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Draw values for a field that is not a message."""
    return NAMES if field.name in NAMING else SCALARS[field.type]


def fill(draw: Draw, message: Any, depth: int) -> None:
    """Set some fields of a message, and of the messages in it."""
    for field in message.DESCRIPTOR.fields:
        # The deeper the message, the fewer fields are set, or it would never end.
        if draw(st.integers(0, 3)) <= (2, 1, 0)[min(depth, 2)] and depth <= DEPTH_MAX:
            fill_field(draw, message, field, depth)


def fill_field(draw: Draw, message: Any, field: FieldDescriptor, depth: int) -> None:
    if is_map(field):
        fill_map(draw, message, field, depth)
    elif field.is_repeated:
        fill_repeated(draw, message, field, depth)
    elif field.message_type:
        sub_message = getattr(message, field.name)
        sub_message.SetInParent()
        fill(draw, sub_message, depth + 1)
    else:
        setattr(message, field.name, draw(scalar(field)))


def change(draw: Draw, message: Any) -> None:
    """Set one field of a message, or of one in it."""
    if not message.DESCRIPTOR.fields:
        return
    # Names more often than others: they decide whether something exists, and is rejected for that.
    fields = [each for each in message.DESCRIPTOR.fields for _ in range(4 if each.name in NAMING else 1)]
    field = draw(st.sampled_from(fields))
    inner = None if field.message_type is None or is_map(field) else getattr(message, field.name)
    if inner is not None and field.is_repeated:
        inner = inner[0] if inner else None
    if inner is None:
        fill_field(draw, message, field, 1)
    else:
        change(draw, inner)


def fill_map(draw: Draw, message: Any, field: FieldDescriptor, depth: int) -> None:
    value = field.message_type.fields_by_name["value"]
    container = getattr(message, field.name)
    for key in draw(st.lists(TEXTS, max_size=3)):
        if value.message_type:
            fill(draw, container[key], depth + 1)
        else:
            container[key] = draw(scalar(value))


def fill_repeated(draw: Draw, message: Any, field: FieldDescriptor, depth: int) -> None:
    container = getattr(message, field.name)
    for _ in range(draw(st.integers(0, 3))):
        if field.message_type:
            fill(draw, container.add(), depth + 1)
        else:
            container.append(draw(scalar(field)))


@dataclass(frozen=True)
class Attempt:
    """A call whose last message is hostile; in a stream, after some good ones."""

    namespace: str
    good: Sequence[Message]
    hostile: Message | bytes


@st.composite
def attempts(draw: Any, method: MethodDescriptor) -> Attempt:
    """Draw calls of an RPC, mostly with a valid message in which some or many fields are changed."""
    namespace = draw(st.sampled_from(FUZZED))
    changes = draw(st.integers(0, 5))
    message = GetMessageClass(method.input_type)() if changes == 0 else valid_request(method, namespace)
    if changes <= 1:
        fill(draw, message, changes)
    for _ in range(changes - 1):
        change(draw, message)
    if hasattr(message, "namespace") and draw(st.integers(0, 9)):
        message.namespace = namespace
    good = draw(st.integers(0, 2)) if method.client_streaming else 0
    damaged = draw(st.integers(0, 7)) == 7
    return Attempt(
        namespace,
        [valid_request(method, namespace)] * good,
        draw(damages(message.SerializeToString())) if damaged else message,
    )


@st.composite
def damages(draw: Any, raw: bytes) -> bytes:
    """Draw a message in which a few consecutive bytes are changed, added or removed."""
    begin = draw(st.integers(0, len(raw)))
    end = draw(st.integers(begin, min(len(raw), begin + 8)))
    return raw[:begin] + draw(st.binary(max_size=8)) + raw[end:]


Kept = dict[str, tuple[int, int]]
"""The number of items of each namespace, and its revision, which every write raises."""


def kept(api: Api) -> Kept:
    """Return everything that a server holds."""
    found: Kept = {}
    token = ""
    while True:
        request = admin_pb2.ListNamespacesRequest(page_size=1000, page_token=token)
        page = api.admin.ListNamespaces(request)
        found |= {each.namespace: (each.item_count, each.revision) for each in page.namespaces}
        token = page.next_page_token
        if not token:
            return found


def with_the_good(before: Kept, attempt: Attempt) -> Kept:
    """Return the contents after writing only the good messages, each of which has one item."""
    count = len(attempt.good)
    if not count:
        return before
    items, revision = before.get(attempt.namespace, (0, 0))
    return {**before, attempt.namespace: (items + count, revision + count)}


def prepare(api: Api) -> None:
    """Write what valid requests name."""
    for namespace in FUZZED:
        for name in ("old", "a"):
            if outcome(partial(api.get, namespace, name)) is grpc.StatusCode.NOT_FOUND:
                # An update leaves this in place, so it has the text too.
                api.add(namespace, id=name, text=STORED, session_id=STORED, labels={"stored": STORED})
            api.save(namespace, name, STORED, description=STORED)
        document: Any = valid_request(BY_NAME["AddDocument"], namespace)
        document.document.id, document.document.text, document.replace = "book", STORED, True
        api.call(BY_NAME["AddDocument"], document)


def check_refusal(error: grpc.RpcError) -> None:
    """Check that an error is one of ours, names the invalid field, and repeats no contents."""
    told = decode(error)
    assert told.code in FORESEEN, told
    assert told.fields or told.code is not grpc.StatusCode.INVALID_ARGUMENT, told
    assert isinstance(error, grpc.Call)
    raw = f"{error.details()} {error.trailing_metadata()}"
    assert STORED not in raw and SENT not in raw, raw


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_answer_to_any_call_was_foreseen_and_what_is_refused_writes_nothing(
    api: Api, store: str, namespace: str, method: MethodDescriptor
) -> None:
    @seed(hypothesis_seed(f"fuzz/{store}/{method.name}"))
    # A backup for each of hundreds of examples would fill the disk.
    @settings(
        max_examples=rounds(30, 30 if SERVED[path(method)].reach is Reach.SERVER else 500),
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(attempts(method))
    def send(attempt: Attempt) -> None:
        nonlocal before
        refused = None
        try:
            api.call(method, attempt.hostile, after=attempt.good)
        except grpc.RpcError as error:
            refused = error
        # Set first: a failing example is tried again in other forms.
        expected, before = with_the_good(before, attempt), kept(api)
        if refused is not None:
            check_refusal(refused)
            assert before == expected

    prepare(api)
    before = kept(api)
    send()
    api.add(namespace, text="still here")
    assert api.found(namespace, query_text="still here") == ["still here"]
