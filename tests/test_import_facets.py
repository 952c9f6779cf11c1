"""Facets of imported items: a facet is refused if its service could not read it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from grpc_api import Api, Refusal, refusal, struct, texts_of
from knowledge_api import Library
from memory_service.v1 import (
    file_pb2,
    file_pb2_grpc,
    interaction_pb2,
    interaction_pb2_grpc,
    knowledge_pb2,
    user_memory_pb2,
)
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess
from user_memories import IDENTITY, User, chain

FACT = {
    "category": 1,
    "reasoning": "It will matter later",
    "importance": {"base": 10.0, "boosts": [], "reductions": [], "score": 10.0},
    "valid_from_us": 1_700_000_000_000_000,
}
TAGS = {"category": "identity", "status": "active"}
DOCUMENT = {"version": 1, "fragments": "f.1", "fragment_count": 1}
FRAGMENT = {
    "document_id": "d",
    "document_version": 1,
    "index": 0,
    "start": 0,
    "end": 5,
    "start_byte": 0,
    "end_byte": 5,
}
LONG = "x" * 60_000


def facet(attributes: dict[str, Any], tags: dict[str, str] | None = None, /, **changed: Any) -> str:
    """Return a facet as an export writes it, with some attributes changed."""
    return json.dumps({"tags": tags or {}, "attributes": {**attributes, **changed}})


def fact(**changed: Any) -> str:
    """Return the facet of a memory."""
    return facet(FACT, TAGS, **changed)


def rated(**changed: Any) -> str:
    """Return the facet of a memory with an importance."""
    return fact(importance={**FACT["importance"], **changed})  # type: ignore[dict-item]


def bring(api: Api, namespace: str, *items: pb.MemoryItem) -> pb.ImportResponse:
    return api.memory.Import(iter([pb.ImportRequest(namespace=namespace, items=items)]))


def refused(api: Api, namespace: str, *items: pb.MemoryItem) -> Refusal:
    return refusal(api.memory.Import, iter([pb.ImportRequest(namespace=namespace, items=items)]))


def exported(api: Api, namespace: str) -> list[pb.MemoryItem]:
    records = api.memory.Export(pb.ExportRequest(namespace=namespace))
    return [record.item for record in records if record.HasField("item")]


def untouched(api: Api, namespace: str) -> bool:
    """Return whether nothing was ever written to a namespace."""
    return refusal(api.memory.Export, pb.ExportRequest(namespace=namespace)).code == grpc.StatusCode.NOT_FOUND


MEMORY, DOC, PIECE, MESSAGE, RESPONSE, REFLECTION = (
    pb.ITEM_KIND_USER_MEMORY,
    pb.ITEM_KIND_DOCUMENT,
    pb.ITEM_KIND_FRAGMENT,
    pb.ITEM_KIND_MESSAGE,
    pb.ITEM_KIND_RESPONSE,
    pb.ITEM_KIND_REFLECTION,
)
GOOD = {
    MEMORY: fact(),
    DOC: facet(DOCUMENT),
    PIECE: facet(FRAGMENT, {"document": "d"}),
    MESSAGE: facet({"sender": "ada"}),
    RESPONSE: "",
    REFLECTION: facet({"sender": "robo", "interaction_ids": ["m"]}, {"session": ""}),
}
BAD: list[tuple[int, str]] = [
    *((kind, "[") for kind in GOOD),
    *((kind, '{"attributes":{"more":' + "[" * 30_000 + "]" * 30_000 + "}}") for kind in GOOD),
    *((kind, '{"tags":{"a":7}}') for kind in GOOD),
    *((kind, json.dumps({**json.loads(good or "{}"), "tags": {"a": LONG}})) for kind, good in GOOD.items()),
    *((MEMORY, each) for each in ("", "{}", facet({}, {"category": "personal_info", "status": "active"}))),
    *((MEMORY, fact(version=version)) for version in (0, -1, 1 << 32, 1 << 63, "1", None, 10**30)),
    *((MEMORY, fact(importance=importance)) for importance in (None, 7, {}, [])),
    *((MEMORY, rated(score=score)) for score in (None, -1.0, "nan", 10**400)),
    (MEMORY, rated(boosts=[{"name": "n", "amount": 1.0, "reason": LONG}])),
    (MEMORY, rated(boosts=[{"name": "n", "amount": 1.0}] * 17)),
    *((MEMORY, fact(**{name: at})) for name in ("valid_from_us", "valid_until_us") for at in (1 << 62, "x")),
    *((MEMORY, fact(category=number)) for number in (0, 99, "identity")),
    (MEMORY, fact(status=9)),
    *((MEMORY, fact(**{name: LONG})) for name in ("reasoning", "superseded_by", "original_content")),
    (MEMORY, fact(reasoning="x" * 201)),
    *((MEMORY, fact(supersedes=ids)) for ids in (["x" * 129], ["x"] * 1001, [7], "x")),
    *((MEMORY, fact(source={name: LONG})) for name in ("quote", "actor", "model")),
    *((MEMORY, fact(source={name: ["x"] * 101})) for name in ("item_ids", "memory_ids")),
    (MEMORY, fact(source={"quote": "é" * 1025})),
    (MEMORY, fact(source={"origin": 99})),
    (DOC, facet(DOCUMENT, fragments=LONG, fragment_count=1 << 20)),
    (DOC, facet(DOCUMENT, fragments="f" * 129)),
    *((DOC, facet(DOCUMENT, fragment_count=count)) for count in (-1, 10_001, 1 << 20, None)),
    *((DOC, facet(DOCUMENT, version=version)) for version in (0, 1 << 32, 1 << 63, "1")),
    *((DOC, facet(DOCUMENT, **{name: LONG})) for name in ("title", "source", "source_item_id")),
    *((DOC, facet(DOCUMENT, title=title)) for title in ("é" * 257, 7)),
    *((PIECE, facet(FRAGMENT, **{name: 1 << 31})) for name in FRAGMENT if name.startswith(("i", "s", "e"))),
    *((PIECE, facet(FRAGMENT, document_version=version)) for version in (0, 1 << 63)),
    *((PIECE, facet(FRAGMENT, document_id=one)) for one in (LONG, None)),
    *((kind, facet({"sender": 7})) for kind in (MESSAGE, RESPONSE, REFLECTION)),
    *((kind, facet({"sender": "é" * 129})) for kind in (MESSAGE, RESPONSE, REFLECTION)),
    *((REFLECTION, facet({"interaction_ids": ids})) for ids in ([1, "m"], ["m"] * 101, ["x" * 129], "m")),
]  # fmt: skip
FILE, OF_FILE = pb.ITEM_KIND_FILE, {"path": "/a", "fragments": [[0, 0], [2, 5]], "next": 3}
# The tags of a file are not read: they follow from its path.
GOOD[FILE] = facet(OF_FILE)
BAD += [
    *((FILE, facet(OF_FILE, next=number)) for number in (-1, 0, 2, 1 << 30, (1 << 31) - 1, 1 << 31, None)),
    *((FILE, facet(OF_FILE, fragments=places)) for places in ([[0, 0], [0, 5]], [[0, 1 << 31]], [[-1, 0]])),
    *((FILE, facet(OF_FILE, path=path)) for path in ("a", "/a/../b", "/" + LONG)),
]


@pytest.mark.parametrize(("kind", "bad"), BAD, ids=lambda value: str(value)[:50])
def test_what_a_service_could_not_keep_is_refused_and_nothing_is_written(
    api: Api, namespace: str, kind: pb.ItemKind, bad: str
) -> None:
    items = [
        pb.MemoryItem(id="good", text="kept only if all is well", kind=kind, facet_json=GOOD[kind]),
        pb.MemoryItem(id="bad", text="kept only if all is well", kind=kind, facet_json=bad),
    ]
    error = refused(api, namespace, *items)
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert error.fields == ("items[1].facet_json",)
    assert untouched(api, namespace)
    # Only the facet was wrong.
    assert bring(api, namespace, items[0]).imported_count == 1


@pytest.mark.parametrize("kind", [MEMORY, DOC, PIECE])
@pytest.mark.parametrize(
    "content",
    [{"data": struct({"a": 1})}, {"chat_message": pb.ChatMessage(role=pb.ROLE_USER)}],
    ids=lambda value: next(iter(value)),
)
def test_what_is_a_text_for_its_service_is_imported_as_a_text(
    api: Api, namespace: str, kind: pb.ItemKind, content: dict[str, Any]
) -> None:
    error = refused(api, namespace, pb.MemoryItem(kind=kind, facet_json=GOOD[kind], **content))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("items[0].text",))
    assert untouched(api, namespace)


def test_a_memory_far_longer_than_any_that_is_saved_is_not_imported(api: Api, namespace: str) -> None:
    error = refused(api, namespace, pb.MemoryItem(kind=MEMORY, facet_json=fact(), text=LONG))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("items[0].text",))
    assert untouched(api, namespace)


def test_what_every_service_wrote_is_imported_as_it_was(api: Api, namespace: str) -> None:
    user, library = User(api, namespace), Library(api, namespace)
    chain(user)
    source = user_memory_pb2.MemorySource(session_id="s", quote="dark " * 400, actor="a" * 256)
    # The longest memory that can be saved: rules put it into the third person, which makes it longer.
    user.save(("my " * 200)[:500], source=source, reasoning="r" * 200)
    library.add("d", title="t" * 512, source="s" * 2048)
    library.add("d", "replaced", replace=True)
    talk = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    said = talk.StoreInteraction(
        interaction_pb2.StoreInteractionRequest(namespace=namespace, sender="é" * 128, content="hello")
    )
    talk.StoreResponse(
        interaction_pb2.StoreResponseRequest(
            namespace=namespace, content="hi", in_response_to=said.interaction.id
        )
    )
    talk.StoreReflection(
        interaction_pb2.StoreReflectionRequest(
            namespace=namespace, content="well", interaction_ids=["m" * 128] * 100
        )
    )
    files = file_pb2_grpc.FileServiceStub(api.channel)
    files.WriteFile(file_pb2.WriteFileRequest(namespace=namespace, path="/a/b", content="x"))
    items = exported(api, namespace)
    assert {item.kind for item in items} == {*GOOD, pb.ITEM_KIND_FILE_FRAGMENT}
    assert bring(api, namespace + "/copy", *items).imported_count == len(items)
    kept = {item.id: json.loads(item.facet_json) for item in items}
    assert {item.id: json.loads(item.facet_json) for item in exported(api, namespace + "/copy")} == kept


def test_a_fact_of_another_version_of_the_service_is_imported(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    item = pb.MemoryItem(
        id="m", text="User lives in Rome", kind=MEMORY, facet_json=fact(of_later_version=[1])
    )
    bring(api, namespace, item)
    (memory,) = user.memories()
    assert (memory.version, memory.status) == (1, user_memory_pb2.MEMORY_STATUS_ACTIVE)
    assert user.update("m", update_mask={"paths": ["content"]}, content="I live in Oslo").memory.version == 2


def test_a_replaced_document_takes_only_its_fragments_along(api: Api, namespace: str) -> None:
    library = Library(api, namespace)
    doc = facet(DOCUMENT, fragments="plain", fragment_count=3)
    bring(
        api, namespace,
        pb.MemoryItem(id="d", text="otter", kind=DOC, facet_json=doc),
        pb.MemoryItem(id="plain.0", text="of nobody's document"),
    )  # fmt: skip
    assert library.add("d", "new", replace=True).version == 2
    bring(api, namespace, pb.MemoryItem(id="e", text="otter", kind=DOC, facet_json=doc))
    assert library.delete("e").removed_fragment_count == 0
    assert texts_of(api.items(namespace)) == ["of nobody's document"]


# Data that an earlier version accepted


OLD: list[tuple[str, str]] = [
    ("memory", facet({}, {"category": "personal_info", "status": "active"})),
    ("memory", fact(importance=None)),
    ("memory", fact(version=1 << 63)),
    ("memory", fact(valid_from_us=1 << 61)),
    ("memory", rated(score="nan")),
    ("document", facet(DOCUMENT, fragments="f" * 60_000, fragment_count=1 << 20)),
    ("document", facet(DOCUMENT, version=1 << 63)),
]


def poison(records: Path, item_id: str, attributes: str) -> None:
    """Change a stored facet of a server that is not running."""
    with closing(sqlite3.connect(records)) as database:
        done = database.execute(
            "UPDATE items SET facet = json_set(facet, '$.attributes', json(?)) WHERE id = ?",
            (json.dumps(json.loads(attributes)["attributes"]), item_id),
        )
        assert done.rowcount == 1
        database.commit()


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with a database with unreadable facets of an earlier version: one namespace for each."""
    folder = tmp_path_factory.mktemp("data")
    with ServerProcess(folder) as server:
        api = Api.connect(server.address)
        for number in range(len(OLD)):
            user, library = User(api, f"n{number}"), Library(api, f"n{number}")
            user.save("User lives in Rome", IDENTITY)
            flute = pb.MemoryItem(
                id=f"memory{number}", text="User plays the flute", kind=MEMORY, facet_json=fact()
            )
            bring(api, user.namespace, flute)
            library.add(f"document{number}")
            library.add("whole")
        api.channel.close()
        assert server.terminate() == 0
    for number, (kind, attributes) in enumerate(OLD):
        poison(folder / "records.db", f"{kind}{number}", attributes)
    with ServerProcess(folder) as server:
        api = Api.connect(server.address)
        yield api
        api.channel.close()


