"""Batches, deleting by conditions and duplicates through both Python clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from both_clients import connected
from memory_client import (
    AddOperation,
    AlreadyExists,
    Conflict,
    DeleteOperation,
    DeleteStateOperation,
    DeleteWhereOperation,
    InvalidArgument,
    MemoryItem,
    NotFound,
    OnDuplicate,
    SaveStateOperation,
    UpdateOperation,
    WriteResult,
    chat_message,
)
from memory_client.protojson import operation_from_json
from server_process import ServerProcess

START = datetime(2025, 3, 1, 12, 30, 15, 123456, UTC)
DAY = timedelta(days=1)


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, server: ServerProcess, namespace: str) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


def ids(client: Any) -> list[str]:
    return [item.id for item in client.list_items()]


def test_a_batch_answers_for_each_operation(client: Any) -> None:
    client.batch_add(
        [MemoryItem(content="one", id="a", create_time=START), MemoryItem(content="two", id="b")]
    )
    client.add("three", id="c", session_id="old")
    client.save_state("draft", 1)
    done = client.batch_write(
        [
            AddOperation(MemoryItem(content=chat_message("user", "four"), id="d", ttl=DAY)),
            AddOperation("only text"),
            UpdateOperation(id="a", content={"one": 1}, importance=None),
            DeleteOperation("b"),
            DeleteWhereOperation(session_id="old"),
            SaveStateOperation("plan", {"step": 1}, ttl=60, description="what is next"),
            DeleteStateOperation("draft"),
            DeleteStateOperation("never there", allow_missing=True),
        ]
    )
    added, text, updated, deleted, where, saved, deleted_state, missing = done
    assert (added.id, added.revision, added.expire_time - added.create_time) == ("d", 5, DAY)
    assert added.create_time == added.update_time
    assert client.get(text.id).content == "only text"
    assert (updated.id, updated.create_time, updated.expire_time) == ("a", START, None)
    assert (deleted, where, deleted_state) == (WriteResult(deleted_count=1),) * 3
    assert (saved.id, saved.version, saved.deleted_count) == ("", 1, 0)
    assert saved.expire_time == saved.update_time + timedelta(minutes=1)
    assert missing == WriteResult()
    assert done.degraded == ()
    assert done.revision == client.namespace_stats().revision
    assert client.get("a").content == {"one": 1}
    assert set(ids(client)) == {"a", "d", text.id}
    assert client.load_state("plan").description == "what is next"


def test_nothing_of_a_batch_is_written_if_a_precondition_fails(client: Any) -> None:
    client.add("one", id="a")
    client.save_state("k", 1)
    for operation, expected in (
        (AddOperation(MemoryItem(content="x", id="a")), AlreadyExists),
        (UpdateOperation(id="none", content="x"), NotFound),
        (UpdateOperation(id="a", content="x", expected_revision=7), Conflict),
        (DeleteOperation("none"), NotFound),
        (DeleteOperation("a", expected_revision=7), Conflict),
        (SaveStateOperation("k", 2, expected_version=0), Conflict),
        (DeleteStateOperation("k", expected_version=7), Conflict),
        (DeleteStateOperation("none"), NotFound),
        (DeleteWhereOperation(), InvalidArgument),
    ):
        with pytest.raises(expected):
            client.batch_write([AddOperation("new"), SaveStateOperation("new", 1), operation])
    with pytest.raises(InvalidArgument) as refused:
        client.batch_write([DeleteOperation("a"), AddOperation("")])
    assert refused.value.field == "operations[1].add.item.text"
    assert ids(client) == ["a"]
    assert [entry.key for entry in client.list_state_keys()] == ["k"]


def test_a_batch_with_a_request_id_is_applied_once(client: Any) -> None:
    operations = [AddOperation("once"), SaveStateOperation("k", 1)]
    first = client.batch_write(operations, request_id="r")
    assert client.batch_write(operations, request_id="r") == first
    assert ids(client) == [first[0].id]
    assert client.batch_write(iter(operations))[1].version == 2, (
        "each call has its own id unless one is given"
    )


def test_what_is_no_operation_is_refused_before_the_call(client: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"operations\[1\]: is a MemoryItem"):
        client.batch_write([AddOperation("x"), MemoryItem(content="x")])
    with pytest.raises(ValueError, match=r"operations\[1\]\.save_state\.value"):
        client.batch_write([AddOperation("x"), SaveStateOperation("k", 2**53 + 1)])
    with pytest.raises(ValueError, match="keep"):
        client.batch_write([AddOperation("x", on_duplicate="keep")])
    with pytest.raises(InvalidArgument, match="kinds"):
        client.delete_where(kinds="message")
    assert ids(client) == []


def test_a_skipped_item_comes_back_as_it_was_given(client: Any) -> None:
    stored = client.add("first", id="a", create_time=START, labels={"k": "v"})
    skipped = client.add("second", id="a", on_duplicate="skip", session_id="s")
    assert skipped == MemoryItem(content="second", id="a", session_id="s"), "with revision 0: not written"
    assert client.get("a") == stored
    assert client.add("new", id="b", on_duplicate=OnDuplicate.SKIP).revision == 2
    written = client.batch_add([MemoryItem(content="x", id="a"), "y"], on_duplicate="skip")
    assert [item.content for item in written] == ["y"]
    (result,) = client.batch_write([AddOperation(MemoryItem(content="x", id="a"), "skip")])
    assert (result.skipped, result.revision, result.create_time) == (True, 0, None)


def test_a_replaced_item_keeps_its_place_and_its_time(client: Any) -> None:
    client.add("first", id="a", create_time=START, labels={"k": "v"})
    client.add("other", id="b")
    replaced = client.add("second", id="a", on_duplicate="replace")
    assert (replaced.content, replaced.create_time, replaced.labels, replaced.revision) == (
        "second",
        START,
        {},
        3,
    )
    (again,) = client.batch_add(
        [MemoryItem(content="third", id="a", create_time=START + DAY)], on_duplicate="replace"
    )
    assert (again.content, again.create_time) == ("third", START + DAY)
    assert ids(client) == ["a", "b"]
    with pytest.raises(AlreadyExists):
        client.add("x", id="a", on_duplicate="fail")


def test_items_are_deleted_by_conditions(client: Any) -> None:
    client.batch_add(
        [
            MemoryItem(content="one", id="a", session_id="s", create_time=START),
            MemoryItem(content="two", id="b", session_id="s", labels={"k": "v"}, create_time=START + DAY),
            MemoryItem(content="three", id="c", metadata={"draft": True}),
        ]
    )
    client.store_interaction("ada", "hello", id="m")
    assert client.delete_where(session_id="s", dry_run=True) == 2
    assert client.delete_where(start_time=START, end_time=START + DAY) == 1
    assert client.delete_where(labels={"k": "v"}, session_id="s", request_id="r") == 1
    assert client.delete_where(labels={"k": "v"}, session_id="s", request_id="r") == 1, "the first answer"
    assert client.delete_where(kinds=["message"], filter="labels.k:*") == 0
    assert client.delete_where(kinds=["message"]) == 1
    assert client.delete_where(filter="metadata.draft = true") == 1
    assert ids(client) == []
    with pytest.raises(InvalidArgument):
        client.delete_where()
    with pytest.raises(InvalidArgument, match="kinds"):
        client.delete_where(kinds=["document"])


def test_operations_are_read_from_json() -> None:
    read = operation_from_json
    added = read({"add": {"item": {"text": "x", "sessionId": "s"}, "on_duplicate": "ON_DUPLICATE_SKIP"}})
    assert added == AddOperation(MemoryItem(content="x", session_id="s"), OnDuplicate.SKIP)
    assert read({"update": {"item": {"id": "a", "text": "x"}, "expected_revision": "3"}}) == UpdateOperation(
        id="a", content="x", expected_revision=3
    )
    cleared = read(
        {"update": {"item": {"id": "a", "labels": {"k": "v"}}, "update_mask": "expireTime,metadata"}}
    )
    assert cleared == UpdateOperation(id="a", expire_time=None, metadata={})
    assert read({"delete": {"id": "a", "allow_missing": True}}) == DeleteOperation("a", allow_missing=True)
    where = {
        "session_id": "s",
        "kinds": ["ITEM_KIND_UNSPECIFIED"],
        "start_time": "2025-03-01T12:30:15.123456Z",
    }
    assert read({"delete_where": where}) == DeleteWhereOperation(
        session_id="s", kinds=["plain"], start_time=START, labels={}
    )
    assert read({"save_state": {"key": "k", "value": None, "ttl": "60s"}}) == SaveStateOperation(
        "k", None, ttl=timedelta(minutes=1)
    )
    assert read({"delete_state": {"key": "k", "expected_version": 0}}) == DeleteStateOperation("k", 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "no operation"),
        ({"burn": {}}, "burn"),
        ({"add": {}}, "add.item is required"),
        ({"update": {"update_mask": "text"}}, "update.item is required"),
        ({"update": {"item": {"id": "a"}, "update_mask": "revision"}}, "revision"),
        ({"update": {"item": {"id": "a", "provenance": {}}}}, "provenance"),
        ({"save_state": {"key": "k"}}, "save_state.value is required"),
        ({"add": {"item": {"text": 5}}}, "text"),
        ({"add": {"item": {"text": "x"}, "on_duplicate": 9}}, "on_duplicate"),
    ],
)
def test_json_that_is_no_operation_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        operation_from_json(data)
