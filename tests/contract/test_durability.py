"""Durability: the next process finds all acknowledged writes, and no partial ones."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract.builders import (
    CONTENTS,
    EVERYTHING,
    NOW,
    NS,
    PLENTY,
    SECOND,
    axis_vector,
    build_item,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
    recall,
    scan_ids,
    search_hits,
    word_scores,
    words_found,
)
from contract.cases import ENCRYPTED, STORES, StoreCase
from contract.conftest import Reopen, Stores
from contract.invariants import assert_consistent
from contract.writer_process import BATCH
from memory_service.data_model import ChangeType, ItemWrite
from memory_service.errors import MemoryServiceError
from memory_service.records.base import CannotOpen
from memory_service.store import Store

# Longer than any write takes: one that never ends fails its test instead of hanging it.
HANG_S = 10


@pytest.fixture(params=[pytest.param(case, id=case.name) for case in (*STORES, ENCRYPTED)])
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store in turn, one of them encrypted."""
    chosen: StoreCase = request.param
    return chosen


async def _snapshot(store: Store, namespace: str = NS) -> dict[str, Any]:
    """Return everything that can be read of a namespace, except for searches by vector."""
    positions = await (await store.read(namespace)).scan(EVERYTHING, -1, newest=False)
    items = await (await store.read(namespace)).load_items(positions, with_embedding=True)
    embeddings = {i.id: i.embedding.tobytes() for i in items if i is not None and i.embedding is not None}
    return {
        "items": await (await store.read(namespace)).load_items(positions),
        "embeddings": embeddings,
        "states": await store.scan_states(namespace, "", PLENTY, now_us=NOW),
        "changes": await store.read_changes(namespace, 0, PLENTY),
        "info": await store.namespace(namespace),
        "words": await word_scores(store, "kiwi plum", namespace),
    }


async def _write_of_everything(store: Store) -> None:
    vectors = random_vectors(60)
    contents = [
        ItemWrite(build_item(kind, content=content, metadata={"kind": kind}), f"kiwi {kind}")
        for kind, content in CONTENTS.items()
    ]
    await store.add_items(NS, contents)
    for n in range(0, 60, 20):
        labels = {"k": f"v{n}", "": "\u00e9"}
        fields: dict[str, Any] = {"labels": labels, "session_id": f"s{n}", "model": "local:a"}
        await store.add_items(
            NS, [build_write(f"i{k}", f"kiwi w{k}", vectors[k], **fields) for k in range(n, n + 20)]
        )
    await store.replace_item(NS, build_write("i1", "plum", keep_vector=True, expire_us=NOW + SECOND))
    await store.replace_item(NS, build_write("i2", "plum"))
    await store.delete_item(NS, "i3", now_us=NOW)
    for key in ("k", "\u00e9", "gone"):
        await store.save_state(NS, build_state(key, {"a": [key, 1.5, None]}, description=key))
    await store.save_state(NS, build_state("k", "again", expire_us=NOW + SECOND))
    await store.delete_state(NS, "gone", now_us=NOW)


@pytest.mark.parametrize("flushed", [False, True])
async def test_everything_is_there_after_reopening(
    durable_store: Store, reopen: Reopen, flushed: bool
) -> None:
    await _write_of_everything(durable_store)
    if flushed:
        await durable_store.flush()
    before = await _snapshot(durable_store)
    store = await reopen()
    after = await _snapshot(store)
    assert after.pop("words") == pytest.approx(before.pop("words"))
    assert after == before
    await assert_consistent(store)
    vectors = random_vectors(60)
    live = {f"i{n}": vectors[n] for n in range(60) if n not in (2, 3)}
    assert await found_by_vector(store, vectors[0]) == set(live)
    assert (await recall(store, live, random_vectors(40, stream=1))).is_as_promised
    assert await scan_ids(store, session_id="s20", labels=(("k", "v20"),)) == [f"i{n}" for n in range(20, 40)]


async def test_reopening_is_no_change(durable_store: Store, reopen: Reopen) -> None:
    await _write_of_everything(durable_store)
    before = await _snapshot(durable_store)
    store = durable_store
    for _ in range(3):
        store = await reopen()
    after = await _snapshot(store)
    assert (after["info"], after["changes"]) == (before["info"], before["changes"])


