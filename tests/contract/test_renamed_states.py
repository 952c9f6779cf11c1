"""States under another key, and keys by prefix."""

from __future__ import annotations

import asyncio

import pytest

from contract.builders import NOW, NS, PLENTY, SECOND, build_request, build_state
from memory_service.data_model import ChangeType, Receipt, StateEntry, WritesBy
from memory_service.errors import AlreadyExists, Conflict, FailedPrecondition, NotFound
from memory_service.operations import RenameState
from memory_service.runtime.caller import Caller
from memory_service.store import Store

# In the order of their UTF-8 bytes, with neighbours on both sides of what prefixes could miss.
KEYS = [
    "a",
    "a/",
    "a/b",
    "a/\ud7ff",
    "a/\ud7ffx",
    "a/\ue000",
    "a0",
    "b",
    "\U0010ffff",
    "\U0010ffff\U0010ffffx",
]
BOB = Caller("bob", "key-b", ("*",), frozenset())


async def _load(store: Store, key: str) -> StateEntry | None:
    return (await store.load_states(NS, [key])).get(key)


async def _rename(
    store: Store, key: str, new_key: str, version: int | None = None, **more: object
) -> Receipt:
    return await store.rename_state(NS, RenameState(key, new_key, NOW, version), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["", *KEYS, "a/\ud7ff\U0010ffff", "c"])
async def test_a_scan_by_prefix_finds_the_keys_that_begin_with_it(store: Store, prefix: str) -> None:
    for key in reversed(KEYS):
        await store.save_state(NS, build_state(key))
    wanted = [key for key in KEYS if key.startswith(prefix)]
    found = await store.scan_states(NS, "", PLENTY, now_us=NOW, prefix=prefix)
    assert [entry.key for entry in found] == wanted
    # Page by page, and from places outside the prefix.
    pages, after = [], ""
    while page := await store.scan_states(NS, after, 1, now_us=NOW, prefix=prefix, value_chars=0):
        after = page[0].key
        pages.append(after)
    assert pages == wanted
    for after in KEYS:
        found = await store.scan_states(NS, after, PLENTY, now_us=NOW, prefix=prefix)
        assert [entry.key for entry in found] == [key for key in wanted if key.encode() > after.encode()]


async def test_a_renamed_state_takes_everything_along(store: Store) -> None:
    await store.save_state(NS, build_state("k", 1, NOW, description="why"))
    await store.save_state(NS, build_state("k", [2], NOW + 5, expire_us=NOW + SECOND))
    before = await _load(store, "k")
    receipt = await _rename(store, "k", "new", 2)
    renamed = await _load(store, "new")
    assert before is not None and renamed is not None
    assert await _load(store, "k") is None
    for name in ("value_json", "version", "create_us", "update_us", "expire_us", "size_bytes", "description"):
        assert getattr(renamed, name) == getattr(before, name), name
    assert (renamed.key, renamed.revision) == ("new", receipt.revision)
    (stamp,) = receipt.states
    assert (stamp.version, stamp.create_us, stamp.update_us) == (2, NOW, NOW + 5)
    assert (stamp.revision, stamp.size_bytes, receipt.description) == (receipt.revision, 3, "why")
    info = await store.namespace(NS)
    assert info is not None and info.state_count == 1


async def test_a_renaming_is_two_changes(store: Store) -> None:
    await store.save_state(NS, build_state("k"))
    receipt = await _rename(store, "k", "new")
    changes = await store.read_changes(NS, 1, PLENTY)
    assert [(change.type, change.subject) for change in changes] == [
        (ChangeType.STATE_DELETED, "k"),
        (ChangeType.STATE_SAVED, "new"),
    ]
    assert changes[-1].revision == receipt.revision


