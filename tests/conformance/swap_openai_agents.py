"""Runs the OpenAI Agents SDK's tests of sessions with sessions on a server in place of those in SQLite."""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from memory_client.openai_agents import MemorySession

ADDRESS = os.environ["CONFORMANCE_SERVER"]


class Swapped(MemorySession):
    """A session as the tests make it: the path of the database names the namespace."""

    def __init__(self, session_id: str, db_path: Any = None, *, session_settings: Any = None) -> None:
        namespace = uuid.uuid4().hex if db_path is None else str(db_path).strip("/")
        super().__init__(session_id, ADDRESS, namespace=namespace, session_settings=session_settings)

    def close(self) -> None:
        """Do nothing: the tests close sessions outside of their event loops."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Swap the class."""
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        if hasattr(module, "SQLiteSession"):
            module.SQLiteSession = Swapped
