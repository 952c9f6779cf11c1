"""Items, queries and what is expected of their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from memory_service.data_model import (
    CLIENT_MODEL,
    BinaryPart,
    ChatMessage,
    Content,
    DataPart,
    Hits,
    Item,
    ItemFilter,
    ItemWrite,
    RequestKey,
    Role,
    SearchQuery,
    StateWrite,
    TextPart,
    ToolCallPart,
    ToolCallResult,
    Vector,
)
from memory_service.store import Store

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
MODEL = "local:a"
NS = "people/ada"
EVERYTHING = ItemFilter(now_us=NOW)
# More than any test writes, for reads whose limit must not matter.
PLENTY = 1_000_000
RECALL_MIN = 0.99

CONTENTS: dict[str, Content] = {
    "text": TextPart("plain\ntext with \u00e9, \u6f22 and \U0001f600"),
    "empty text": TextPart(""),
    "data": DataPart({"deep": [1.5, None, True, {"k": "\u00e9"}], "": {}, "big": 1e300}),
    "empty data": DataPart({}),
    "result without a value": ToolCallResult("call-1", "search"),
    "result that is null": ToolCallResult("call-1", "search", result=None),
    "result that is an error": ToolCallResult("call-1", "search", result=["no", {"x": 0.0}], is_error=True),
    "message": ChatMessage(
        Role.ASSISTANT,
        [
            TextPart("look"),
            DataPart({"a": 1.0}),
            BinaryPart("image/png", b"\x00\xff\x00png", name="p.png", content_length=6),
            BinaryPart("image/png", url="https://example.com/p.png", content_length=-1),
            ToolCallPart("call-1", "search", {"q": "x"}),
            ToolCallPart("call-2", "empty", {}),
            ToolCallPart("call-3", "none"),
            ToolCallResult("call-1", "search", result={"hits": []}),
        ],
        message_id="m-1",
        name="Ada",
        model=("openai", "gpt-5"),
        create_us=NOW - 5,
    ),
    "bare message": ChatMessage(Role.TOOL),
}


def build_item(item_id: str, text: str = "", **fields: Any) -> Item:
    """Return an item that holds a text; other fields are named as in `Item`."""
    fields = {"session_id": "", "content": TextPart(text), "create_us": NOW, "update_us": NOW, **fields}
    return Item(item_id, **fields)


def build_write(
    item_id: str,
    text: str = "",
    vector: Sequence[float] | Vector | None = None,
    *,
    model: str = CLIENT_MODEL,
    keep_vector: bool = False,
    speaker: str = "",
    **fields: Any,
) -> ItemWrite:
    """Return a write of an item that is found by its text and its vector."""
    embedding = None if vector is None else np.asarray(vector, np.float32)
    item = build_item(item_id, text, embedding=embedding, embedded=embedding is not None, **fields)
    return ItemWrite(item, text, model if vector is not None else "", keep_vector, speaker=speaker)


def build_pending(
    item_id: str, text: str = "", *, model: str = MODEL, dimension: int = 4, **fields: Any
) -> ItemWrite:
    """Return a write of an item that is found by its text and may wait for a vector of a model."""
    return ItemWrite(build_item(item_id, text, **fields), text, model, dimension=dimension)


def build_state(key: str, value: object = None, now_us: int = NOW, **fields: Any) -> StateWrite:
    """Return a write of a state; other fields are named as in `StateWrite`."""
    return StateWrite(key, msgspec.json.encode(value), now_us, **fields)


def build_request(request_id: str = "r-1", digest: bytes = b"body") -> RequestKey:
    """Return a request's key."""
    return RequestKey(request_id, digest)


