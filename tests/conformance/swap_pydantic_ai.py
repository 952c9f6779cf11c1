"""Runs pydantic-ai-harness's tests of its stores for one process with the store over a server.

Of the three stores that `_local_stores` returns, all are swapped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memory_client.pydantic_ai import MemoryServiceMemoryStore

ADDRESS = os.environ["CONFORMANCE_SERVER"]


def stores(tmp_path: Path) -> list[MemoryServiceMemoryStore]:
    """Return the store three times, in a namespace of the test."""
    return [MemoryServiceMemoryStore(ADDRESS, namespace=str(tmp_path).strip("/"))] * 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Swap the function that makes the stores."""
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        assert hasattr(module, "_local_stores")
        module._local_stores = stores
