"""Sessions of the OpenAI Agents SDK on a memory server. Needs the extra `openai-agents`.

async with AsyncMemoryClient(namespace="ada") as memory:
    session = MemorySession("trip", memory)
    result = await Runner.run(agent, "Find me a train to Paris", session=session)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from memory_client._session_items import SESSION_LABEL, items_of, record_of, records_of
from memory_client.aio import AsyncMemoryClient
from memory_client.errors import Conflict, NotFound

_DELETIONS_AT_ONCE = 64


class MemorySession:
    """A session for `Runner.run(..., session=session)`: implements the SDK's protocol `Session`.

    It is bound to the client's namespace and to its own id, and many processes may use it at once. Added
    items are on disk when `add_items` returns. Items are returned verbatim. Each is also a chat message of
    the namespace, which `retrieve` finds and clients in other languages read. The session does not close the
    client.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        client: AsyncMemoryClient,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        """Make a session; nothing is written before the first item.

        Args:
            session_id: The conversation, 1 to 256 bytes. Also the `session_id` of the items.
            client: A client bound to the namespace for the items.
            session_settings: The SDK's settings, such as `SessionSettings(limit=50)`.

        Raises:
            ValueError: The id is empty.
        """
        if not session_id:
            raise ValueError("session_id must not be empty")
        self.session_id = session_id
        settings = session_settings or {}
        self.session_settings = SessionSettings(**settings) if isinstance(settings, Mapping) else settings
        self._client = client
        self._labels = {SESSION_LABEL: session_id}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, the oldest of them first.

        Args:
            limit: Maximum number of items; negative: all. None: the limit in the settings, else all.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is None or limit < 0:
            limit = -1
        found = await self._client.retrieve(limit=limit, labels=self._labels)
        items = [item for result in found for item in items_of(result.item)]
        # A record may have several items.
        return items if limit < 0 else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none.

        Raises:
            LimitExceeded: An item is larger than about 1.9 MiB as JSON, or together they are larger than a
                request may be: 16 MiB, where texts count twice.
            TypeError: An item is not JSON.
        """
        if items:
            await self._client.batch_add(records_of(items, self.session_id))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item. None: there is none.

        Concurrent calls, also from other processes, get different items.
        """
        while newest := await self._client.retrieve(limit=1, labels=self._labels):
            record = newest[0].item
            item: TResponseInputItem | None
            *rest, item = items_of(record) or [None]
            try:
                if rest:
                    kept = record_of(rest, self.session_id)
                    assert kept.content is not None
                    await self._client.update(
                        record.id,
                        content=kept.content,
                        metadata=kept.metadata,
                        expected_revision=record.revision,
                    )
                else:
                    await self._client.delete(record.id, expected_revision=record.revision)
            except (NotFound, Conflict):
                continue  # Another client was faster: look again.
            if item is not None:
                return item
        return None

    async def clear_session(self) -> None:
        """Remove the items that the session has when the call begins, the newest first.

        Nothing else in the namespace is changed, not even other items with the session's id.
        """
        records = self._client.list_items(labels=self._labels, newest_first=True, page_size=1000)
        ids = [record.id async for record in records]
        for at in range(0, len(ids), _DELETIONS_AT_ONCE):
            await asyncio.gather(*map(self._remove, ids[at : at + _DELETIONS_AT_ONCE]))

    async def _remove(self, id: str) -> None:
        with contextlib.suppress(NotFound):  # Popped meanwhile.
            await self._client.delete(id)
