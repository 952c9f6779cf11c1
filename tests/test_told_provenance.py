"""Facts, documents and interactions carry their provenance in each response."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from credentials import Client, connect, keys_in
from grpc_api import Api
from memory_service.v1 import interaction_pb2, knowledge_pb2, user_memory_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess
from user_memories import at, message

FACT = {
    "category": user_memory_pb2.MEMORY_CATEGORY_IDENTITY,
    "reasoning": "Somebody said so",
    "keep_wording": True,
}
ROME, OSLO = "User lives in Rome", "User lives in Oslo"
DERIVED, USER, DOCUMENT = pb.SOURCE_KIND_DERIVED, pb.SOURCE_KIND_USER, pb.SOURCE_KIND_DOCUMENT


@dataclass
class Writer:
    """A caller that writes to a namespace with a key."""

    client: Client
    name: str
    key: str
    trust: float
    namespace: str = ""

    def call(self, name: str, **fields: Any) -> Any:
        """Call an RPC on the namespace."""
        return self.client.call(name, namespace=self.namespace, **fields)

    def wrote(
        self, told: Any, source: int = 0, parents: Sequence[str] = (), trust: float | None = None
    ) -> bool:
        """Return whether a message names this writer, as the item itself does."""
        known = told.provenance
        assert (known.writer, known.credential_id, known.trust) == (
            self.name, self.key, self.trust if trust is None else trust,
        )  # fmt: skip
        assert (known.source, list(known.parent_ids)) == (source, list(parents))
        return bool(known == self.call("Get", id=told.id).item.provenance)


@pytest.fixture(scope="module", params=["hnsw", "memory"])
def both(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[list[Writer]]:
    folder = tmp_path_factory.mktemp("data")
    keys = keys_in(folder)
    made = [(name, trust, *keys.make(name, trust=trust)) for name, trust in (("ada", 1.0), ("mallory", 0.25))]
    with ServerProcess(folder, flags=["--auth", "keys", "--store", request.param]) as process:
        client = connect(process.address)
        yield [Writer(client.presenting(token), name, key.id, trust) for name, trust, key, token in made]
        client.channel.close()


@pytest.fixture
def writers(both: list[Writer]) -> list[Writer]:
    """Ada and Mallory; Ada is trusted fully, Mallory a little."""
    namespace = f"ns-{uuid4().hex[:8]}"
    return [Writer(each.client, each.name, each.key, each.trust, namespace) for each in both]


# Facts


def test_each_answer_with_facts_tells_who_wrote_them(writers: list[Writer]) -> None:
    ada, mallory = writers
    for writer, content in ((ada, ROME), (mallory, OSLO)):
        assert writer.wrote(writer.call("SaveMemory", content=content, **FACT).memory)
    for name, asked in (
        ("ListMemories", {}),
        ("GetPreloadedMemories", {}),
        ("SearchMemories", {"query": "lives"}),
    ):
        answer = ada.call(name, **asked)
        found = [result.memory for result in answer.results] if name == "SearchMemories" else answer.memories
        told = {memory.content: memory for memory in found}
        assert ada.wrote(told[ROME]) and mallory.wrote(told[OSLO]), name


def test_what_a_fact_meets_tells_who_wrote_it(writers: list[Writer]) -> None:
    ada, mallory = writers
    known = mallory.call("SaveMemory", content=ROME, **FACT).memory
    again = mallory.call("SaveMemory", content=ROME, **FACT)
    assert again.existing.id == known.id and mallory.wrote(again.existing)
    saved = ada.call("SaveMemory", content=OSLO, **FACT)
    assert ada.wrote(saved.memory) and saved.existing.provenance == known.provenance
    # The writer that ended it wrote this version, without raising its trust.
    (ended,) = saved.superseded
    assert ada.wrote(ended, trust=0.25) and ended.provenance != known.provenance


def test_an_extracted_fact_names_what_was_said(writers: list[Writer]) -> None:
    ada, mallory = writers
    said = {"role": pb.ROLE_USER, "parts": [pb.Part(text="I live in Rome.")]}
    mallory.call("Add", item=pb.MemoryItem(id="m", session_id="s", chat_message=pb.ChatMessage(**said)))
    (would_be,) = ada.call("ExtractMemories", session_id="s", dry_run=True).results
    (found,) = ada.call("ExtractMemories", session_id="s").results
    assert ada.wrote(found.memory, DERIVED, ["m"], trust=0.25)
    assert not would_be.memory.id
    for told in (would_be.memory.provenance, found.memory.provenance):
        told.ClearField("write_time")
    assert would_be.memory.provenance == found.memory.provenance
    # A duplicate, which is not saved, has the provenance that it would be saved with.
    (known,) = ada.call("ExtractMemories", session_id="s", dry_run=True).results
    known.memory.provenance.ClearField("write_time")
    assert known.outcome == user_memory_pb2.MEMORY_OUTCOME_DUPLICATE
    assert known.memory.provenance == found.memory.provenance


def test_a_merged_fact_names_what_it_was_made_of(writers: list[Writer]) -> None:
    ada, mallory = writers
    first = mallory.call("SaveMemory", content=ROME, valid_from_time=at(100), **FACT).memory
    # Two equal facts: the first was in the history while the second was saved.
    mallory.call("UpdateMemory", memory={"id": first.id, "valid_until_time": at(200)})
    other = mallory.call("SaveMemory", content=f"{ROME}.", **FACT).memory
    unended = FieldMask(paths=["valid_until_time"])
    mallory.call("UpdateMemory", memory={"id": first.id}, update_mask=unended)
    (would_be,) = ada.call("ConsolidateMemories", dry_run=True).consolidations
    (done,) = ada.call("ConsolidateMemories").consolidations
    assert ada.wrote(done.memory, DERIVED, [each.id for each in done.sources], trust=0.25)
    assert {each.id for each in done.sources} == {first.id, other.id}
    assert {each.provenance.writer for each in done.sources} == {"mallory"}
    for told in (would_be.memory.provenance, done.memory.provenance):
        told.ClearField("write_time")
    assert not would_be.memory.id and would_be.memory.provenance == done.memory.provenance


def test_what_an_update_hands_back_of_its_provenance_changes_nothing(writers: list[Writer]) -> None:
    ada, mallory = writers
    known = ada.call("SaveMemory", content=ROME, **FACT).memory
    handed = user_memory_pb2.UserMemory(id=known.id, reasoning="They said so again")
    handed.provenance.CopyFrom(pb.Provenance(writer="root", trust=1, parent_ids=["x"], source=USER))
    changed = mallory.call("UpdateMemory", memory=handed).memory
    assert (changed.version, changed.reasoning) == (2, "They said so again")
    assert mallory.wrote(changed)
    whole = ada.call("ListMemories").memories[0]
    whole.provenance.trust, whole.provenance.writer = 1, "root"
    whole.ClearField("importance")
    again = ada.call("UpdateMemory", memory=whole, update_mask=FieldMask(paths=["*"])).memory
    assert again.version == 3 and ada.wrote(again, trust=0.25)
    refusal = ada.client.refused(
        "UpdateMemory",
        namespace=ada.namespace,
        memory=handed,
        update_mask=FieldMask(paths=["provenance"]),
    )
    assert refusal.names("update_mask")


# Documents


def test_each_answer_with_a_document_tells_who_wrote_it(writers: list[Writer]) -> None:
    ada, mallory = writers
    for writer in writers:
        document = knowledge_pb2.Document(id=writer.name, text=f"{writer.name} saw herons.")
        document.provenance.CopyFrom(pb.Provenance(writer="root", trust=1, source=USER))
        assert writer.wrote(writer.call("AddDocument", document=document).document, DOCUMENT)
    for document in ada.call("ListDocuments").documents:
        assert next(each for each in writers if each.name == document.id).wrote(document, DOCUMENT)
    got = ada.call("GetDocument", id="mallory", include_fragments=True)
    (fragment,) = got.fragments
    assert mallory.wrote(got.document, DOCUMENT) and mallory.wrote(fragment, DOCUMENT)
    for result in ada.call("SearchFragments", query="herons").results:
        writer = next(each for each in writers if each.name == result.document.id)
        assert writer.wrote(result.fragment, DOCUMENT) and writer.wrote(result.document, DOCUMENT)


def test_a_saved_message_is_named_by_its_document_and_fragments(writers: list[Writer]) -> None:
    ada, mallory = writers
    said = mallory.call("StoreResponse", content="Herons nest in March.", session_id="s").interaction
    asked = {"session_id": "s", "text": "save this", "request_id": "r"}
    for _ in range(2):
        handled = ada.call("HandleMessage", **asked)
        assert ada.wrote(handled.document, DOCUMENT, [said.id], trust=0.25)
        (fragment,) = handled.fragments
        assert ada.wrote(fragment, DOCUMENT, [said.id], trust=0.25)
    # After the deletion, the response to a repeated request names its caller.
    ada.call("DeleteDocument", id=handled.document.id)
    assert ada.call("HandleMessage", **asked).document.provenance.writer == "ada"


# Interactions


def test_each_answer_with_an_interaction_tells_who_wrote_it(writers: list[Writer]) -> None:
    ada, mallory = writers
    asked = mallory.call("StoreInteraction", sender="m", content="where do herons nest?").interaction
    assert mallory.wrote(asked, USER)
    answer = ada.call("StoreResponse", content="herons nest in trees", in_response_to=asked.id).interaction
    assert ada.wrote(answer, pb.SOURCE_KIND_AGENT)
    assert answer.original_message.provenance == asked.provenance
    thought = ada.call("StoreReflection", content="herons matter", interaction_ids=[asked.id]).interaction
    assert ada.wrote(thought, DERIVED, [asked.id], trust=0.25)
    context = ada.call("RetrieveRelevantContext", query="herons").results
    told = {each.interaction.id: each.interaction for each in context}
    assert told == {asked.id: asked, answer.id: answer, thought.id: thought}
    (pair,) = ada.call("RetrieveLastInteractions").interactions
    assert pair.message == asked
    assert [ada.wrote(each, pb.SOURCE_KIND_AGENT) for each in pair.responses] == [True]


def test_who_links_a_response_says_nothing_of_the_message(writers: list[Writer]) -> None:
    ada, mallory = writers
    asked = mallory.call("StoreInteraction", sender="m", content="where do herons nest?").interaction
    original = interaction_pb2.OriginalMessage(content=asked.content)
    original.provenance.CopyFrom(pb.Provenance(writer="root", trust=1))
    answer = ada.call("StoreResponse", content="in trees", original_message=original).interaction
    assert answer.in_response_to == asked.id
    assert answer.original_message.provenance == asked.provenance


# Repeated requests


@pytest.mark.parametrize(
    ("name", "kept", "fields"),
    [
        ("SaveMemory", "memory", {"content": ROME, "source": {"item_ids": ["web"]}, **FACT}),
        ("AddDocument", "document", {"document": {"text": "Herons nest in March."}}),
        ("StoreInteraction", "interaction", {"sender": "m", "content": "herons"}),
        ("StoreReflection", "interaction", {"content": "herons", "interaction_ids": ["never", "web"]}),
    ],
)
def test_a_repeated_request_is_told_the_same(
    writers: list[Writer], name: str, kept: str, fields: dict[str, Any]
) -> None:
    ada, mallory = writers
    mallory.call("Add", item={"id": "web", "text": "herons"})
    first = getattr(ada.call(name, request_id="r", **fields), kept)
    # The parent goes with the result; trust and parents are in the receipt.
    ada.call("Delete", id="web")
    again = getattr(ada.call(name, request_id="r", **fields), kept)
    assert again.provenance == first.provenance and first.provenance.writer == "ada"
    assert first.provenance.trust == (0.25 if "web" in str(fields) else 1)


# Without credentials


def test_what_nobody_with_a_name_wrote_says_nothing(api: Api, namespace: str) -> None:
    writer = Writer(Client(api.channel), "", "", 1.0, namespace)
    asked = writer.call("StoreInteraction", sender="ada", content="where do herons nest?").interaction
    told = [
        writer.call("SaveMemory", content=ROME, **FACT).memory,
        writer.call("AddDocument", document={"id": "d", "text": "Herons nest."}).document,
        *writer.call("GetDocument", id="d", include_fragments=True).fragments,
        asked,
        writer.call("StoreResponse", content="in trees", in_response_to=asked.id).interaction,
        writer.call("StoreResponse", content="there", in_response_to=asked.id).interaction.original_message,
        *writer.call("ListMemories").memories,
        *writer.call("ListDocuments").documents,
    ]  # fmt: skip
    assert len(told) == 8 and not any(each.HasField("provenance") for each in told)
    (found,) = writer.call(
        "ExtractMemories", messages=[message("I live in Oslo.", message_id=asked.id)]
    ).results
    assert writer.wrote(found.memory, DERIVED, [asked.id])


# Pages


PARENTS = [f"{number:0>128}" for number in range(100)]
COPIES = 400


def exported(api: Api, namespace: str) -> list[pb.MemoryItem]:
    """Return the items of a namespace, each with provenance of the largest size."""
    found = [record.item for record in api.memory.Export(pb.ExportRequest(namespace=namespace))]
    for item in found:
        item.provenance.CopyFrom(pb.Provenance(parent_ids=PARENTS, source_uri="u" * 2000, trust=0.5))
        item.ClearField("embedding")
    return found


def facts(writer: Writer) -> None:
    writer.call("SaveMemory", content=ROME, **FACT)


def messages(writer: Writer) -> None:
    writer.call("StoreInteraction", sender="m", content="herons")


def documents(writer: Writer) -> None:
    writer.call("AddDocument", document={"text": "herons"})


def fragments(writer: Writer) -> None:
    document = {
        "id": "d",
        "text": "Herons nest in the tall trees at the lake, as they always did.\n\n" * COPIES,
    }
    writer.call("AddDocument", document=document, split={"max_characters": 100, "overlap_characters": 0})


@pytest.mark.parametrize(
    ("write", "name", "asked", "entries"),
    [
        (facts, "ListMemories", {"page_size": 1000}, "memories"),
        (facts, "SearchMemories", {"query": "Rome", "limit": -1}, "results"),
        (facts, "GetPreloadedMemories", {"limit": 1000, "max_tokens": -1}, "memories"),
        (messages, "RetrieveLastInteractions", {"limit": -1}, "interactions"),
        (documents, "ListDocuments", {"page_size": 1000}, "documents"),
        (fragments, "GetDocument", {"id": "d", "include_fragments": True, "page_size": 1000}, "fragments"),
        (fragments, "SearchFragments", {"query": "herons", "limit": -1}, "results"),
    ],
)
def test_a_page_has_room_for_what_it_tells(
    api: Api, namespace: str, write: Callable[[Writer], None], name: str, asked: dict[str, Any], entries: str
) -> None:
    writer = Writer(Client(api.channel), "", "", 1.0, namespace)
    write(writer)
    items = [
        item for item in exported(api, namespace) if item.kind != pb.ITEM_KIND_DOCUMENT or write is documents
    ]
    if len(items) < COPIES:
        kept = next(item for item in items if item.kind != pb.ITEM_KIND_FRAGMENT)
        items = [pb.MemoryItem() for _ in range(COPIES)]
        for number, copy in enumerate(items):
            copy.CopyFrom(kept)
            copy.id = f"{kept.id}-{number}"
    batches = [items[at : at + 50] for at in range(0, len(items), 50)]
    replace = pb.ON_DUPLICATE_REPLACE
    api.memory.Import(
        iter(pb.ImportRequest(namespace=namespace, items=batch, on_duplicate=replace) for batch in batches)
    )
    answer = writer.call(name, **asked)
    page = getattr(answer, entries)
    assert 0 < len(page) < COPIES
    assert answer.ByteSize() <= api.limits()["page_bytes_max"]
    assert any("parent_ids" in str(each) for each in page)
