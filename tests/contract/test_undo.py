"""Undo of one writer's writes: records, history and indexes agree afterwards."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from contract.builders import (
    MODEL,
    NOW,
    NS,
    SECOND,
    axis_vector,
    build_pending,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    get_item,
    scan_ids,
    words_found,
)
from contract.conftest import Reopen, Stores
from contract.invariants import assert_consistent
from memory_service.data_model import (
    Facet,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Provenance,
    Receipt,
    Since,
    SourceKind,
    TextPart,
    UndoStep,
    WritesBy,
)
from memory_service.errors import Conflict, FailedPrecondition
from memory_service.records.base import HISTORY_US, FilesRestored, RestoredFiles
from memory_service.runtime.caller import Caller
from memory_service.store import Store

ADA = Provenance("ada", "key-1", trust=0.9)
MALLORY = Provenance("mallory", "key-2", SourceKind.WEB, "https://example.com/", ("p",), "m", 0.2)
BY_MALLORY = WritesBy(NOW, "mallory")


async def _put(store: Store, *writes: ItemWrite, **options: Any) -> Receipt:
    return await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE, **options)


def _by(who: Provenance | None, item_id: str, text: str, at: int = 1, **fields: Any) -> ItemWrite:
    """Return a write by this writer, `at` seconds after NOW."""
    return build_write(item_id, text, update_us=NOW + at * SECOND, provenance=who, **fields)


async def _undo(store: Store, by: WritesBy = BY_MALLORY, limit: int = 100, **options: Any) -> UndoStep:
    """Undo everything, at most `limit` writes at a time."""
    options = {"dry_run": False, **options}
    done = UndoStep()
    for undo, first in ((store.undo_items, 0), (store.undo_states, "")):
        after: Any = first
        while after is not None:
            step = await undo(NS, by, after, limit, **options)  # type: ignore[operator]
            done.removed_count += step.removed_count
            done.restored_count += step.restored_count
            done.unrestorable += step.unrestorable
            after = step.following
    return done


def _counts(step: UndoStep) -> tuple[int, int, list[str]]:
    return step.removed_count, step.restored_count, step.unrestorable


async def test_provenance_is_of_the_version(store: Store) -> None:
    await _put(store, _by(MALLORY, "a", "kiwi"), _by(None, "b", "kiwi"))
    assert (await get_item(store, "a")).provenance == MALLORY
    assert (await get_item(store, "b")).provenance is None
    await store.replace_item(NS, _by(ADA, "a", "fig"))
    assert (await get_item(store, "a")).provenance == ADA
    (loaded,) = await (await store.read(NS)).load_items([1], with_embedding=True)
    assert loaded is not None and loaded.provenance == ADA


async def test_what_they_added_is_removed_and_what_they_replaced_comes_back(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi", vector=axis_vector(0), labels={"k": "v"}, importance=0.7))
    before = await get_item(store, "a", with_embedding=True)
    await _put(store, _by(MALLORY, "a", "poison", 5, vector=axis_vector(1)), _by(MALLORY, "m", "poison", 5))
    await _put(store, _by(ADA, "b", "kiwi", 6))
    assert _counts(await _undo(store)) == (1, 1, [])
    after = await get_item(store, "a", with_embedding=True)
    assert after.revision > before.revision and after.position == before.position
    assert after.embedding is not None and after.embedding.tolist() == axis_vector(0).tolist()
    assert after.provenance == Provenance("ada", "key-1", trust=0.9, copy_of=before.revision)
    same = {"embedding": None, "revision": 0, "provenance": None, "wire": None, "framed": None}
    assert msgspec.structs.replace(after, **same) == msgspec.structs.replace(before, **same)
    assert await scan_ids(store) == ["a", "b"]
    assert await words_found(store, "kiwi") == {"a", "b"} and not await words_found(store, "poison")
    assert await found_by_vector(store, axis_vector(0)) == {"a"}
    assert await scan_ids(store, labels=(("k", "v"),)) == ["a"]
    await assert_consistent(store)


async def test_a_dry_run_tells_the_same_and_changes_nothing(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi"), _by(MALLORY, "m", "poison"))
    await _put(store, _by(MALLORY, "a", "poison", 2))
    await store.save_state(NS, build_state("s", 1, NOW + SECOND, provenance=MALLORY))
    info = await store.namespace(NS)
    told = await _undo(store, dry_run=True)
    assert await store.namespace(NS) == info and await words_found(store, "poison") == {"a", "m"}
    assert _counts(told) == _counts(await _undo(store)) == (2, 1, [])


async def test_only_the_writes_of_that_time_and_credential_are_undone(store: Store) -> None:
    await _put(store, _by(MALLORY, "early", "kiwi", 1), _by(MALLORY, "late", "kiwi", 9))
    assert _counts(await _undo(store, WritesBy(NOW + 5 * SECOND, "mallory"))) == (1, 0, [])
    assert await scan_ids(store) == ["early"]
    assert _counts(await _undo(store, WritesBy(NOW, "mallory", "key-1"))) == (0, 0, [])
    assert _counts(await _undo(store, WritesBy(NOW, None, "key-2"))) == (1, 0, [])
    await _put(store, _by(None, "nobody's", "kiwi"), _by(ADA, "hers", "kiwi"))
    assert _counts(await _undo(store, WritesBy(NOW, ""))) == (1, 0, [])
    assert _counts(await _undo(store, WritesBy(NOW))) == (1, 0, [])


async def test_an_import_that_keeps_an_older_time_is_of_that_time(store: Store) -> None:
    restored = Provenance("mallory", write_us=NOW - 9 * SECOND)
    await _put(store, _by(restored, "a", "kiwi", 5))
    assert _counts(await _undo(store)) == (0, 0, [])
    assert _counts(await _undo(store, WritesBy(NOW - 10 * SECOND, "mallory"))) == (1, 0, [])


async def test_several_versions_of_theirs_are_undone_at_once_and_forgotten(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi"))
    for at in range(3):
        await _put(store, _by(MALLORY, "a", f"poison {at}", 2 + at))
    assert _counts(await _undo(store)) == (0, 1, [])
    assert _counts(await _undo(store)) == (0, 0, [])
    # The current version is again the first: no version by Mallory comes back in its place.
    assert _counts(await _undo(store, WritesBy(NOW, "ada"))) == (1, 0, [])
    assert await scan_ids(store) == []
    await assert_consistent(store)


async def test_what_another_has_written_over_stays(store: Store) -> None:
    await _put(store, _by(MALLORY, "labelled", "poison"), _by(MALLORY, "rewritten", "poison"))
    await _put(store, _by(ADA, "labelled", "poison", 2, labels={"k": "v"}), _by(ADA, "rewritten", "kiwi", 2))
    assert _counts(await _undo(store)) == (0, 0, ["labelled"])
    assert await scan_ids(store) == ["labelled", "rewritten"]
    # Mallory's version does not come back when Ada's is undone.
    assert _counts(await _undo(store, WritesBy(NOW, "ada"))) == (0, 0, ["labelled", "rewritten"])
    await assert_consistent(store)


async def test_what_has_no_version_before_stays_and_is_told(stores: Stores) -> None:
    store = await stores.open()
    await _put(store, _by(ADA, "a", "kiwi"))
    await store.save_state(NS, build_state("s", "kiwi", NOW, provenance=ADA))
    await _put(store, _by(MALLORY, "a", "poison", 2))
    await store.save_state(NS, build_state("s", "poison", NOW + 2 * SECOND, provenance=MALLORY))
    await store.remove_expired(NOW + HISTORY_US + SECOND, 0, 100)
    assert (await _undo(store, dry_run=True)).restored_count == 2
    await store.remove_expired(NOW + HISTORY_US + 3 * SECOND, 0, 100)
    assert _counts(await _undo(store)) == (0, 0, ["a", "s"])
    assert (await get_item(store, "a")).content == TextPart("poison")


async def test_a_version_that_has_expired_is_not_brought_back(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi", expire_us=NOW + 60 * SECOND))
    await _put(store, _by(MALLORY, "a", "poison", 2))
    assert _counts(await _undo(store)) == (1, 0, [])
    await assert_consistent(store)


async def test_a_document_does_not_come_back_without_its_fragments(store: Store) -> None:
    facet = Facet(ItemKind.DOCUMENT)
    await _put(store, _by(ADA, "doc", "kiwi", facet=facet))
    await _put(store, _by(MALLORY, "doc", "poison", 2, facet=facet))
    assert _counts(await _undo(store)) == (1, 0, ["doc"])
    await assert_consistent(store)


async def test_a_file_comes_back_as_it_was_planned(store: Store) -> None:
    def file(item_id: str, path: str, text: str, writer: str) -> ItemWrite:
        facet = Facet(ItemKind.FILE, {"file_path": path}, {"path": path})
        return build_write(item_id, text, facet=facet, provenance=Provenance(writer))

    await store.add_items(NS, [file("a", "/a", "tea", "ada"), file("b", "/b", "new", "mallory")])
    await store.replace_item(NS, file("a", "/c", "bad", "mallory"))
    dry = await store.undo_items(NS, BY_MALLORY, 0, 9, dry_run=True)
    facet = Facet(ItemKind.FILE, {"file_path": "/d"}, {"path": "/d"})
    since = Since(3, kinds=frozenset({ItemKind.FILE}))
    with pytest.raises(FilesRestored) as caught:
        await store.undo_items(NS, BY_MALLORY, 0, 9, dry_run=False)
    assert caught.value.files == {"a": 1, "b": 0}
    for version in (("a", 3), ("b", 1)):
        with pytest.raises(FilesRestored):
            wrong = RestoredFiles({version: facet}, since)
            await store.undo_items(NS, BY_MALLORY, 0, 9, dry_run=False, files=wrong)
    await store.add_items(NS, [file("c", "/d", "other", "ada")])
    files = RestoredFiles({("a", 1): facet}, since)
    with pytest.raises(Conflict):
        await store.undo_items(NS, BY_MALLORY, 0, 9, dry_run=False, files=files)
    assert await scan_ids(store) == ["a", "b", "c"]
    files = RestoredFiles({("a", 1): facet}, replace(since, revision=4))
    done = await store.undo_items(NS, BY_MALLORY, 0, 9, dry_run=False, files=files)
    assert (done.removed_count, done.restored_count) == (dry.removed_count, dry.restored_count) == (1, 1)
    item = (await store.get_items(NS, ["a"]))["a"]
    assert item.facet == facet and item.content == TextPart("tea")
    assert await scan_ids(store, tags=(("file_path", "/d"),)) == ["a", "c"]


async def test_a_version_of_another_model_waits_for_its_vector(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi", vector=axis_vector(0), model=MODEL))
    await _put(store, _by(MALLORY, "a", "poison", 2, vector=axis_vector(1), model=MODEL))
    await store.begin_reembedding(NS, "local:b", 4, replace_client_vectors=False)
    assert _counts(await _undo(store)) == (0, 1, [])
    assert [item.id for item in await store.pending_items(NS, 0, 10)] == ["a"]
    assert await found_by_vector(store, axis_vector(0)) == set()
    await assert_consistent(store)


async def test_a_version_that_waited_waits_again(store: Store) -> None:
    first = build_pending("a", "kiwi", update_us=NOW + SECOND, provenance=ADA)
    await _put(store, first)
    await _put(store, _by(MALLORY, "a", "poison", 2, vector=axis_vector(1), model=MODEL))
    assert _counts(await _undo(store)) == (0, 1, [])
    assert [item.id for item in await store.pending_items(NS, 0, 10)] == ["a"]
    await assert_consistent(store)


async def test_a_version_that_kept_its_vector_gets_it_back(store: Store) -> None:
    await _put(store, _by(ADA, "a", "kiwi", vector=axis_vector(0)))
    await _put(store, _by(MALLORY, "a", "kiwi", 2, keep_vector=True, labels={"k": "poison"}))
    assert _counts(await _undo(store)) == (0, 1, [])
    assert await found_by_vector(store, axis_vector(0)) == {"a"}
    assert await scan_ids(store, labels=(("k", "poison"),)) == []
    await assert_consistent(store)


async def test_states_are_undone_likewise(store: Store) -> None:
    await store.save_state(NS, build_state("a", "kiwi", NOW, provenance=ADA, description="fruit"))
    for at in (1, 2):
        await store.save_state(NS, build_state("a", "poison", NOW + at * SECOND, provenance=MALLORY))
    await store.save_state(NS, build_state("m", "poison", NOW + SECOND, provenance=MALLORY))
    assert _counts(await _undo(store)) == (1, 1, [])
    entries = await store.load_states(NS, ["a", "m"])
    assert list(entries) == ["a"]
    entry = entries["a"]
    assert (entry.value_json, entry.description, entry.version) == (b'"kiwi"', "fruit", 4)
    assert (entry.create_us, entry.update_us) == (NOW, NOW)
    assert entry.provenance == Provenance("ada", "key-1", trust=0.9, copy_of=1)
    assert _counts(await _undo(store, WritesBy(NOW, "ada"))) == (1, 0, [])
    await assert_consistent(store)


async def test_deletions_are_counted_for_who_made_them(store: Store) -> None:
    await _put(store, *(_by(ADA, f"i{n}", "kiwi") for n in range(4)))
    await store.save_state(NS, build_state("s", 1, NOW))
    mallory = Caller("mallory", "key-2", ("*",), frozenset())
    await store.delete_item(NS, "i0", now_us=NOW, by=mallory)
    await store.add_items(NS, [], removals=["i1", "none"], by=mallory)
    await store.delete_state(NS, "s", now_us=NOW, by=mallory)
    await store.clear_states(NS, by=mallory)
    await store.delete_item(NS, "i2", now_us=NOW)
    assert await store.count_removals(NS, BY_MALLORY) == 4
    assert await store.count_removals(NS, WritesBy(NOW, "mallory", "key-1")) == 0
    assert await store.count_removals(NS, WritesBy(NOW)) == 5
    assert await store.count_removals("other", WritesBy(NOW)) == 0


async def test_what_is_forgotten_leaves_no_version_behind(store: Store) -> None:
    """A new item of the same id, or a new namespace of the same name, has no past."""
    for forget in ("delete", "reset", "namespace"):
        await _put(store, _by(ADA, "a", "secret"))
        await store.save_state(NS, build_state("s", "secret", NOW, provenance=ADA))
        await _put(store, _by(ADA, "a", "kiwi", 2))
        await store.save_state(NS, build_state("s", "kiwi", NOW + SECOND, provenance=ADA))
        if forget == "delete":
            await store.delete_item(NS, "a", now_us=NOW)
            await store.delete_state(NS, "s", now_us=NOW)
        else:
            await (store.reset(NS) if forget == "reset" else store.delete_namespace(NS))
        await _put(store, _by(MALLORY, "a", "poison", 3))
        await store.save_state(NS, build_state("s", "poison", NOW + 3 * SECOND, provenance=MALLORY))
        assert _counts(await _undo(store)) == (2, 0, [])
        assert not await words_found(store, "secret")


@pytest.mark.parametrize("forget", ["delete", "reset", "namespace"])
async def test_the_tables_hold_no_version_of_what_was_forgotten(
    stores: Stores, file_store: Store, forget: str
) -> None:
    await _put(file_store, _by(ADA, "a", "secret"))
    await file_store.save_state(NS, build_state("s", "secret", NOW, provenance=ADA))
    await _put(file_store, _by(ADA, "a", "kiwi", 2))
    await file_store.save_state(NS, build_state("s", "kiwi", NOW + SECOND, provenance=ADA))
    if forget == "delete":
        await file_store.delete_item(NS, "a", now_us=NOW)
        await file_store.delete_state(NS, "s", now_us=NOW)
    else:
        await (file_store.reset(NS) if forget == "reset" else file_store.delete_namespace(NS))
    await stores.close()
    with contextlib.closing(sqlite3.connect(stores.data_dir / "records.db")) as database:
        for table in ("item_history", "state_history"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


async def test_an_undo_survives_a_restart(reopen: Reopen, durable_store: Store) -> None:
    await _put(durable_store, _by(ADA, "a", "kiwi", vector=axis_vector(0)))
    await _put(durable_store, _by(MALLORY, "a", "poison", 2, vector=axis_vector(1)))
    store = await reopen()
    assert _counts(await _undo(store)) == (0, 1, [])
    store = await reopen()
    assert await words_found(store, "kiwi") == {"a"} == await found_by_vector(store, axis_vector(0))
    assert _counts(await _undo(store)) == (0, 0, [])
    await assert_consistent(store)


async def test_the_receipt_of_an_undo_is_kept(store: Store) -> None:
    await _put(store, _by(MALLORY, "a", "poison"))
    receipt = Receipt(0, removed_count=3, restored_count=2)
    receipt.unrestorable_count = 1
    first = await store.record_request(NS, receipt, build_request())
    found = await store.find_receipt(NS, build_request())
    assert found is not None and found.revision == first.revision == 1
    assert (found.removed_count, found.restored_count, found.unrestorable_count) == (3, 2, 1)
    assert (await store.record_request(NS, Receipt(0), build_request())).removed_count == 3
    with pytest.raises(FailedPrecondition):
        await store.record_request(NS, Receipt(0), build_request(digest=b"other"))


async def test_steps_end_where_the_next_begins(store: Store) -> None:
    for at in range(7):
        await _put(store, _by(ADA, f"i{at}", "kiwi"), _by(MALLORY, f"m{at}", "poison"))
        await store.save_state(NS, build_state(f"s{at}", 1, NOW + SECOND, provenance=MALLORY))
    await _put(store, *(_by(MALLORY, f"i{at}", "poison", 2) for at in range(7)))
    first = await store.undo_items(NS, BY_MALLORY, 0, 3, dry_run=False)
    assert first.following is not None and first.removed_count + first.restored_count == 3
    # Interrupted here, and started again.
    rest = await _undo(store, limit=3)
    assert first.removed_count + rest.removed_count == 14
    assert first.restored_count + rest.restored_count == 7
    assert await scan_ids(store) == [f"i{at}" for at in range(7)]
    assert await words_found(store, "kiwi") == {f"i{at}" for at in range(7)}
    await assert_consistent(store)


class _Known:
    """The expected contents: the versions of each item, the current one last, as (writer, second, text)."""

    def __init__(self) -> None:
        self.versions: dict[str, list[tuple[str, int, str]]] = {}
        self.whole: dict[str, bool] = {}

    def put(self, item_id: str, version: tuple[str, int, str]) -> None:
        if item_id not in self.versions:
            self.whole[item_id] = True
        self.versions.setdefault(item_id, []).append(version)

    def undo(self, writer: str, since: int) -> tuple[int, int, list[str]]:
        removed, restored, left = 0, 0, []
        for item_id, versions in list(self.versions.items()):
            theirs = [v for v in versions if v[0] == writer and v[1] >= since]
            rest = [v for v in versions if v not in theirs]
            if not theirs:
                continue
            if versions[-1] not in theirs:
                if any(v[2] == versions[-1][2] for v in theirs):
                    left.append(item_id)
                self.whole[item_id] &= versions[0] not in theirs
                self.versions[item_id] = rest
            elif rest:
                restored += 1
                self.whole[item_id] &= versions[0] not in theirs
                self.versions[item_id] = rest
            elif self.whole[item_id]:
                removed += 1
                del self.versions[item_id], self.whole[item_id]
            else:
                left.append(item_id)
                self.versions[item_id] = versions[-1:]
        return removed, restored, left


@pytest.mark.parametrize("seed", range(2))
async def test_any_mixture_of_writes_and_undos(store: Store, seed: int) -> None:
    choose, known = Random(seed), _Known()
    writers = {"ada": ADA, "mallory": MALLORY}
    for second in range(1, 90):
        kind, item_id = choose.random(), f"i{choose.randrange(8)}"
        if kind < 0.75:
            who, text = choose.choice(sorted(writers)), choose.choice(["kiwi", "fig"])
            vector = choose.choice([None, axis_vector(choose.randrange(4))])
            await _put(store, _by(writers[who], item_id, text, second, vector=vector))
            known.put(item_id, (who, second, text))
        elif kind < 0.85 and item_id in known.versions:
            await store.delete_item(NS, item_id, now_us=NOW)
            del known.versions[item_id], known.whole[item_id]
        else:
            who, since = choose.choice(sorted(writers)), choose.randrange(second)
            by = WritesBy(NOW + since * SECOND, who)
            removed, restored, left = known.undo(who, since)
            done = await _undo(store, by, limit=choose.choice([1, 3, 100]))
            assert (done.removed_count, done.restored_count, sorted(done.unrestorable)) == (
                removed, restored, sorted(left),
            )  # fmt: skip
        present = {item_id: versions[-1] for item_id, versions in known.versions.items()}
        for text in ("kiwi", "fig"):
            assert await words_found(store, text) == {i for i, v in present.items() if v[2] == text}
        found = await store.get_items(NS, [f"i{n}" for n in range(8)])
        assert {i: (item.provenance or ADA).writer for i, item in found.items()} == {
            i: version[0] for i, version in present.items()
        }
        await assert_consistent(store)