@pytest.mark.parametrize("number", range(len(OLD)))
def test_what_cannot_be_read_is_passed_over_and_can_be_deleted(poisoned: Api, number: int) -> None:
    user, library = User(poisoned, f"n{number}"), Library(poisoned, f"n{number}")
    kind, _ = OLD[number]
    bad = f"{kind}{number}"
    known, documents = {"User lives in Rome"}, {"whole"}
    if kind == "memory":
        documents.add(f"document{number}")
    else:
        known.add("User plays the flute")
    for history in (False, True):
        assert set(user.contents(include_history=history)) == known
    assert {memory.content for memory in user.preloaded().memories} == known
    assert set(user.found("Where does the user live? The flute")) == known
    assert user.consolidate().examined_count == len(known)
    assert user.save("I collect stamps from Peru").memory.content == "User collects stamps from Peru"
    assert {document.id for document in library.list().documents} == documents
    assert library.get("whole").document.version == 1
    if kind == "memory":
        old = user_memory_pb2.DeleteMemoryRequest(namespace=user.namespace, id=bad, expected_version=1)
        assert refusal(user.service.DeleteMemory, old).code == grpc.StatusCode.ABORTED
        assert user.delete(bad).removed_count == 1
    else:
        again = refusal(library.stub.AddDocument, library.request(bad, "new", replace=True))
        assert again.code == grpc.StatusCode.ALREADY_EXISTS
        # Its fragments were always readable.
        assert library.delete(bad).removed_fragment_count == 3
        gone = knowledge_pb2.GetDocumentRequest(namespace=library.namespace, id=bad)
        assert refusal(library.stub.GetDocument, gone).code == grpc.StatusCode.NOT_FOUND
    assert bad not in {item.id for item in exported(poisoned, user.namespace)}
