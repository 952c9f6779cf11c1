"""Scan: which items match, in which order, and how many."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.builders import EVERYTHING, NOW, NS, SECOND, build_write, scan_ids
from contract.conftest import Reopen
from memory_service.data_model import Facet, ItemFilter, ItemKind
from memory_service.store import Store

SEPARATORS = ["=", ":", ",", ";", "/", "|", "\x1f", "\x00", "\n", '"', "'", "%", "\\"]


async def _add_numbered(store: Store, count: int, **fields: Any) -> list[int]:
    receipt = await store.add_items(NS, [build_write(f"i{n}", **fields) for n in range(count)])
    return [stamp.position for stamp in receipt.items]


async def test_a_namespace_that_does_not_exist_is_empty(store: Store) -> None:
    assert await (await store.read(NS)).scan(EVERYTHING, -1, newest=True) == []
    assert await store.namespace(NS) is None


@pytest.mark.parametrize("newest", [False, True])
async def test_a_limit_takes_from_the_end_that_is_asked_for_in_ascending_order(
    store: Store, newest: bool
) -> None:
    positions = await _add_numbered(store, 7)
    expected = positions[-3:] if newest else positions[:3]
    assert await (await store.read(NS)).scan(EVERYTHING, 3, newest=newest) == expected


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize(("limit", "count"), [(0, 0), (-1, 7), (-5, 7), (7, 7), (8, 7), (1, 1)])
async def test_limits_at_their_edges(store: Store, limit: int, count: int, newest: bool) -> None:
    await _add_numbered(store, 7)
    assert len(await (await store.read(NS)).scan(EVERYTHING, limit, newest=newest)) == count


@pytest.mark.parametrize("newest", [False, True])
async def test_a_limit_counts_matches_not_what_is_looked_at(store: Store, newest: bool) -> None:
    # The matches are in the middle: a limit applied before the filter would find none.
    names = ["no"] * 5 + ["yes"] * 4 + ["no"] * 5
    receipt = await store.add_items(
        NS, [build_write(f"i{n}", session_id=name) for n, name in enumerate(names)]
    )
    matching = [stamp.position for stamp in receipt.items[5:9]]
    item_filter = ItemFilter(now_us=NOW, session_id="yes")
    expected = matching[-2:] if newest else matching[:2]
    assert await (await store.read(NS)).scan(item_filter, 2, newest=newest) == expected


async def test_sessions_match_exactly(store: Store) -> None:
    sessions = ["", "s", "S", "s1", "s%", "%"]
    await store.add_items(NS, [build_write(f"i{n}", session_id=name) for n, name in enumerate(sessions)])
    assert await scan_ids(store, session_id="s") == ["i1"]
    assert await scan_ids(store, session_id="%") == ["i5"]
    assert await scan_ids(store, session_id="none") == []
    assert len(await scan_ids(store, session_id="")) == len(sessions)


async def test_labels_must_all_match(store: Store) -> None:
    await store.add_items(
        NS,
        [
            build_write("both", labels={"topic": "travel", "mood": "good"}),
            build_write("one", labels={"topic": "travel"}),
            build_write("other value", labels={"topic": "travels", "mood": "good"}),
            build_write("swapped", labels={"travel": "topic", "good": "mood"}),
            build_write("none"),
        ],
    )
    assert await scan_ids(store, labels=(("topic", "travel"),)) == ["both", "one"]
    assert await scan_ids(store, labels=(("mood", "good"), ("topic", "travel"))) == ["both"]
    assert await scan_ids(store, labels=(("topic", "travel"), ("topic", "travels"))) == []
    assert await scan_ids(store, labels=(("topic", ""),)) == []


@pytest.mark.parametrize("separator", SEPARATORS, ids=repr)
async def test_labels_are_not_mixed_up_by_separators(store: Store, separator: str) -> None:
    await store.add_items(
        NS,
        [
            build_write("early", labels={"k": f"a{separator}b"}),
            build_write("late", labels={f"k{separator}a": "b"}),
        ],
    )
    assert await scan_ids(store, labels=(("k", f"a{separator}b"),)) == ["early"]
    assert await scan_ids(store, labels=((f"k{separator}a", "b"),)) == ["late"]


async def test_times_are_half_open_and_of_creation(store: Store) -> None:
    # Positions run against time, and all were updated at the same moment.
    writes = [build_write(f"t{n}", create_us=NOW + n, update_us=NOW + 100) for n in (3, 2, 1, 0)]
    await store.add_items(NS, writes)
    assert await scan_ids(store, start_us=NOW + 1) == ["t3", "t2", "t1"]
    assert await scan_ids(store, end_us=NOW + 1) == ["t0"]
    assert await scan_ids(store, start_us=NOW + 1, end_us=NOW + 3) == ["t2", "t1"]
    assert await scan_ids(store, start_us=NOW + 2, end_us=NOW + 2) == []
    assert await scan_ids(store, start_us=NOW + 3, end_us=NOW + 1) == []


async def test_times_before_the_epoch_are_times(store: Store) -> None:
    await store.add_items(NS, [build_write("old", create_us=-SECOND), build_write("zero", create_us=0)])
    assert await scan_ids(store, end_us=0) == ["old"]
    assert await scan_ids(store, start_us=0) == ["zero"]
    assert await scan_ids(store, start_us=-SECOND, end_us=0) == ["old"]


async def test_positions_are_bounded_at_both_ends(store: Store) -> None:
    positions = await _add_numbered(store, 5)
    assert await scan_ids(store, min_position=positions[3]) == ["i3", "i4"]
    assert await scan_ids(store, max_position=positions[1]) == ["i0", "i1"]
    assert await scan_ids(store, min_position=positions[1], max_position=positions[3]) == ["i1", "i2", "i3"]
    assert await scan_ids(store, min_position=positions[4] + 1) == []
    assert await scan_ids(store, max_position=0) == []


async def test_conditions_hold_together(store: Store) -> None:
    positions = await _add_numbered(store, 6, session_id="s", labels={"k": "v"})
    await store.add_items(NS, [build_write("other session", session_id="t", labels={"k": "v"})])
    await store.add_items(NS, [build_write("other label", session_id="s", labels={"k": "w"})])
    await store.add_items(NS, [build_write("late", session_id="s", labels={"k": "v"}, create_us=NOW + 9)])
    found = await scan_ids(
        store, session_id="s", labels=(("k", "v"),), end_us=NOW + 1, min_position=positions[1]
    )
    assert found == ["i1", "i2", "i3", "i4", "i5"]


async def test_expired_items_are_not_there_from_the_moment_on(store: Store) -> None:
    await store.add_items(
        NS,
        [
            build_write("gone", expire_us=NOW, update_us=NOW - SECOND),
            build_write("soon", expire_us=NOW + 1),
            build_write("never"),
        ],
    )
    assert await scan_ids(store) == ["soon", "never"]
    assert await scan_ids(store, now_us=NOW + 1) == ["never"]
    assert await scan_ids(store, now_us=NOW - 1) == ["gone", "soon", "never"]


async def _check_loaded_without_content(store: Store) -> None:
    reading = await store.read(NS)
    bare, missing = await reading.load_items([1, 9], with_content=False)
    (whole,) = await reading.load_items([1])
    assert missing is None and bare is not None and whole is not None
    assert msgspec.structs.replace(bare, content=whole.content) == whole


async def test_items_are_loaded_without_their_contents(store: Store) -> None:
    facet = Facet(ItemKind.FILE, {"file_path": "/a"}, {"path": "/a"})
    await store.add_items(NS, [build_write("a", "text", facet=facet, session_id="s", labels={"k": "v"})])
    await _check_loaded_without_content(store)


async def test_items_are_loaded_from_files_without_their_contents(
    reopen: Reopen, durable_store: Store
) -> None:
    facet = Facet(ItemKind.FILE, {"file_path": "/a"}, {"path": "/a"})
    await durable_store.add_items(NS, [build_write("a", "text", facet=facet, metadata={"k": 1})])
    await _check_loaded_without_content(await reopen())


async def test_expired_items_do_not_count_into_a_limit(store: Store) -> None:
    await store.add_items(NS, [build_write("kept")])
    await store.add_items(NS, [build_write(f"gone{n}", expire_us=NOW + 1) for n in range(5)])
    positions = await (await store.read(NS)).scan(ItemFilter(now_us=NOW + 1), 1, newest=True)
    assert [item and item.id for item in await (await store.read(NS)).load_items(positions)] == ["kept"]


async def test_a_changed_expiry_holds(store: Store) -> None:
    await store.add_items(NS, [build_write("a", expire_us=NOW + 5), build_write("b")])
    await store.replace_item(NS, build_write("a", expire_us=NOW + 50))
    await store.replace_item(NS, build_write("b", expire_us=NOW + 5))
    assert await scan_ids(store, now_us=NOW + 5) == ["a"]
    assert await scan_ids(store, now_us=NOW + 50) == []


async def test_changed_fields_change_what_matches(store: Store) -> None:
    await store.add_items(NS, [build_write("a", session_id="s", labels={"k": "v"}, create_us=NOW)])
    await store.replace_item(NS, build_write("a", session_id="t", labels={"k": "w"}, create_us=NOW + 5))
    assert await scan_ids(store, session_id="s") == []
    assert await scan_ids(store, labels=(("k", "v"),)) == []
    assert await scan_ids(store, end_us=NOW + 1) == []
    assert await scan_ids(store, session_id="t", labels=(("k", "w"),), start_us=NOW + 5) == ["a"]
