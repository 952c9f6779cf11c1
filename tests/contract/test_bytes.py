"""A full namespace accepts nothing more, and its size is counted to the byte."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contract.builders import (
    CONTENTS,
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    SECOND,
    build_item,
    build_pending,
    build_request,
    build_state,
    build_write,
)
from contract.cases import GRAPH
from memory_service.data_model import (
    Facet,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Provenance,
    SourceKind,
    VectorFill,
    WritesBy,
)
from memory_service.errors import LimitExceeded
from memory_service.operations import AddItems, RemoveAt, RemoveItem
from memory_service.records.content_bytes import item_bytes, state_bytes
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.records.sqlite import connection
from memory_service.store import Store
from memory_service.stores import SqliteStore

LIMIT = 200_000
MAKE: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: InMemoryStore(namespace_bytes_max=LIMIT),
    "hnsw": lambda folder: SqliteStore(folder, GRAPH, namespace_bytes_max=LIMIT),
}
MALLORY = Provenance("mallory", "key", SourceKind.WEB, "https://example.com/é")


@pytest.fixture(params=list(MAKE))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = MAKE[request.param](tmp_path / "data")
    await store.open()
    yield store
    await store.close()


async def fill(store: Store) -> None:
    """Write something of each kind."""
    items = [
        ItemWrite(
            build_item(
                f"é {name}",
                content=content,
                session_id="sé",
                labels={"é": "漢"},
                metadata={"é": [1.5, None]},
                facet=Facet(ItemKind.USER_MEMORY, {"tag": "é"}, {"a": "漢"}),
                provenance=MALLORY,
                index="é" if name == "text" else None,
            ),
            "",
        )
        for name, content in CONTENTS.items()
    ]
    states = [build_state("k é", {"é": 1}, description="é"), build_state("bare"), build_state("gone")]
    await store.add_items(NS, [*items, build_write("bare", "x")], states=states)


async def check_count(store: Store, namespace: str = NS) -> int:
    """Check the store's count against its contents; return the number of bytes."""
    await store.add_items(namespace, [build_write("filler", "x" * LIMIT)])
    with pytest.raises(LimitExceeded) as refused:
        await store.save_state(namespace, build_state("one more"))
    positions = await (await store.read(namespace)).scan(EVERYTHING, PLENTY, newest=False)
    items = [item for item in await (await store.read(namespace)).load_items(positions) if item is not None]
    states = await store.scan_states(namespace, "", PLENTY, now_us=NOW)
    count = sum(map(item_bytes, items)) + sum(map(state_bytes, states))
    assert refused.value.metadata["actual"] == str(count)
    await store.delete_item(namespace, "filler", now_us=NOW)
    return count - item_bytes(next(item for item in items if item.id == "filler"))


async def test_what_is_written_is_counted_as_it_is_stored(store: Store) -> None:
    await fill(store)
    assert await check_count(store) > 2000
    assert await check_count(store, "empty") == 0


async def test_what_is_replaced_or_removed_counts_no_more(store: Store) -> None:
    await fill(store)
    counts = [await check_count(store)]
    writes = [build_write("bare", "longer than before"), build_write("é text", "shorter")]
    await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
    counts.append(await check_count(store))
    await store.replace_item(NS, build_write("bare", "the longest of all that it has ever been"))
    counts.append(await check_count(store))
    await store.save_state(NS, build_state("k é", "another"))
    counts.append(await check_count(store))
    await store.add_items(NS, [build_write("x", "y")], removals=["é data", "é message"])
    counts.append(await check_count(store))
    await store.delete_state(NS, "gone", now_us=NOW)
    counts.append(await check_count(store))
    await store.clear_states(NS)
    counts.append(await check_count(store))
    await store.reset(NS)
    assert await check_count(store) == 0
    assert len(set(counts)) == len(counts)
    await store.delete_namespace(NS)
    assert await check_count(store) == 0


