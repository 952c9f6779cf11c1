"""Versions of items and states: listed newest first, and redacted."""

from __future__ import annotations

import pytest

from contract.builders import (
    MODEL,
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    get_item,
    words_found,
)
from contract.invariants import assert_consistent
from memory_service.data_model import (
    Answer,
    ChangeType,
    Item,
    Provenance,
    Receipt,
    RequestKey,
    SourceKind,
    StateEntry,
    WritesBy,
)
from memory_service.errors import FailedPrecondition, NotFound
from memory_service.operations import RenameState, ReplaceItem
from memory_service.records.base import HISTORY_US
from memory_service.records.versions import KeptVersion
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

ADA = Provenance("ada", "key-1", trust=0.9)
MALLORY = Provenance("mallory", "key-2", SourceKind.WEB, "https://example.com/", ("p",), "m", 0.2)
BY_MALLORY = WritesBy(NOW, "mallory")
BOB = Caller("bob", "key-b", ("*",), frozenset())


async def _items(
    store: Store, item_id: str = "a", before: int | None = None, limit: int = PLENTY, at: int = NOW
) -> list[KeptVersion[Item]]:
    return await store.item_versions(NS, item_id, before, limit, now_us=at)


async def _states(
    store: Store, key: str = "k", before: int | None = None, limit: int = PLENTY, at: int = NOW
) -> list[KeptVersion[StateEntry]]:
    return await store.state_versions(NS, key, before, limit, now_us=at)


async def _write(store: Store, text: str, who: Provenance | None, at: int, **fields: object) -> Receipt:
    """Add or replace the item "a", `at` seconds after NOW."""
    write = build_write("a", text, update_us=NOW + at * SECOND, provenance=who, **fields)  # type: ignore[arg-type]
    if await store.get_items(NS, ["a"]):
        return await store.write(NS, [ReplaceItem(write)])
    return await store.add_items(NS, [write])


async def _save(store: Store, value: object, who: Provenance | None, at: int, **fields: object) -> Receipt:
    state = build_state("k", value, NOW + at * SECOND, provenance=who, **fields)  # type: ignore[arg-type]
    return await store.save_state(NS, state)


def _text(version: KeptVersion[Item]) -> str | None:
    return None if version.record is None else version.record.content.text  # type: ignore[union-attr]


async def test_versions_are_listed_newest_first(store: Store) -> None:
    assert await _items(store) == [] and await _states(store) == []
    labels = {"l": "v"}
    await _write(store, "one", ADA, 1, labels=labels, metadata={"m": 1}, vector=axis_vector(0), model=MODEL)
    first = await get_item(store, "a")
    await store.save_state(NS, build_state("k", "other"))
    await _write(store, "two", MALLORY, 2)
    await _write(store, "three", None, 3)
    found = await _items(store)
    assert [_text(version) for version in found] == ["three", "two", "one"]
    assert [version.revision for version in found] == [4, 3, 1]
    assert [version.time_us for version in found] == [NOW + at * SECOND for at in (3, 2, 1)]
    assert [version.provenance for version in found] == [None, MALLORY, ADA]
    assert [version.current for version in found] == [True, False, False]
    assert not any(version.removal for version in found)
    kept = found[-1].record
    assert kept is not None and (kept.labels, kept.metadata) == (labels, {"m": 1})
    assert (kept.id, kept.position, kept.create_us) == (first.id, first.position, first.create_us)


async def test_versions_of_a_state_are_listed_newest_first(store: Store) -> None:
    await _save(store, 1, ADA, 1, description="why")
    await store.add_items(NS, [build_write("a")])
    await _save(store, [2], MALLORY, 2)
    found = await _states(store)
    assert [version.record.value_json for version in found if version.record] == [b"[2]", b"1"]
    assert [(version.revision, version.number) for version in found] == [(3, 2), (1, 1)]
    assert [version.provenance for version in found] == [MALLORY, ADA]
    assert [version.current for version in found] == [True, False]
    kept = found[-1].record
    assert kept is not None
    assert (kept.key, kept.description, kept.version, kept.revision) == ("k", "why", 1, 1)


async def test_versions_are_read_page_by_page(store: Store) -> None:
    for at in range(5):
        await _write(store, f"{at}", None, at)
    for at in range(5):
        await _save(store, at, None, at)
    for read, texts in ((_items, [5, 4, 3, 2, 1]), (_states, [10, 9, 8, 7, 6])):
        assert [version.revision for version in await read(store)] == texts
        assert [version.revision for version in await read(store, limit=2)] == texts[:2]
        assert [version.revision for version in await read(store, before=texts[1], limit=2)] == texts[2:4]
        assert await read(store, before=texts[-1]) == []


