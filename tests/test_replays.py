"""A repeated request gets its first response, to the last bit, from any credential and at any time.

Each RPC with a `request_id`, from the descriptors: sent with one credential, repeated with another of the
same namespace, and again after everything in the response was overwritten and the server restarted with
another configuration.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from credentials import BY_NAME, Client, connect, keys_in
from grpc_api import METHODS, exactly, json_value, struct
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

WITH_REQUEST_ID = {method.name for method in METHODS if "request_id" in method.input_type.fields_by_name}
WEB = memory_pb2.SOURCE_KIND_WEB
REASONING = "A lasting fact about them"

# Requests whose responses are not stored, and why. None of them writes anything.
NOT_REMEMBERED = {
    "ExtractMemories with dry_run": "tells what would be saved now",
    "ConsolidateMemories with dry_run": "tells what would be done now",
    "HandleMessage without a command": "every message of a user would be a write: it is recognised anew",
}


class Prepared:
    """A namespace with one of everything, and the ids that the server assigned."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.call("Add", item={"id": "old", "text": "a heron", "session_id": "s", "labels": {"a": "b"}})
        self.call("Add", item=said("message", "the heron stands in the reeds"))
        self.call("UpdateSession", session={"session_id": "s", "title": "Herons", "labels": {"a": "b"}})
        self.call("SaveState", key="old", value=json_value(1), description="why it was kept")
        self.call("StoreInteraction", id="said", sender="ada", content="hello", session_id="talk")
        self.call("AddDocument", document={"id": "book", "text": "A long book. " * 40})
        self.call("WriteFile", path="/d/file", content="A short file.")
        self.london = self.save("User lives in London").memory.id
        self.tea = self.save("User likes green tea").memory.id

    def call(self, method: str, **fields: Any) -> Any:
        """Call an RPC of the namespace."""
        return self.client.call(method, namespace=self.namespace, **fields)

    def save(self, content: str, **fields: Any) -> Any:
        """Save a memory."""
        fact = {"content": content, "category": 1, "reasoning": REASONING, "keep_wording": True}
        return self.call("SaveMemory", **{**fact, **fields})

    def write_over_all(self) -> None:
        """Overwrite everything that responses contain; delete nothing."""
        self.call("Update", item={"id": "old", "text": "another bird"})
        self.call("Update", item={"id": "said", "text": "not hello"})
        self.call("Update", item=said("message", "something else"))
        self.call("SaveState", key="old", value=json_value(2), description="another reason")
        self.call("SaveState", key="k", value=json_value(2), description="of another")
        self.call("SaveState", key="new", value=json_value(2), description="of another")
        self.save("User lives in Oslo")
        for each in ("/new", "/d/file", "/e/file"):
            self.call("WriteFile", path=each, content="Written over.")
        self.call("UpdateSession", session={"session_id": "s", "title": "Other birds", "labels": {"c": "d"}})
        self.call("UpdateMemory", memory={"id": self.tea, "content": "User likes black tea"})
        for each in ("mine", "thought"):
            if not self.client_has(each):
                continue
            self.call("Update", item={"id": each, "text": "written over"})

    def client_has(self, item_id: str) -> bool:
        """Return whether there is an item with this id."""
        return any(item.id == item_id for item in self.call("List", page_size=1000).items)


def said(item_id: str, text: str) -> dict[str, Any]:
    """Return a message of the assistant."""
    return {"id": item_id, "session_id": "s", "chat_message": {"role": 3, "parts": [{"text": text}]}}


Fields = Callable[[Prepared], dict[str, Any]]
TOLD = {
    "source": WEB,
    "source_uri": "https://example.org/",
    "parent_ids": ["old"],
    "model": "m",
    "trust": 0.25,
}
LESS = {"trust": 0.125}
BOOK = {"id": "book", "text": "A new one."}
RESULT = {"tool_name": "getContacts", "result": json_value([{"name": "Jo", "phone": "1"}])}
SAVED_BY_COMMAND = {"session_id": "s", "text": "save this"}

