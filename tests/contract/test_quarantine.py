"""Held writes: stored like any other, but invisible to all reads."""

from __future__ import annotations

from typing import Any

import pytest

from contract.builders import NOW, NS, SECOND, build_request, build_write, get_item, scan_ids, words_found
from contract.conftest import Reopen, Stores
from contract.invariants import assert_consistent
from memory_service.data_model import HeldWrite, RequestKey, WritesBy
from memory_service.errors import AlreadyExists, FailedPrecondition, NotFound
from memory_service.store import Store

DAY = 24 * 3600 * SECOND


def _held(held_id: str, **fields: Any) -> HeldWrite:
    values: dict[str, Any] = {
        "reason": "orders in a web page",
        "body": b'{"text":"a heron"}\x00',
        "held_us": NOW,
        "expire_us": NOW + DAY,
    }
    return HeldWrite(held_id, **values | fields)


async def _ids(
    store: Store, after: str = "", limit: int = 100, namespace: str = NS, at: int = NOW
) -> list[str]:
    return [held.id for held in await store.held_writes(namespace, after, limit, now_us=at)]


async def test_what_is_held_is_returned_as_it_was_by_id(store: Store) -> None:
    request = RequestKey("r", b"\x00digest")
    writes = [_held("b", writer="ada", credential_id="key-1"), _held("a", request=request), _held("c")]
    assert await store.hold(NS, writes) == writes
    assert await store.held_writes(NS, "", 100, now_us=NOW) == [writes[1], writes[0], writes[2]]
    assert await store.held_write(NS, "a") == writes[1]
    assert await store.held_write(NS, "d") is None
    assert await store.count_held(NS) == 3
    assert await _ids(store, "a", 1) == ["b"]
    assert (await _ids(store, namespace="other"), await store.count_held("other")) == ([], 0)


async def test_holding_is_no_change_and_is_found_by_nothing(store: Store) -> None:
    await store.add_items(NS, [build_write("x", "an otter")])
    before = await store.namespace(NS)
    await store.hold(NS, [_held("a")])
    assert await store.namespace(NS) == before
    assert await scan_ids(store) == ["x"]
    assert not await words_found(store, "heron")
    assert [change.subject for change in await store.read_changes(NS, 0, 100)] == ["x"]
    await store.drop_held(NS, "a")
    assert await store.namespace(NS) == before
    await assert_consistent(store)


async def test_a_namespace_may_begin_with_what_is_held(store: Store) -> None:
    await store.hold(NS, [_held("a")])
    info = await store.namespace(NS)
    assert info is not None
    assert (info.revision, info.item_count) == (0, 0)
    receipt = await store.add_items(NS, [build_write("x", "an otter")])
    assert receipt.revision == 1


async def test_one_request_is_held_once(store: Store) -> None:
    first = _held("a", request=RequestKey("r", b"1"))
    await store.hold(NS, [first])
    again = [_held("b", request=RequestKey("r", b"1")), _held("c", request=RequestKey("other", b"1"))]
    assert await store.hold(NS, again) == [first, again[1]]
    with pytest.raises(FailedPrecondition):
        await store.hold(NS, [_held("d"), _held("e", request=RequestKey("r", b"2"))])
    assert await _ids(store) == ["a", "c"]


async def test_a_release_writes_and_lets_go_in_one_step(store: Store) -> None:
    await store.hold(NS, [_held("a"), _held("b")])
    request = build_request("r")
    await store.add_items(NS, [build_write("x", "a heron")], released="a", request=request)
    assert (await get_item(store, "x")).revision == 1
    assert await words_found(store, "heron")
    assert await _ids(store) == ["b"]
    with pytest.raises(NotFound) as refused:
        await store.add_items(NS, [build_write("y", "a heron")], released="a")
    assert refused.value.reason == "QUARANTINED_NOT_FOUND"
    assert await scan_ids(store) == ["x"]
    # Its request was applied meanwhile, so nothing is left to write.
    assert (await store.add_items(NS, [build_write("x", "a heron")], released="b", request=request)).replayed
    assert await _ids(store) == []
    await assert_consistent(store)