async def test_a_removal_is_listed_without_what_was_removed(store: Store) -> None:
    before = now_us()
    await _write(store, "one", ADA, 1)
    await _write(store, "two", ADA, 2)
    await store.delete_item(NS, "a", now_us=NOW, by=BOB)
    await _write(store, "again", ADA, 3)
    again, removal = await _items(store)
    assert (_text(again), again.revision) == ("again", 4)
    assert (removal.revision, removal.removal, removal.record) == (3, ChangeType.ITEM_DELETED, None)
    assert removal.provenance == Provenance("bob", "key-b")
    assert removal.time_us is not None and before <= removal.time_us <= now_us()
    # A state with the key of an item is another thing.
    await store.save_state(NS, build_state("a"))
    await store.delete_state(NS, "a", now_us=NOW, by=BOB)
    assert len(await _items(store)) == 2
    (removal,) = await _states(store, "a")  # type: ignore[assignment]
    assert (removal.revision, removal.removal) == (6, ChangeType.STATE_DELETED)
    assert removal.provenance == Provenance("bob", "key-b")


async def test_all_ways_to_remove_are_listed(store: Store) -> None:
    for item_id in ("a", "b", "c"):
        await store.add_items(NS, [build_write(item_id, expire_us=NOW + 1 if item_id == "c" else None)])
    await store.save_state(NS, build_state("k", expire_us=NOW + 1))
    await store.add_items(NS, [], removals=["a", "b"], by=BOB)
    assert await store.remove_expired(NOW + 1, 0, PLENTY) == 2
    for item_id, kind in (("b", ChangeType.ITEM_DELETED), ("c", ChangeType.ITEM_EXPIRED)):
        (removal,) = await _items(store, item_id)
        assert removal.removal is kind
        assert (removal.provenance is not None) == (kind is ChangeType.ITEM_DELETED)
    (expiry,) = await _states(store)
    assert (expiry.removal, expiry.time_us) == (ChangeType.STATE_EXPIRED, None)
    await store.reset(NS)
    assert await _items(store) == [] and await _states(store) == []


async def test_versions_of_what_has_expired_are_not_listed(store: Store) -> None:
    await _write(store, "one", None, 0)
    await _write(store, "two", None, 0, expire_us=NOW + SECOND)
    await _save(store, 1, None, 0)
    await _save(store, 2, None, 0, expire_us=NOW + SECOND)
    assert len(await _items(store)) == len(await _states(store)) == 2
    assert await _items(store, at=NOW + SECOND) == await _states(store, at=NOW + SECOND) == []


async def test_versions_go_when_their_time_is_over(store: Store) -> None:
    for at in (1, 2):
        await _write(store, f"{at}", None, at)
        await _save(store, at, None, at)
    await store.remove_expired(NOW + 2 * SECOND + HISTORY_US, 0, PLENTY)
    assert len(await _items(store)) == len(await _states(store)) == 2
    await store.remove_expired(NOW + 2 * SECOND + HISTORY_US + 1, 0, PLENTY)
    assert [version.current for version in await _items(store)] == [True]
    assert [version.current for version in await _states(store)] == [True]
    await store.delete_item(NS, "a", now_us=NOW, by=BOB)
    await store.remove_expired(now_us() + HISTORY_US + SECOND, 0, PLENTY)
    (removal,) = await _items(store)
    assert (removal.removal, removal.time_us, removal.provenance) == (ChangeType.ITEM_DELETED, None, None)


async def test_versions_of_a_renamed_state_are_those_of_its_new_key(store: Store) -> None:
    await _save(store, 1, ADA, 1)
    await _save(store, 2, ADA, 2)
    await store.rename_state(NS, RenameState("k", "new", NOW), by=BOB)
    found = await _states(store, "new")
    assert [(version.revision, version.number) for version in found] == [(4, 2), (1, 1)]
    assert [version.record.key for version in found if version.record] == ["new", "new"]
    (removal,) = await _states(store)
    assert (removal.revision, removal.provenance) == (3, Provenance("bob", "key-b"))


# --- redaction --------------------------------------------------------------------------------


async def test_a_redacted_version_leaves_that_it_was_there(store: Store) -> None:
    await _write(store, "secret", MALLORY, 1, labels={"l": "v"}, metadata={"m": 1}, session_id="s")
    await _write(store, "second", ADA, 2)
    await _write(store, "third", ADA, 3)
    before = await store.namespace(NS)
    for _ in range(2):
        assert await store.redact_item_version(NS, "a", 1, now_us=NOW, by=BOB) == 3
        third, second, first = await _items(store)
        assert (_text(third), _text(second)) == ("third", "second")
        assert (first.record, first.removal, first.current) == (None, None, False)
        assert (first.revision, first.time_us) == (1, NOW + SECOND)
        # Its texts by the caller are gone.
        assert first.provenance == Provenance("mallory", "key-2", SourceKind.WEB, trust=0.2)
    assert await store.get_versions(NS, [("a", 1), ("a", 2)]) == {("a", 2): second.record}
    assert await store.namespace(NS) == before
    assert await store.read_changes(NS, 3, PLENTY) == []
    assert await words_found(store, "third") == {"a"}
    await assert_consistent(store)


