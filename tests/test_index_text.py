"""The text of an item that is searched in place of its content, through every way to write and read it."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from grpc_api import Api, eventually, refusal
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb

MODES = (pb.RETRIEVE_MODE_HYBRID, pb.RETRIEVE_MODE_LEXICAL, pb.RETRIEVE_MODE_VECTOR)


def found(api: Api, namespace: str, text: str, mode: int, **options: Any) -> set[str]:
    options = {"query_text": text, "mode": mode, "limit": -1, **options}
    request = pb.RetrieveRequest(namespace=namespace, options=options)
    return {result.item.id for result in api.memory.Retrieve(request).results}


def update(api: Api, namespace: str, *paths: str, **item: Any) -> pb.MemoryItem:
    request = pb.UpdateRequest(
        namespace=namespace, item=pb.MemoryItem(**item), update_mask=FieldMask(paths=paths)
    )
    return api.memory.Update(request).item


def vector_of(api: Api, namespace: str, item_id: str) -> list[float]:
    return list(api.get(namespace, item_id, include_embedding=True).embedding.values)


def test_words_and_vector_are_those_of_the_index(api: Api, namespace: str) -> None:
    text, index = "see the attached file", "the plumber's invoice"
    api.add(namespace, id="a", text=text, index=index)
    api.add(namespace, id="b", text=index)
    assert vector_of(api, namespace, "a") == vector_of(api, namespace, "b") != []
    assert found(api, namespace, "plumber", pb.RETRIEVE_MODE_LEXICAL) == {"a", "b"}
    assert found(api, namespace, "attached", pb.RETRIEVE_MODE_LEXICAL) == set()
    kept = api.get(namespace, "a")
    assert (kept.text, kept.index) == (text, index)
    assert not api.get(namespace, "b").HasField("index")


@pytest.mark.parametrize("mode", MODES)
def test_an_item_with_an_empty_index_is_never_found(api: Api, namespace: str, mode: int) -> None:
    api.add(namespace, id="before", text="a walrus on the beach", session_id="s")
    api.add(namespace, id="it", text="a walrus in the bathtub", session_id="s", index="")
    api.add(namespace, id="after", text="a walrus in the sea", session_id="s")
    assert found(api, namespace, "walrus bathtub", mode) == {"before", "after"}
    assert found(api, namespace, '"bathtub"', mode) <= {"before", "after"}
    assert vector_of(api, namespace, "it") == []
    assert [item.id for item in api.items(namespace)] == ["before", "it", "after"]
    request = {"query_text": "sea", "context_window": 1, "limit": 1, "mode": pb.RETRIEVE_MODE_LEXICAL}
    (result,) = api.memory.Retrieve(pb.RetrieveRequest(namespace=namespace, options=request)).results
    assert (result.item.id, [item.id for item in result.before]) == ("after", ["it"])


def test_an_update_changes_empties_and_removes_the_index(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="a walrus")
    api.add(namespace, id="walrus", text="a walrus")
    api.add(namespace, id="heron", text="a heron")
    for paths, fields, like in (
        (["index"], {"index": "a heron"}, "heron"),
        (["labels"], {"labels": {"k": "v"}}, "heron"),
        (["content"], {"text": "a pelican"}, "heron"),
        (["index"], {"index": ""}, ""),
        (["metadata"], {}, ""),
        (["content", "index"], {"text": "a walrus"}, "walrus"),
    ):
        update(api, namespace, *paths, id="a", **fields)
        expected = vector_of(api, namespace, like) if like else []
        assert vector_of(api, namespace, "a") == expected, paths
        for word in ("walrus", "heron", "pelican"):
            assert ("a" in found(api, namespace, word, pb.RETRIEVE_MODE_LEXICAL)) == (word == like), paths


def test_an_index_is_exported_and_imported(api: Api, namespace: str) -> None:
    api.add(namespace, id="none", text="a walrus", index="")
    api.add(namespace, id="other", text="a walrus", index="a heron")
    api.add(namespace, id="own", text="a walrus")
    exported = [each.item for each in api.memory.Export(pb.ExportRequest(namespace=namespace))]
    copy = f"{namespace}/copy"
    api.memory.Import(iter([pb.ImportRequest(namespace=copy, items=exported)]))
    for name in (namespace, copy):
        assert [(item.HasField("index"), item.index) for item in api.items(name)] == [
            (True, ""), (True, "a heron"), (False, ""),
        ]  # fmt: skip
        assert found(api, name, "walrus heron", pb.RETRIEVE_MODE_LEXICAL) == {"other", "own"}
        assert found(api, name, "walrus heron", pb.RETRIEVE_MODE_VECTOR) == {"other", "own"}


def test_new_vectors_are_those_of_the_index(api: Api, namespace: str) -> None:
    api.add(namespace, id="none", text="a walrus", index="")
    api.add(namespace, id="other", text="a walrus", index="a heron")
    api.add(namespace, id="heron", text="a heron")
    before = vector_of(api, namespace, "heron")
    api.admin.Reembed(admin_pb2.ReembedRequest(namespace=namespace))

    def vectors() -> list[list[float]]:
        return [vector_of(api, namespace, item_id) for item_id in ("none", "other", "heron")]

    eventually(lambda: vectors() == [[], before, before], "vectors are filled in")


@pytest.mark.parametrize("how", ["add", "update", "both"])
def test_a_vector_of_what_is_never_found_is_refused(api: Api, namespace: str, how: str) -> None:
    vector = pb.Embedding(values=[1.0, 0.0])
    if how == "add":
        item = pb.MemoryItem(text="x", index="", embedding=vector)
        error = refusal(api.memory.Add, pb.AddRequest(namespace=namespace, item=item))
        assert error.fields == ("item.embedding",)
        return
    index = {"index": ""} if how == "both" else {}
    api.add(namespace, id="a", text="x", **({"index": ""} if how == "update" else {}))
    item = pb.MemoryItem(id="a", embedding=vector, **index)
    mask = FieldMask(paths=["embedding", *index])
    error = refusal(api.memory.Update, pb.UpdateRequest(namespace=namespace, item=item, update_mask=mask))
    assert (error.reason, error.fields) == ("INVALID_FIELD", ("item.embedding",))


def test_an_index_takes_no_part_in_what_is_returned_or_filtered(api: Api, namespace: str) -> None:
    message = pb.ChatMessage(role=pb.ROLE_USER, name="Ada", parts=[pb.Part(text="look at this")])
    api.add(namespace, id="a", chat_message=message, index="a heron")
    (kept,) = api.memory.List(
        pb.ListRequest(namespace=namespace, filter='name = "Ada" AND role = user')
    ).items
    assert kept.chat_message == message and kept.index == "a heron"
    # The speaker's name belongs to the content.
    assert found(api, namespace, "Ada", pb.RETRIEVE_MODE_LEXICAL) == set()
