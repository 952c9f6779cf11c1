"""Requests: repeated ones are applied once and get the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    SECOND,
    build_request,
    build_state,
    build_write,
    get_item,
    scan_ids,
    words_found,
)
from contract.conftest import Reopen
from memory_service.data_model import Answer, OnDuplicate, Provenance, Receipt, RequestKey, TextPart, WritesBy
from memory_service.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from memory_service.records.base import HISTORY_US
from memory_service.runtime.clock import now_us
from memory_service.store import Store

FOREVER = 1 << 62

Write = Callable[[Store, RequestKey], Awaitable[Receipt]]

# Each would do something, or fail, if it were applied a second time.
WRITES: dict[str, Write] = {
    "add": lambda store, key: store.add_items(NS, [build_write("new"), build_write("newer")], request=key),
    "add skipping": lambda store, key: store.add_items(
        NS, [build_write("kept"), build_write("new")], on_duplicate=OnDuplicate.SKIP, request=key
    ),
    "add replacing": lambda store, key: store.add_items(
        NS, [build_write("kept", "other")], on_duplicate=OnDuplicate.REPLACE, request=key
    ),
    "replace": lambda store, key: store.replace_item(
        NS, build_write("kept", "other", expire_us=NOW + 5), request=key
    ),
    "delete": lambda store, key: store.delete_item(NS, "kept", now_us=NOW, request=key),
    "save": lambda store, key: store.save_state(
        NS, build_state("k", "new", expected_version=1, expire_us=NOW + 5), request=key
    ),
    "delete state": lambda store, key: store.delete_state(NS, "k", now_us=NOW, request=key),
    "clear states": lambda store, key: store.clear_states(NS, request=key),
    "reset": lambda store, key: store.reset(NS, request=key),
}


async def _prepare(store: Store) -> None:
    """Write what the other writes work on."""
    await store.add_items(NS, [build_write("kept", "old")])
    await store.save_state(NS, build_state("k", "old"))


def _as_replay(receipt: Receipt) -> Receipt:
    return msgspec.structs.replace(receipt, replayed=True)


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest) -> Write:
    """Each kind of write in turn."""
    return WRITES[request.param]


async def test_a_repeated_request_changes_nothing_and_is_answered_alike(store: Store, write: Write) -> None:
    await _prepare(store)
    first = await write(store, build_request())
    assert not first.replayed
    changes, info = await store.read_changes(NS, 0, PLENTY), await store.namespace(NS)
    again = await write(store, build_request())
    assert again == _as_replay(first)
    assert await store.read_changes(NS, 0, PLENTY) == changes
    assert await store.namespace(NS) == info


async def test_a_late_repetition_is_answered_as_at_first(store: Store, write: Write) -> None:
    await _prepare(store)
    first = await write(store, build_request())
    await store.add_items(NS, [build_write("kept", "later")], on_duplicate=OnDuplicate.REPLACE)
    await store.save_state(NS, build_state("k", "later"))
    assert await write(store, build_request()) == _as_replay(first)
    assert (await get_item(store, "kept")).content == TextPart("later")
    assert (await store.load_states(NS, ["k"]))["k"].value_json == b'"later"'


async def test_a_request_id_with_another_body_is_refused(store: Store, write: Write) -> None:
    await _prepare(store)
    await write(store, build_request())
    info = await store.namespace(NS)
    with pytest.raises(FailedPrecondition) as raised:
        await write(store, build_request(digest=b"other"))
    assert raised.value.reason == "REQUEST_ID_REUSED"
    assert await store.namespace(NS) == info


async def test_a_request_id_of_another_method_is_refused(store: Store, write: Write) -> None:
    await _prepare(store)
    await write(store, build_request())
    with pytest.raises(FailedPrecondition):
        await store.save_state(NS, build_state("other"), request=build_request(digest=b"a save"))
    with pytest.raises(FailedPrecondition):
        await store.add_items(NS, [build_write("other")], request=build_request(digest=b"an add"))


async def test_requests_sent_many_times_at_once_are_applied_once(store: Store, write: Write) -> None:
    await _prepare(store)
    before = len(await store.read_changes(NS, 0, PLENTY))
    receipts = await asyncio.gather(*(write(store, build_request()) for _ in range(20)))
    assert [receipt.replayed for receipt in receipts].count(False) == 1
    first = next(receipt for receipt in receipts if not receipt.replayed)
    assert all(receipt == _as_replay(first) for receipt in receipts if receipt.replayed)
    after = await store.read_changes(NS, 0, PLENTY)
    expected = 1 if after[0].type.name == "RESET" else before + max(len(first.items), 1)
    assert len(after) == expected


async def test_requests_are_remembered_after_reopening(store: Store, write: Write, reopen: Reopen) -> None:
    await _prepare(store)
    first = await write(store, build_request())
    info = await store.namespace(NS)
    store = await reopen()
    assert await write(store, build_request()) == _as_replay(first)
    assert await store.namespace(NS) == info
    with pytest.raises(FailedPrecondition):
        await write(store, build_request(digest=b"other"))


async def test_different_requests_are_different_writes(store: Store) -> None:
    ids = ["r", "R", "r ", "r%", "\u00e9", "e\u0301"]
    for request_id in ids:
        receipt = await store.save_state(NS, build_state("k"), request=build_request(request_id))
        assert not receipt.replayed
    assert (await store.load_states(NS, ["k"]))["k"].version == len(ids)


async def test_requests_belong_to_their_namespace(store: Store) -> None:
    await store.add_items("one", [build_write("a")], request=build_request())
    receipt = await store.add_items("two", [build_write("b")], request=build_request(digest=b"other"))
    assert not receipt.replayed
    assert await scan_ids(store, "two") == ["b"]


async def test_a_failed_request_is_not_remembered(store: Store) -> None:
    await _prepare(store)
    for attempt in (
        store.add_items(NS, [build_write("kept")], request=build_request()),
        store.replace_item(NS, build_write("kept"), expected_revision=9, request=build_request()),
        store.delete_item(NS, "none", now_us=NOW, request=build_request()),
        store.save_state(NS, build_state("k", expected_version=9), request=build_request()),
        store.delete_state(NS, "none", now_us=NOW, request=build_request()),
    ):
        with pytest.raises((AlreadyExists, Conflict, NotFound)):
            await attempt
    receipt = await store.add_items(NS, [build_write("b")], request=build_request(digest=b"mended"))
    assert not receipt.replayed
    assert await scan_ids(store) == ["kept", "b"]


async def test_a_first_request_that_fails_begins_no_namespace(store: Store) -> None:
    batch = [build_write("a", "x", [1, 0]), build_write("b", "x", [1])]
    with pytest.raises(InvalidArgument):
        await store.add_items(NS, batch, request=build_request())
    assert await store.namespace(NS) is None
    assert not (await store.add_items(NS, batch[:1], request=build_request())).replayed


async def test_a_late_repetition_does_not_bring_back_what_was_deleted(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi")], request=build_request())
    await store.delete_item(NS, "a", now_us=NOW)
    assert (await store.add_items(NS, [build_write("a", "kiwi")], request=build_request())).replayed
    assert await scan_ids(store) == []
    assert await words_found(store, "kiwi") == set()


async def test_a_late_repetition_does_not_bring_back_what_was_reset(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "kiwi")], request=build_request())
    await store.reset(NS)
    assert (await store.add_items(NS, [build_write("a", "kiwi")], request=build_request())).replayed
    assert await scan_ids(store) == []


async def test_requests_are_gone_with_their_namespace(store: Store) -> None:
    await store.add_items(NS, [build_write("a")], request=build_request())
    await store.delete_namespace(NS)
    receipt = await store.add_items(NS, [build_write("a")], request=build_request(digest=b"other"))
    assert not receipt.replayed
    assert await scan_ids(store) == ["a"]


async def test_requests_are_forgotten_when_they_are_old(store: Store) -> None:
    await store.save_state(NS, build_state("k"), request=build_request())
    await store.remove_expired(NOW, 0, PLENTY)
    assert (await store.save_state(NS, build_state("k"), request=build_request())).replayed
    await store.remove_expired(NOW, FOREVER, PLENTY)
    assert not (await store.save_state(NS, build_state("k"), request=build_request())).replayed


def answering(items: list[str], states: list[str], request_id: str = "r-1") -> RequestKey:
    """Return the key of a request whose answer mentions these items and states."""

    def complete(receipt: Receipt) -> None:
        # The receipt is final by now.
        receipt.answer = Answer(f"at {receipt.revision}".encode(), b"bare", items, states)
        receipt.seen, receipt.note, receipt.degraded = [("kept", 1)], ["said", 1], [(9, "why")]

    return RequestKey(request_id, b"body", complete)


async def answer_of(store: Store, request_id: str = "r-1") -> bytes:
    """Return the stored answer of a request."""
    receipt = await store.find_receipt(NS, build_request(request_id))
    assert receipt is not None and receipt.answer is not None and receipt.answer.bare == b"bare"
    return receipt.answer.whole


async def test_what_the_answer_is_made_of_is_kept_with_the_request(store: Store) -> None:
    await _prepare(store)
    writer = Provenance("ada", "key-1", trust=0.5, source_uri="https://example.org/")
    writes = [
        build_write("a"),
        build_write("b", provenance=writer),
        build_write("c", provenance=writer),
        build_write("d", provenance=Provenance("bob")),
    ]
    first = await store.add_items(NS, writes, request=answering(["kept"], []))
    again = await store.find_receipt(NS, build_request())
    assert again is not None and again.answer is not None
    assert (again.seen, again.note, again.degraded) == ([("kept", 1)], ["said", 1], [(9, "why")])
    assert again.answer.whole == f"at {first.revision}".encode()
    whose = [(known.writer, known.credential_id, known.trust) for _, known in again.written()]
    assert whose == [("", "", 1.0), ("ada", "key-1", 0.5), ("ada", "key-1", 0.5), ("bob", "", 1.0)]


async def test_an_answer_is_kept_after_reopening(store: Store, reopen: Reopen) -> None:
    await store.save_state(NS, build_state("k"), request=answering(["a"], ["k"]))
    store = await reopen()
    assert await answer_of(store) == b"at 1"
    await store.delete_state(NS, "k", now_us=NOW)
    assert await answer_of(store) == b""


async def test_what_wrote_nothing_is_remembered_too(store: Store) -> None:
    first = await store.record_request(NS, Receipt(0), answering([], []))
    assert not first.replayed and await answer_of(store) == b"at 0"
    await store.add_items(NS, [build_write("a")])
    again = await store.record_request(NS, Receipt(0), answering(["a"], []))
    assert (again.replayed, again.revision) == (True, 0)
    with pytest.raises(FailedPrecondition):
        await store.record_request(NS, Receipt(0), build_request(digest=b"other"))
    assert (await store.read_changes(NS, 0, PLENTY))[0].subject == "a"


# Each erases something that an answer mentions: the item "kept", or the state "k".
ERASURES: dict[str, Callable[[Store], Awaitable[object]]] = {
    "delete": lambda store: store.delete_item(NS, "kept", now_us=NOW),
    "remove": lambda store: store.add_items(NS, [], removals=["kept"]),
    "delete state": lambda store: store.delete_state(NS, "k", now_us=NOW),
    "clear states": lambda store: store.clear_states(NS),
    "reset": lambda store: store.reset(NS),
    "undo": lambda store: store.undo_items(NS, WritesBy(0, "mallory"), 0, 9, dry_run=False),
    "undo state": lambda store: store.undo_states(NS, WritesBy(0, "mallory"), "", 9, dry_run=False),
    "expire": lambda store: store.remove_expired(NOW + 10, 0, 9),
}


@pytest.mark.parametrize("erasure", ERASURES)
async def test_an_answer_is_forgotten_with_anything_that_it_tells_of(store: Store, erasure: str) -> None:
    await _prepare(store)
    mallory = Provenance("mallory")
    expire_us = NOW + 5 if erasure == "expire" else None
    await store.add_items(NS, [build_write("other")])
    for number, told in enumerate(((["kept", "other"], ["k"]), (["other"], ["other"]))):
        await store.save_state(NS, build_state(f"n{number}"), request=answering(*told, f"r-{number}"))
    # A replaced version is kept, and therefore also the answers that mention it.
    await store.replace_item(NS, build_write("kept", "later", provenance=mallory, expire_us=expire_us))
    await store.save_state(NS, build_state("k", "later", provenance=mallory))
    assert await answer_of(store, "r-0") and await answer_of(store, "r-1")
    await ERASURES[erasure](store)
    assert await answer_of(store, "r-0") == b""
    assert bool(await answer_of(store, "r-1")) is (erasure not in ("reset", "clear states"))


async def test_answers_are_forgotten_with_their_requests(store: Store) -> None:
    await store.save_state(NS, build_state("k"), request=answering(["a"], ["k"]))
    await store.remove_expired(NOW, FOREVER, PLENTY)
    receipt = await store.save_state(NS, build_state("k"), request=answering(["b"], ["k"]))
    assert not receipt.replayed and await answer_of(store) == b"at 2"


async def test_answers_are_kept_no_longer_than_versions(store: Store) -> None:
    await store.save_state(NS, build_state("k"), request=answering(["a"], ["k"]))
    for late, kept in ((-3600 * SECOND, b"at 1"), (SECOND, b"")):
        await store.remove_expired(now_us() + HISTORY_US + late, 0, PLENTY)
        assert await answer_of(store) == kept


async def test_versions_are_found_as_they_are_and_as_they_were(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "first", labels={"k": "v"}), build_write("b")])
    await store.replace_item(NS, build_write("a", "second"))
    wanted = [("a", 1), ("a", 3), ("b", 2), ("b", 1), ("none", 1)]
    found = await store.get_versions(NS, wanted)
    contents = {version: item.content for version, item in found.items()}
    assert contents == {("a", 1): TextPart("first"), ("a", 3): TextPart("second"), ("b", 2): TextPart("")}
    assert found["a", 1].labels == {"k": "v"}
    await store.delete_item(NS, "a", now_us=NOW)
    assert list(await store.get_versions(NS, wanted)) == [("b", 2)]
    assert await store.get_versions("none", wanted) == {}


async def test_forgetting_requests_is_no_change(store: Store) -> None:
    await store.add_items(NS, [build_write("a")], request=build_request())
    before = await store.namespace(NS)
    assert await store.remove_expired(NOW, FOREVER, PLENTY) == 0
    assert await store.namespace(NS) == before
