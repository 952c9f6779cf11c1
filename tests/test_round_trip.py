"""Writes are read back bit for bit: every kind of content, every part, every optional field."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import struct_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, Connect, exactly, json_value, struct
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

FAR_FUTURE = Timestamp(seconds=4_102_444_800, nanos=123_456_000)
HOSTILE_TEXT = 'Zoë 🧠 \u202eright to left\u202c e\u0301 NUL\x00 9007199254740993 "quoted" \\ \t\r\n end'

EVERY_JSON_KIND = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0.0,
    "minus zero": -0.0,
    "fraction": 0.1,
    "biggest": 1.7976931348623157e308,
    "smallest": 5e-324,
    "2^53": 2.0**53,
    "2^53+1 as text": "9007199254740993",
    "empty text": "",
    "text": HOSTILE_TEXT,
    "empty list": [],
    "list": [None, True, 1.5, "a", [], {}, [[1.0]], {"deep": [{"er": None}]}],
    "empty object": {},
    "": "empty key",
    "ключ\x00": {"nested": {"": [0.0]}},
}


def as_sent(stored: pb.MemoryItem, sent: pb.MemoryItem) -> bytes:
    """Return a stored item without the fields that the server added to the sent one."""
    item = pb.MemoryItem()
    item.CopyFrom(stored)
    if not sent.id:
        item.ClearField("id")
    if not sent.HasField("create_time"):
        item.ClearField("create_time")
    item.ClearField("update_time")
    item.ClearField("revision")
    return exactly(item)


def message_items() -> dict[str, pb.MemoryItem]:
    """Yield chat messages with every kind of part and with every optional field unset, empty and set."""
    result_values = {f"result {key or 'empty key'}": json_value(v) for key, v in EVERY_JSON_KIND.items()}
    parts = {
        "text": pb.Part(text=HOSTILE_TEXT),
        "empty text": pb.Part(text=""),
        "data": pb.Part(data=struct(EVERY_JSON_KIND)),
        "empty data": pb.Part(data=struct_pb2.Struct()),
        "empty binary": pb.Part(binary=pb.BinaryPart()),
        "binary with empty fields": pb.Part(binary=pb.BinaryPart(name="", url="", content_length=0)),
        "every byte": pb.Part(
            binary=pb.BinaryPart(
                name="ä.png",
                url="https://example.org/ä.png?a=1&b=%20",
                mime_type="image/png",
                content=bytes(range(256)) * 16,
                content_length=4096,
            )
        ),
        "binary not loaded": pb.Part(binary=pb.BinaryPart(url="file:///x", content_length=-1)),
        "long binary": pb.Part(binary=pb.BinaryPart(content_length=2**63 - 1)),
        "empty call": pb.Part(tool_call=pb.ToolCall()),
        "call without arguments": pb.Part(tool_call=pb.ToolCall(tool_call_id="c1", name="clock")),
        "call with no argument": pb.Part(tool_call=pb.ToolCall(name="clock", arguments=struct({}))),
        "call": pb.Part(tool_call=pb.ToolCall(name="f", arguments=struct(EVERY_JSON_KIND))),
        "result unset": pb.Part(tool_call_result=pb.ToolCallResult(tool_call_id="c1", name="clock")),
        "error": pb.Part(tool_call_result=pb.ToolCallResult(result=json_value("boom"), is_error=True)),
        **{
            key: pb.Part(tool_call_result=pb.ToolCallResult(result=value))
            for key, value in result_values.items()
        },
    }
    messages = {f"part: {key}": pb.ChatMessage(role=pb.ROLE_USER, parts=[p]) for key, p in parts.items()}
    messages["all parts in order"] = pb.ChatMessage(role=pb.ROLE_ASSISTANT, parts=list(parts.values()))
    hello = [pb.Part(text="hello")]
    for role in (pb.ROLE_SYSTEM, pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL):
        messages[pb.Role.Name(role)] = pb.ChatMessage(role=role, parts=hello)
    messages["empty fields"] = pb.ChatMessage(role=pb.ROLE_USER, name="", model=pb.Model(), parts=hello)
    messages["full"] = pb.ChatMessage(
        message_id="msg-1",
        role=pb.ROLE_ASSISTANT,
        name="Ada",
        model=pb.Model(provider="openai", id="gpt-5"),
        parts=hello,
        create_time=Timestamp(seconds=1, nanos=1000),
    )
    messages["at the epoch"] = pb.ChatMessage(role=pb.ROLE_USER, create_time=Timestamp(), parts=hello)
    return {key: pb.MemoryItem(chat_message=message) for key, message in messages.items()}


def other_items() -> dict[str, pb.MemoryItem]:
    """Yield the other kinds of content, and every field besides the content."""
    return {
        "text": pb.MemoryItem(text=HOSTILE_TEXT),
        "data": pb.MemoryItem(data=struct(EVERY_JSON_KIND)),
        "result unset": pb.MemoryItem(tool_call_result=pb.ToolCallResult(name="clock")),
        "result null": pb.MemoryItem(
            tool_call_result=pb.ToolCallResult(name="clock", result=json_value(None), is_error=True)
        ),
        "result object": pb.MemoryItem(
            tool_call_result=pb.ToolCallResult(tool_call_id="c", result=json_value(EVERY_JSON_KIND))
        ),
        "empty metadata": pb.MemoryItem(text="x", metadata=struct({})),
        "no importance at all": pb.MemoryItem(text="x", importance=0.0),
        "own id": pb.MemoryItem(id="ключ/1 %2e 'x' \u202e", text="x"),
        "before the epoch": pb.MemoryItem(text="x", create_time=Timestamp(seconds=-1, nanos=999_999_000)),
        "first year": pb.MemoryItem(text="x", create_time=Timestamp(seconds=-62_135_596_800)),
        "last year": pb.MemoryItem(
            text="x", create_time=Timestamp(seconds=253_402_300_799, nanos=999_999_000)
        ),
        "everything": pb.MemoryItem(
            session_id="sitzung ä",
            text="x",
            create_time=Timestamp(seconds=1_700_000_000, nanos=1000),
            expire_time=FAR_FUTURE,
            labels={"topic": "travel", "empty": "", "ключ": "значение", "k" * 64: "v" * 256},
            metadata=struct(EVERY_JSON_KIND),
            importance=0.1,
        ),
    }


ROUND_TRIPS = {**message_items(), **{f"item: {key}": item for key, item in other_items().items()}}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_an_item_comes_back_bit_for_bit_from_every_read(api: Api, namespace: str, name: str) -> None:
    sent = ROUND_TRIPS[name]
    added = api.memory.Add(pb.AddRequest(namespace=namespace, item=sent))
    retrieved = api.memory.Retrieve(pb.RetrieveRequest(namespace=namespace)).results[0].item
    exported = next(api.memory.Export(pb.ExportRequest(namespace=namespace))).item
    watch = api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=0))
    watched = next(message.change.item for message in watch if message.HasField("change"))
    watch.cancel()
    reads = [api.get(namespace, added.item.id), *api.items(namespace), retrieved, exported, watched]
    assert as_sent(added.item, sent) == exactly(sent)
    assert [exactly(item) for item in reads] == [exactly(added.item)] * 5


def test_items_come_back_bit_for_bit_after_a_restart(tmp_path: Path, connect: Connect) -> None:
    sent = list(ROUND_TRIPS.values())
    with ServerProcess(tmp_path) as server:
        connect(server).memory.BatchAdd(pb.BatchAddRequest(namespace="kept", items=sent))
        assert server.terminate() == 0
    with ServerProcess(tmp_path) as server:
        stored = connect(server).items("kept")
    assert [as_sent(s, i) for s, i in zip(stored, sent, strict=True)] == [exactly(item) for item in sent]
