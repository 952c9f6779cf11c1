"""Two servers over one store: their decisions and writes are as if they had taken turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from memory_service.data_model import (
    CLIENT_MODEL,
    Answer,
    Item,
    ItemDraft,
    ItemFilter,
    ItemKind,
    ItemWrite,
    Json,
    NamespaceInfo,
    RequestKey,
    StateWrite,
    TextPart,
    Vector,
    WritesBy,
)
from memory_service.deciders.base import Category
from memory_service.deciders.choice import Deciders
from memory_service.decisions import DecidedBy
from memory_service.domain.answers import Answering, Repeated
from memory_service.domain.checks import Checks
from memory_service.domain.documents import DocumentDraft
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.facts.consolidating import FactConsolidating
from memory_service.domain.facts.correcting import Correction, FactCorrecting
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.outcomes import FactDraft, Outcome, Saved
from memory_service.domain.facts.reading import UserMemoryReading, Wanted
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Parts
from memory_service.domain.facts.user_memory import Fact, UserMemory
from memory_service.domain.file_undo import FileUndo
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.item_writing import write_of
from memory_service.domain.items import Items
from memory_service.domain.knowledge import Knowledge
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.quarantine import Intended, Quarantine
from memory_service.domain.result_storage import ResultStorage, StorageDecision, ToolResult
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.screening import Screening
from memory_service.domain.splitting import Split
from memory_service.domain.states import States
from memory_service.domain.undo import Undo, Undone
from memory_service.embedders.base import Embedder
from memory_service.errors import Conflict, NotFound
from memory_service.limits import Limits
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.runtime.clock import now_us
from memory_service.store import Store

NS = "people/ada"
R = TypeVar("R")
REASONING = "She said so herself, in the first message."


class Distant:
    """A store behind a network: during each call, others may run.

    Data that need not be fresh is as old as possible.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[str, NamespaceInfo | None] = {}

    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        await asyncio.sleep(0)
        if fresh or namespace not in self._seen:
            self._seen[namespace] = await self._store.namespace(namespace)
        return self._seen[namespace]

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        method = getattr(self._store, name)

        async def ask(*args: Any, **named: Any) -> object:
            await asyncio.sleep(0)
            return await method(*args, **named)

        return ask


class Server:
    """The services of one server."""

    def __init__(self, shared: Store, embedder: Embedder | None = None) -> None:
        store = cast(Store, Distant(shared))
        checks, tokens, embedding = Checks(Limits()), PageTokens(b"key"), TextEmbedding(embedder)
        filters = FilterLanguage(checks.limits)
        retrieval = Retrieval(store, embedding, checks, filters, tokens, lambda item: 1)
        self.quarantine = Quarantine(store, checks, tokens, 30)
        screening = Screening(store, None, self.quarantine)
        self.items = Items(store, embedding, retrieval, checks, tokens, screening)
        self.reading = UserMemoryReading(store, retrieval, checks, tokens, lambda memory: 1)
        judging = Judging(store, retrieval, embedding)
        parts = Parts(store, self.items, self.reading, judging, checks, Deciders(None).begin)
        self.saving = FactSaving(parts)
        self.correcting = FactCorrecting(parts, self.saving)
        self.consolidating = FactConsolidating(parts, self.saving)
        self.knowledge = Knowledge(store, embedding, checks, filters, tokens, screening, lambda document: 1)
        files = FileUndo(store, self.items.committing, checks, Split(1000, 100))
        self.undo = Undo(store, embedding, checks, files)
        states = States(store, checks, tokens, lambda entry: 1, screening)
        self.results = ResultStorage(store, states, checks, Deciders(None).begin)

    async def save(self, content: str, begins_us: int | None = None) -> Saved:
        draft = FactDraft(content, Category.PREFERENCE, REASONING, valid_from_us=begins_us, keep_wording=True)
        return await self.saving.save(NS, draft, DecidedBy.UNSPECIFIED, None)

    async def import_fact(self, content: str) -> None:
        """Write a fact without comparing it with others."""
        draft, now = FactDraft(content, Category.PREFERENCE, REASONING), now_us()
        deciding = Deciders(None).begin(DecidedBy.RULES, NS)
        await self.saving.write(
            NS, [await self.saving.new_memory(draft, content, now, now, deciding)], [], None
        )

    async def correct(self, memory: UserMemory, content: str) -> Saved:
        new = UserMemory(memory.id, content, Fact(Category.PREFERENCE, REASONING, memory.fact.importance, 0))
        correction = Correction(new, frozenset({"content"}), keep_wording=True)
        return await self.correcting.update(NS, correction, DecidedBy.UNSPECIFIED, None)

    async def delete(self, memory: UserMemory, version: int | None = None) -> object:
        return await self.correcting.delete(
            NS, memory.id, expected_version=version, include_history=False, keep_derived=False, request=None
        )

    async def consolidate(self) -> int:
        done = await self.consolidating.consolidate(
            NS, dry_run=False, categories=(), memory_ids=(), similarity_threshold=None, limit=None,
            decide_by=DecidedBy.RULES, request=None,
        )  # fmt: skip
        return sum(group.applied for group in done.groups)

    async def active(self) -> list[str]:
        return [memory.content for memory in await self.reading.all(NS, Wanted())]

    async def write(self, text: str) -> int:
        written = await self.knowledge.add(NS, DocumentDraft(text, "doc"), Split(100, 0), replace=True)
        return written.document.kept.version

    async def remove(self, version: int | None = None) -> object:
        return await self.knowledge.delete(
            NS, "doc", expected_version=version, keep_derived=False, request=None
        )


