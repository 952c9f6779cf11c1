"""Provenance through the API: of the services' own items, trust, and restrictions of updates."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, refusal, struct, texts_of
from memory_service.data_model import (
    Item,
    ItemDraft,
    Provenance,
    ProvenanceDraft,
    SourceKind,
    TextPart,
    WritesBy,
)
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.item_writing import UPDATABLE
from memory_service.domain.items import Items
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.quarantine import Quarantine
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.screening import Screening
from memory_service.domain.states import States
from memory_service.limits import Limits
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.runtime.caller import ANYBODY, Caller, Role, set_caller
from memory_service.store import Store
from memory_service.v1 import (
    admin_pb2,
    interaction_pb2,
    interaction_pb2_grpc,
    knowledge_pb2,
    knowledge_pb2_grpc,
)
from memory_service.v1 import memory_pb2 as pb
from user_memories import PREFERENCE, User, message

WEB = pb.Provenance(source=pb.SOURCE_KIND_WEB, source_uri="https://example.com/", trust=0.25)
LONG_AGO = Timestamp(seconds=1)


# Items that services derive from others


def test_a_reflection_is_trusted_no_more_than_what_it_is_about(api: Api, namespace: str) -> None:
    api.add(namespace, id="web", text="a heron", provenance=WEB)
    service = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    stored = service.StoreReflection(
        interaction_pb2.StoreReflectionRequest(
            namespace=namespace, content="herons matter", interaction_ids=["web", "gone"], id="r"
        )
    )
    assert stored.interaction.id == "r"
    known = api.get(namespace, "r").provenance
    assert (known.trust, list(known.parent_ids)) == (0.25, ["web"])
    assert known.source == pb.SOURCE_KIND_DERIVED


def test_an_extracted_memory_is_trusted_no_more_than_what_was_said(api: Api, namespace: str) -> None:
    said = message("I prefer dark mode")
    api.add(namespace, id="said", session_id="s", chat_message=said, provenance=pb.Provenance(trust=0.5))
    user = User(api, namespace)
    found = user.extract(session_id="s").results[0].memory
    known = api.get(namespace, found.id).provenance
    assert (known.trust, known.source) == (0.5, pb.SOURCE_KIND_DERIVED)
    assert list(known.parent_ids) == ["said"]


def test_a_memory_that_is_superseded_keeps_its_low_trust(api: Api, namespace: str) -> None:
    said = message("I live in Rome")
    api.add(namespace, id="said", session_id="s", chat_message=said, provenance=pb.Provenance(trust=0.5))
    user = User(api, namespace)
    first = user.extract(session_id="s").results[0].memory
    user.update(first.id, labels={"k": "v"})
    assert api.get(namespace, first.id).provenance.trust == 0.5


def test_a_merged_memory_is_trusted_no_more_than_each(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    for text, trust in (("I prefer dark mode", 0.5), ("I like hiking", 0.75)):
        item_id = f"said-{trust}"
        said = message(text)
        api.add(namespace, id=item_id, chat_message=said, provenance=pb.Provenance(trust=trust))
    source = {"item_ids": ["said-0.5", "said-0.75"]}
    saved = user.save("User prefers dark mode and likes hiking", PREFERENCE, source=source).memory
    assert api.get(namespace, saved.id).provenance.trust == 0.5


def test_documents_and_their_fragments_come_from_a_document(api: Api, namespace: str) -> None:
    service = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
    request = knowledge_pb2.AddDocumentRequest(namespace=namespace)
    request.document.id, request.document.text = "d", "Herons fly. " * 20
    service.AddDocument(request)
    kinds = [pb.ITEM_KIND_DOCUMENT, pb.ITEM_KIND_FRAGMENT]
    listed = pb.ListRequest(namespace=namespace, kinds=kinds, sources=[pb.SOURCE_KIND_DOCUMENT])
    found = api.memory.List(listed).items
    assert len(found) > 1 and not any(item.HasField("provenance") for item in found)


# Restrictions of updates


@pytest.mark.parametrize("path", ["provenance", "provenance.trust"])
def test_an_update_may_not_name_the_provenance(api: Api, namespace: str, path: str) -> None:
    before = api.add(namespace, id="a", text="a heron", provenance=WEB)
    item = pb.MemoryItem(id="a", provenance=pb.Provenance(trust=1))
    request = pb.UpdateRequest(namespace=namespace, item=item, update_mask=FieldMask(paths=[path]))
    error = refusal(api.memory.Update, request)
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("update_mask",))
    assert api.get(namespace, "a") == before


def test_an_item_that_was_read_can_be_written_back(api: Api, namespace: str) -> None:
    """Its provenance is among the set fields, and is ignored."""
    item = api.add(namespace, id="a", text="a heron", provenance=WEB)
    item.labels["k"] = "v"
    item.provenance.trust = 1
    updated = api.memory.Update(pb.UpdateRequest(namespace=namespace, item=item)).item
    assert (updated.labels["k"], updated.provenance.trust) == ("v", 0.25)


# Pages


@pytest.mark.parametrize("other", [{"min_trust": 0.5}, {"sources": [pb.SOURCE_KIND_WEB]}])
def test_a_page_token_is_good_for_the_same_trust_and_sources_only(
    api: Api, namespace: str, other: dict[str, object]
) -> None:
    api.add_texts(namespace, *(f"a heron {n}" for n in range(4)))
    wanted = {"min_trust": 0.25, "sources": [pb.SOURCE_KIND_UNSPECIFIED]}
    first = api.memory.List(pb.ListRequest(namespace=namespace, page_size=2, **wanted))
    again = pb.ListRequest(namespace=namespace, page_size=2, page_token=first.next_page_token, **wanted)
    assert texts_of(api.memory.List(again).items) == ["a heron 2", "a heron 3"]
    changed = {**wanted, **other}
    wrong = pb.ListRequest(namespace=namespace, page_size=2, page_token=first.next_page_token, **changed)
    assert refusal(api.memory.List, wrong).reason == "INVALID_PAGE_TOKEN"
    page = api.retrieve(namespace, query_text="heron", page_size=2, **wanted)
    token = page.next_page_token
    options = pb.RetrieveOptions(query_text="heron", page_size=2, page_token=token, **changed)
    request = pb.RetrieveRequest(namespace=namespace, options=options)
    assert refusal(api.memory.Retrieve, request).reason == "INVALID_PAGE_TOKEN"


# Undo


def test_what_an_undo_brings_back_is_found_by_its_vector_and_watched(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="a heron", metadata=struct({"n": 1}))
    item = pb.MemoryItem(id="a", text="a volcano", metadata=struct({"n": 2}))
    changed = api.memory.Update(pb.UpdateRequest(namespace=namespace, item=item)).item
    request = admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True, since=changed.update_time)
    done = api.admin.UndoWrites(request)
    assert (done.removed_count, done.restored_count, done.revision) == (0, 1, 3)
    assert api.found(namespace, query_text="a grey bird", mode=pb.RETRIEVE_MODE_VECTOR) == ["a heron"]
    (result,) = api.retrieve(namespace, query_text="heron", include_embedding=True).results
    assert result.item.metadata["n"] == 1 and len(result.item.embedding.values)
    watch = api.memory.Watch(pb.WatchRequest(namespace=namespace, after_revision=2))
    change = next(response.change for response in watch if response.HasField("change"))
    watch.cancel()
    assert (change.type, change.item.text) == (pb.CHANGE_TYPE_ITEM_UPDATED, "a heron")


def test_undone_facts_hold_again(api: Api, namespace: str) -> None:
    user = User(api, namespace)
    first = user.save("User lives in Rome").memory
    second = user.save("User lives in Paris").memory
    assert user.found("where does the user live") == ["User lives in Paris"]
    since = api.get(namespace, second.id).update_time
    api.admin.UndoWrites(admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True, since=since))
    assert user.found("where does the user live") == ["User lives in Rome"]
    assert api.get(namespace, first.id).text == first.content


# Callers


def _caller(name: str, trust: float = 1.0, *roles: Role) -> Caller:
    return Caller(name, f"key of {name}", ("*",), frozenset(roles or (Role.WRITE,)), trust)


@pytest.fixture
def store() -> Iterator[Store]:
    yield InMemoryStore()
    set_caller(ANYBODY)


@pytest.fixture
def memories(store: Store) -> Items:
    checks, tokens, embedding = Checks(Limits()), PageTokens(b"key"), TextEmbedding(None)
    retrieval = Retrieval(store, embedding, checks, FilterLanguage(checks.limits), tokens, lambda item: 1)
    screening = Screening(store, None, Quarantine(store, checks, tokens, 30))
    return Items(store, embedding, retrieval, checks, tokens, screening)


async def _add(memories: Items, item_id: str, said: ProvenanceDraft | None = None) -> Item:
    draft = ItemDraft(TextPart("a heron"), item_id, provenance=said)
    return (await memories.add("n", [draft], fields=("item",))).items[0]


async def _update(memories: Items, item_id: str, *fields: str) -> Provenance | None:
    draft = ItemDraft(TextPart("a stork"), item_id)
    done = await memories.update("n", draft, frozenset(fields), expected_revision=None, request=None)
    return done.items[0].provenance


async def test_the_caller_is_the_writer_and_bounds_the_trust(memories: Items) -> None:
    set_caller(_caller("mallory", 0.5))
    assert (await _add(memories, "a")).provenance == Provenance("mallory", "key of mallory", trust=0.5)
    said = ProvenanceDraft(SourceKind.WEB, trust=0.9)
    assert (await _add(memories, "b", said)).trust == 0.5
    assert (await _add(memories, "c", ProvenanceDraft(trust=0.1))).trust == 0.1


async def test_a_correction_by_another_does_not_raise_the_trust(memories: Items) -> None:
    set_caller(_caller("mallory", 0.5))
    await _add(memories, "a", ProvenanceDraft(SourceKind.WEB, "https://example.com/"))
    set_caller(_caller("ada"))
    by_ada = Provenance("ada", "key of ada", SourceKind.WEB, "https://example.com/", trust=0.5)
    assert await _update(memories, "a", "labels") == by_ada
    assert await _update(memories, "a", "content") == Provenance("ada", "key of ada", trust=0.5)
    # Nothing is left of the previous version.
    whole = UPDATABLE - {"ttl"}
    assert await _update(memories, "a", *whole) == Provenance("ada", "key of ada", trust=1.0)


async def test_an_import_is_a_claim_unless_by_an_administrator(memories: Items) -> None:
    claimed = Provenance("ada", "key-1", SourceKind.USER, "https://example.com/", ("p",), "m", 0.9, 7)
    said = ProvenanceDraft(imported=True, claimed=claimed)
    set_caller(_caller("mallory", 0.5))
    assert (await _add(memories, "a", said)).provenance == Provenance(
        "mallory", "key of mallory", SourceKind.IMPORT, "https://example.com/", ("p",), "m", 0.5
    )
    nothing = ProvenanceDraft(imported=True)
    assert (await _add(memories, "b", nothing)).source is SourceKind.IMPORT
    set_caller(_caller("root", 1.0, Role.ADMIN))
    assert (await _add(memories, "c", said)).provenance == claimed
    assert (await _add(memories, "d", nothing)).provenance == Provenance("root", "key of root")


async def test_who_saves_and_deletes_states_is_known_to_an_undo(memories: Items, store: Store) -> None:
    checks, tokens = Checks(Limits()), PageTokens(b"key")
    screening = Screening(store, None, Quarantine(store, checks, tokens, 30))
    states = States(store, checks, tokens, lambda entry: 1, screening)
    nothing = {"nbytes": 1, "expected_version": None, "ttl_us": None, "description": None, "request": None}
    await states.save("n", "s", "hers", **nothing)  # type: ignore[arg-type]
    set_caller(_caller("mallory"))
    await states.save("n", "s", "theirs", **nothing)  # type: ignore[arg-type]
    await _add(memories, "a")
    await memories.delete("n", "a", expected_revision=None, request=None)
    by = WritesBy(0, "mallory")
    assert await store.count_removals("n", by) == 1
    assert (await store.undo_states("n", by, "", 9, dry_run=False)).restored_count == 1
    assert (await store.load_states("n", ["s"]))["s"].value_json == b'"hers"'
