"""Recall: search by vector against an exact computation, whatever was written before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from contract.builders import NOW, NS, SECOND, Recall, build_write, found_by_vector, random_vectors, recall
from memory_service.data_model import OnDuplicate, Vector
from memory_service.store import Store


@dataclass
class Mirror:
    """A store, and the vectors that it must be able to find."""

    store: Store
    live: dict[str, Vector] = field(default_factory=dict)

    async def put(self, vectors: Iterable[tuple[str, Vector]], **fields: Any) -> None:
        """Add items or replace them, in one batch."""
        pairs = list(vectors)
        writes = [build_write(name, "kiwi", vector, **fields) for name, vector in pairs]
        await self.store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
        self.live.update(pairs)

    async def delete(self, item_id: str) -> None:
        """Delete an item."""
        await self.store.delete_item(NS, item_id, now_us=NOW)
        del self.live[item_id]

    async def recall(self, queries: int = 20, candidates: int = 10) -> Recall:
        """Return the recall of random queries."""
        dimension = len(next(iter(self.live.values()))) if self.live else 16
        return await recall(self.store, self.live, random_vectors(queries, dimension, stream=9), candidates)


def _named(vectors: np.ndarray[Any, Any], first: int = 0) -> Iterator[tuple[str, Vector]]:
    return ((f"i{first + n}", vector) for n, vector in enumerate(vectors))


@pytest.mark.parametrize("dimension", [1, 2, 16, 256])
async def test_search_is_as_good_as_exact(store: Store, dimension: int) -> None:
    mirror = Mirror(store)
    for first in range(0, 300, 30):
        await mirror.put(_named(random_vectors(30, dimension, stream=first), first))
    # While the graph grows, and when it is done.
    assert (await mirror.recall(20)).is_as_promised
    await store.flush()
    for candidates in (5, 10, 50):
        assert (await mirror.recall(40, candidates)).is_as_promised


async def test_search_is_as_good_after_random_writes(store: Store) -> None:
    mirror, rng = Mirror(store), np.random.default_rng(7)
    vectors = iter(random_vectors(2000))
    for step in range(60):
        names = [f"i{rng.integers(0, 250)}" for _ in range(rng.integers(1, 12))]
        if rng.random() < 0.6:
            await mirror.put((name, next(vectors)) for name in dict.fromkeys(names))
        else:
            for name in set(names) & set(mirror.live):
                await mirror.delete(name)
        if step % 25 == 13:
            await store.flush()
        if step % 6 == 5:
            assert (await mirror.recall(10)).is_as_promised
    assert (await mirror.recall(60)).is_as_promised
    assert await found_by_vector(store, random_vectors(1)[0]) == set(mirror.live)


async def test_search_is_as_good_when_most_is_deleted(store: Store) -> None:
    # A graph whose nodes are nearly all deleted must still be walked to the few that live.
    mirror = Mirror(store)
    await mirror.put(_named(random_vectors(400)))
    await store.flush()
    for n in range(400):
        if n % 40:
            await mirror.delete(f"i{n}")
    assert (await mirror.recall(20, 5)).is_as_promised
    await store.flush()
    await mirror.put(_named(random_vectors(30, stream=1), first=1000))
    assert (await mirror.recall(20, 40)).is_as_promised


async def test_search_is_as_good_when_everything_was_replaced(store: Store) -> None:
    mirror = Mirror(store)
    for stream in range(4):
        await mirror.put(_named(random_vectors(120, stream=stream)))
        await store.flush()
    assert (await mirror.recall()).is_as_promised


async def test_equal_vectors_are_all_found(store: Store) -> None:
    # The same short message, over and over, is what agents write; graphs fall apart on it.
    mirror = Mirror(store)
    same, others = random_vectors(1)[0], random_vectors(40, stream=1)
    for first in range(0, 120, 40):
        await mirror.put(_named(np.repeat(same[None], 40, axis=0), first))
    await mirror.put(_named(others, first=500))
    await store.flush()
    assert (await recall(store, mirror.live, [same], 120)).is_as_promised
    assert (await recall(store, mirror.live, others, 1)).is_as_promised


async def test_vectors_that_come_back_are_found(store: Store) -> None:
    # Two items that change between two looks leave ever more dead twins of what they are now.
    mirror = Mirror(store)
    arc = np.array([[-1.0, -0.2 - 0.05 * n] for n in range(40)], np.float32)
    looks = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    await mirror.put(_named(arc))
    total = Recall(0, 0)
    for n in range(80):
        await mirror.put((name, looks[n % 2]) for name in ("a", "b"))
        if n % 4 == 3:
            await store.flush()
        total += await recall(store, mirror.live, [looks[n % 2]], 2)
    assert total.is_as_promised


async def test_clustered_vectors_are_found(store: Store) -> None:
    # Topics: tight groups far from each other, written one after the other.
    mirror = Mirror(store)
    centres = random_vectors(12, stream=3)
    for n, centre in enumerate(centres):
        spread = 0.01 * np.linalg.norm(centre)
        await mirror.put(_named(centre + spread * random_vectors(30, stream=n), first=100 * n))
    await store.flush()
    assert (await recall(store, mirror.live, centres, 10)).is_as_promised


async def test_items_without_vectors_are_never_in_the_way(store: Store) -> None:
    mirror = Mirror(store)
    for start in range(0, 100, 10):
        await mirror.put(_named(random_vectors(10, stream=start), first=start))
        await store.add_items(NS, [build_write(f"plain{start}-{n}", "kiwi") for n in range(10)])
    for n in range(0, 100, 5):
        await store.replace_item(NS, build_write(f"i{n}", "kiwi"))
        del mirror.live[f"i{n}"]
    await store.flush()
    assert (await mirror.recall(20, 90)).is_as_promised
    assert await found_by_vector(store, random_vectors(1)[0]) == set(mirror.live)


async def test_selective_filters_find_all_that_match(store: Store) -> None:
    """Filters that leave one item in two, in fifty and in a thousand of a namespace."""
    mirror = Mirror(store)
    shares = {"two": 2, "fifty": 50, "thousand": 1000}
    vectors = random_vectors(3000)
    for start in range(0, 3000, 500):
        writes = [
            build_write(f"i{n}", "", vectors[n], labels={k: str(n % share) for k, share in shares.items()})
            for n in range(start, start + 500)
        ]
        await store.add_items(NS, writes)
    mirror.live.update(_named(vectors))
    await store.flush()
    queries = random_vectors(4, stream=9)
    for label, share in shares.items():
        matching = {name: vector for name, vector in mirror.live.items() if int(name[1:]) % share == 1}
        found = await recall(store, matching, queries, 10, labels=((label, "1"),))
        assert found.is_as_promised, f"one in {label}"
    assert await recall(store, {}, queries, 10, labels=(("two", "none"),)) == Recall(0, 0)


async def test_a_filter_far_from_the_query_finds_what_matches(store: Store) -> None:
    # All that is near is of another session: a search that filters its best few finds nothing.
    near, far = [1.0, 0.0, 0.0], [-1.0, 0.1, 0.0]
    mirror = Mirror(store)
    await mirror.put(_named(near + 0.01 * random_vectors(300, 3)), session_id="near")
    await mirror.put(_named(far + 0.01 * random_vectors(20, 3, stream=1), first=1000), session_id="far")
    await store.flush()
    matching = {name: vector for name, vector in mirror.live.items() if int(name[1:]) >= 1000}
    query = np.array(near, np.float32)
    assert (await recall(store, matching, [query], 10, session_id="far")).is_as_promised


async def test_expired_vectors_hide_none_that_live(store: Store) -> None:
    mirror, expiring = Mirror(store), random_vectors(200, stream=1)
    writes = [
        build_write(f"gone{n}", "", vector, expire_us=NOW + SECOND) for n, vector in enumerate(expiring)
    ]
    await store.add_items(NS, writes)
    await mirror.put(_named(random_vectors(50)), expire_us=NOW + 2 * SECOND)
    await store.flush()
    queries = random_vectors(10, stream=9)
    assert (await recall(store, mirror.live, queries, 10, now_us=NOW + SECOND)).is_as_promised
    await store.remove_expired(NOW + SECOND, 0, 1000)
    assert (await mirror.recall()).is_as_promised