class Sums(Embedder):
    """Vectors that depend only on the length of a text."""

    name, dimension, duplicate_threshold = "sums", 2, 0.9

    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        return [np.array([1, len(text)], np.float32) for text in texts]


@pytest.fixture
def shared() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def servers(shared: InMemoryStore) -> tuple[Server, Server]:
    return Server(shared), Server(shared)


async def of_kind(store: Store, kind: ItemKind) -> list[str]:
    wanted = ItemFilter(now_us=now_us(), kinds=frozenset({kind}))
    items = await (await store.read(NS)).load_items(
        await (await store.read(NS)).scan(wanted, -1, newest=False)
    )
    return [item.id for item in items if item is not None]


async def test_a_fact_that_is_told_to_both_is_saved_once(servers: tuple[Server, Server]) -> None:
    facts = [f"Ada likes {food}." for food in ("kiwis", "plums", "figs", "dates", "pears")]
    for fact in facts:
        told = await asyncio.gather(*(server.save(fact) for server in servers))
        assert sorted(saved.outcome for saved in told) == sorted([Outcome.SAVED, Outcome.DUPLICATE])
    assert await servers[0].active() == facts


async def test_many_facts_that_are_told_to_both_at_once_are_saved_once(
    servers: tuple[Server, Server],
) -> None:
    facts = [f"Ada owns {count} {things}." for count, things in enumerate(("boats", "cats", "lamps"), 2)]
    await asyncio.gather(*(server.save(fact) for fact in facts for server in servers))
    assert sorted(await servers[0].active()) == sorted(facts)


async def test_a_memory_is_not_deleted_in_a_version_that_was_not_meant(
    servers: tuple[Server, Server],
) -> None:
    here, there = servers
    memory = (await here.save("Ada likes kiwis.")).memory
    assert memory is not None
    corrected, deleted = await asyncio.gather(
        here.correct(memory, "Ada grows vines."), there.delete(memory, version=1), return_exceptions=True
    )
    # The later one sees the result of the earlier one.
    if isinstance(deleted, Conflict):
        assert await here.active() == ["Ada grows vines."]
    else:
        assert isinstance(corrected, NotFound)
        assert await here.active() == []


async def test_a_memory_that_both_delete_is_deleted_once(servers: tuple[Server, Server]) -> None:
    memory = (await servers[0].save("Ada likes kiwis.")).memory
    assert memory is not None
    done = await asyncio.gather(*(server.delete(memory) for server in servers), return_exceptions=True)
    assert sorted(isinstance(one, NotFound) for one in done) == [False, True]


async def test_who_removes_messages_one_by_one_does_not_stop_who_saves_facts(shared: Store) -> None:
    server, stop = Server(shared), asyncio.Event()

    async def write_and_remove() -> None:
        while not stop.is_set():
            await asyncio.sleep(0)
            await shared.add_items(NS, [ItemWrite(Item("m", "", TextPart("hello"), 1, 1), "hello")])
            await shared.delete_item(NS, "m", now_us=1)

    other = asyncio.create_task(write_and_remove())
    try:
        assert (await server.save("Ada likes kiwis.")).outcome is Outcome.SAVED
    finally:
        stop.set()
        await other


@pytest.mark.parametrize("turns", range(-6, 6))
async def test_no_memory_ends_by_one_that_is_gone(servers: tuple[Server, Server], turns: int) -> None:
    here, there = servers
    later = (await here.save("Ada lives in Paris.", begins_us=2_000_000)).memory
    assert later is not None

    async def after(turns: int, done: Awaitable[R]) -> R:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await done

    saved, _ = await asyncio.gather(
        after(-turns, here.save("Ada lives in Rome.", begins_us=1_000_000)), after(turns, there.delete(later))
    )
    assert saved.memory is not None
    (memory,) = await here.reading.all(NS, Wanted(include_history=True))
    # If it was saved first, the deletion removed its link; otherwise there was none.
    assert memory.content == "Ada lives in Rome." and memory.fact.superseded_by == ""


async def test_memories_are_consolidated_once(servers: tuple[Server, Server], shared: Store) -> None:
    for server in servers:
        await server.import_fact("Ada likes kiwis.")
    before = await of_kind(shared, ItemKind.USER_MEMORY)
    applied = await asyncio.gather(*(server.consolidate() for server in servers))
    after = await of_kind(shared, ItemKind.USER_MEMORY)
    assert sum(applied) == 1
    assert len(after) - len(before) == 1


