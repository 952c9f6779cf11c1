"""Setting an expiry on others' writes removes them: an undo of the writer's changes reports that."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest

from contract.builders import NOW, NS, SECOND, build_state, build_write, get_item, scan_ids
from contract.conftest import Reopen, Stores
from contract.invariants import assert_consistent
from memory_service.data_model import OnDuplicate, Provenance, WritesBy
from memory_service.records.base import HISTORY_US
from memory_service.store import Store

ADA = Provenance("ada", "key-1")
MALLORY = Provenance("mallory", "key-2")
BOB = Provenance("bob", "key-3")


async def _put(
    store: Store, name: str, who: Provenance | None, at: int, end: int | None = None, text: str = "kiwi"
) -> None:
    """Write an item and a state of this name at `at` seconds after NOW that expire at `end` seconds."""
    fields: dict[str, Any] = {"expire_us": None if end is None else NOW + end * SECOND, "provenance": who}
    write = build_write(name, text, update_us=NOW + at * SECOND, **fields)
    await store.add_items(NS, [write], on_duplicate=OnDuplicate.REPLACE)
    await store.save_state(NS, build_state(name, text, NOW + at * SECOND, **fields))


async def _sweep(store: Store, at: int) -> int:
    return await store.remove_expired(NOW + at * SECOND, 0, 100)


async def _told(store: Store, who: Provenance, since: int = 0) -> int:
    """Return how many expired writes an undo reports as the writer's. It changes nothing."""
    return await store.count_removals(NS, WritesBy(NOW + since * SECOND, who.writer))


async def _bring_back(store: Store, who: Provenance) -> None:
    """Undo the writer's changes: one item and one state get their previous version back."""
    by = WritesBy(NOW, who.writer)
    assert (await store.undo_items(NS, by, 0, 9, dry_run=False)).restored_count == 1
    assert (await store.undo_states(NS, by, "", 9, dry_run=False)).restored_count == 1


async def _told_of_anybody(store: Store) -> int:
    return await store.count_removals(NS, WritesBy(0))


@pytest.mark.parametrize("end", [None, 50], ids=["that had no end", "that had a later end"])
async def test_who_cuts_short_what_another_wrote_is_told_of(store: Store, end: int | None) -> None:
    await _put(store, "a", ADA, 1, end)
    await _put(store, "a", MALLORY, 5, 10)
    assert await _sweep(store, 9) == 0 and await _told_of_anybody(store) == 0
    assert await _sweep(store, 10) == 2
    assert await _told(store, MALLORY) == await _told_of_anybody(store) == 2
    assert await _told(store, ADA) == 0
    # It is reported once, and nothing of it remains.
    assert await _sweep(store, 11) == 0 and await _told(store, MALLORY) == 2
    assert await scan_ids(store) == [] and await store.load_states(NS, ["a"]) == {}
    await assert_consistent(store)


async def test_only_by_who_wrote_the_end_and_when(store: Store) -> None:
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 5, 10)
    await _sweep(store, 10)
    assert [await _told(store, MALLORY, since) for since in (5, 6)] == [2, 0]
    for writer, credential, count in [
        ("mallory", "key-2", 2), ("mallory", "key-1", 0), (None, "key-2", 2), (None, "key-1", 0),
        ("", None, 0),
    ]:  # fmt: skip
        assert await store.count_removals(NS, WritesBy(NOW, writer, credential)) == count
    assert await store.count_removals("other", WritesBy(NOW)) == 0


async def test_who_has_no_name_is_nobody(store: Store) -> None:
    await _put(store, "a", None, 1)
    await _put(store, "a", None, 5, 10)
    await _sweep(store, 10)
    assert await store.count_removals(NS, WritesBy(NOW, "", "")) == 2
    assert await _told(store, MALLORY) == 0


async def test_what_ends_as_it_was_to_end_is_nobodys_doing(store: Store) -> None:
    await _put(store, "one version", MALLORY, 1, 10)
    await _put(store, "the same end", ADA, 1, 10)
    await _put(store, "the same end", MALLORY, 2, 10)
    await _put(store, "put off", ADA, 1, 8)
    await _put(store, "put off", MALLORY, 2, 9)
    await _put(store, "put off", MALLORY, 3, 10)
    assert await _sweep(store, 10) == 6
    assert await _told_of_anybody(store) == 0


