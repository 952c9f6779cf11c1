"""A namespace is deleted and created again during a read, which must not return the new contents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from contract.builders import build_state, build_write
from contract.cases import STORES, StoreCase
from memory_service.domain.change_feed import ChangeFeed, Event
from memory_service.domain.checks import Checks
from memory_service.errors import NotFound
from memory_service.limits import Limits
from memory_service.store import Store

NS = "ns"
# Items, and as many states: more than a reader loads at once.
COUNT = 20


@pytest.fixture(
    params=[case for case in STORES if case.name in ("memory", "hnsw")], ids=lambda case: case.name
)
async def store(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Store]:
    """Each store in turn, with items and states of the old namespace."""
    case: StoreCase = request.param
    store = case.make(tmp_path)
    await store.open()
    await fill(store, COUNT)
    yield store
    await store.close()


async def fill(store: Store, count: int) -> None:
    """Write items and states; those of every namespace have the same ids at the same revisions."""
    writes = [build_write(f"i{number}") for number in range(count)]
    states = [build_state(f"k{number}") for number in range(count)]
    await store.add_items(NS, writes, states=states)


def replace_during(store: Store, method: str, at: int, count: int) -> None:
    """Delete the namespace and create it again with `count` items before the `at`th call of a method."""
    read, asked = getattr(store, method), 0

    async def replaced(*args: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == at:
            await store.delete_namespace(NS)
            if count:
                await fill(store, count)
        return await read(*args, **options)

    setattr(store, method, replaced)


READERS: dict[str, Callable[[ChangeFeed], AsyncIterator[Event]]] = {
    "watch": lambda feed: feed.watch(NS, 0, 60),
    "export": lambda feed: feed.export(NS, 0, include_embedding=False),
    "export of vectors": lambda feed: feed.export(NS, 0, include_embedding=True),
}


@pytest.mark.parametrize("count", [0, 1, 300], ids=["nothing", "fewer", "more"])
@pytest.mark.parametrize(
    ("reader", "method", "at", "told"),
    [
        ("watch", "read_changes", 1, 0),
        ("watch", "get_items", 2, 16),
        ("watch", "load_states", 1, 16),
        ("watch", "read_changes", 2, 2 * COUNT),
        ("export", "read_changes", 1, 0),
        ("export", "get_items", 2, 16),
        ("export", "load_states", 1, 16),
        ("export of vectors", "read", 1, 0),
        ("export of vectors", "read", 5, 4),
    ],
)
async def test_a_reader_is_told_that_its_namespace_is_gone_and_nothing_of_the_next(
    store: Store, reader: str, method: str, at: int, told: int, count: int
) -> None:
    replace_during(store, method, at, count)
    events = READERS[reader](ChangeFeed(store, Checks(Limits())))
    seen: list[int] = []
    with pytest.raises(NotFound) as caught:
        async for event in events:
            if event.item is not None or event.state is not None:
                seen.append(event.revision)
    assert caught.value.reason == "NAMESPACE_NOT_FOUND"
    assert seen == list(range(1, told + 1))
