"""The bytes of a namespace, which every store reports, with and without a limit on them."""

from __future__ import annotations

from contract.builders import EVERYTHING, NOW, NS, PLENTY, build_state, build_write
from contract.test_bytes import fill
from memory_service.operations import RemoveItem
from memory_service.records.content_bytes import item_bytes, state_bytes
from memory_service.store import Store


async def test_bytes_are_reported_without_a_limit(store: Store) -> None:
    assert await store.namespace_bytes(NS) == 0
    await fill(store)
    counts = [await counted(store)]
    await store.add_items("other", [build_write("x")])
    await store.replace_item(NS, build_write("bare", "the longest of all that it has ever been"))
    counts.append(await counted(store))
    await store.save_state(NS, build_state("k é", "another"))
    counts.append(await counted(store))
    await store.write(NS, [RemoveItem("é text", NOW)])
    counts.append(await counted(store))
    await store.reset(NS)
    counts.append(await counted(store))
    assert counts[-1] == 0 and len(set(counts)) == len(counts)


async def counted(store: Store) -> int:
    """Check the bytes that a store reports against its contents, and return them."""
    reading = await store.read(NS)
    positions = await reading.scan(EVERYTHING, PLENTY, newest=False)
    items = [item for item in await reading.load_items(positions) if item is not None]
    states = await store.scan_states(NS, "", PLENTY, now_us=NOW)
    count = sum(map(item_bytes, items)) + sum(map(state_bytes, states))
    assert await store.namespace_bytes(NS) == count
    return count
