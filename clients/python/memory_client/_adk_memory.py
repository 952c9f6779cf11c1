"""Memories of Google ADK on a memory server."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from google.adk.events import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session

from memory_client._adapters import AsyncAdapter, label_of, quoted
from memory_client._adk_events import ID_LABEL, item_of, text_of, value_of
from memory_client.aio import AsyncMemoryClient
from memory_client.models import MemoryItem, OnDuplicate
from memory_client.operations import (
    AddOperation,
    DeleteWhereOperation,
    SaveStateOperation,
    WriteOperation,
)

MEMORY_LABEL = "google_adk_memory"
"""The label of every memory of a user in an app."""
SOURCE_LABEL = "google_adk_memory_session"
"""The label of every memory that comes from one session."""

_BATCH = 900
"""Memories per call. A batch may have 1000 operations."""


class MemoryServiceMemoryService(AsyncAdapter, BaseMemoryService):
    """A memory service for `Runner(memory_service=...)`.

    Memories of all apps and users are in one namespace, and each user's are searched alone, by words and
    meaning. A memory is on disk when the call returns.
    """

    def __init__(
        self,
        client: AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        limit: int = 10,
        min_relevance: float = 0.2,
    ) -> None:
        """Make a service.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace for all memories. None: the client's, or "default" for an address.
            limit: Maximum number of memories that a search returns.
            min_relevance: How likely a memory must answer the query, 0 to 1. The default leaves out those
                without a word of the query and without a similar meaning; 0.5: those that probably do not.
        """
        self._connect(client, namespace)
        self._limit = limit
        self._min_relevance = min_relevance

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that have a content, in place of those added from it before.

        Events whose memories were deleted are left out. Up to 900 events are one atomic change.
        """
        memories = await self._remembered(session.app_name, session.user_id, session.events, session.id)
        first, *more = _batches(memories) or [[]]
        # It spares the items that are added again.
        stale = DeleteWhereOperation(labels=_labels(session.app_name, session.user_id, session.id))
        await self._client.batch_write([stale, *first])
        for batch in more:
            await self._client.batch_write(batch)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events that have a content, except those that were added or deleted before.

        `custom_metadata` is returned with each memory.
        """
        memories = await self._remembered(app_name, user_id, events, session_id or "", custom_metadata)
        for batch in _batches(memories, OnDuplicate.SKIP):
            await self._client.batch_write(batch)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories, in place of those with the same ids. `custom_metadata` is returned with each."""
        items = []
        for memory in memories:
            metadata = {**memory.custom_metadata, **(custom_metadata or {})}
            kept = memory.model_copy(
                update={"id": memory.id or str(uuid.uuid4()), "custom_metadata": metadata}
            )
            items.append(_item(app_name, user_id, kept, ""))
        for batch in _batches(items):
            await self._client.batch_write(batch)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories of a user that are relevant to the query, best first."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self._client.retrieve(
            query, limit=self._limit, labels=_labels(app_name, user_id), min_relevance=self._min_relevance
        )
        memories = [MemoryEntry.model_validate(value_of(result.item)) for result in found]
        return SearchMemoryResponse(memories=memories)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory, so that adding its session again does not bring it back. Without id: nothing."""
        if not memory_id:
            return
        found = {**_labels(app_name, user_id), ID_LABEL: label_of(memory_id)}
        deleted = SaveStateOperation(f"{_deleted(app_name, user_id)}{label_of(memory_id)}", True)
        await self._client.batch_write([DeleteWhereOperation(labels=found), deleted])

    async def _remembered(
        self,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> list[MemoryItem]:
        prefix = _deleted(app_name, user_id)
        keys = self._client.list_state_keys(prefix=prefix, page_size=1000)
        deleted = {entry.key.removeprefix(prefix) async for entry in keys}
        items: dict[str, MemoryItem] = {}
        for event in events:
            if event.content and event.content.parts and label_of(event.id) not in deleted:
                memory = MemoryEntry(
                    id=event.id,
                    content=event.content,
                    author=event.author,
                    timestamp=datetime.fromtimestamp(event.timestamp).isoformat(),
                    custom_metadata=dict(custom_metadata or {}),
                )
                items[event.id] = _item(app_name, user_id, memory, session_id, event.timestamp)
        return list(items.values())


def _item(
    app_name: str, user_id: str, memory: MemoryEntry, session_id: str, timestamp: float | None = None
) -> MemoryItem:
    item = item_of(
        memory.model_dump(mode="json", exclude_none=True),
        memory.content,
        memory.author,
        scope=f"memories/{label_of(app_name, user_id, session_id)}",
        id=memory.id or "",
        timestamp=timestamp,
        index=text_of(memory.content),
    )
    labels = {**_labels(app_name, user_id, session_id), ID_LABEL: label_of(memory.id or "")}
    # Not of the conversation's session: its neighbours are memories, not turns.
    return replace(item, session_id="", labels=labels)


def _labels(app_name: str, user_id: str, session_id: str | None = None) -> dict[str, str]:
    labels = {MEMORY_LABEL: label_of(app_name, user_id)}
    return labels if session_id is None else labels | {SOURCE_LABEL: label_of(session_id)}


def _deleted(app_name: str, user_id: str) -> str:
    return f"google_adk/deleted/{quoted(app_name)}/{quoted(user_id)}/"


def _batches(
    items: Sequence[MemoryItem], on_duplicate: OnDuplicate = OnDuplicate.REPLACE
) -> list[list[WriteOperation]]:
    operations: list[Any] = [AddOperation(item, on_duplicate=on_duplicate) for item in items]
    return [operations[at : at + _BATCH] for at in range(0, len(operations), _BATCH)]