async def test_what_another_writes_over_it_without_an_end_of_its_own_changes_nothing(store: Store) -> None:
    """Changing a label keeps the existing expiry, which still belongs to the writer that set it."""
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 5, 10)
    await _put(store, "a", BOB, 6, 10, text="fig")
    await _sweep(store, 10)
    assert (await _told(store, MALLORY), await _told(store, BOB)) == (2, 0)
    assert [await _told(store, MALLORY, since) for since in (5, 6)] == [2, 0]


async def test_an_end_that_was_taken_back_is_not_told_of(store: Store) -> None:
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 2, 10)
    await _put(store, "a", ADA, 3)
    await _put(store, "a", BOB, 4, 10)
    await _sweep(store, 10)
    assert (await _told(store, MALLORY), await _told(store, BOB)) == (0, 2)


async def test_what_is_written_in_the_place_of_what_expired_hides_nothing(store: Store) -> None:
    """A write before the sweep replaces the expired version and starts a new history."""
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 5, 10)
    await _put(store, "a", MALLORY, 11)
    assert await _told(store, MALLORY) == 2
    await _put(store, "b", MALLORY, 5, 10)
    await _put(store, "b", MALLORY, 11)
    assert await _told_of_anybody(store) == 2
    await assert_consistent(store)


async def test_an_end_in_an_import_that_keeps_an_older_time_is_of_that_time(store: Store) -> None:
    await _put(store, "a", ADA, -5)
    await _put(store, "a", Provenance("mallory", write_us=NOW - 3 * SECOND), 5, 10)
    await _sweep(store, 10)
    assert (await _told(store, MALLORY), await _told(store, MALLORY, -3)) == (0, 2)


async def test_an_undo_in_time_brings_back_what_does_not_end(store: Store) -> None:
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 5, 10)
    await _bring_back(store, MALLORY)
    assert await _sweep(store, 10) == 0 and await _told_of_anybody(store) == 0
    assert (await get_item(store, "a")).expire_us is None


async def test_an_undo_brings_it_back_after_the_clock_was_set_back(store: Store) -> None:
    """The current version expires before the previous one was written, and is live nevertheless."""
    await _put(store, "a", ADA, 100)
    await _put(store, "a", MALLORY, 50, 70)
    await _bring_back(store, MALLORY)
    assert (await get_item(store, "a")).expire_us is None
    state = (await store.load_states(NS, ["a"]))["a"]
    assert (state.version, state.create_us, state.expire_us) == (3, NOW + 100 * SECOND, None)
    assert await _told_of_anybody(store) == 0
    await assert_consistent(store)


async def test_it_is_told_of_as_long_as_other_writes_of_that_time(store: Store) -> None:
    kept_s = HISTORY_US // SECOND
    for name, end in (("soon", kept_s), ("late", kept_s + 9)):
        await _put(store, name, ADA, 1)
        await _put(store, name, MALLORY, 5, end)
    await _sweep(store, kept_s + 5)
    assert await _told(store, MALLORY) == 2
    # Their previous versions are now forgotten, and an undo could not restore them either.
    assert await _sweep(store, kept_s + 9) == 2
    assert await _told(store, MALLORY) == 0


@pytest.mark.parametrize("forget", ["reset", "namespace"])
async def test_it_goes_with_what_is_forgotten_as_a_whole(store: Store, forget: str) -> None:
    await _put(store, "a", ADA, 1)
    await _put(store, "a", MALLORY, 5, 10)
    await _sweep(store, 10)
    assert await _told(store, MALLORY) == 2
    await (store.reset(NS) if forget == "reset" else store.delete_namespace(NS))
    assert await _told_of_anybody(store) == 0


async def test_it_is_told_of_after_a_restart_and_nothing_else_is_kept(
    stores: Stores, file_store: Store, reopen: Reopen
) -> None:
    await _put(file_store, "a", ADA, 1, text="secret")
    await _put(file_store, "a", MALLORY, 5, 10, text="secret")
    await _sweep(file_store, 10)
    store = await reopen()
    assert await _told(store, MALLORY) == 2
    await stores.close()
    with contextlib.closing(sqlite3.connect(stores.data_dir / "records.db")) as database:
        for table in ("items", "item_history", "states", "state_history"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert "secret" not in "".join(map(str, database.execute("SELECT * FROM removals")))
