"""The durable store against the store in memory: the same random writes, then the same answers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contract.builders import NOW, PLENTY, SECOND, Hit, build_request, build_state, build_write, rows
from contract.cases import EVICTING, GRAPH
from faults.scale import rounds
from memory_service.data_model import (
    CLIENT_MODEL,
    Change,
    ChangeType,
    Item,
    ItemFilter,
    ItemWrite,
    OnDuplicate,
    Receipt,
    SearchQuery,
)
from memory_service.errors import MemoryServiceError
from memory_service.indexes.settings import IndexSettings
from memory_service.reading import Reading
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.store import Store
from memory_service.stores import SqliteStore

IDS = 60
WORDS = ("kiwi", "plum", "fig", "mango", "cherry", "lemon")
KEYS = ("a", "b", "\u00e9", "\U0001f600")
TOLERANCE = 1e-4
# The order of things that expire together is not guaranteed.
EXPIRED = {ChangeType.ITEM_EXPIRED, ChangeType.STATE_EXPIRED}

namespaces = st.sampled_from(["a", "a/b"])
ids = st.integers(0, IDS - 1)
streams = st.integers(0, 99)
duplicates = st.sampled_from(OnDuplicate)
# How many revisions or versions a writer is behind; None: it does not compare.
staleness = st.sampled_from([None, None, None, 0, 1])

Outcome = Receipt | tuple[str, dict[str, str]]
Write = Callable[[Store], Awaitable[Receipt]]


@dataclass(frozen=True)
class Batch:
    """Items derived from a few numbers, so that a failing example stays short."""

    first: int
    count: int
    stream: int
    dimension: int
    model: str

    def writes(self, now_us: int) -> list[ItemWrite]:
        """Create the items; each call creates new ones, because stores write into them."""
        rng = np.random.default_rng([self.first, self.count, self.stream])
        return [self._write(f"i{(self.first + n) % IDS}", now_us, rng) for n in range(self.count)]

    def _write(self, item_id: str, now_us: int, rng: np.random.Generator) -> ItemWrite:
        words = rng.choice(WORDS, int(rng.integers(0, 9)))
        ttl = int(rng.integers(1, 40)) * SECOND
        return build_write(
            item_id,
            " ".join(words),
            None if rng.random() < 0.15 else _vector(int(rng.integers(0, 50)), self.dimension),
            model=self.model,
            session_id=f"s{rng.integers(0, 3)}",
            labels={"k": f"v{rng.integers(0, 4)}"},
            create_us=NOW + int(rng.integers(0, 20)),
            update_us=now_us,
            expire_us=now_us + ttl if rng.random() < 0.2 else None,
        )


batches = st.builds(
    Batch,
    ids,
    st.integers(1, 30),
    streams,
    st.sampled_from([4, 4, 4, 4, 4, 5]),
    st.sampled_from([CLIENT_MODEL, CLIENT_MODEL, CLIENT_MODEL, "local:a", "local:b"]),
)


def _vector(stream: int, dimension: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng([stream, 77]).standard_normal(dimension).astype(np.float32)


async def _outcome(write: Awaitable[Receipt]) -> Outcome:
    """Return the result of a write, or its error."""
    try:
        return await write
    except MemoryServiceError as error:
        return (type(error).__name__, error.metadata)


def _without_wire(items: Sequence[Item | None]) -> list[Any]:
    """Return items in a form that can be compared, vectors included."""
    return [item and msgspec.structs.replace(item, embedding=None) for item in items] + [
        None if item is None or item.embedding is None else item.embedding.tobytes() for item in items
    ]


def _in_promised_order(changes: Sequence[Change]) -> list[Any]:
    runs = groupby(changes, lambda change: change.type in EXPIRED)
    ordered: list[Any] = [change.revision for change in changes]
    for expired, run in runs:
        subjects = [(change.type, change.subject) for change in run]
        ordered += sorted(subjects) if expired else subjects
    return ordered


def _best(hits: Sequence[Hit], channel: str, count: int) -> list[float]:
    scores = [score for hit in hits if (score := getattr(hit, channel)) is not None]
    if channel == "lexical_score":
        scores = [score for score in scores if score > 0]
    return sorted(scores, reverse=True)[:count]


class Model(RuleBasedStateMachine):
    """Every write goes to both stores; after each, both must read the same."""

    index_settings: IndexSettings

    @initialize(batch=batches)
    def open(self, batch: Batch) -> None:
        """Open both stores and write enough for a graph from the start."""
        self.runner = asyncio.Runner()
        self.data_dir = Path(tempfile.mkdtemp(prefix="model-"))
        self.now_us = NOW
        self.requests: list[tuple[str, Batch, int]] = []
        self.oracle: Store = InMemoryStore()
        self.store: Store = SqliteStore(self.data_dir, self.index_settings)
        self.run(self.oracle.open())
        self.run(self.store.open())
        self.fill("a", batch)

    def teardown(self) -> None:
        """Close both and remove the files."""
        if hasattr(self, "runner"):
            self.run(self.store.close())
            self.run(self.oracle.close())
            self.runner.close()
            shutil.rmtree(self.data_dir)

    def run(self, step: Awaitable[Any]) -> Any:
        """Run a step to its end."""

        async def awaited() -> Any:
            return await step

        return self.runner.run(awaited())

    def apply(self, write: Write) -> None:
        """Write to both; their outcomes must be equal."""
        expected = self.run(_outcome(write(self.oracle)))
        assert self.run(_outcome(write(self.store))) == expected

    def expected_revision(self, namespace: str, item_id: str, behind: int | None) -> int | None:
        """Return the revision that a writer compares with."""
        found = self.run(self.oracle.get_items(namespace, [item_id]))
        return None if behind is None or not found else found[item_id].revision - behind

    def expected_version(self, namespace: str, key: str, behind: int | None) -> int | None:
        """Return the version that a writer compares with."""
        found = self.run(self.oracle.load_states(namespace, [key]))
        return None if behind is None else max((found[key].version if found else 0) - behind, 0)

    # --- writes -------------------------------------------------------------------------------

    @rule(namespace=namespaces, batch=batches, on_duplicate=duplicates)
    def add(self, namespace: str, batch: Batch, on_duplicate: OnDuplicate) -> None:
        """Add a batch with some ids that exist already."""
        now = self.now_us
        self.apply(lambda store: store.add_items(namespace, batch.writes(now), on_duplicate=on_duplicate))

    @rule(namespace=namespaces, batch=batches)
    def fill(self, namespace: str, batch: Batch) -> None:
        """Add or replace many at once, enough for a graph."""
        many = replace(batch, count=50, dimension=4, model=CLIENT_MODEL)
        now = self.now_us
        self.apply(
            lambda store: store.add_items(namespace, many.writes(now), on_duplicate=OnDuplicate.REPLACE)
        )

    @rule(namespace=namespaces, batch=batches)
    def request(self, namespace: str, batch: Batch) -> None:
        """Add a batch with a request id."""
        self.requests.append((namespace, batch, self.now_us))
        self.repeat(len(self.requests) - 1, b"body")

    @precondition(lambda self: self.requests)
    @rule(at=st.integers(0, 9), digest=st.sampled_from([b"body", b"other"]))
    def repeat(self, at: int, digest: bytes) -> None:
        """Send a request again, perhaps with another body."""
        at %= len(self.requests)
        namespace, batch, now = self.requests[at]
        request = build_request(f"r{at}", digest)
        skip = OnDuplicate.SKIP
        self.apply(
            lambda store: store.add_items(namespace, batch.writes(now), on_duplicate=skip, request=request)
        )

    @rule(namespace=namespaces, batch=batches, keep=st.booleans(), behind=staleness)
    def replace(self, namespace: str, batch: Batch, keep: bool, behind: int | None) -> None:
        """Replace one item, with a new vector or the one it has."""
        one, now = replace(batch, count=1), self.now_us
        expected = self.expected_revision(namespace, one.writes(now)[0].item.id, behind)

        def write(store: Store) -> Awaitable[Receipt]:
            change = one.writes(now)[0]
            if keep:
                change = build_write(change.item.id, change.search_text, keep_vector=True, update_us=now)
            return store.replace_item(namespace, change, expected_revision=expected)

        self.apply(write)

    @rule(namespace=namespaces, first=ids, count=st.integers(1, 12), behind=staleness)
    def delete(self, namespace: str, first: int, count: int, behind: int | None) -> None:
        """Delete some items, one by one."""
        for n in range(first, first + count):
            item_id = f"i{n % IDS}"
            self.delete_one(namespace, item_id, self.expected_revision(namespace, item_id, behind))

    def delete_one(self, namespace: str, item_id: str, expected: int | None) -> None:
        """Delete one item, perhaps only at a revision."""
        now = self.now_us
        self.apply(
            lambda store: store.delete_item(namespace, item_id, now_us=now, expected_revision=expected)
        )

    @rule(namespace=namespaces, chosen=st.lists(st.integers(1, 200), max_size=5))
    def use(self, namespace: str, chosen: list[int]) -> None:
        """Count some positions as used, some of which belong to no item."""
        for store in (self.store, self.oracle):
            self.run(store.record_uses(namespace, chosen))

    @rule(
        namespace=namespaces,
        key=st.sampled_from(KEYS),
        value=st.integers(0, 9),
        behind=staleness,
        ttl=st.sampled_from([None, None, 3]),
        description=st.sampled_from([None, "", "why"]),
    )
    def save_state(
        self,
        namespace: str,
        key: str,
        value: int,
        behind: int | None,
        ttl: int | None,
        description: str | None,
    ) -> None:
        """Save a state, sometimes with a version and sometimes with a time to live."""
        expected = self.expected_version(namespace, key, behind)
        expire = None if ttl is None else self.now_us + ttl * SECOND
        write = build_state(
            key, value, self.now_us, expire_us=expire, description=description, expected_version=expected
        )
        self.apply(lambda store: store.save_state(namespace, write))

    @rule(
        namespace=namespaces,
        batch=batches,
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4),
        on_duplicate=duplicates,
    )
    def add_with_states(
        self, namespace: str, batch: Batch, keys: list[str], on_duplicate: OnDuplicate
    ) -> None:
        """Add a few items and states at once, some keys twice."""
        few, now = replace(batch, count=min(batch.count, 5)), self.now_us
        states = [build_state(key, n, now) for n, key in enumerate(keys)]
        self.apply(
            lambda store: store.add_items(
                namespace, few.writes(now), states=states, on_duplicate=on_duplicate
            )
        )

    @rule(namespace=namespaces, key=st.sampled_from(KEYS), behind=staleness)
    def delete_state(self, namespace: str, key: str, behind: int | None) -> None:
        """Delete a state."""
        now, found = self.now_us, self.run(self.oracle.load_states(namespace, [key]))
        expected = found[key].version - behind if found and behind is not None else None
        self.apply(lambda store: store.delete_state(namespace, key, now_us=now, expected_version=expected))

    @rule(namespace=namespaces)
    def clear_states(self, namespace: str) -> None:
        """Clear the states of an existing namespace."""
        if self.run(self.oracle.namespace(namespace)):
            self.apply(lambda store: store.clear_states(namespace))

    @rule(namespace=namespaces, chance=st.integers(0, 3))
    def end(self, namespace: str, chance: int) -> None:
        """Reset or delete a namespace, rarely enough for others to grow."""
        if chance == 0 and self.run(self.oracle.namespace(namespace)):
            self.apply(lambda store: store.reset(namespace))
        elif chance == 1:
            self.apply(lambda store: store.delete_namespace(namespace))
            # Its request ids are gone with it.
            self.requests = [request for request in self.requests if request[0] != namespace]

    @rule(seconds=st.integers(1, 15), remove=st.booleans())
    def pass_time(self, seconds: int, remove: bool) -> None:
        """Let time pass, and sometimes remove expired items."""
        self.now_us += seconds * SECOND
        if remove:
            expected = self.run(self.oracle.remove_expired(self.now_us, 0, PLENTY))
            assert self.run(self.store.remove_expired(self.now_us, 0, PLENTY)) == expected

    @rule()
    def flush(self) -> None:
        """Finish merges and save the indexes."""
        self.run(self.store.flush())

    @rule()
    def reopen(self) -> None:
        """Close the durable store and open another on its files."""
        self.run(self.store.close())
        self.store = SqliteStore(self.data_dir, self.index_settings)
        self.run(self.store.open())

    # --- answers ------------------------------------------------------------------------------

    @rule(
        namespace=namespaces,
        stream=streams,
        words=st.lists(st.sampled_from(WORDS), max_size=2),
        by_vector=st.booleans(),
        candidates=st.sampled_from([1, 3, 10, PLENTY]),
        session=st.sampled_from(["", "", "s1"]),
        label=st.sampled_from([(), (), (("k", "v2"),)]),
    )
    def search(
        self,
        namespace: str,
        stream: int,
        words: list[str],
        by_vector: bool,
        candidates: int,
        session: str,
        label: tuple[tuple[str, str], ...],
    ) -> None:
        """Search both, by any channel and filter; ties may be broken either way."""
        info = self.run(self.oracle.namespace(namespace))
        vector = _vector(stream, (info and info.dimension) or 4) if by_vector else None
        item_filter = ItemFilter(self.now_us, session, label)
        query = SearchQuery(item_filter, candidates, vector, " ".join(words) if words else None)
        self.compare_search(namespace, query)
        expected = self.run(self.read(self.oracle, namespace).scan(item_filter, 7, newest=by_vector))
        assert self.run(self.read(self.store, namespace).scan(item_filter, 7, newest=by_vector)) == expected

    def read(self, store: Store, namespace: str) -> Reading:
        return self.run(store.read(namespace))

    def compare_search(self, namespace: str, query: SearchQuery) -> None:
        """Assert that the best results of each channel and every score are the same."""
        found = rows(self.run(self.read(self.store, namespace).search(query)))
        best = rows(self.run(self.read(self.oracle, namespace).search(query)))
        channels = ["vector_score", "lexical_score"]
        if query.vector is not None and query.text is not None:
            # Of equal vectors any may be among the nearest, and those are also scored by their words. So
            # words are compared separately, and here their best scores may only be better.
            channels.pop()
            by_words = msgspec.structs.replace(query, vector=None)
            self.compare_search(namespace, by_words)
            least = _best(
                rows(self.run(self.read(self.oracle, namespace).search(by_words))),
                "lexical_score",
                PLENTY,
            )
            scores = _best(found, "lexical_score", len(least))
            assert all(score >= low - TOLERANCE for score, low in zip(scores, least, strict=True))
        for channel in channels:
            expected = pytest.approx(_best(best, channel, query.candidates), abs=TOLERANCE)
            assert _best(found, channel, query.candidates) == expected
        assert len({hit.position for hit in found}) == len(found)
        everything = rows(
            self.run(
                self.run(self.oracle.read(namespace)).search(
                    msgspec.structs.replace(query, candidates=PLENTY)
                )
            )
        )
        scores = {hit.position: hit for hit in everything}
        for hit in found:
            assert hit.vector_score == pytest.approx(scores[hit.position].vector_score, abs=TOLERANCE)
            assert hit.lexical_score == pytest.approx(scores[hit.position].lexical_score, abs=TOLERANCE)

    @invariant()
    def records_are_the_same(self) -> None:
        """Every read other than a search gives the same result."""
        for namespace in ("a", "a/b"):
            assert self.run(self._read(self.store, namespace)) == self.run(self._read(self.oracle, namespace))

    @invariant()
    def searches_are_the_same(self) -> None:
        """A search by both channels gives the same result."""
        for namespace in ("a", "a/b"):
            info = self.run(self.oracle.namespace(namespace))
            vector = _vector(1, (info and info.dimension) or 4)
            self.compare_search(namespace, SearchQuery(ItemFilter(self.now_us), 10, vector, "kiwi plum"))

    async def _read(self, store: Store, namespace: str) -> list[Any]:
        positions = await (await store.read(namespace)).scan(ItemFilter(self.now_us), -1, newest=False)
        loaded = await (await store.read(namespace)).load_items(positions, with_embedding=True)
        known = await store.get_items(namespace, [f"i{n}" for n in range(IDS)], with_embedding=True)
        info = await store.namespace(namespace)
        return [
            positions,
            _without_wire(loaded),
            _without_wire([known[item_id] for item_id in sorted(known)]),
            await store.scan_states(namespace, "", PLENTY, now_us=self.now_us),
            await store.load_states(namespace, KEYS),
            await _told_of(store, namespace, ItemFilter(self.now_us)),
            _in_promised_order(await store.read_changes(namespace, 0, PLENTY)),
            # Each store has its own clock and uids.
            info and replace(info, create_us=0, uid=0),
        ]


async def _told_of(store: Store, namespace: str, item_filter: ItemFilter) -> list[tuple[int, ...]]:
    """Return the described values of every item that a search by words finds."""
    query = SearchQuery(item_filter, PLENTY, None, " ".join(WORDS), described=True)
    hits = await (await store.read(namespace)).search(query)
    columns = hits.create_us or (), hits.importances or (), hits.use_counts or ()
    return sorted(zip(hits.positions, *columns, strict=True))


class GraphModel(Model):
    """Graphs that are built, merged and kept in memory."""

    index_settings = GRAPH


class EvictingModel(Model):
    """Indexes that each search loads from their files."""

    index_settings = EVICTING


_REPEATABLE = settings(
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
    # No search for a shorter example: it takes minutes, and loses a failure that depends on timing.
    phases=[Phase.generate],
)
TestGraphModel = GraphModel.TestCase
TestGraphModel.settings = settings(_REPEATABLE, max_examples=rounds(20, 40))
TestEvictingModel = EvictingModel.TestCase
TestEvictingModel.settings = settings(_REPEATABLE, max_examples=rounds(10, 20))