async def test_a_redacted_version_of_a_state_leaves_that_it_was_there(store: Store) -> None:
    await _save(store, "secret", MALLORY, 1, description="secret, too")
    await _save(store, "second", ADA, 2)
    before = await store.namespace(NS)
    for _ in range(2):
        assert await store.redact_state_version(NS, "k", 1, now_us=NOW, by=BOB) == 2
        second, first = await _states(store)
        assert second.record is not None and second.record.value_json == b'"second"'
        assert (first.record, first.removal, first.number, first.revision) == (None, None, 1, 1)
        assert first.time_us == NOW + SECOND
    assert await store.namespace(NS) == before
    await assert_consistent(store)


async def test_only_replaced_versions_can_be_redacted(store: Store) -> None:
    async def refuse(error: type[Exception], reason: str, revision: int) -> None:
        with pytest.raises(error) as of_item:
            await store.redact_item_version(NS, "a", revision, now_us=NOW)
        with pytest.raises(error) as of_state:
            await store.redact_state_version(NS, "k", revision + 2 * (revision > 0), now_us=NOW)
        reasons = {of_item.value.reason, of_state.value.reason}  # type: ignore[attr-defined]
        assert {each.removeprefix("ITEM_").removeprefix("STATE_") for each in reasons} == {reason}

    await refuse(NotFound, "NOT_FOUND", 1)
    for at in (1, 2):
        await _write(store, f"{at}", ADA, at)
    for at in (1, 2):
        await _save(store, at, ADA, at)
    await refuse(FailedPrecondition, "VERSION_IS_CURRENT", 2)
    await refuse(NotFound, "VERSION_NOT_FOUND", 3)
    assert len([v for v in await _items(store) if v.record]) == 2
    assert len([v for v in await _states(store) if v.record]) == 2
    await _write(store, "3", ADA, 3, expire_us=NOW + 9 * SECOND)
    with pytest.raises(NotFound) as expired:
        await store.redact_item_version(NS, "a", 1, now_us=NOW + 9 * SECOND)
    assert expired.value.reason == "ITEM_NOT_FOUND"


async def test_a_redaction_forgets_the_answers_that_mention_it(store: Store) -> None:
    await _write(store, "1", ADA, 1)
    await _write(store, "2", ADA, 2)
    await _save(store, 1, ADA, 1)
    await _save(store, 2, ADA, 2)

    def complete(receipt: Receipt, items: list[str], states: list[str]) -> None:
        receipt.answer = Answer(b"secret", b"bare", items, states)

    for name, items, states in (("i", ["a"], []), ("s", [], ["k"]), ("o", ["other"], [])):
        key = RequestKey(name, b"body", lambda receipt, i=items, s=states: complete(receipt, i, s))  # type: ignore[misc]
        await store.record_request(NS, Receipt(0), key)
    await store.redact_item_version(NS, "a", 1, now_us=NOW)
    await store.redact_state_version(NS, "k", 3, now_us=NOW)
    for name, whole in (("i", b""), ("s", b""), ("o", b"secret")):
        found = await store.find_receipt(NS, build_request(name))
        assert found is not None and found.answer is not None and found.answer.whole == whole


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_undo_passes_over_redacted_versions(store: Store, dry_run: bool) -> None:
    await _write(store, "good", ADA, 1, vector=axis_vector(0), model=MODEL)
    await _write(store, "secret", ADA, 2, vector=axis_vector(1), model=MODEL)
    await _write(store, "bad", MALLORY, 3, vector=axis_vector(2), model=MODEL)
    for at, value in ((1, "good"), (2, "secret")):
        await _save(store, value, ADA, at)
    await _save(store, "bad", MALLORY, 3)
    await store.redact_item_version(NS, "a", 2, now_us=NOW)
    await store.redact_state_version(NS, "k", 5, now_us=NOW)
    step = await store.undo_items(NS, BY_MALLORY, 0, PLENTY, dry_run=dry_run)
    assert (step.restored_count, step.unrestorable) == (1, [])
    step = await store.undo_states(NS, BY_MALLORY, "", PLENTY, dry_run=dry_run)
    assert (step.restored_count, step.unrestorable) == (1, [])
    if not dry_run:
        assert await words_found(store, "good") == {"a"} and not await words_found(store, "secret bad")
        assert await found_by_vector(store, axis_vector(0)) == {"a"}
        assert (await store.load_states(NS, ["k"]))["k"].value_json == b'"good"'
        await assert_consistent(store)


async def test_an_undo_reports_what_only_a_redacted_version_could_restore(store: Store) -> None:
    await _write(store, "secret", ADA, 1)
    await _write(store, "bad", MALLORY, 2)
    await _save(store, "secret", ADA, 1)
    await _save(store, "bad", MALLORY, 2)
    await store.redact_item_version(NS, "a", 1, now_us=NOW)
    await store.redact_state_version(NS, "k", 3, now_us=NOW)
    step = await store.undo_items(NS, BY_MALLORY, 0, PLENTY, dry_run=False)
    assert (step.restored_count, step.removed_count, step.unrestorable) == (0, 0, ["a"])
    step = await store.undo_states(NS, BY_MALLORY, "", PLENTY, dry_run=False)
    assert (step.restored_count, step.removed_count, step.unrestorable) == (0, 0, ["k"])
    assert _text((await _items(store))[0]) == "bad"