async def test_a_renaming_that_is_not_possible_changes_nothing(store: Store) -> None:
    with pytest.raises(NotFound) as missing:
        await _rename(store, "k", "new")
    assert missing.value.reason == "STATE_NOT_FOUND"
    assert await store.namespace(NS) is None
    await store.save_state(NS, build_state("k"))
    await store.save_state(NS, build_state("other"))
    await store.save_state(NS, build_state("expired", expire_us=NOW))
    before = await store.namespace(NS)
    with pytest.raises(NotFound):
        await _rename(store, "expired", "new")
    with pytest.raises(Conflict) as stale:
        await _rename(store, "k", "new", 2)
    assert stale.value.metadata["current_version"] == "1"
    with pytest.raises(AlreadyExists) as taken:
        await _rename(store, "k", "other")
    assert (taken.value.reason, taken.value.metadata["key"]) == ("STATE_ALREADY_EXISTS", "other")
    assert await store.namespace(NS) == before


async def test_an_expired_state_makes_room(store: Store) -> None:
    await store.save_state(NS, build_state("k", "kept"))
    await store.save_state(NS, build_state("new", 1))
    await store.save_state(NS, build_state("new", 2, expire_us=NOW))
    receipt = await _rename(store, "k", "new")
    renamed = await _load(store, "new")
    assert renamed is not None and renamed.value_json == b'"kept"'
    types = [change.type for change in await store.read_changes(NS, 3, PLENTY)]
    assert types == [ChangeType.STATE_EXPIRED, ChangeType.STATE_DELETED, ChangeType.STATE_SAVED]
    # The expired state had version 2, so that the key may not have a version 1 or 2 again.
    assert receipt.states[0].version == 3
    info = await store.namespace(NS)
    assert info is not None and info.state_count == 1


async def test_no_version_of_a_key_identifies_two_values(store: Store) -> None:
    seen: dict[tuple[str, int], bytes] = {}

    async def look() -> None:
        for entry in await store.scan_states(NS, "", PLENTY, now_us=NOW):
            assert seen.setdefault((entry.key, entry.version), entry.value_json) == entry.value_json

    await store.save_state(NS, build_state("a", "A"))
    await store.save_state(NS, build_state("b", "B"))
    for key, new_key in (("a", "c"), ("b", "a"), ("c", "b"), ("a", "d"), ("d", "a")):
        await look()
        await _rename(store, key, new_key)
    await look()
    await store.save_state(NS, build_state("c", "C"))
    await look()
    await store.delete_state(NS, "a", now_us=NOW)
    await _rename(store, "c", "a")
    await look()


async def test_a_repeated_renaming_returns_the_first_receipt(store: Store) -> None:
    await store.save_state(NS, build_state("k", description="why"))
    first = await _rename(store, "k", "new", request=build_request())
    again = await _rename(store, "k", "new", request=build_request())
    assert again.replayed
    assert (again.revision, again.states, again.description) == (first.revision, first.states, "why")
    with pytest.raises(FailedPrecondition):
        await _rename(store, "k", "new", request=build_request(digest=b"other"))


async def test_of_concurrent_renamings_one_wins(store: Store) -> None:
    await store.save_state(NS, build_state("k"))
    outcomes = await asyncio.gather(
        *(_rename(store, "k", f"new-{n}") for n in range(8)), return_exceptions=True
    )
    won = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Receipt)]
    assert len(won) == 1
    assert all(isinstance(outcome, Receipt | NotFound) for outcome in outcomes)
    found = await store.scan_states(NS, "", PLENTY, now_us=NOW)
    assert [entry.key for entry in found] == [f"new-{won[0]}"]


async def test_versions_of_a_renamed_state_can_be_undone(store: Store) -> None:
    await store.save_state(NS, build_state("k", "good"))
    await store.save_state(NS, build_state("k", "bad", NOW + 5))
    await _rename(store, "k", "new", by=BOB)
    await store.undo_states(NS, WritesBy(NOW + 5), "", PLENTY, dry_run=False)
    restored = await _load(store, "new")
    assert restored is not None and restored.value_json == b'"good"'
    # The old key is gone, and an undo of who renamed it says so.
    assert await store.count_removals(NS, WritesBy(0, "bob")) == 1
