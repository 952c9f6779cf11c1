"""What the Python client sends and reads: every field survives the way to the wire and back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_client import (
    UNSET,
    AsyncMemoryClient,
    BinaryPart,
    ChatMessage,
    ClientOptions,
    Content,
    DeleteWhereOperation,
    InvalidArgument,
    MemoryClient,
    MemoryItem,
    Model,
    Role,
    StateEntry,
    ToolCall,
    ToolCallResult,
    chat_message,
    tool_call_result,
)
from memory_client._calls import memory
from memory_client._calls.batches import delete_where
from memory_client._calls.call import paged
from memory_client._calls.importing import BATCH_BYTES, Batcher, batches
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import item_from, item_to, new_item_from
from memory_client.protojson import entry_from_json, entry_to_json, item_from_json, item_to_json
from memory_client.values import struct_from, struct_to

TIME = datetime(2026, 1, 31, 12, 30, 15, 123456, UTC)
WHOLE_MESSAGE = ChatMessage(
    role=Role.ASSISTANT,
    parts=(
        "text",
        "",
        {"data": [1, 2.5, None, True, {"deep": "er"}], "empty": {}, "none": []},
        BinaryPart(b"\x00\xff", "image/png", "cat.png", "https://example.org/cat.png", 2),
        BinaryPart(mime_type="video/mp4", name="", url="", content_length=-1),
        BinaryPart(),
        ToolCall("search", {"q": "tea", "limit": 3}, "call_1"),
        ToolCall("now"),
        ToolCall("now", {}),
        ToolCallResult("search", {"found": ["tea"]}, "call_1"),
        ToolCallResult("fail", "no such tool", "call_2", is_error=True),
    ),
    name="",
    message_id="msg_1",
    model=Model("openai", "gpt-5"),
    create_time=TIME,
)
CONTENTS: list[Content] = [
    "Ada likes tea",
    {"likes": {"tea": True}},
    {},
    WHOLE_MESSAGE,
    ChatMessage(Role.USER),
    ToolCallResult("search", None, "call_1"),
    ToolCallResult("search", tool_call_id="call_1"),
    ToolCallResult(),
]


def item_of(content: Content) -> MemoryItem:
    return MemoryItem(
        content=content,
        id="id-1",
        session_id="s",
        create_time=TIME,
        update_time=TIME + timedelta(seconds=1),
        expire_time=TIME + timedelta(days=1),
        labels={"topic": "travel"},
        metadata={"a": [1, {"b": None}]},
        embedding=(0.5, -0.25),
        importance=0.75,
        index="",
        revision=7,
    )


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: type(content).__name__)
def test_an_item_survives_the_wire(content: Content) -> None:
    item = item_of(content)
    packed = item_from(item).SerializeToString()
    assert item_to(memory_pb2.MemoryItem.FromString(packed)) == item


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: type(content).__name__)
def test_an_item_survives_json(content: Content) -> None:
    item = item_of(content)
    assert item_from_json(item_to_json(item)) == item


def test_json_has_the_names_of_the_protos_and_reading_takes_camel_case_too() -> None:
    data = item_to_json(MemoryItem(content="x", session_id="s", create_time=TIME))
    assert data == {"session_id": "s", "text": "x", "create_time": "2026-01-31T12:30:15.123456Z"}
    camel = {"sessionId": "s", "text": "x", "createTime": "2026-01-31T13:30:15.123456+01:00"}
    assert item_from_json(camel) == item_from_json(data)


@pytest.mark.parametrize(
    "data", [{"txt": "x"}, {"text": 5}, {"create_time": "today", "text": "x"}, {"labels": []}]
)
def test_json_that_is_no_item_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        item_from_json(data)


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": None}, "text", 1.5, True])
def test_a_state_entry_survives_json(value: Any) -> None:
    entry = StateEntry(
        key="k",
        value=value,
        version=3,
        description="d",
        size_bytes=4,
        preview="p",
        create_time=TIME,
        update_time=TIME,
        expire_time=TIME,
        revision=9,
    )
    assert entry_from_json(entry_to_json(entry)) == entry
    assert "value" in entry_to_json(entry)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_any_json_object_survives(data: dict[str, Any]) -> None:
    assert struct_to(struct_from(data, "data")) == data


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"a": 2**53 + 1}, "metadata.a: 9007199254740993 is beyond"),
        ({"a": [{"b": TIME}]}, r"metadata.a\[0\].b: datetime is not a JSON value"),
        ({1: "a"}, "the key 1 is not a string"),
    ],
)
def test_what_is_no_json_value_is_refused_with_its_place(data: Any, where: str) -> None:
    with pytest.raises(InvalidArgument, match=where):
        struct_from(data, "metadata")


def test_a_time_without_a_zone_is_refused_and_other_zones_are_converted() -> None:
    with pytest.raises(ValueError, match="create_time: the datetime needs a time zone"):
        item_from(MemoryItem(content="x", create_time=datetime(2026, 1, 1)))
    elsewhere = TIME.astimezone(timezone(timedelta(hours=9)))
    assert item_to(item_from(MemoryItem(content="x", create_time=elsewhere))).create_time == TIME


@pytest.mark.parametrize(
    "vector",
    [[0.5, 1.0], (0.5, 1), np.array([0.5, 1]), np.array([0.5, 1], dtype=np.float16), range(2)],
    ids=lambda vector: type(vector).__name__,
)
def test_an_embedding_is_any_sequence_or_array(vector: Any) -> None:
    sent = item_from(MemoryItem(content="x", embedding=vector))
    assert list(sent.embedding.values) == [float(v) for v in vector]


def test_what_only_the_server_sets_is_not_sent() -> None:
    sent = new_item_from(item_of("x"))
    assert not sent.HasField("update_time")
    assert sent.revision == 0
    assert sent.id == "id-1"


def test_content_of_no_known_kind_is_refused() -> None:
    unknown: Any = 5
    with pytest.raises(InvalidArgument, match="content: an item cannot hold a int"):
        item_from(MemoryItem(content=unknown))
    with pytest.raises(InvalidArgument, match=r"content\.parts\[0\]: a message cannot hold a int"):
        item_from(MemoryItem(content=chat_message("user", unknown)))


def test_what_a_newer_server_sends_is_read_as_far_as_it_is_known() -> None:
    proto = memory_pb2.ChatMessage(role=99, parts=[memory_pb2.Part(), memory_pb2.Part(text="x")])  # type: ignore[arg-type]
    item = item_to(memory_pb2.MemoryItem(chat_message=proto))
    assert item.content == ChatMessage(Role.UNSPECIFIED, ("x",))
    assert item_to(memory_pb2.MemoryItem()).content is None


def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'boss' is not a valid Role"):
        chat_message("boss", "do it")


@pytest.mark.parametrize(
    ("content", "text", "speaker"),
    [
        ("plain", "plain", ""),
        ({"a": 1}, '{"a":1}', ""),
        (chat_message("user", "one", "two", name="Ada"), "one\ntwo", "Ada"),
        (chat_message("assistant", ToolCall("search", {"q": "tea"})), 'search({"q":"tea"})', "assistant"),
        (chat_message("user", BinaryPart(b"x", "image/png", "cat.png")), "[image/png cat.png]", "user"),
        (tool_call_result("search", {"n": 1}), 'search: {"n":1}', "search"),
        (ToolCallResult(result="text"), "text", "tool"),
        (ToolCallResult("erase", None), "erase: null", "erase"),
        (ToolCallResult("erase"), "erase", "erase"),
    ],
)
def test_readable_text_and_speaker(content: Content, text: str, speaker: str) -> None:
    item = MemoryItem(content=content)
    assert (item.text, item.speaker) == (text, speaker)


def update_request(**fields: Any) -> memory_pb2.UpdateRequest:
    everything = (
        "content",
        "session_id",
        "labels",
        "metadata",
        "create_time",
        "expire_time",
        "ttl",
        "embedding",
        "importance",
        "index",
    )
    given = {name: fields.get(name, UNSET) for name in everything}
    call = memory.update("ns", "id", **given, expected_revision=None, request_id=None)
    request: memory_pb2.UpdateRequest = call.request
    return request


def test_an_update_names_the_fields_that_are_given_and_no_others() -> None:
    request = update_request(content="new", labels={}, expire_time=None, importance=None, index=None)
    assert list(request.update_mask.paths) == ["content", "labels", "expire_time", "importance", "index"]
    assert request.item.text == "new"
    assert not request.item.HasField("expire_time")
    assert not request.item.HasField("importance")
    assert not request.item.HasField("index")


def test_every_field_can_be_updated() -> None:
    request = update_request(
        content={"a": 1},
        session_id="s",
        labels={"k": "v"},
        metadata={"m": 1},
        create_time=TIME,
        expire_time=TIME,
        ttl=60,
        embedding=[1.0],
        importance=0.5,
        index="",
    )
    given = dict.fromkeys(request.update_mask.paths, request.item)
    assert len(given) == 10
    assert request.item.importance == 0.5
    assert request.item.HasField("index") and not request.item.index
    assert request.item.data["a"] == 1
    assert request.item.ttl.seconds == 60
    assert request.item.create_time == request.item.expire_time
    assert list(request.item.embedding.values) == [1.0]


def test_every_write_has_a_request_id_of_its_own() -> None:
    ids = {memory.add("ns", MemoryItem(content="x"), "fail", None).request.request_id for _ in range(3)}
    assert len(ids) == 3
    assert all(0 < len(request_id) <= 64 for request_id in ids)
    assert memory.add("ns", MemoryItem(content="x"), "fail", "mine").request.request_id == "mine"


def test_each_page_of_a_deletion_has_a_request_id_of_its_own() -> None:
    first = delete_where("ns", DeleteWhereOperation(session_id="s"), False, "mine")
    page = first.read(memory_pb2.DeleteWhereResponse(deleted_count=10_000, next_page_token="more"))
    assert page.entries == [10_000]
    second = paged(first, page)
    assert second is not None and (second.request.page_token, second.request.session_id) == ("more", "s")
    assert (first.request.request_id, len(second.request.request_id)) == ("mine", 36)
    assert paged(second, second.read(memory_pb2.DeleteWhereResponse())) is None


def test_an_import_is_cut_by_number_and_by_bytes() -> None:
    large = MemoryItem(content="x" * (BATCH_BYTES // 2))
    records: list[MemoryItem | StateEntry] = [
        MemoryItem(content="a"),
        StateEntry(key="k"),
        MemoryItem(content="c"),
        large,
        large,
        large,
    ]
    cut = list(batches(Batcher("ns", "skip", 2), records))
    assert [(len(batch.items), len(batch.states)) for batch in cut] == [(1, 1), (2, 0), (1, 0), (1, 0)]
    assert [batch.namespace for batch in cut] == ["ns", "", "", ""]
    assert cut[0].on_duplicate == memory_pb2.ON_DUPLICATE_SKIP


def test_an_import_of_nothing_still_names_the_namespace() -> None:
    assert [batch.namespace for batch in batches(Batcher("ns", "fail", 500), [])] == ["ns"]


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_that_the_server_would_refuse_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="batch_records: must be 1 to 1000"):
        Batcher("ns", "fail", count)


def test_reads_and_writes_with_a_request_id_are_retried_and_nothing_else() -> None:
    config = ClientOptions().service_config()["methodConfig"][0]
    retried = {name["method"] for name in config["name"]}
    assert {"Add", "BatchWrite", "DeleteWhere", "Retrieve", "SaveState", "GetInfo", "Watch"} <= retried
    assert not {"Import", "Backup", "DeleteNamespace"} & retried
    assert config["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED", "RESOURCE_EXHAUSTED"]
    assert ClientOptions(max_attempts=1).service_config() == {}


@pytest.mark.parametrize(
    "settings", [{"max_attempts": 0}, {"max_attempts": 6}, {"timeout_s": 0}, {"root_certificates": b""}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        MemoryClient(**settings)


def public_methods(kind: type) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    ours, theirs = public_methods(MemoryClient), public_methods(AsyncMemoryClient)
    assert list(ours) == list(theirs)
    for name, method in ours.items():
        parameters = inspect.signature(method).parameters
        others = inspect.signature(theirs[name]).parameters
        assert list(parameters) == list(others), name
        assert [p.default for p in parameters.values()] == [p.default for p in others.values()], name


def test_every_rpc_has_a_method() -> None:
    names = {
        method.name
        for file in (memory_pb2.DESCRIPTOR,)
        for service in file.services_by_name.values()
        for method in service.methods
    }
    renamed = {"Import": "import_items", "List": "list_items"}
    spelled = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in names - set(renamed)}
    assert spelled | set(renamed.values()) <= set(public_methods(MemoryClient))
