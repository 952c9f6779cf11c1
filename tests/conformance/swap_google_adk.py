"""Runs Google ADK's contract tests of session services, and its tests of memories, over a server.

Tests that take the fixture `session_service` run once, with the service over a server in place of the first
of its parameters; the others are about single services and are left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.memory.memory_entry import MemoryEntry

from memory_client import MemoryClient
from memory_client._adk_events import value_of
from memory_client.google_adk import MemoryServiceMemoryService, MemoryServiceSessionService

ADDRESS = os.environ["CONFORMANCE_SERVER"]


def sessions(*_: Any) -> MemoryServiceSessionService:
    """Return a service in a new namespace."""
    return MemoryServiceSessionService(ADDRESS, namespace=uuid.uuid4().hex)


@contextlib.asynccontextmanager
async def make_sessions(_: Any) -> AsyncIterator[MemoryServiceSessionService]:
    """Make such a service, as `_conformance.py` does."""
    async with sessions() as service:
        yield service


class Memories(MemoryServiceMemoryService):
    """A service in a new namespace, into which the tests can look."""

    def __init__(self) -> None:
        self.namespace = uuid.uuid4().hex
        super().__init__(ADDRESS, namespace=self.namespace)

    @property
    def _session_events(self) -> Any:
        return Stored(self.namespace)


class Stored(defaultdict[Any, Any]):
    """What the server has, by user and session, as the service for one process keeps it."""

    def __init__(self, namespace: str) -> None:
        super().__init__(lambda: Stored(""))
        if not namespace:
            return
        with MemoryClient(ADDRESS, namespace=namespace) as client:
            for item in client.list_items(filter="labels:google_adk_memory"):
                user = item.labels["google_adk_memory"]
                source = item.labels["google_adk_memory_session"] or "__unknown_session_id__"
                for key in (user, tuple(user.split("/"))):
                    self[key].setdefault(source, []).append(MemoryEntry.model_validate(value_of(item)))

    def __contains__(self, key: object) -> bool:
        return True  # A user or a session without memories is not stored.

    def __missing__(self, key: Any) -> Any:
        self[key] = Stored("") if not isinstance(key, str) or "/" in key else []
        return self[key]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Swap the services, and leave out what is not about them."""
    kept: list[pytest.Item] = []
    for item in items:
        assert isinstance(item, pytest.Function)
        if hasattr(item.module, "InMemoryMemoryService"):
            item.module.InMemoryMemoryService = Memories
            kept.append(item)
        elif "session_service" in item.fixturenames and item.callspec.indices["session_service"] == 0:
            parameter = item.callspec.params["session_service"]
            if dataclasses.is_dataclass(parameter):  # A backend of `_conformance.py`.
                swapped: Any = dataclasses.replace(parameter, make=make_sessions, divergences={})  # type: ignore[type-var]
                item.callspec.params["session_service"] = swapped
            else:
                item.module.get_session_service = sessions
            kept.append(item)
    items[:] = kept
