"""Real-world chat logs and files of items become items without loss."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_client import (
    BinaryPart,
    ChatMessage,
    MemoryItem,
    Model,
    Role,
    StateEntry,
    ToolCall,
    ToolCallResult,
)
from memory_client.convert import new_item_from
from memory_service.importing import BadRecord, read_records

PNG = b"\x89PNG\r\n\x1a\n"
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


def read(text: str | bytes, **settings: Any) -> list[MemoryItem | StateEntry]:
    """Return the records of a file with this content, all of them valid for the client."""
    raw = text.encode() if isinstance(text, str) else text
    records = list(read_records(raw.splitlines(keepends=True), name="log.jsonl", **settings))
    for record in records:
        if isinstance(record, MemoryItem):
            new_item_from(record)
    return records


def read_items(text: str | bytes, **settings: Any) -> list[MemoryItem]:
    records = read(text, **settings)
    assert all(isinstance(record, MemoryItem) for record in records)
    return [record for record in records if isinstance(record, MemoryItem)]


def read_message(message: dict[str, Any], **settings: Any) -> tuple[MemoryItem, ChatMessage]:
    (item,) = read_items(json.dumps(message), **settings)
    assert isinstance(item.content, ChatMessage)
    return item, item.content


def jsonl(documents: Iterable[Any]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there"}]


@pytest.mark.parametrize(
    "dump", [json.dumps, lambda value: json.dumps(value, indent=2)], ids=["flat", "indented"]
)
@pytest.mark.parametrize("document", [HELLO, {"messages": HELLO}], ids=["list", "object"])
def test_a_file_that_is_one_conversation(document: Any, dump: Any) -> None:
    items = read_items(dump(document), session_id="chat")
    assert [(item.speaker, item.text, item.session_id) for item in items] == [
        ("user", "Hello", "chat"),
        ("assistant", "Hi there", "chat"),
    ]


def test_a_message_a_line_is_one_conversation() -> None:
    items = read_items("\ufeff\n" + jsonl(HELLO) + "\n\n", session_id="chat")
    assert [(item.text, item.session_id) for item in items] == [("Hello", "chat"), ("Hi there", "chat")]


def test_a_conversation_a_line_is_a_session_each() -> None:
    lines = [{"messages": HELLO}, {"messages": HELLO, "id": "own"}, HELLO]
    items = read_items(jsonl(lines), session_id="train")
    assert [item.session_id for item in items] == ["train-1"] * 2 + ["own"] * 2 + ["train-3"] * 2


def test_a_list_of_conversations_is_a_session_each() -> None:
    items = read_items(json.dumps([{"messages": HELLO}, {"messages": HELLO}]), session_id="all")
    assert [item.session_id for item in items] == ["all-1"] * 2 + ["all-2"] * 2


def test_messages_name_their_sessions() -> None:
    lines = [{**HELLO[0], "session_id": "a"}, {**HELLO[1], "conversation_id": 7}, HELLO[0]]
    assert [item.session_id for item in read_items(jsonl(lines), session_id="rest")] == ["a", "7", "rest"]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
        ("tool", Role.TOOL),
        ("function", Role.TOOL),
    ],
)
def test_every_role_is_known(role: str, expected: Role) -> None:
    item, message = read_message({"role": role, "content": "x"})
    assert message.role is expected
    is_renamed = role in ("developer", "function")
    assert item.metadata == ({"openai": {"role": role}} if is_renamed else {})


def test_a_message_keeps_name_id_model_and_time() -> None:
    item, message = read_message(
        {
            "role": "assistant",
            "content": "x",
            "name": "Bot",
            "id": "msg_1",
            "model": "gpt-5",
            "created_at": 1767225600,
        }
    )
    time = datetime(2026, 1, 1, tzinfo=UTC)
    assert message == ChatMessage(Role.ASSISTANT, ("x",), "Bot", "msg_1", Model("", "gpt-5"), time)
    assert (item.id, item.create_time) == ("msg_1", time)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("created_at", 1767225600.5, datetime(2026, 1, 1, 0, 0, 0, 500000, UTC)),
        ("timestamp", 1767225600500, datetime(2026, 1, 1, 0, 0, 0, 500000, UTC)),
        ("timestamp", "2026-01-01T09:00:00+09:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("create_time", "2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("created", "2026-01-01 00:00:00", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_in_the_ways_they_are_written(field: str, value: Any, expected: datetime) -> None:
    item, _ = read_message({"role": "user", "content": "x", field: value})
    assert item.create_time == expected
    assert item.metadata == {}


@pytest.mark.parametrize("value", ["yesterday", True, {"at": 1}, 1e300])
def test_a_time_that_cannot_be_read_is_kept_as_it_is(value: Any) -> None:
    item, _ = read_message({"role": "user", "content": "x", "timestamp": value})
    assert item.create_time is None
    assert item.metadata == {"openai": {"timestamp": value}}


def test_fields_that_are_not_known_are_kept() -> None:
    item, _ = read_message({"role": "user", "content": "x", "weight": 0, "tags": ["a"], "audio": None})
    assert item.metadata == {"openai": {"weight": 0, "tags": ["a"]}}


def test_unknown_fields_too_deep_for_metadata_are_kept_as_json() -> None:
    deep: Any = "end"
    for _ in range(31):
        deep = [deep]
    item, _ = read_message({"role": "user", "content": "x", "deep": deep})
    assert item.metadata == {"openai": {"deep": json.dumps(deep)}}


def test_every_kind_of_content_part() -> None:
    audio = base64.b64encode(b"RIFF").decode()
    item, message = read_message(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "high"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a/cat.jpg?size=2"}},
                {"type": "image_url", "image_url": "https://example.org/picture"},
                {"type": "input_audio", "input_audio": {"data": audio, "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"},
                },
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "refusal", "refusal": "no"},
                {"type": "of next year", "x": 1},
            ],
        }
    )
    assert message.parts == (
        "look",
        BinaryPart(PNG, "image/png", content_length=len(PNG)),
        BinaryPart(mime_type="image/jpeg", url="https://example.org/a/cat.jpg?size=2"),
        BinaryPart(url="https://example.org/picture"),
        BinaryPart(b"RIFF", "audio/wav", content_length=4),
        BinaryPart(b"PDF", "application/pdf", "a.pdf", content_length=3),
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "refusal", "refusal": "no"},
        {"type": "of next year", "x": 1},
    )
    assert item.metadata == {"openai": {"parts": {"1": {"detail": "high"}, "3": {"type": "image_url"}}}}


def test_a_refusal_beside_the_content_is_a_part() -> None:
    item, message = read_message({"role": "assistant", "content": None, "refusal": "I cannot"})
    assert message.parts == ({"type": "refusal", "refusal": "I cannot"},)
    assert item.metadata == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"city": "Paris", "days": 3}', {"city": "Paris", "days": 3}),
        ({"city": "Paris"}, {"city": "Paris"}),
        ("", None),
        ("{}", {}),
        (None, None),
        ('{"city": "Par', {"_raw": '{"city": "Par'}),
        ("[1, 2]", {"_raw": "[1, 2]"}),
        ('{"id": 9007199254740993}', {"_raw": '{"id": 9007199254740993}'}),
        ('{"x": NaN}', {"_raw": '{"x": NaN}'}),
        ('{"x": "\\ud83d"}', {"_raw": '{"x": "\\ud83d"}'}),
        ([1], {"_raw": "[1]"}),
    ],
)
def test_tool_call_arguments_survive_whatever_they_are(arguments: Any, expected: Any) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    item, message = read_message({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message.parts == (ToolCall("weather", expected, "call_1"),)
    assert item.metadata == {}


def test_custom_and_legacy_tool_calls() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "code", "input": "print(1)"}}
    item, message = read_message({"role": "assistant", "content": "so", "tool_calls": [custom]})
    assert message.parts == ("so", ToolCall("code", {"_raw": "print(1)"}, "c"))
    assert item.metadata == {"openai": {"parts": {"1": {"type": "custom"}}}}
    legacy = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    assert read_message(legacy)[1].parts == (ToolCall("f", {}),)


def test_what_a_tool_returned_carries_the_id_of_its_call() -> None:
    _, message = read_message({"role": "tool", "tool_call_id": "call_1", "content": '{"t": 20}'})
    assert message.parts == (ToolCallResult("", '{"t": 20}', "call_1"),)
    _, message = read_message({"role": "function", "name": "weather", "content": "rain"})
    assert message.parts == (ToolCallResult("weather", "rain"),)


def test_what_a_tool_returned_in_parts() -> None:
    content = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "low"}},
        {"type": "text", "text": "b"},
    ]
    item, message = read_message({"role": "tool", "tool_call_id": "c", "content": content})
    picture = BinaryPart(PNG, "image/png", content_length=len(PNG))
    assert message.parts == (ToolCallResult("", "a\nb", "c"), picture)
    assert item.metadata == {"openai": {"parts": {"1": {"detail": "low"}}}}


def test_a_file_too_large_is_refused_or_left_out() -> None:
    url = "data:image/png;base64," + base64.b64encode(bytes(1024 * 1024 + 1)).decode()
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    with pytest.raises(
        BadRecord, match=r"log.jsonl:1: a file of 1048577 bytes; the server stores at most 1048576"
    ):
        read_message(message)
    _, kept = read_message(message, omit_large_files=True)
    assert kept.parts == (BinaryPart(mime_type="image/png", content_length=-1048577),)


def test_what_a_conversation_says_of_itself_comes_first() -> None:
    items = read_items(
        json.dumps({"messages": HELLO, "tools": [{"name": "f"}], "user": None}), session_id="s"
    )
    assert items[0].content == {"openai": {"conversation": {"tools": [{"name": "f"}]}}}
    assert [item.session_id for item in items] == ["s"] * 3


def test_reading_twice_gives_the_same_ids_and_other_messages_give_others() -> None:
    text = jsonl([*HELLO, *HELLO, {**HELLO[0], "session_id": "other"}])
    first, again = read_items(text, session_id="s"), read_items(text, session_id="s")
    assert [item.id for item in first] == [item.id for item in again]
    assert len({item.id for item in first}) == 5
    conversations = jsonl([{"messages": HELLO}, {"messages": HELLO}])
    assert len({item.id for item in read_items(conversations)}) == 4


@pytest.mark.parametrize(
    ("own", "expected"), [("msg_1", "msg_1"), (5, "s:5"), ("5", "s:5"), ("é" * 64, "é" * 64)]
)
def test_a_message_keeps_its_own_id(own: Any, expected: str) -> None:
    item, message = read_message({"role": "user", "content": "x", "id": own}, session_id="s")
    assert (item.id, message.message_id) == (expected, str(own))


@pytest.mark.parametrize("own", ["x" * 129, "a\nb"])
def test_an_own_id_that_cannot_serve_is_kept_in_the_message(own: str) -> None:
    item, message = read_message({"role": "user", "content": "x", "id": own})
    assert len(item.id) == 36
    assert message.message_id == own


def test_integers_that_a_double_would_alter_become_strings() -> None:
    numbers = [2**53, 2**53 + 1, -(2**53) - 1, 10**30, 5]
    text = f'{{"role": "user", "content": "x", "n": {numbers}}}'
    (item,) = read_items(text)
    expected = [2**53, "9007199254740993", "-9007199254740993", "1" + "0" * 30, 5]
    assert item.metadata == {"openai": {"n": expected}}


def test_generic_items_and_state() -> None:
    lines = [
        {"text": "short", "session_id": "s", "labels": {"a": "b"}},
        {
            "kind": "item",
            "id": "x",
            "data": {"n": 1},
            "createTime": "2026-01-01T00:00:00Z",
            "embedding": {"values": [1, 0.5]},
        },
        {"kind": "state", "key": "plan", "value": {"step": 1}, "version": 4, "description": "d"},
        {"chat_message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}},
    ]
    short, data, state, chat = read(jsonl(lines), session_id="file")
    assert isinstance(short, MemoryItem) and isinstance(data, MemoryItem) and isinstance(chat, MemoryItem)
    assert (short.text, short.session_id, short.labels) == ("short", "s", {"a": "b"})
    assert (data.id, data.content, data.embedding) == ("x", {"n": 1}, (1.0, 0.5))
    assert data.create_time == datetime(2026, 1, 1, tzinfo=UTC)
    assert state == StateEntry(key="plan", value={"step": 1}, version=4, description="d")
    assert (chat.text, chat.session_id) == ("hi", "file")
    assert [item.session_id for item in read_items('{"text": "x"}')] == [""]
    assert [item.session_id for item in read_items(jsonl(HELLO))] == ["log", "log"]
    assert len(short.id) == 36


def test_the_format_can_be_told() -> None:
    with pytest.raises(
        BadRecord, match='log.jsonl:1: Message type "memory_service.v1.MemoryItem" has no field named "role"'
    ):
        read(jsonl(HELLO), format="items")
    with pytest.raises(BadRecord, match='"role" is one of'):
        read('{"text": "x"}', format="openai")


BAD = [
    ("{", "not JSON"),
    ("5", "expected an object"),
    ('"text"', "expected an object"),
    ('{"role": "boss", "content": "x"}', '"role" is one of system, .*, not "boss"'),
    ('{"role": "user", "content": 5}', "the content is neither text nor a list: 5"),
    ('{"role": "user", "content": [5]}', "neither text nor object"),
    (
        '{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}',
        "input_audio.data is missing",
    ),
    (
        '{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;base64,?"}}]}',
        "not base64",
    ),
    ('{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}', "an image has no url"),
    ('{"role": "assistant", "tool_calls": [{"id": "x"}]}', "a tool call has no function with a name"),
    ('{"messages": [{"role": "user", "content": "x"}, 5]}', r"messages\[1\]: a message is not an object: 5"),
    ('{"messages": 5}', '"messages" is not a list'),
    ('{"role": "user", "content": "x", "n": NaN}', "NaN is not a JSON number"),
    ('{"role": "user", "content": "\\ud83d"}', "half of a surrogate pair"),
    ('{"role": "user", "content": "x", "blob": "%s"}' % ("x" * 70000), "the fields blob take 700.. bytes"),
    ('{"txt": "x"}', 'no field named "txt"'),
    ('{"kind": "item"}', "an item needs"),
    ('{"kind": "fact"}', '"kind" is "item" or "state"'),
    ('{"kind": "state", "value": 1}', 'a state entry needs a "key"'),
    ("[" * 100_000, "nested too deeply"),
    (b"\xff", "not UTF-8 at byte 0"),
]


@pytest.mark.parametrize(("line", "problem"), BAD, ids=range(len(BAD)))
def test_a_bad_line_is_told_by_file_and_number(line: str | bytes, problem: str) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    good = jsonl(HELLO).encode()
    yielded = []
    with pytest.raises(BadRecord, match=rf"^log\.jsonl:4: .*{problem}"):
        for record in read_records((good + b"\n" + raw + b"\n" + good).splitlines(True), name="log.jsonl"):
            yielded.append(record)
    assert len(yielded) <= 2, "nothing of the bad line"


def test_a_bad_element_of_a_list_is_told_by_its_index() -> None:
    with pytest.raises(BadRecord, match=r"log.jsonl:1: element 1: \"role\" is one of"):
        read(json.dumps([HELLO[0], {"role": "boss"}]))


def test_a_file_that_is_broken_json_is_told_by_its_line() -> None:
    with pytest.raises(BadRecord, match="log.jsonl:3: not JSON"):
        read('{\n"messages": [\n}\n')


@pytest.mark.parametrize("text", ["", "\n\n", "[]", '{"messages": []}'])
def test_a_file_without_records(text: str) -> None:
    assert read(text) == []


def test_lines_are_read_as_they_are_needed() -> None:
    def endless() -> Iterator[bytes]:
        for number in itertools.count():
            yield json.dumps({"role": "user", "content": f"message {number}"}).encode() + b"\n"

    records = itertools.islice(read_records(endless(), name="log.jsonl"), 1000)
    assert [record.text for record in records if isinstance(record, MemoryItem)][-1] == "message 999"