CASES: dict[str, Fields] = {
    "Add": lambda p: {
        "item": {"text": "x", "metadata": struct({"m": 1}), "provenance": TOLD, "ttl": {"seconds": 3600}}
    },
    "Add, of an id": lambda p: {"item": {"id": "mine", "text": "x", "importance": 0.25}},
    "BatchAdd": lambda p: {
        "items": [{"text": "x"}, {"text": "y", "provenance": TOLD}, {"text": "z", "provenance": LESS}]
    },
    "BatchAdd, of much": lambda p: {"items": [{"text": f"{n} " + "long " * 3000} for n in range(300)]},
    "Update": lambda p: {"item": {"id": "old", "labels": {"c": "d"}}, "update_mask": {"paths": ["labels"]}},
    "Update, of the content": lambda p: {"item": {"id": "old", "text": "an egret"}},
    "Add, over another": lambda p: {"item": {"id": "old", "text": "x"}, "on_duplicate": 3},
    "Add, skipped": lambda p: {"item": {"id": "old", "text": "x"}, "on_duplicate": 2},
    "BatchAdd, one skipped": lambda p: {
        "items": [{"text": "x"}, {"id": "old", "text": "y"}, {"id": "mine", "text": "z"}], "on_duplicate": 2
    },
    "BatchWrite": lambda p: {
        "operations": [
            {"add": {"item": {"text": "x", "provenance": TOLD}}},
            {"add": {"item": {"id": "old", "text": "y"}, "on_duplicate": 2}},
            {"save_state": {"key": "k", "value": json_value(3), "ttl": {"seconds": 60}}},
            {"delete": {"id": "nothing", "allow_missing": True}},
        ]
    },
    "BatchWrite, deleting": lambda p: {
        "operations": [
            {"delete": {"id": "message"}},
            {"delete_where": {"session_id": "talk"}},
            {"delete_state": {"key": "old"}},
        ]
    },
    "BatchWrite, of files": lambda p: {
        "operations": [
            {"write_file": {"path": "/new", "content": "x"}},
            {"rename_file": {"path": "/d/file", "new_path": "/e/file"}},
        ]
    },
    "BatchWrite, an update": lambda p: {"operations": [{"update": {"item": {"id": "old", "text": "z"}}}]},
    "DeleteWhere": lambda p: {"session_id": "s"},
    "DeleteWhere, of nothing": lambda p: {"session_id": "none"},
    "UpdateSession": lambda p: {"session": {"session_id": "s", "title": "Birds"}},
    "UpdateSession, of a new one": lambda p: {
        "session": {"session_id": "new", "metadata": struct({"m": 1})}, "allow_missing": True
    },
    "DeleteSession": lambda p: {"session_id": "s"},
    "DeleteSession, of nothing": lambda p: {"session_id": "none"},
    "ForkSession": lambda p: {"session_id": "s"},
    "ForkSession, of a part": lambda p: {"session_id": "s", "new_session_id": "new", "until_item_id": "old"},
    "Delete": lambda p: {"id": "old"},
    "Reset": lambda p: {},
    "SaveState": lambda p: {"key": "k", "value": json_value({"v": 1}), "description": "why"},
    "SaveState, over another": lambda p: {"key": "old", "value": json_value(3)},
    "DeleteState": lambda p: {"key": "old"},
    "RenameState": lambda p: {"key": "old", "new_key": "k"},
    "ClearState": lambda p: {},
    "StoreInteraction": lambda p: {"id": "mine", "sender": "ada", "content": "x", "session_id": "s"},
    "StoreResponse": lambda p: {"content": "x", "in_response_to": "said"},
    "StoreResponse, of an id": lambda p: {"id": "mine", "content": "x", "in_response_to": "said"},
    "StoreResponse, found": lambda p: {"content": "x", "original_message": {"content": "hello"}},
    "StoreResponse, before its message": lambda p: {
        "content": "x",
        "original_message": {"content": "to come"},
        "allow_missing": True,
    },
    "StoreReflection": lambda p: {"id": "thought", "content": "x", "interaction_ids": ["said", "nowhere"]},
    "SaveMemory": lambda p: {"content": "User owns a boat", "category": 1, "reasoning": REASONING},
    "SaveMemory, contrary": lambda p: {
        "content": "User lives in Paris", "category": 1, "reasoning": REASONING, "labels": {"a": "b"}
    },
    "SaveMemory, known": lambda p: {"content": "User lives in London", "category": 1, "reasoning": REASONING},
    "SaveMemory, refused": lambda p: {
        "content": "User lives in Paris", "category": 1, "reasoning": REASONING, "on_contradiction": 3
    },
    "UpdateMemory": lambda p: {"memory": {"id": p.tea, "content": "User likes white tea"}},
    "UpdateMemory, of a label": lambda p: {"memory": {"id": p.tea, "labels": {"c": "d"}}},
    "UpdateMemory, known": lambda p: {"memory": {"id": p.tea, "content": "User lives in London"}},
    "DeleteMemory": lambda p: {"id": p.london, "include_history": True},
    "ExtractMemories": lambda p: {
        "messages": [
            {"role": 2, "parts": [{"text": "I live in Paris. I live in London. My brother Tom plays chess."}]}
        ]
    },
    "ExtractMemories, of nothing": lambda p: {"messages": [{"role": 2, "parts": [{"text": "Well, well."}]}]},
    "ExtractMemories, of a session": lambda p: {"session_id": "talk"},
    "ConsolidateMemories": lambda p: {},
    "ConsolidateMemories, of nothing": lambda p: {"categories": [4]},
    "HandleMessage": lambda p: SAVED_BY_COMMAND,
    "HandleMessage, for nothing": lambda p: {**SAVED_BY_COMMAND, "session_id": "none"},
    "AddDocument": lambda p: {
        "document": {"title": "t", "text": "A text. " * 300, "metadata": struct({"m": 1})},
        "split": {"max_characters": 200},
    },
    "AddDocument, over another": lambda p: {"document": BOOK, "replace": True},
    "DeleteDocument": lambda p: {"id": "book"},
    "WriteFile": lambda p: {"path": "/new", "content": "A text.\n" * 9},
    "WriteFile, over another": lambda p: {"path": "/d/file", "content": ""},
    "EditFile": lambda p: {"path": "/d/file", "replace": {"old_text": "short", "new_text": "long\n"}},
    "EditFile, at the end": lambda p: {"path": "/d/file", "append": {"text": " And more."}},
    "RenameFile": lambda p: {"path": "/d/file", "new_path": "/e/file"},
    "RenameFile, of a folder": lambda p: {"path": "/d", "new_path": "/e"},
    "DeleteFile": lambda p: {"path": "/d/file"},
    "DeleteFile, of a folder": lambda p: {"path": "/d", "recursive": True},
    "EvaluateForStorage": lambda p: {**RESULT, "goal": "contacts", "key": "new", "save": True},
    "EvaluateForStorage, not to save": lambda p: RESULT,
    "EvaluateForStorage, taken": lambda p: {**RESULT, "key": "old", "save": True},
    "UndoWrites": lambda p: {"writer": "nobody", "since": {"seconds": 1}},
    "UndoWrites, of all": lambda p: {"writer": "ada", "since": {"seconds": 1}},
}  # fmt: skip


