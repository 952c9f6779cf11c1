"""Sessions of the OpenAI Agents SDK on a memory server. Needs the extra `openai-agents`.

async with AsyncMemoryClient(namespace="ada") as memory:
    session = MemorySession("trip", memory)
    result = await Runner.run(agent, "Find me a train to Paris", session=session)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from memory_client._adapters import AsyncAdapter, completed
from memory_client._arguments import checked
from memory_client._session_items import SESSION_LABEL, items_of, record_of, records_of
from memory_client.aio import AsyncMemoryClient
from memory_client.errors import Conflict, NotFound, invalid


class MemorySession(AsyncAdapter):
    """A session for `Runner.run(..., session=session)`: implements the SDK's protocol `Session`.

    It is bound to the client's namespace and to its own id, and many processes may use it at once. Added
    items are on disk when `add_items` returns. Items are returned verbatim. Each is also a chat message of
    the namespace, which `retrieve` finds and clients in other languages read. If a call that changes items is
    cancelled, it is completed first.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        client: AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        """Make a session; nothing is written before the first item.

        Args:
            session_id: The conversation, 1 to 256 bytes. Also the `session_id` of the items.
            client: A client, which the session does not close, or the address of a server.
            namespace: The namespace for the items. None: the client's, or "default" for an address.
            session_settings: The SDK's settings, such as `SessionSettings(limit=50)`.

        Raises:
            InvalidArgument: The id is empty, or the SDK has no such settings.
        """
        if not session_id or not isinstance(session_id, str):
            raise invalid("session_id", "must be a text that is not empty")
        self.session_id = session_id
        self.session_settings = _settings_of(session_settings)
        self._connect(client, namespace)
        self._labels = {SESSION_LABEL: session_id}

    @checked
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
            InvalidArgument: An item is not JSON.
        """
        if items:
            await completed(self._client.batch_add(records_of(items, self.session_id)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item. None: there is none.

        Concurrent calls, also from other processes, get different items.
        """
        return await completed(self._pop())

    async def _pop(self) -> TResponseInputItem | None:
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
        """Remove the items that the session has when the call begins, up to 10,000 of them atomically.

        Nothing else in the namespace is changed, not even other items with the session's id.
        """
        await completed(self._client.delete_where(labels=self._labels))


def _settings_of(given: SessionSettings | Mapping[str, Any] | None) -> SessionSettings:
    if isinstance(given, SessionSettings):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise invalid("session_settings", f"must be SessionSettings, not {type(given).__name__}")
    settings = dict(given or {})
    known = {field.name for field in fields(SessionSettings)}
    if unknown := sorted(map(str, settings.keys() - known)):
        raise invalid("session_settings", f"Unknown session settings: {', '.join(unknown)}")
    try:
        return SessionSettings(**settings)
    except ValueError as error:
        raise invalid("session_settings", str(error)) from None