async def test_work_goes_on_after_reopening(durable_store: Store, reopen: Reopen) -> None:
    vectors = random_vectors(120)
    store, live = durable_store, {}
    for n in range(0, 120, 12):
        for k in range(n, n + 12):
            receipt = await store.add_items(NS, [build_write(f"i{k}", f"kiwi w{k}", vectors[k])])
            live[f"i{k}"] = vectors[k]
        await store.delete_item(NS, f"i{n}", now_us=NOW)
        del live[f"i{n}"]
        store = await reopen()
        assert (await store.read_changes(NS, receipt.revision, 9))[0].type == ChangeType.ITEM_DELETED
        assert await words_found(store, "kiwi") == set(live)
        assert await found_by_vector(store, vectors[0]) == set(live)
        assert (await recall(store, live, random_vectors(4, stream=1))).is_as_promised
    revisions = [change.revision for change in await store.read_changes(NS, 0, PLENTY)]
    assert revisions == sorted(set(revisions)) and len(revisions) == 130


async def test_an_item_added_after_reopening_is_found_beside_the_old(
    durable_store: Store, reopen: Reopen
) -> None:
    await durable_store.add_items(
        NS, [build_write(f"i{n}", "kiwi", vector) for n, vector in enumerate(random_vectors(50, 4))]
    )
    await durable_store.flush()
    store = await reopen()
    await store.add_items(NS, [build_write("new", "kiwi", axis_vector(2))])
    hits = await search_hits(store, vector=axis_vector(2), candidates=1)
    assert hits["new"].vector_score == pytest.approx(1)
    assert len(await words_found(store, "kiwi")) == 51


async def test_what_was_removed_stays_removed_after_reopening(durable_store: Store, reopen: Reopen) -> None:
    vectors = random_vectors(80)
    writes = [build_write(f"i{n}", f"kiwi w{n}", vectors[n]) for n in range(80)]
    for name in ("deleted", "reset", "dropped", "expired"):
        fresh = [build_write(w.item.id, w.search_text, w.item.embedding, expire_us=NOW + 1) for w in writes]
        await durable_store.add_items(name, fresh)
    # When items are removed, they are all in the index files.
    await durable_store.flush()
    for n in range(80):
        await durable_store.delete_item("deleted", f"i{n}", now_us=NOW)
    await durable_store.reset("reset")
    await durable_store.delete_namespace("dropped")
    assert await durable_store.remove_expired(NOW + 1, 0, PLENTY) == 80
    store = await reopen()
    for name in ("deleted", "reset", "dropped", "expired"):
        assert await scan_ids(store, name) == []
        assert await search_hits(store, name, vector=vectors[0], text="kiwi w1") == {}
        assert await store.get_items(name, ["i0", "i1"]) == {}
    assert await store.namespace("dropped") is None
    # New items reuse the names and ids of the old ones: nothing of those may come back with them.
    for name in ("deleted", "reset", "dropped", "expired"):
        await store.add_items(name, [build_write("i0", "plum", vectors[79])])
        assert set(await search_hits(store, name, vector=vectors[79], text="kiwi plum")) == {"i0"}


async def test_revisions_versions_and_uids_go_on_after_reopening(
    durable_store: Store, reopen: Reopen
) -> None:
    store = durable_store
    for n in range(3):
        await store.save_state(NS, build_state("k", n))
    await store.delete_state(NS, "k", now_us=NOW)
    last = await store.reset(NS)
    await store.save_state("dropped", build_state("k"))
    dropped = await store.namespace("dropped")
    await store.delete_namespace("dropped")
    store = await reopen()
    receipt = await store.save_state(NS, build_state("k"))
    assert receipt.version > 3
    assert receipt.revision > last.revision
    await store.save_state("dropped", build_state("k"))
    again = await store.namespace("dropped")
    assert dropped is not None and again is not None and again.uid != dropped.uid


async def test_a_failed_batch_leaves_nothing_for_the_next_process(
    durable_store: Store, reopen: Reopen
) -> None:
    await durable_store.add_items(NS, [build_write("a", "kiwi", [1, 0])])
    await durable_store.save_state(NS, build_state("k"))
    with pytest.raises(MemoryServiceError):
        await durable_store.add_items(
            NS, [build_write("b", "kiwi", [0, 1]), build_write("c", "kiwi", [0, 1, 0])]
        )
    with pytest.raises(MemoryServiceError):
        await durable_store.add_items(NS, [build_write("d")], states=[build_state("l"), build_state("k")])
    store = await reopen()
    assert await scan_ids(store) == ["a"]
    assert await words_found(store, "kiwi") == {"a"}
    assert [entry.key for entry in await store.scan_states(NS, "", 9, now_us=NOW)] == ["k"]


