"""The memory of a request is estimated from its bytes: every field counts, whatever its type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.message import Message

from grpc_api import METHODS, path, struct, valid_request
from memory_service.errors import LimitExceeded
from memory_service.limits import MIB, Limits
from memory_service.server.request_sizes import RequestSizes
from memory_service.v1 import memory_pb2 as pb
from wire_format import field_of

LIST = "/memory_service.v1.MemoryService/List"
ADD = "/memory_service.v1.MemoryService/Add"
BATCH_ADD = "/memory_service.v1.MemoryService/BatchAdd"
FIELDS_MAX = 10_000


def sizes(method: str) -> RequestSizes:
    return RequestSizes(method, replace(Limits(), request_fields_max=FIELDS_MAX))


def refused(method: str, raw: bytes) -> str:
    """Return the field that the error names."""
    with pytest.raises(LimitExceeded) as error:
        sizes(method).held_bytes(raw)
    assert error.value.metadata["limit_name"] == "request_fields_max"
    assert int(error.value.metadata["actual"]) > FIELDS_MAX
    return error.value.field


def item(**fields: Any) -> pb.MemoryItem:
    return pb.MemoryItem(**fields)


def batch(count: int, **fields: Any) -> Message:
    return pb.BatchAddRequest(namespace="n", items=[item(**fields)] * count)


MANY: dict[str, tuple[str, Message, str]] = {
    "labels": (LIST, pb.ListRequest(labels={f"{n}": "" for n in range(4000)}), "labels"),
    "kinds": (LIST, pb.ListRequest(kinds=[1] * 20_000), "kinds[0]"),
    "empty items": (BATCH_ADD, batch(10_001), "items[9999]"),
    "texts": (BATCH_ADD, batch(6000, text="a"), "items[4999].text"),
    "a list": (ADD, pb.AddRequest(item=item(data=struct({"l": [None] * 6000}))), "item.data"),
    "an object": (ADD, pb.AddRequest(item=item(data=struct({f"{n}": 1 for n in range(3000)}))), "item.data"),
    "a nest": (ADD, pb.AddRequest(item=item(data=struct({"l": [[[{"a": [1]}]]] * 1500}))), "item.data"),
}


@pytest.mark.parametrize("method, request_, field", MANY.values(), ids=MANY)
def test_a_request_of_too_many_fields_is_refused_by_name_of_the_field(
    method: str, request_: Message, field: str
) -> None:
    assert refused(method, request_.SerializeToString()) == field


def test_fields_that_do_not_belong_to_the_request_count_too() -> None:
    assert refused(LIST, b"\xa8\x7d\x01" * 11_000) == "request"


def test_a_field_that_is_too_long_is_refused_by_its_name_and_length() -> None:
    raw = batch(3, text="x" * (2 * MIB + 1)).SerializeToString()
    with pytest.raises(LimitExceeded) as error:
        sizes(BATCH_ADD).held_bytes(raw)
    told = error.value.metadata
    assert (error.value.field, told["limit_name"]) == ("items[0].text", "field_bytes_max")
    assert told["actual"] == str(2 * MIB + 1)
    assert sizes(BATCH_ADD).held_bytes(batch(3, text="x" * 2 * MIB).SerializeToString()) > 6 * MIB


def test_vectors_and_texts_take_their_bytes_and_are_no_fields_of_their_own() -> None:
    request = batch(100, text="a", embedding=pb.Embedding(values=[0.5] * 1024))
    raw = request.SerializeToString()
    assert 4 * len(raw) < sizes(BATCH_ADD).held_bytes(raw) < 5 * len(raw)


def test_each_field_takes_memory_of_its_own() -> None:
    raw = batch(3000, text="a").SerializeToString()
    assert sizes(BATCH_ADD).held_bytes(raw) == 4 * len(raw) + 256 * (1 + 3000 * 2)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_ordinary_requests_of_every_method_are_let_through(method: Any) -> None:
    raw = valid_request(method, "n").SerializeToString()
    assert sizes(path(method)).held_bytes(raw + field_of(15, bytes(5000))) >= 4 * len(raw)


@pytest.mark.parametrize("raw", [b"\x0a\xff\xff\xff\x7f", b"\x80" * 9000, b"\x0b" * 4000, b"\x12\x05ab"])
def test_bytes_that_are_no_message_are_left_to_the_decoder(raw: bytes) -> None:
    assert sizes("/memory_service.v1.StateService/SaveState").held_bytes(raw.ljust(5000, b"\xff")) > 0