def random_vectors(count: int, dimension: int = 16, stream: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return random vectors of various lengths, the same each time."""
    rng = np.random.default_rng([count, dimension, stream])
    lengths = rng.uniform(0.2, 5, (count, 1))
    return (rng.standard_normal((count, dimension)) * lengths).astype(np.float32)


def axis_vector(axis: int, dimension: int = 4) -> Vector:
    """Return the unit vector along an axis."""
    vector = np.zeros(dimension, np.float32)
    vector[axis] = 1
    return vector


async def scan_ids(store: Store, namespace: str = NS, **filter_fields: Any) -> list[str]:
    """Return the ids of the matching items in scan order."""
    item_filter = ItemFilter(**{"now_us": NOW, **filter_fields})
    positions = await (await store.read(namespace)).scan(item_filter, -1, newest=False)
    items = await (await store.read(namespace)).load_items(positions)
    return [item.id for item in items if item is not None]


async def get_item(store: Store, item_id: str, namespace: str = NS, *, with_embedding: bool = False) -> Item:
    """Return an item that must exist."""
    return (await store.get_items(namespace, [item_id], with_embedding=with_embedding))[item_id]


async def search_hits(
    store: Store,
    namespace: str = NS,
    *,
    text: str | None = None,
    vector: Sequence[float] | Vector | None = None,
    candidates: int = 10,
    **filter_fields: Any,
) -> dict[str, Hit]:
    """Search, and return the hits by the id of their item."""
    query_vector = None if vector is None else np.asarray(vector, np.float32)
    item_filter = ItemFilter(**{"now_us": NOW, **filter_fields})
    hits = await (await store.read(namespace)).search(
        SearchQuery(item_filter, candidates, query_vector, text)
    )
    return await hits_by_id(store, namespace, hits)


@dataclass(frozen=True)
class Hit:
    """An item found: a row of `Hits`."""

    position: int
    vector_score: float | None
    lexical_score: float | None
    named: bool | None


def rows(hits: Hits) -> list[Hit]:
    """Return hits one by one."""
    nothing = [None] * len(hits.positions)
    columns = (
        hits.positions, hits.vector_scores or nothing, hits.lexical_scores or nothing, hits.named or nothing,
    )  # fmt: skip
    return [Hit(*row) for row in zip(*columns, strict=True)]


async def hits_by_id(store: Store, namespace: str, hits: Hits) -> dict[str, Hit]:
    """Return hits by the id of their item; each item must exist and occur only once."""
    items = await (await store.read(namespace)).load_items(hits.positions)
    by_id = {item.id: hit for item, hit in zip(items, rows(hits), strict=True) if item is not None}
    assert len(by_id) == len(hits.positions), "a hit of an item that is gone, or the same item twice"
    return by_id


async def words_found(store: Store, text: str, namespace: str = NS, **filter_fields: Any) -> set[str]:
    """Return the ids of all items that a text finds."""
    hits = await search_hits(store, namespace, text=text, candidates=PLENTY, **filter_fields)
    assert all(hit.lexical_score is not None and hit.lexical_score > 0 for hit in hits.values())
    return set(hits)


async def word_scores(store: Store, text: str, namespace: str = NS, **filter_fields: Any) -> dict[str, float]:
    """Return the lexical scores of all items that a text finds."""
    hits = await search_hits(store, namespace, text=text, candidates=PLENTY, **filter_fields)
    return {item_id: hit.lexical_score for item_id, hit in hits.items() if hit.lexical_score is not None}


def cosines(query: Vector, vectors: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, Any]:
    """Return the cosine of each vector with the query, in double precision."""
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    return np.asarray((wide @ asked) / (np.linalg.norm(wide, axis=1) * np.linalg.norm(asked)))


def count_found(hits: Mapping[str, Hit], live: Mapping[str, Vector], query: Vector, candidates: int) -> int:
    """Return how many of the best `candidates` were found, and check every hit on the way.

    A hit as near as the last of the best is a tie, not a miss.
    """
    exact = dict(zip(live, cosines(query, np.array(list(live.values()))), strict=True)) if live else {}
    wanted = min(candidates, len(exact))
    assert len(hits) <= wanted
    worst = sorted(exact.values(), reverse=True)[wanted - 1] if wanted else 0.0
    for item_id, hit in hits.items():
        assert hit.vector_score is not None and hit.lexical_score is None
        assert abs(hit.vector_score - exact[item_id]) < 1e-4, f"{item_id} has a score that is not its cosine"
    return sum(bool(exact[item_id] >= worst - 1e-6) for item_id in hits)


@dataclass(frozen=True)
class Recall:
    """How many of the best a search should find, and how many it found."""

    found: int
    wanted: int

    def __add__(self, other: Recall) -> Recall:
        return Recall(self.found + other.found, self.wanted + other.wanted)

    @property
    def is_as_promised(self) -> bool:
        """Whether a store of the promised recall passes, except for a few per cent of bad luck.

        A small sample of a good store may well miss twice, so the bar is two deviations below.
        """
        expected = (1 - RECALL_MIN) * self.wanted
        return self.wanted - self.found <= expected + 2 * math.sqrt(expected)


async def recall(
    store: Store,
    live: Mapping[str, Vector],
    queries: Sequence[Vector] | np.ndarray[Any, np.dtype[np.float32]],
    candidates: int = 10,
    namespace: str = NS,
    **filter_fields: Any,
) -> Recall:
    """Return how many of the best `candidates` of each query search finds, out of those in `live`."""
    found = 0
    for query in queries:
        hits = await search_hits(store, namespace, vector=query, candidates=candidates, **filter_fields)
        found += count_found(hits, live, query, candidates)
    return Recall(found, len(queries) * min(candidates, len(live)))


async def found_by_vector(store: Store, query: Sequence[float] | Vector, namespace: str = NS) -> set[str]:
    """Return the ids of all items that an unlimited search finds: those with a vector."""
    return set(await search_hits(store, namespace, vector=query, candidates=PLENTY))