async def test_documents_that_both_replace_have_their_own_fragments_alone(
    servers: tuple[Server, Server], shared: Store
) -> None:
    versions = await asyncio.gather(
        *(
            server.write(f"{name} {server is servers[0]} " * 40)
            for server in servers
            for name in ("kiwi", "fig")
        )
    )
    assert sorted(versions) == [1, 2, 3, 4]
    document = await servers[0].knowledge.document(NS, "doc")
    assert await of_kind(shared, ItemKind.FRAGMENT) == list(document.fragment_ids())


async def test_no_fragments_are_left_of_a_document_that_one_deletes_and_one_replaces(
    servers: tuple[Server, Server], shared: Store
) -> None:
    await servers[0].write("kiwi " * 100)
    version, deleted = await asyncio.gather(servers[0].write("fig " * 100), servers[1].remove())
    assert deleted and version in (1, 2)
    documents = await of_kind(shared, ItemKind.DOCUMENT)
    fragments = await of_kind(shared, ItemKind.FRAGMENT)
    if documents:
        assert fragments == list((await servers[0].knowledge.document(NS, "doc")).fragment_ids())
    else:
        assert fragments == []


async def test_a_document_is_not_deleted_in_a_version_that_was_not_meant(
    servers: tuple[Server, Server],
) -> None:
    await servers[0].write("kiwi " * 100)
    version, deleted = await asyncio.gather(
        servers[0].write("fig " * 100), servers[1].remove(version=1), return_exceptions=True
    )
    assert isinstance(deleted, Conflict) == (version == 2)


async def test_an_undo_that_comes_to_both_is_answered_alike(
    servers: tuple[Server, Server], shared: Store
) -> None:
    for key in range(3):
        await shared.save_state(NS, StateWrite(f"k{key}", _json(key), now_us()))
    key = RequestKey("r", b"digest")
    done = await asyncio.gather(
        *(server.undo.undo_writes(NS, WritesBy(0), dry_run=False, request=key) for server in servers)
    )
    assert done[0] == done[1]
    assert isinstance(done[0], Undone) and await shared.load_states(NS, ["k0", "k1", "k2"]) == {}


async def test_a_result_that_comes_to_both_is_kept_once_and_answered_alike(
    servers: tuple[Server, Server], shared: Store
) -> None:
    asked = ToolResult(NS, "fetch_preferences", {"likes": ["kiwis"]}, 30, key="fruit", save=True)
    requests = [
        Answering[StorageDecision](
            RequestKey("r", b"digest"), lambda done: Answer(str(done.entry).encode(), b"")
        )
        for _ in servers
    ]
    done = await asyncio.gather(
        *(server.results.evaluate(asked, request) for server, request in zip(servers, requests, strict=True)),
        return_exceptions=True,
    )
    (decision,) = [one for one in done if isinstance(one, StorageDecision)]
    (repeated,) = [one for one in done if isinstance(one, Repeated)]
    assert decision.entry is not None and decision.entry.version == 1
    assert repeated.receipt.answer is not None
    assert repeated.receipt.answer.whole == str(decision.entry).encode()
    assert (await shared.load_states(NS, ["fruit"]))["fruit"].version == 1


async def _add(server: Server, **texts: Sequence[float] | None) -> list[bool]:
    """Add items, some with given vectors; return which are embedded, and whether the result is degraded."""
    drafts = [
        ItemDraft(TextPart(name), name, embedding=None if own is None else np.array(own, np.float32))
        for name, own in texts.items()
    ]
    added = await server.items.add("n", drafts, fields=list(texts))
    return [item.embedded or item.embedding is not None for item in added.items] + [bool(added.degraded)]


async def test_a_write_by_the_wrong_model_is_made_without_its_vector(shared: Store) -> None:
    here, there = Server(shared, Sums()), Server(shared)
    assert await _add(here, a=None) == [True, False]
    await there.items.reset("n", request=None)
    await _add(there, b=[1, 0, 0])
    # It still has the namespace's old info, with its own model.
    assert await _add(here, c=None) == [False, True]
    draft = ItemDraft(TextPart("changed"), "b")
    updated = await here.items.update(
        "n", draft, frozenset({"content"}), expected_revision=None, request=None
    )
    assert updated.degraded and updated.items[0].embedding is None
    info = await shared.namespace("n")
    assert info is not None and (info.model, info.dimension, info.embedded_count) == (CLIENT_MODEL, 3, 0)


async def test_texts_beside_vectors_are_embedded_where_the_other_server_began(shared: Store) -> None:
    here, there = Server(shared, Sums()), Server(shared, Sums())
    drafts = (
        ItemDraft(TextPart("b"), "b", embedding=np.array([1, 0], np.float32)),
        ItemDraft(TextPart("c"), "c"),
    )
    intended = Intended([write_of(draft, None, now_us()) for draft in drafts])
    await here.quarantine.put("n", intended, "to be looked at")
    (held,) = (await here.quarantine.page("n", 9, "")).writes
    assert await here.reading.revision("n") == 0
    await _add(there, a=None)
    released = await here.items.release("n", held.held.id)
    assert [item.embedded or item.embedding is not None for item in released.items] == [True, True]
    assert not released.degraded


def _json(value: Json) -> bytes:
    return str(value).encode()
