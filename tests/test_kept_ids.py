"""Ids that the server derives from others cannot be taken by other items."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from credentials import Client
from grpc_api import Api
from memory_service.data_model import ItemKind


def of_session(session_id: str) -> str:
    return "session:" + hashlib.sha256(session_id.encode()).hexdigest()


class Space:
    """A namespace with a session "s" and a file "/file"."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.client, self.namespace = Client(api.channel), namespace
        self.call("Add", item={"id": "said", "text": "x", "session_id": "s"})
        self.call("WriteFile", path="/file", content="one")
        (file,) = self.call("List", kinds=[int(ItemKind.FILE)]).items
        self.next_fragment_id = f"{file.id}.1"

    def call(self, name: str, **fields: Any) -> Any:
        return self.client.call(name, namespace=self.namespace, **fields)

    def refused(self, name: str, **fields: Any) -> Any:
        return self.client.refused(name, namespace=self.namespace, **fields)


@pytest.fixture
def space(api: Api, namespace: str) -> Space:
    return Space(api, namespace)


def writes_of(item_id: str) -> list[tuple[str, dict[str, Any], str]]:
    """Return every way in which a caller can choose the id of an item, and the field that errors name."""
    item = {"id": item_id, "text": "x", "session_id": "other"}
    return [
        ("Add", {"item": item}, "item.id"),
        ("Add", {"item": item, "on_duplicate": "ON_DUPLICATE_REPLACE"}, "item.id"),
        ("BatchAdd", {"items": [{"text": "y"}, item]}, "items[1].id"),
        ("BatchWrite", {"operations": [{"add": {"item": item}}]}, "operations[0].add.item.id"),
        ("StoreInteraction", {"id": item_id, "sender": "ada", "content": "x"}, "id"),
        ("StoreResponse", {"id": item_id, "content": "x"}, "id"),
        ("StoreReflection", {"id": item_id, "content": "x"}, "id"),
        ("AddDocument", {"document": {"id": item_id, "text": "x"}}, "document.id"),
    ]


@pytest.mark.parametrize("kept", ["session", "file fragment"])
def test_an_id_that_the_server_keeps_is_refused(space: Space, kept: str) -> None:
    item_id = of_session("s") if kept == "session" else space.next_fragment_id
    revision = space.call("GetNamespaceStats").revision
    for name, fields, field in writes_of(item_id):
        refusal = space.refused(name, **fields)
        assert (refusal.reason, refusal.fields) == ("INVALID_FIELD", (field,)), name
        assert kept in refusal.message, name
    assert space.call("GetNamespaceStats").revision == revision
    space.call("UpdateSession", session={"session_id": "s", "title": "T"})
    space.call("EditFile", path="/file", append={"text": " two"})
    assert space.call("ReadFile", path="/file").content == "one two"


def test_ids_that_only_look_alike_are_free(space: Space) -> None:
    for item_id in (
        "session:s",
        "session:" + "0" * 63,
        "f" * 32 + ".1",
        "book.1",
        space.next_fragment_id + ".2",
    ):
        assert space.call("Add", item={"id": item_id, "text": "x"}).item.id == item_id


def test_an_import_gives_a_session_only_its_own_item(space: Space) -> None:
    facet = json.dumps({"attributes": {}, "tags": {}})
    item = {"kind": int(ItemKind.SESSION), "data": {"title": "T"}, "facet_json": facet, "session_id": "other"}
    for item_id in (of_session("s"), "any", ""):
        refusal = space.refused("Import", items=[{**item, "id": item_id}])
        assert (refusal.reason, refusal.fields) == ("INVALID_FIELD", ("items[0].id",)), item_id
    space.call("Import", items=[{**item, "id": of_session("other")}])
    assert space.call("GetSession", session_id="other").session.title == "T"
