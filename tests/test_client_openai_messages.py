"""A message in OpenAI's format, given to the Python client as a dictionary, is a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from both_clients import connected
from memory_client import (
    AddOperation,
    BinaryPart,
    ChatMessage,
    InvalidArgument,
    MemoryItem,
    Role,
    ToolCall,
    ToolCallResult,
)
from server_process import ServerProcess


@pytest.fixture(params=["sync", "async"])
def client(server: ServerProcess, namespace: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


CALL = {"id": "call_1", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Paris"}'}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
MESSAGES = [
    ({"role": "user", "content": "hi"}, ChatMessage(Role.USER, ("hi",))),
    (
        {"role": "developer", "content": "be kind", "name": "Ada"},
        ChatMessage(Role.SYSTEM, ("be kind",), "Ada"),
    ),
    (
        {"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE, {"type": "odd", "n": 1}]},
        ChatMessage(
            Role.USER,
            (
                "look",
                BinaryPart(url="https://example.org/cat.png", content_length=-1),
                {"type": "odd", "n": 1},
            ),
        ),
    ),
    (
        {"role": "assistant", "content": None, "tool_calls": [CALL], "audio": None, "annotations": []},
        ChatMessage(Role.ASSISTANT, (ToolCall("trains", {"to": "Paris"}, "call_1"),)),
    ),
    (
        {"role": "assistant", "content": "No.", "refusal": "I cannot.", "id": "msg_1"},
        ChatMessage(Role.ASSISTANT, ("No.", {"type": "refusal", "refusal": "I cannot."}), message_id="msg_1"),
    ),
    (
        {"role": "tool", "tool_call_id": "call_1", "content": "12:04"},
        ChatMessage(Role.TOOL, (ToolCallResult("", "12:04", "call_1"),)),
    ),
]


@pytest.mark.parametrize(
    ("given", "expected"), MESSAGES, ids=[str(number) for number in range(len(MESSAGES))]
)
def test_a_message_in_openais_format_is_a_message(
    client: Any, given: dict[str, Any], expected: ChatMessage
) -> None:
    added = client.add(given)
    assert client.get(added.id).content == expected
    (batched, whole) = client.batch_add([given, MemoryItem(content=given)])
    results = client.batch_write([AddOperation(given)])
    other = client.add("x")
    client.update(other.id, content=given)
    for id in (batched.id, whole.id, results[0].id, other.id):
        assert client.get(id).content == expected
    assert added.speaker == (expected.name or expected.role)


@pytest.mark.parametrize("given", [{"role": "admin", "may": "all"}, {"content": "x"}, {"note": "y"}], ids=str)
def test_other_data_stay_data(client: Any, given: dict[str, Any]) -> None:
    assert client.get(client.add(given).id).content == given


REFUSED = [
    ({"role": "banker", "content": "x"}, "content.role"),
    ({"role": 5, "content": "x"}, "content.role"),
    ({"role": "user", "content": 5}, "content.content"),
    ({"role": "user", "content": [5]}, "content.content[0]"),
    ({"role": "user", "content": "x", "priority": 3}, "content.priority"),
    ({"role": "user", "content": "x", "name": 3}, "content.name"),
    ({"role": "assistant", "tool_calls": [{"id": "call_1"}]}, "content.tool_calls[0]"),
    ({"role": "user", "content": "caf\ud800"}, "content.parts[0]"),
]


@pytest.mark.parametrize(("given", "field"), REFUSED, ids=[field for _, field in REFUSED])
def test_what_looks_like_a_message_and_cannot_be_one_is_refused(
    client: Any, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        client.add(given)
    assert caught.value.field == field
    with pytest.raises(InvalidArgument) as caught:
        client.batch_add(["x", given])
    assert caught.value.field == f"items[1].{field}"
    assert list(client.list_items()) == []


def test_an_import_keeps_data_as_they_are(client: Any) -> None:
    given = {"role": "user", "content": "hi"}
    client.import_items([MemoryItem(content=given)])
    assert [item.content for item in client.list_items()] == [given]
