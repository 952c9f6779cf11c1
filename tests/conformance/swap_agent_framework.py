"""Runs Agent Framework's tests of its history providers with the provider over a server."""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from memory_client.agent_framework import MemoryServiceContextProvider

ADDRESS = os.environ["CONFORMANCE_SERVER"]


def in_memory(source_id: str = "in_memory", **options: Any) -> MemoryServiceContextProvider:
    """Return a provider in place of the one that keeps messages in the state of a session."""
    return MemoryServiceContextProvider(ADDRESS, namespace=uuid.uuid4().hex, source_id=source_id, **options)


def in_files(storage_path: Any, **options: Any) -> MemoryServiceContextProvider:
    """Return a provider in place of the one that keeps messages in files; the folder names the namespace."""
    return MemoryServiceContextProvider(ADDRESS, namespace=str(storage_path).strip("/"), **options)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Swap the classes, and leave out tests of other things."""
    kept = [item for item in items if item.nodeid.split("::")[1].endswith("HistoryProvider")]
    for module in {item.module for item in kept if isinstance(item, pytest.Function)}:
        assert hasattr(module, "InMemoryHistoryProvider")
        module.InMemoryHistoryProvider = in_memory
        module.FileHistoryProvider = in_files
    items[:] = kept
