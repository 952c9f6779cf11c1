"""Backup: a copy of all records at one moment, that opens as a store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
    recall,
    scan_ids,
    words_found,
)
from contract.cases import ENCRYPTED, STORES, StoreCase
from contract.conftest import Stores
from contract.invariants import assert_consistent
from memory_service.data_model import Change
from memory_service.errors import InvalidArgument, Unsupported
from memory_service.records.base import BackupReport
from memory_service.store import Store


@pytest.fixture(params=[pytest.param(case, id=case.name) for case in (*STORES, ENCRYPTED)])
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store in turn, one of them encrypted."""
    chosen: StoreCase = request.param
    return chosen


def _ignore(done_bytes: int, total_bytes: int) -> None:
    pass


def _folder(stores: Stores, name: str) -> Path:
    return stores.data_dir / "backups" / name


async def _fill(store: Store) -> None:
    vectors = random_vectors(60)
    for name in (NS, "other"):
        writes = [build_write(f"i{n}", f"kiwi w{n}", vectors[n]) for n in range(60)]
        await store.add_items(name, writes, request=build_request())
        await store.save_state(name, build_state("k", name))


async def test_a_backup_opens_as_a_store_with_all_records(backup_store: Store, stores: Stores) -> None:
    await _fill(backup_store)
    report = await backup_store.backup("b-1", _ignore)
    assert (report.name, report.namespace_count, report.item_count) == ("b-1", 2, 120)
    assert report.size_bytes > 0 and report.checksum
    copy = await stores.open(_folder(stores, "b-1"))
    vectors = random_vectors(60)
    for name in (NS, "other"):
        assert await copy.namespace(name) == await backup_store.namespace(name)
        assert await copy.read_changes(name, 0, PLENTY) == await backup_store.read_changes(name, 0, PLENTY)
        assert await copy.load_states(name, ["k"]) == await backup_store.load_states(name, ["k"])
        assert len(await words_found(copy, "kiwi", name)) == 60
        live = {f"i{n}": vectors[n] for n in range(60)}
        assert await found_by_vector(copy, vectors[0], name) == set(live)
        assert (await recall(copy, live, random_vectors(5, stream=1), namespace=name)).is_as_promised
    assert (await copy.add_items(NS, [build_write("again")], request=build_request())).replayed


async def test_a_backup_and_its_store_go_their_own_ways(backup_store: Store, stores: Stores) -> None:
    await _fill(backup_store)
    await backup_store.backup("b-1", _ignore)
    copy = await stores.open(_folder(stores, "b-1"))
    await copy.delete_item(NS, "i0", now_us=NOW)
    await backup_store.reset(NS)
    assert len(await scan_ids(copy)) == 59
    assert await scan_ids(backup_store) == []


async def test_a_backup_of_an_empty_store(backup_store: Store, stores: Stores) -> None:
    report = await backup_store.backup("empty", _ignore)
    assert (report.namespace_count, report.item_count) == (0, 0)
    copy = await stores.open(_folder(stores, "empty"))
    assert await copy.scan_namespaces("", "", 9) == []


async def test_a_backup_tells_how_far_it_is(backup_store: Store) -> None:
    await _fill(backup_store)
    told: list[tuple[int, int]] = []
    await backup_store.backup("b-1", lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done <= total for done, total in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


async def test_a_backup_beside_writers_is_of_one_moment(backup_store: Store, stores: Stores) -> None:
    await _fill(backup_store)
    ended = asyncio.Event()

    async def write_on() -> None:
        batch = 0
        while not ended.is_set() and batch < 150:
            await backup_store.add_items(NS, [build_write(f"{batch}-{n}", "plum") for n in range(5)])
            batch += 1

    writers = asyncio.create_task(write_on())
    reports = [await backup_store.backup(f"b-{n}", _ignore) for n in range(3)]
    ended.set()
    await writers
    changes = await backup_store.read_changes(NS, 0, PLENTY)
    for report in reports:
        await _assert_is_a_beginning(await stores.open(_folder(stores, report.name)), report, changes)


async def _assert_is_a_beginning(copy: Store, report: BackupReport, changes: list[Change]) -> None:
    copied = await copy.read_changes(NS, 0, PLENTY)
    assert copied == changes[: len(copied)]
    ids = await scan_ids(copy)
    assert (len(ids) - 60) % 5 == 0
    assert report.item_count == len(ids) + 60
    await assert_consistent(copy)


async def test_a_name_is_taken_once(backup_store: Store, stores: Stores) -> None:
    await _fill(backup_store)
    await backup_store.backup("b-1", _ignore)
    await backup_store.reset(NS)
    with pytest.raises(InvalidArgument):
        await backup_store.backup("b-1", _ignore)
    copy = await stores.open(_folder(stores, "b-1"))
    assert len(await scan_ids(copy)) == 60


async def test_a_backup_is_refused_where_it_is_not_offered(store: Store) -> None:
    if store.capabilities.backup:
        pytest.skip("needs a store without the capability `backup`")
    with pytest.raises(Unsupported):
        await store.backup("b-1", _ignore)
