"""The write policy sees every text of every request's fields, or the text is not kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor

from credentials import BY_NAME, Client, connect
from grpc_api import is_map, json_value, valid_request
from memory_service.data_model import ItemKind
from memory_service.server.methods import SERVED, Audit
from server_process import ServerProcess
from test_hostile_fields import Steps, leaves, put, put_entry
from test_result_storage import PEOPLE, SAVE_GOAL, TOOL

WORD = "xyloforbidden"
WHY = "no such words here"
KINDS = list(map(int, ItemKind))
# Fields that are not text of the write, but say where and how to make it. Namespaces are a separate
# condition.
BESIDE = {"namespace", "request_id", "update_mask.paths"}
FACT = {"content": "User likes tea", "category": 2, "reasoning": "A lasting preference"}


@pytest.fixture(scope="module", params=["hnsw", "memory"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("policy")
    rule = {"action": "reject", "reason": WHY, "contains": [WORD]}
    (folder / "rules.json").write_text(json.dumps({"rules": [rule]}))
    flags = ["--write-policy-file", str(folder / "rules.json"), "--embedder", "none"]
    data_dir = folder / "data" if request.param == "hnsw" else None
    with ServerProcess(data_dir, flags=["--store", request.param, *flags]) as server:
        client = connect(server.address)
        yield client
        client.channel.close()


def prepare(client: Client, namespace: str) -> str:
    """Write what requests refer to; return the id of the fact."""
    said = {"role": "ROLE_ASSISTANT", "parts": [{"text": "Herons eat fish."}]}
    client.call("Add", namespace=namespace, item={"id": "old", "text": "old", "session_id": "s"})
    client.call("Add", namespace=namespace, item={"id": "answer", "chat_message": said, "session_id": "s"})
    client.call("StoreInteraction", namespace=namespace, sender="ada", content="hello", id="said")
    client.call("SaveState", namespace=namespace, key="old", value=json_value("old"))
    client.call("WriteFile", namespace=namespace, path="/file", content="old")
    return str(client.call("SaveMemory", namespace=namespace, **FACT).memory.id)


def request_of(method: MethodDescriptor, namespace: str, fact_id: str) -> Any:
    """Return a request that writes something."""
    request: Any = valid_request(method, namespace)
    if method.name == "UpdateMemory":
        request.memory.id = fact_id
    elif method.name == "StoreResponse":
        request.in_response_to = "said"
    elif method.name == "EvaluateForStorage":
        request.save, request.tool_name, request.goal = True, TOOL, SAVE_GOAL
        request.result.CopyFrom(json_value(PEOPLE))
    elif method.name == "HandleMessage":
        request.text = "remember this"
    elif method.name == "ExtractMemories":
        request.ClearField("session_id")
        request.messages.add(role=2).parts.add(text="My name is Ada. I live in Porto.")
    elif method.name == "SaveMemory":
        request.content = "User owns a boat"
    elif method.name == "UpdateSession":
        request.allow_missing = True
    return request


def completed(message: Any) -> None:
    """Give messages on the path to a field their required fields."""
    for field, value in message.ListFields():
        for inner in value if field.is_repeated and not is_map(field) else [value]:
            if field.message_type and not is_map(field):
                completed(inner)
    name = message.DESCRIPTOR.name
    if name == "ChatMessage":
        message.role = message.role or 2
        if not message.parts:
            message.parts.add(text="x")
    elif name == "BinaryPart":
        message.mime_type = message.mime_type or "image/png"
    elif name == "MemoryItem" and message.WhichOneof("content") is None:
        message.text = "x"
    elif name == "StateEntry":
        message.key = message.key or "k"
        if message.value.WhichOneof("kind") is None:
            message.value.string_value = "x"
    elif name == "ReplaceText":
        message.old_text = message.old_text or "old"
    elif name == "OriginalMessage":
        message.sender, message.content = message.sender or "ada", message.content or "hello"


def with_word(method: MethodDescriptor, steps: Steps, request: Any, word: str) -> Any:
    """Return the request with the word in the field at the end of the path."""
    if steps[0].is_repeated and len(steps) > 1:
        request.ClearField(steps[0].name)
    if steps[-1].name == "facet_json":
        word = json.dumps({"tags": {f"a {word}": f"b {word}"}})
    elif steps[-1].name in ("path", "new_path"):
        word = f"/{word}"
    (put_entry if is_map(steps[-1]) else put)(request, steps, word)
    completed(request)
    if method.name == "Update" and not request.item.id:
        request.item.id = "old"
    elif method.name == "Import" and steps[-1].name == "facet_json":
        request.items[0].kind = 1
    elif name_of(steps).startswith("original_message."):
        request.ClearField("in_response_to")
    return request


def name_of(steps: Steps) -> str:
    return ".".join(step.name for step in steps)


def has_text(field: FieldDescriptor) -> bool:
    return field.type == FieldDescriptor.TYPE_STRING or is_map(field)


def everything(client: Client, namespace: str) -> str:
    """Return everything that can be read from the namespace."""
    read = [
        *client.call("List", namespace=namespace, kinds=KINDS, page_size=1000).items,
        *client.call("SearchState", namespace=namespace, pattern="*").entries,
        *client.call("ListMemories", namespace=namespace, include_history=True).memories,
        *client.call("ListQuarantined", namespace=namespace).writes,
        *client.call("ListFiles", namespace=namespace).entries,
        *client.call("ListSessions", namespace=namespace).sessions,
    ]
    return "\n".join(map(str, read))


_TOLD = "provenance.writer provenance.credential_id"
_WHENCE = f"{_TOLD} provenance.source_uri provenance.parent_ids provenance.model"


def _of(message: str, fields: str) -> str:
    return " ".join(f"{message}.{field}" for field in fields.split())


NOT_KEPT = {
    "Add": _of("item", f"facet_json provenance.parent_ids {_TOLD}"),
    "AddDocument": _of("document", f"preview source_item_id {_WHENCE}"),
    "BatchAdd": _of("items", f"facet_json provenance.parent_ids {_TOLD}"),
    "ConsolidateMemories": "memory_ids",
    "EditFile": "path expected_sha256 replace.old_text",
    "EvaluateForStorage": "arguments.fields",
    "ExtractMemories": "recalled_memory_ids messages.message_id messages.name messages.model.id"
    " messages.model.provider "
    + _of("messages.parts", "text data.fields binary.name binary.url binary.mime_type")
    + _of(" messages.parts.tool_call", "name tool_call_id arguments.fields")
    + _of(" messages.parts.tool_call_result", "name tool_call_id result.string_value"),
    "ForkSession": "session_id until_item_id",
    "HandleMessage": "agent_name commands message_id session_id text",
    "Import": "states.preview",
    "RenameFile": "path",
    "RenameState": "key",
    "SaveMemory": "source.memory_ids source.model",
    "StoreResponse": "in_response_to " + _of("original_message", f"sender content {_WHENCE}"),
    "Update": _of("item", f"id facet_json {_WHENCE}"),
    "UpdateMemory": _of("memory", f"id original_content superseded_by supersedes {_WHENCE}")
    + _of(" memory.importance", "boosts.name boosts.reason reductions.name reductions.reason")
    + _of(" memory.source", "actor item_ids memory_ids model quote session_id"),
    "UpdateSession": _of("session", "participants forked_from.session_id forked_from.until_item_id"),
    "WriteFile": "expected_sha256",
}
"""Texts that are not kept.