def method_of(case: str) -> str:
    """Return the RPC of a case."""
    return case.partition(",")[0]


def test_every_rpc_with_a_request_id_has_a_case() -> None:
    assert {method_of(case) for case in CASES} == WITH_REQUEST_ID


def requests_of(client: Client) -> dict[str, tuple[Prepared, Message]]:
    """Return the request of each case, each in a separate namespace."""
    requests = {}
    for number, (case, fields) in enumerate(CASES.items()):
        prepared = Prepared(client, f"ns/{number}")
        kind = GetMessageClass(BY_NAME[method_of(case)].input_type)
        request = kind(namespace=prepared.namespace, request_id="r-1", **fields(prepared))
        if case == "ConsolidateMemories":
            for content in ("User's name is John", "User's name is Jack"):
                prepared.save(content, on_contradiction=2)
        requests[case] = prepared, request
    return requests


class Keys:
    """Two credentials of the same namespaces, with different names and trust."""

    def __init__(self, folder: Path) -> None:
        keys = keys_in(folder)
        self.ada = keys.token("ada", trust=0.5)
        self.bob = keys.token("bob", trust=0.75)

    def start(self, folder: Path, *flags: str) -> ServerProcess:
        """Return a server that requires them."""
        return ServerProcess(folder, flags=["--auth", "keys", *flags])


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Two keys of a folder."""
    return Keys(tmp_path)


def different(case: str, first: Message, again: Message) -> str:
    """Return the difference between two responses, "" for none."""
    return "" if exactly(first) == exactly(again) else f"--- {case}\nfirst: {first}\nagain: {again}"


DELETING = {
    "Reset",
    "Delete",
    "DeleteWhere",
    "DeleteSession",
    "BatchWrite, deleting",
    "DeleteMemory",
    "UndoWrites",
}

Asked = tuple[Prepared, Message, Message]


# Conditions that make the cases meaningful: otherwise their responses would be equal anyway.
TOLD_AT_FIRST: dict[str, Callable[[Any], bool]] = {
    "Add": lambda a: a.item.provenance.trust == 0.25 and len(a.degraded) == 1,
    "BatchAdd, of much": lambda a: len(a.items) == 300 and not a.items[0].text,
    "UpdateSession": lambda a: a.session.item_count == 2 and dict(a.session.labels) == {"a": "b"},
    "DeleteSession": lambda a: a.deleted_count == 2,
    "ForkSession": lambda a: a.session.title == "Herons" and a.session.item_count == 2,
    "ForkSession, of a part": lambda a: a.session.item_count == 1,
    "Update": lambda a: a.item.text == "a heron" and dict(a.item.labels) == {"c": "d"},
    "SaveState, over another": lambda a: a.entry.description == "why it was kept",
    "StoreResponse, found": lambda a: a.interaction.original_message.content == "hello",
    "StoreReflection": lambda a: list(a.interaction.provenance.parent_ids) == ["said"],
    "SaveMemory, contrary": lambda a: a.outcome == 3 and len(a.superseded) == 1 and a.HasField("existing"),
    "SaveMemory, known": lambda a: a.outcome == 2 and a.HasField("existing"),
    "SaveMemory, refused": lambda a: a.outcome == 4,
    "UpdateMemory, known": lambda a: a.outcome == 2,
    "ExtractMemories": lambda a: len(a.results) > 1 and any(r.HasField("existing") for r in a.results),
    "ConsolidateMemories": lambda a: len(a.consolidations) == 1 and a.consolidations[0].applied,
    "HandleMessage": lambda a: a.outcome == 2 and a.message.id == "message" and len(a.fragments) == 1,
    "HandleMessage, for nothing": lambda a: a.outcome == 4,
    "AddDocument": lambda a: a.document.fragment_count > 3,
    "WriteFile": lambda a: a.created and a.line_count == 9 and len(a.degraded) == 1,
    "EditFile": lambda a: a.line_count == 2 and a.start_line == 1,
    "RenameFile": lambda a: a.renamed_count == 1 and a.version,
    "RenameFile, of a folder": lambda a: a.renamed_count == 1 and not a.version,
    "DeleteFile, of a folder": lambda a: a.deleted_count == 1,
    "EvaluateForStorage": lambda a: a.saved and a.HasField("entry"),
    "EvaluateForStorage, taken": lambda a: not a.saved and len(a.failures) == 1,
    "UndoWrites, of all": lambda a: a.removed_count > 5,
}


def answers_and_replays(ada: Client, bob: Client, problems: list[str]) -> dict[str, Asked]:
    """Send each request, repeat it, and repeat it again after its response's contents were overwritten.

    Record differences, and return the requests with their first responses.
    """
    asked = {}
    for case, (prepared, request) in requests_of(ada).items():
        first = ada.call(method_of(case), request)
        assert TOLD_AT_FIRST.get(case, bool)(first), f"{case}: {first}"
        problems.append(different(case, first, bob.call(method_of(case), request)))
        prepared.client = bob
        if not {case, method_of(case)} & DELETING:
            prepared.write_over_all()
        again = bob.call(method_of(case), request)
        problems.append(different(f"{case}, written over", first, again))
        asked[case] = prepared, request, first
    return asked


def test_a_replay_is_answered_as_the_first_time(tmp_path: Path, keys: Keys) -> None:
    problems: list[str] = []
    with keys.start(tmp_path, "--embedder", "none") as server:
        asked = answers_and_replays(
            connect(server.address, keys.ada), connect(server.address, keys.bob), problems
        )
        before = {case: revision(prepared) for case, (prepared, _, _) in asked.items()}
        server.kill()
    assert of_receipts(tmp_path, "max(length(receipt))") < 300 * 150, "as much as 300 ids and times take"
    # With an embedder now, the responses must still say that there was none.
    with keys.start(tmp_path, "--embedder", "local") as server:
        bob = connect(server.address, keys.bob)
        for case, (prepared, request, first) in asked.items():
            prepared.client = bob
            again = bob.call(method_of(case), request)
            problems.append(different(f"{case}, restarted", first, again))
            assert revision(prepared) == before[case], case
    assert "\n".join(filter(None, problems)) == ""


def of_receipts(folder: Path, what: str) -> int:
    """Return a value computed from the stored receipts."""
    with contextlib.closing(sqlite3.connect(folder / "records.db")) as database:
        found: int = database.execute(f"SELECT {what} FROM requests").fetchone()[0]
    return found


def revision(prepared: Prepared) -> int:
    """Return the revision of a namespace."""
    found: int = prepared.call("GetNamespaceStats").revision
    return found


def test_a_request_of_the_release_before_is_told_what_it_wrote(tmp_path: Path, keys: Keys) -> None:
    """That release kept 14 fields of a receipt, and no responses."""
    with keys.start(tmp_path, "--embedder", "none") as server:
        prepared = Prepared(connect(server.address, keys.ada), "ns")
        first = prepared.save("User owns a boat", request_id="r-1")
        decided = prepared.call("EvaluateForStorage", **RESULT, key="new", save=True, request_id="r-2")
        added = prepared.call("Add", item={"text": "x"}, request_id="r-3")
        assert server.terminate() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "records.db")) as database:
        for request_id, receipt in database.execute("SELECT id, receipt FROM requests").fetchall():
            older = json.dumps(json.loads(receipt)[:14])
            database.execute("UPDATE requests SET receipt = ? WHERE id = ?", (older, request_id))
        database.execute("DELETE FROM answers")
        database.commit()
    with keys.start(tmp_path, "--embedder", "none") as server:
        prepared.client = connect(server.address, keys.ada)
        before = revision(prepared)
        again = prepared.save("User owns a boat", request_id="r-1")
        assert (again.outcome, again.memory.id) == (first.outcome, first.memory.id)
        assert (again.memory.revision, again.revision) == (first.memory.revision, first.revision)
        again = prepared.call("EvaluateForStorage", **RESULT, key="new", save=True, request_id="r-2")
        assert (again.saved, again.entry.version, again.revision) == (True, 1, decided.revision)
        again = prepared.call("Add", item={"text": "x"}, request_id="r-3")
        assert (again.item.id, again.item.text, again.revision) == (added.item.id, "x", added.revision)
        assert revision(prepared) == before


def test_a_replay_is_answered_as_the_first_time_from_memory(tmp_path: Path, keys: Keys) -> None:
    problems: list[str] = []
    flags = ["--store", "memory", "--embedder", "none", "--api-keys", str(tmp_path / "api-keys.json")]
    with ServerProcess(flags=["--auth", "keys", *flags]) as server:
        answers_and_replays(connect(server.address, keys.ada), connect(server.address, keys.bob), problems)
    assert "\n".join(filter(None, problems)) == ""
