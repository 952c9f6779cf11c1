"""Expired data is removed again and again, however one removal ends."""

from __future__ import annotations

import asyncio

from memory_service.config import Config
from memory_service.domain.page_tokens import PageTokens
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.server.services import Services


class FaultyStore(InMemoryStore):
    """A store whose first removal fails unexpectedly."""

    def __init__(self) -> None:
        super().__init__()
        self.removals = 0
        self.removed_again = asyncio.Event()

    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        self.removals += 1
        if self.removals == 1:
            raise ZeroDivisionError
        self.removed_again.set()
        return await super().remove_expired(now_us, forget_requests_before_us, limit)


async def test_a_fault_that_nobody_foresaw_does_not_end_the_sweep() -> None:
    store = FaultyStore()
    services = Services(Config(store="memory", sweep_s=0.001), store, None, None, None, PageTokens(bytes(32)))
    async with services.administration.sweeping():
        async with asyncio.timeout(60):
            await store.removed_again.wait()
    assert store.removals >= 2


class SharedStore(InMemoryStore):
    """A store with a clock other than this process's, which other servers sweep at first."""

    clock_us = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self.turns = iter((None, None, self.clock_us))
        self.removed_at: list[int] = []
        self.removed = asyncio.Event()

    async def claim(self, task: str, seconds: float) -> int | None:
        return next(self.turns, None)

    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        self.removed_at.append(now_us)
        self.removed.set()
        return await super().remove_expired(now_us, forget_requests_before_us, limit)


async def test_who_has_the_sweep_removes_by_the_clock_that_all_share() -> None:
    store = SharedStore()
    services = Services(Config(store="memory", sweep_s=0.001), store, None, None, None, PageTokens(bytes(32)))
    async with services.administration.sweeping():
        async with asyncio.timeout(60):
            await store.removed.wait()
    assert store.removed_at == [store.clock_us]
