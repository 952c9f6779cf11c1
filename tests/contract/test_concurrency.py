"""Many calls at once, some of them cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contract.builders import (
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    axis_vector,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
    recall,
    scan_ids,
    search_hits,
    words_found,
)
from contract.cases import StoreCase
from contract.invariants import assert_consistent
from memory_service.data_model import OnDuplicate, Receipt, SearchQuery
from memory_service.errors import AlreadyExists, Conflict, NotFound
from memory_service.store import Store


async def test_items_added_at_once_are_all_there_each_at_its_own_revision(store: Store) -> None:
    vectors = random_vectors(50)
    receipts = await asyncio.gather(
        *(store.add_items(NS, [build_write(f"i{n}", f"kiwi w{n}", vectors[n])]) for n in range(50))
    )
    stamps = [stamp for receipt in receipts for stamp in receipt.items]
    assert {stamp.id for stamp in stamps} == {f"i{n}" for n in range(50)}
    assert len({stamp.revision for stamp in stamps}) == 50
    by_revision = sorted(stamps, key=lambda stamp: stamp.revision)
    assert await scan_ids(store) == [stamp.id for stamp in by_revision]
    changes = await store.read_changes(NS, 0, PLENTY)
    assert [(c.revision, c.subject) for c in changes] == [(stamp.revision, stamp.id) for stamp in by_revision]
    assert len(await words_found(store, "kiwi")) == 50
    live = {f"i{n}": vectors[n] for n in range(50)}
    assert await found_by_vector(store, vectors[0]) == set(live)
    assert (await recall(store, live, random_vectors(10, stream=1))).is_as_promised


async def test_batches_written_at_once_are_not_mixed(store: Store) -> None:
    await asyncio.gather(
        *(store.add_items(NS, [build_write(f"{b}-{n}") for n in range(10)]) for b in range(12))
    )
    ids = await scan_ids(store)
    assert len(ids) == 120
    for start in range(0, 120, 10):
        batch = ids[start].split("-")[0]
        assert ids[start : start + 10] == [f"{batch}-{n}" for n in range(10)]


async def test_of_many_writers_of_one_id_one_adds_it(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.add_items(NS, [build_write("a", f"w{n}")]) for n in range(20)), return_exceptions=True
    )
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Receipt)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 19
    assert await words_found(store, f"w{winners[0]}") == {"a"}
    assert await scan_ids(store) == ["a"]


async def test_of_many_replacements_of_one_revision_one_wins(store: Store) -> None:
    revision = (await store.add_items(NS, [build_write("a", "old")])).revision
    outcomes = await asyncio.gather(
        *(
            store.replace_item(NS, build_write("a", f"w{n}", axis_vector(n % 4)), expected_revision=revision)
            for n in range(20)
        ),
        return_exceptions=True,
    )
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Receipt)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    assert await words_found(store, f"w{winners[0]}") == {"a"}
    hits = await search_hits(store, vector=axis_vector(winners[0] % 4))
    assert hits["a"].vector_score == pytest.approx(1)


async def test_of_many_deletions_one_deletes(store: Store) -> None:
    await store.add_items(NS, [build_write("a")])
    outcomes = await asyncio.gather(
        *(store.delete_item(NS, "a", now_us=NOW) for _ in range(10)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Receipt) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, NotFound) for outcome in outcomes) == 9
    assert len(await store.read_changes(NS, 0, PLENTY)) == 2


async def test_a_failing_write_does_not_pull_others_down(store: Store) -> None:
    # Writes that are committed together must still fail individually.
    await store.add_items(NS, [build_write("taken", "", axis_vector(0))])
    writes: list[Any] = []
    for n in range(20):
        writes.append(store.add_items(NS, [build_write(f"i{n}", "", axis_vector(1))]))
        writes.append(store.add_items(NS, [build_write(f"j{n}"), build_write("taken")]))
        writes.append(store.add_items("other", [build_write(f"i{n}")]))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(outcome, Receipt) for outcome in outcomes] == [True, False, True] * 20
    assert set(await scan_ids(store)) == {"taken", *(f"i{n}" for n in range(20))}
    assert len(await scan_ids(store, "other")) == 20


async def test_a_reader_sees_whole_batches_and_no_gaps(store: Store) -> None:
    seen: list[list[str]] = []
    ended = asyncio.Event()

    async def read_on() -> None:
        while not ended.is_set():
            changes = await store.read_changes(NS, 0, PLENTY)
            seen.append([change.subject for change in changes])
            # A store may answer without yielding to other tasks.
            await asyncio.sleep(0)

    reader = asyncio.create_task(read_on())
    await asyncio.gather(
        *(store.add_items(NS, [build_write(f"{b}-{n}") for n in range(5)]) for b in range(25))
    )
    ended.set()
    await reader
    final = [change.subject for change in await store.read_changes(NS, 0, PLENTY)]
    for subjects in seen:
        assert subjects == final[: len(subjects)]
        assert len(subjects) % 5 == 0


async def test_reads_and_writes_of_every_kind_at_once(store: Store) -> None:
    """This looks for errors and for the state at the end, not for one outcome of a race."""
    vectors = random_vectors(80)

    async def write(n: int) -> None:
        name = f"i{n}"
        await store.add_items(NS, [build_write(name, f"kiwi {name}", vectors[n])])
        await store.replace_item(NS, build_write(name, f"plum {name}", vectors[-n]))
        await store.save_state(NS, build_state(name))
        if n % 4 == 0:
            await store.delete_item(NS, name, now_us=NOW)
            await store.delete_state(NS, name, now_us=NOW)

    async def read(n: int) -> None:
        await (await store.read(NS)).search(SearchQuery(EVERYTHING, 5, vectors[n], "plum"))
        await scan_ids(store)
        await store.scan_states(NS, "", 10, now_us=NOW)
        await store.index_info(NS)
        await store.flush()

    await asyncio.gather(*(write(n) for n in range(40)), *(read(n) for n in range(8)))
    kept = {f"i{n}" for n in range(40) if n % 4}
    assert set(await scan_ids(store)) == kept == await words_found(store, "plum")
    assert await words_found(store, "kiwi") == set()
    live = {f"i{n}": vectors[-n] for n in range(40) if n % 4}
    assert await found_by_vector(store, vectors[0]) == set(live)
    assert (await recall(store, live, random_vectors(10, stream=1))).is_as_promised
    assert {entry.key for entry in await store.scan_states(NS, "", PLENTY, now_us=NOW)} == kept
    await assert_consistent(store)


async def test_flushing_beside_writers_harms_neither(store: Store) -> None:
    vectors = random_vectors(120)

    async def write(first: int) -> None:
        for n in range(first, first + 20):
            await store.add_items(NS, [build_write(f"i{n}", "kiwi", vectors[n])])

    async def flush() -> None:
        for _ in range(10):
            await store.flush()

    await asyncio.gather(*(write(first) for first in range(0, 120, 20)), flush(), flush())
    assert len(await words_found(store, "kiwi")) == 120
    await assert_consistent(store)


async def test_ends_and_beginnings_of_a_namespace_at_once(store: Store) -> None:
    writes: list[Any] = []
    for n in range(6):
        writes += [
            store.add_items(NS, [build_write(f"a{n}", "kiwi", axis_vector(0)), build_write(f"b{n}", "kiwi")]),
            store.save_state(NS, build_state(f"k{n}")),
            store.reset(NS) if n % 3 else store.delete_namespace(NS),
            store.add_items(NS, [build_write(f"c{n}", "kiwi", axis_vector(1))]),
            search_hits(store, vector=axis_vector(0), text="kiwi"),
        ]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert all(not isinstance(outcome, Exception) for outcome in outcomes[::5] + outcomes[3::5])
    await assert_consistent(store)
    ids = set(await scan_ids(store))
    assert await words_found(store, "kiwi") == ids
    embedded = {item_id for item_id in ids if item_id[0] in "ac"}
    assert set(await search_hits(store, vector=axis_vector(0), candidates=PLENTY)) == embedded


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 9])
async def test_a_cancelled_write_is_applied_whole_or_not_at_all(
    store: Store, case: StoreCase, turns: int
) -> None:
    if case.servers > 1:
        pytest.skip("one server knows nothing of what another one has under way")
    await store.add_items(NS, [build_write("first", "", axis_vector(0))])
    batch = [build_write(f"i{n}", "kiwi", axis_vector(n % 4)) for n in range(30)]
    task = asyncio.create_task(store.add_items(NS, batch))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    # A later write returns only after all calls under way.
    await store.add_items(NS, [build_write("last", "", axis_vector(0))])
    ids = await scan_ids(store)
    applied = "i0" in ids
    assert applied or not isinstance(outcome, Receipt)
    assert ids == ["first", *([f"i{n}" for n in range(30)] if applied else []), "last"]
    assert len(await words_found(store, "kiwi")) == (30 if applied else 0)
    assert len(await search_hits(store, vector=axis_vector(0), candidates=PLENTY)) == len(ids)
    await assert_consistent(store)


async def test_one_cancelled_of_many_writes_leaves_the_others(store: Store) -> None:
    tasks = [asyncio.create_task(store.add_items(NS, [build_write(f"i{n}", "kiwi")])) for n in range(30)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    acknowledged = {f"i{n}" for n, outcome in enumerate(outcomes) if isinstance(outcome, Receipt)}
    assert acknowledged >= {f"i{n}" for n in range(30) if n % 3}
    await store.add_items(NS, [build_write("last")])
    ids = set(await scan_ids(store))
    assert acknowledged <= ids
    await assert_consistent(store)
    assert await words_found(store, "kiwi") == ids - {"last"}


async def test_a_cancelled_search_harms_no_other(store: Store) -> None:
    vectors = random_vectors(60)
    await store.add_items(NS, [build_write(f"i{n}", "kiwi", vectors[n]) for n in range(60)])
    tasks = [asyncio.create_task(search_hits(store, vector=vectors[n], candidates=1)) for n in range(12)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [set(outcome) for outcome in outcomes[1::2] if not isinstance(outcome, BaseException)] == [
        {f"i{n}"} for n in range(1, 12, 2)
    ]
    assert set(await search_hits(store, vector=vectors[0], candidates=1)) == {"i0"}


async def test_a_retry_after_cancellation_adds_what_is_missing(store: Store) -> None:
    batch = [build_write(f"i{n}") for n in range(10)]
    task = asyncio.create_task(store.add_items(NS, batch))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    again = [build_write(f"i{n}") for n in range(10)]
    receipt = await store.add_items(NS, again, on_duplicate=OnDuplicate.SKIP)
    assert len(receipt.items) + receipt.skipped_count == 10
    assert await scan_ids(store) == [f"i{n}" for n in range(10)]
