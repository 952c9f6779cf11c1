"""Which of several servers runs a task that only one should run."""

from __future__ import annotations

import time

import pytest

from contract.conftest import Stores
from memory_service.records.base import Records
from memory_service.runtime.clock import now_us

SECOND = 1_000_000


async def test_who_asks_alone_has_every_task(store: Records) -> None:
    if store.capabilities.shared:
        pytest.skip("others may be first")
    before = now_us()
    for _ in range(2):
        claimed = await store.claim("sweep", 60)
        assert claimed is not None and before <= claimed <= now_us()
    await store.give_up("sweep")
    await store.give_up("never claimed")


@pytest.fixture
async def both(stores: Stores) -> tuple[Records, Records]:
    """Two servers over the same records."""
    first = await stores.open()
    if not first.capabilities.shared or stores.case.servers > 1:
        pytest.skip("needs two stores, each of one server, over the same records")
    return first, await stores.open()


async def test_one_of_two_servers_has_a_task(both: tuple[Records, Records]) -> None:
    here, there = both
    assert await here.claim("sweep", 60) is not None
    assert await there.claim("sweep", 60) is None
    # The holder may claim again; another server may claim another task.
    assert await here.claim("sweep", 60) is not None
    assert await there.claim("backfill", 60) is not None
    assert await here.claim("backfill", 60) is None


async def test_a_claim_tells_the_time_of_all(both: tuple[Records, Records]) -> None:
    times = [await store.claim(f"task {number}", 60) for number, store in enumerate(both)]
    assert all(claimed is not None and abs(claimed - now_us()) < 60 * SECOND for claimed in times)
    assert times == sorted(times, key=lambda claimed: claimed or 0)


async def test_a_task_is_free_when_it_is_given_up(both: tuple[Records, Records]) -> None:
    here, there = both
    await here.claim("sweep", 60)
    await there.give_up("sweep")
    assert await there.claim("sweep", 60) is None
    await here.give_up("sweep")
    assert await there.claim("sweep", 60) is not None


async def test_a_task_is_free_when_its_time_is_over(both: tuple[Records, Records]) -> None:
    here, there = both
    for seconds in (600, 0.3):
        # The last claim counts, even if it is shorter.
        assert await here.claim("sweep", seconds) is not None
    began = time.monotonic()
    while await there.claim("sweep", 60) is None:
        assert time.monotonic() - began < 30
    assert time.monotonic() - began > 0.2
    assert await here.claim("sweep", 60) is None


async def test_what_a_server_had_is_free_when_it_closes(
    stores: Stores, both: tuple[Records, Records]
) -> None:
    here, there = both
    await there.claim("sweep", 600)
    await there.claim("backfill", 600)
    await there.close()
    assert await here.claim("sweep", 60) is not None
    assert await here.claim("backfill", 60) is not None