async def test_what_expires_counts_until_it_is_removed(store: Store) -> None:
    await fill(store)
    before = await check_count(store)
    end = NOW + SECOND
    await store.add_items(NS, [build_write("short-lived", "x" * 100, expire_us=end)])
    await store.save_state(NS, build_state("short-lived", "x" * 100, expire_us=end))
    assert await check_count(store) > before + 200
    await store.remove_expired(end, 0, PLENTY)
    assert await check_count(store) == before


async def test_vectors_and_uses_are_not_counted(store: Store) -> None:
    await store.add_items(NS, [build_pending("p", "x"), build_write("v", "y", [1, 2, 3, 4])])
    before = await check_count(store)
    info = await store.namespace(NS)
    assert info is not None
    (position, _) = await (await store.read(NS)).scan(EVERYTHING, PLENTY, newest=False)
    await store.record_uses(NS, [position])
    pending = await store.pending_items(NS, 0, 10)
    fills = [VectorFill(item.position, item.revision, build_write("", "", [1, 0, 0, 0]).item.embedding)
             for item in pending]  # fmt: skip
    await store.fill_vectors(NS, info.uid, info.model, fills)
    assert await check_count(store) == before


async def test_an_undo_counts_what_comes_back(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "as it was before", provenance=Provenance("ada", "k"))])
    before = await check_count(store)
    late = NOW + SECOND
    bad = [build_write("a", "bad", provenance=MALLORY, update_us=late),
           build_write("b", "worse", provenance=MALLORY, update_us=late)]  # fmt: skip
    await store.add_items(NS, bad, on_duplicate=OnDuplicate.REPLACE)
    await store.undo_items(NS, WritesBy(NOW, "mallory"), 0, 10, dry_run=False)
    restored = (await store.get_items(NS, ["a", "b"]))["a"]
    # It now names the version that it is a copy of.
    original = build_item("a", "as it was before", provenance=Provenance("ada", "k"))
    assert await check_count(store) - before == item_bytes(restored) - item_bytes(original)


async def test_a_full_namespace_can_be_emptied_and_repeats_its_answers(store: Store) -> None:
    request = build_request()
    receipt = await store.add_items(NS, [build_write("big", "x" * LIMIT)], request=request)
    again = await store.add_items(NS, [build_write("big", "x" * LIMIT)], request=request)
    assert (again.replayed, again.items) == (True, receipt.items)
    for write in (
        store.add_items(NS, [build_write("a", "x")]),
        store.replace_item(NS, build_write("big", "smaller")),
        store.save_state(NS, build_state("k")),
    ):
        with pytest.raises(LimitExceeded, match="namespace_bytes_max"):
            await write
    # A write that frees at least as much as it takes is accepted, for merging facts and replacing documents.
    await store.add_items(NS, [build_write("small", "x")], removals=["big"])
    await store.save_state(NS, build_state("k"))


async def test_removals_that_a_caller_names_make_no_room_for_additions(store: Store) -> None:
    """Else a batch could fill a full namespace without end, beside removals of small or missing items."""
    await store.add_items(NS, [build_write("big", "x" * LIMIT), build_write("tiny")])
    for removal in (
        RemoveItem("missing", NOW, allow_missing=True),
        RemoveItem("tiny", NOW),
        RemoveAt([2], 2),
        RemoveAt([99], 2),
    ):
        with pytest.raises(LimitExceeded, match="namespace_bytes_max"):
            await store.write(NS, [removal, AddItems([build_write("more", "x")])])
    await store.write(NS, [RemoveItem("tiny", NOW)])
    await store.write(NS, [RemoveAt([1], 1)])
    await store.write(NS, [AddItems([build_write("more", "x")])])


@pytest.mark.parametrize("in_memory_bytes", [0, 1 << 30])
async def test_a_database_that_was_written_anew_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory_bytes: int
) -> None:
    monkeypatch.setattr(connection, "_REWRITE_IN_MEMORY_BYTES", in_memory_bytes)
    store = MAKE["hnsw"](tmp_path)
    await store.open()
    await fill(store)
    before = await check_count(store)
    await store.flush()
    assert await check_count(store) == before
    await store.close()
    again = MAKE["hnsw"](tmp_path)
    await again.open()
    assert await check_count(again) == before
    await again.close()
