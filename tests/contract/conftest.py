"""A fresh store for each test, opened before it and closed after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from contract.cases import STORES, StoreCase
from faults.scale import SOAK
from memory_service.store import Store
from server_stores import wanted_stores

Reopen = Callable[[], Awaitable[Store]]
_EVICTING = "postgres-evicting"
_OF_EVICTING = ("test_concurrency", "test_search", "test_view_snapshots")
"""What every run does with it. Views are dropped and loaded by the same code for every store, which
`hnsw-evicting` goes through everywhere; how they are read while others write is this store's own."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of a case that takes long, unless this is a soak or MEMORY_TEST_STORES names it."""
    if SOAK or _EVICTING in wanted_stores():
        return
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_left_out(item: pytest.Item) -> bool:
    case = (
        item.callspec.params.get("case")
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else None
    )
    return isinstance(case, StoreCase) and case.name == _EVICTING and item.path.stem not in _OF_EVICTING


class Stores:
    """The stores of one test. Those still open are closed at its end."""

    def __init__(self, case: StoreCase, data_dir: Path) -> None:
        self.case = case
        self.data_dir = data_dir
        self._open: list[Store] = []

    async def open(self, data_dir: Path | None = None) -> Store:
        """Open a store on a folder; None: the test's default folder."""
        store = self.case.make(data_dir or self.data_dir)
        await store.open()
        self._open.append(store)
        return store

    async def close(self) -> None:
        """Close all open stores, the last one first."""
        while self._open:
            await self._open.pop().close()

    async def reopen(self) -> Store:
        """Close, and open another store object on the same folder."""
        await self.close()
        return await self.open()


def _named(cases: list[StoreCase]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.fixture(params=_named(list(STORES)))
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store in turn."""
    chosen: StoreCase = request.param
    return chosen


@pytest.fixture
async def stores(case: StoreCase, tmp_path: Path) -> AsyncIterator[Stores]:
    """Open stores, for the tests that need more than one."""
    opened = Stores(case, tmp_path / "data")
    yield opened
    await opened.close()


@pytest.fixture
async def store(stores: Stores) -> Store:
    """An open, empty store."""
    return await stores.open()


def _with(store: Store, capability: str) -> Store:
    if not getattr(store.capabilities, capability):
        pytest.skip(f"needs a store with the capability `{capability}`")
    return store


@pytest.fixture
def durable_store(store: Store) -> Store:
    """An open, empty store that outlives its process."""
    return _with(store, "durable")


@pytest.fixture
def file_store(store: Store) -> Store:
    """An open, empty store whose files a test may open."""
    return _with(store, "files")


@pytest.fixture
def sole_store(durable_store: Store) -> Store:
    """An open, empty store that outlives its process and that only one process may open."""
    if durable_store.capabilities.shared:
        pytest.skip("needs a store without the capability `shared`")
    return durable_store


@pytest.fixture
def shared_store(store: Store) -> Store:
    """An open, empty store that several processes can use at the same time."""
    return _with(store, "shared")


@pytest.fixture
def reopen(stores: Stores, durable_store: Store) -> Reopen:
    """Return a function that closes the store and opens another store object on the same folder."""
    return stores.reopen


@pytest.fixture
def backup_store(store: Store) -> Store:
    """An open, empty store that can be backed up."""
    return _with(store, "backup")