async def test_a_release_that_is_refused_stays_held(store: Store) -> None:
    await store.add_items(NS, [build_write("x", "an otter")])
    await store.hold(NS, [_held("a")])
    with pytest.raises(AlreadyExists):
        await store.add_items(NS, [build_write("x", "a heron")], released="a")
    assert await _ids(store) == ["a"]


async def test_what_is_dropped_is_gone(store: Store) -> None:
    await store.hold(NS, [_held("a"), _held("b")])
    await store.drop_held(NS, "a")
    for held_id, namespace in (("a", NS), ("b", "other")):
        with pytest.raises(NotFound) as refused:
            await store.drop_held(namespace, held_id)
        assert refused.value.reason == "QUARANTINED_NOT_FOUND"
    assert await _ids(store) == ["b"]


async def test_the_held_writes_of_somebody_are_counted_and_dropped(store: Store) -> None:
    await store.hold(
        NS,
        [
            _held("early", writer="mallory", credential_id="key-2", held_us=NOW - 1),
            _held("one", writer="mallory", credential_id="key-2"),
            _held("two", writer="mallory", credential_id="key-3"),
            _held("hers", writer="ada", credential_id="key-1"),
        ],
    )
    for by, ids in (
        (WritesBy(NOW, "mallory"), {"one", "two"}),
        (WritesBy(NOW, "mallory", "key-3"), {"two"}),
        (WritesBy(NOW, None, "key-1"), {"hers"}),
        (WritesBy(NOW), {"one", "two", "hers"}),
    ):
        assert await store.count_held(NS, by) == len(ids)
    assert await store.drop_held_by(NS, WritesBy(NOW, "mallory")) == 2
    assert await _ids(store) == ["early", "hers"]
    assert await store.drop_held_by("other", WritesBy(NOW)) == 0


async def test_what_expired_is_left_out_and_swept(store: Store) -> None:
    await store.hold(NS, [_held("a", expire_us=NOW), _held("b", expire_us=NOW + 1)])
    assert await _ids(store) == ["b"]
    assert await store.count_held(NS) == 2
    await store.remove_expired(NOW, 0, 100)
    assert await store.count_held(NS) == 1
    assert await store.held_write(NS, "b") is not None


@pytest.mark.parametrize("end", ["reset", "delete_namespace"])
async def test_a_reset_and_the_end_of_a_namespace_take_it_with_them(store: Store, end: str) -> None:
    await store.hold(NS, [_held("a")])
    await store.hold("other", [_held("a")])
    await getattr(store, end)(NS)
    await store.add_items(NS, [build_write("x", "an otter")])
    assert await _ids(store) == []
    assert await _ids(store, namespace="other") == ["a"]


async def test_what_is_held_outlives_the_process(store: Store, reopen: Reopen) -> None:
    held = _held("a", request=RequestKey("r", b"1"), writer="ada")
    await store.hold(NS, [held])
    store = await reopen()
    assert await store.held_write(NS, "a") == held
    assert await store.hold(NS, [_held("b", request=RequestKey("r", b"1"))]) == [held]


async def test_backups_have_what_is_held(backup_store: Store, stores: Stores) -> None:
    await backup_store.hold(NS, [_held("a")])
    await backup_store.backup("b", lambda done, total: None)
    restored = await stores.open(stores.data_dir / "backups" / "b")
    assert await _ids(restored) == ["a"]


async def test_nothing_of_what_was_dropped_stays_in_the_files(file_store: Store, stores: Stores) -> None:
    await file_store.hold(NS, [_held("a", body=b"plaintext of the heron" * 500)])
    await file_store.drop_held(NS, "a")
    await file_store.flush()
    files = [path for path in stores.data_dir.rglob("*") if path.is_file()]
    assert files
    assert not any(b"plaintext of the heron" in path.read_bytes() for path in files)