async def test_closing_finishes_what_was_begun(durable_store: Store, stores: Stores) -> None:
    tasks = [asyncio.create_task(durable_store.add_items(NS, [build_write(f"i{n}")])) for n in range(20)]
    await asyncio.sleep(0)
    await stores.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    acknowledged = {f"i{n}" for n, outcome in enumerate(outcomes) if not isinstance(outcome, BaseException)}
    store = await stores.open()
    assert acknowledged <= set(await scan_ids(store))
    await assert_consistent(store)


async def test_no_write_hangs_beside_closing(durable_store: Store, stores: Stores) -> None:
    acknowledged: set[str] = set()
    begun = asyncio.Event()

    async def write_on(writer: int) -> None:
        for n in range(50):
            await durable_store.add_items(NS, [build_write(f"{writer}-{n}")])
            acknowledged.add(f"{writer}-{n}")
            begun.set()

    writers = [asyncio.create_task(write_on(writer)) for writer in range(8)]
    await begun.wait()
    await stores.close()
    # A write that comes too late may fail in any way except by hanging.
    _, hanging = await asyncio.wait(writers, timeout=HANG_S)
    for writer in hanging:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)
    assert not hanging
    store = await stores.open()
    assert acknowledged <= set(await scan_ids(store))
    await assert_consistent(store)


@contextmanager
def _writer(case: StoreCase, data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes to a store; kill it at the end."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "contract.writer_process", case.name, str(data_dir)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("batches", [1, 40])
async def test_a_killed_process_loses_nothing_that_it_acknowledged(
    durable_store: Store, case: StoreCase, stores: Stores, batches: int
) -> None:
    await stores.close()
    with _writer(case, stores.data_dir) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        last = -1
        while last < batches:
            last = int(process.stdout.readline())
    store = await stores.open()
    ids = await scan_ids(store)
    whole = len(ids) // BATCH
    assert whole > last
    assert ids == [f"{n}-{k}" for n in range(whole) for k in range(BATCH)]
    counter = (await store.load_states(NS, ["counter"]))["counter"]
    assert int(counter.value_json) in (whole - 2, whole - 1)
    await assert_consistent(store)
    assert await words_found(store, "kiwi") == set(ids)
    vectors = random_vectors(3000)
    live = {name: vectors[at] for at, name in enumerate(ids)}
    assert await found_by_vector(store, vectors[0]) == set(live)
    assert (await recall(store, live, random_vectors(40, stream=1))).is_as_promised
    # A client that repeats an unanswered request is recognised.
    repeated = await store.add_items(NS, [build_write("again")], request=build_request(f"r{whole - 1}"))
    assert repeated.replayed


async def test_a_second_store_on_the_same_folder_is_refused(sole_store: Store, stores: Stores) -> None:
    await sole_store.add_items(NS, [build_write("a")])
    # Twice: a refused attempt that closes the file may release a lock of the operating system.
    for _ in range(2):
        second = stores.case.make(stores.data_dir)
        with pytest.raises(CannotOpen):
            await second.open()
    await sole_store.add_items(NS, [build_write("b")])
    assert await scan_ids(sole_store) == ["a", "b"]
    store = await stores.reopen()
    assert await scan_ids(store) == ["a", "b"]


async def test_a_second_process_on_the_same_folder_is_refused(
    sole_store: Store, case: StoreCase, stores: Stores
) -> None:
    await sole_store.add_items(NS, [build_write("a")])
    with _writer(case, stores.data_dir) as process:
        out, _ = process.communicate()
    assert process.returncode == 1
    assert out == ""
    assert await scan_ids(sole_store) == ["a"]


async def test_damaged_records_are_refused_and_not_taken_for_none(
    file_store: Store, stores: Stores, tmp_path: Path
) -> None:
    await file_store.add_items(NS, [build_write(f"i{n}") for n in range(50)])
    await stores.close()
    shutil.copytree(stores.data_dir, tmp_path / "whole")
    for path in [path for path in stores.data_dir.iterdir() if path.is_file()]:
        path.write_bytes(random.Random(1).randbytes(path.stat().st_size))
    for _ in range(2):
        with pytest.raises(CannotOpen):
            await stores.case.make(stores.data_dir).open()
    # A refused open holds nothing: once the records are back, they open.
    shutil.rmtree(stores.data_dir)
    shutil.copytree(tmp_path / "whole", stores.data_dir)
    store = await stores.open()
    assert len(await scan_ids(store)) == 50
