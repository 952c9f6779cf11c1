"""A budget for indexes in memory: the least recently used are dropped first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grpc_api import Api
from server_process import ServerProcess


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The stubs of a server with a budget below the size of any view."""
    folder: Path = tmp_path_factory.mktemp("data")
    with ServerProcess(folder, flags=["--views-bytes-max", "1000"]) as server:
        api = Api.connect(server.address)
        yield api
        api.channel.close()


def loaded(api: Api, namespace: str) -> bool:
    return api.stats(namespace).index.loaded


def test_a_view_over_the_budget_stays_until_another_is_used(crowded: Api, namespace: str) -> None:
    one, other = f"{namespace}/one", f"{namespace}/other"
    for each in (one, other):
        crowded.add_texts(each, "tea in the garden", "a train to the coast")
    for used, unused in ((one, other), (other, one)):
        assert crowded.found(used, query_text="garden", limit=1) == ["tea in the garden"]
        assert (loaded(crowded, used), loaded(crowded, unused)) == (True, False)


def test_views_that_only_grow_are_weighed(tmp_path: Path) -> None:
    budget = 300_000
    with ServerProcess(tmp_path, flags=["--views-bytes-max", str(budget)]) as server:
        api = Api.connect(server.address)
        names = [f"user/{number}" for number in range(30)]
        for name in names:
            api.add_texts(name, *(f"tea number {number}" for number in range(40)))
        kept = [stats.index.memory_bytes for name in names if (stats := api.stats(name)).index.loaded]
        api.channel.close()
    # Before the last one was measured, the others were within the budget.
    assert 0 < sum(kept[:-1]) <= budget
    assert len(kept) < 10