They are queries, references to existing things, output of the server, or texts that are only read, such as
messages in which facts are found.
"""


@pytest.mark.parametrize(
    "name",
    sorted(
        path.rpartition("/")[2]
        for path, method in SERVED.items()
        if method.audit in (Audit.WRITE, Audit.WRITE_IN_PARTS)
    ),
)
def test_a_word_in_any_field_is_seen_or_not_kept(client: Client, name: str) -> None:
    method = BY_NAME[name]
    seen, unseen = set(), set()
    ways = [steps for steps in leaves(method.input_type) if has_text(steps[-1])]
    for number, steps in enumerate(ways):
        field, namespace = name_of(steps), f"{name}/{number}"
        if field in BESIDE:
            continue
        request = with_word(method, steps, request_of(method, namespace, prepare(client, namespace)), WORD)
        try:
            client.call(method, request)
            unseen.add(field)
        except grpc.RpcError as error:
            (seen if WHY in (error.details() or "") else unseen).add(field)
        assert WORD not in everything(client, namespace), field
    assert unseen == set(NOT_KEPT.get(name, "").split())


def test_ids_that_the_server_makes_are_no_words(tmp_path: Path) -> None:
    """Otherwise a rule against keys in hexadecimal would refuse every document."""
    rule = {"action": "reject", "reason": WHY, "matches": "[0-9a-f]{32}"}
    (tmp_path / "rules.json").write_text(json.dumps({"rules": [rule]}))
    flags = ["--write-policy-file", str(tmp_path / "rules.json"), "--embedder", "none"]
    with ServerProcess(flags=["--store", "memory", *flags]) as server:
        client = connect(server.address)
        prepare(client, "a")
        made = client.call("Add", namespace="a", item={"text": "a heron"}).item.id
        client.call("Add", namespace="a", item={"text": "b", "provenance": {"parent_ids": [made]}})
        client.call("StoreReflection", namespace="a", content="Herons eat.", interaction_ids=["said"])
        client.call("AddDocument", namespace="a", document={"text": "A book about herons."})
        client.call("SaveMemory", namespace="a", **{**FACT, "content": "User owns a boat"})
        for secret in ("d41d8cd98f00b204e9800998ecf8427e", "f" * 32, "0" * 32):
            refused = client.refused("Add", namespace="a", item={"id": f"key-{secret}", "text": "x"})
            assert refused.reason == "WRITE_REJECTED"
            refused = client.refused("Add", namespace="a", item={"session_id": secret, "text": "x"})
            assert refused.reason == "WRITE_REJECTED"
        client.channel.close()
