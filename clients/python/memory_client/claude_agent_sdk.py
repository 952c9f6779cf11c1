"""Transcripts of the Claude Agent SDK on a memory server. Needs the extra `claude-agent-sdk`.

async with MemoryServiceSessionStore("127.0.0.1:50051", namespace="ada") as store:
    options = ClaudeAgentOptions(session_store=store)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from memory_client._adapters import AsyncAdapter, quoted
from memory_client._claude_entries import entries_of, items_of
from memory_client._verbatim import verbatim_json
from memory_client.aio import AsyncMemoryClient
from memory_client.errors import Conflict, NotFound
from memory_client.models import MemoryItem, OnDuplicate, StateEntry
from memory_client.operations import AddOperation, SaveStateOperation, WriteOperation

SESSION_LABEL = "claude_agent_sdk_session"
"""The label of every item of a session, its subagents' included."""
TRANSCRIPT_LABEL = "claude_agent_sdk_transcript"
"""The label of every item of one transcript, of the session or of a subagent."""

_STATES = "claude_agent_sdk/"
_BATCH_OPERATIONS = 900
"""A batch may have 1000 operations, and a large entry has several."""
_BATCH_BYTES = 6 * 1024 * 1024
"""Half of it doubles the calls of an import; a request may have 16 MiB, where texts count twice."""


class MemoryServiceSessionStore(AsyncAdapter, SessionStore):
    """A store for `ClaudeAgentOptions(session_store=...)`: implements the SDK's protocol `SessionStore`.

    Entries are on disk when `append` returns, and are loaded as they were appended. Each is also an item of
    the namespace with its `session_id`: `retrieve` finds what was said, and `extract_memories` finds facts in
    it. Many processes may use one session. Errors are the client's.
    """

    def __init__(self, client: AsyncMemoryClient | str, *, namespace: str | None = None) -> None:
        """Make a store; nothing is written before the first entry.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace for all sessions. None: the client's, or "default" for an address.
        """
        self._connect(client, namespace)
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries in the order of the calls; one whose `uuid` the transcript has is left out.

        Up to 900 entries of together 6 MiB are written atomically, with the summary of the session.

        Raises:
            LimitExceeded: An entry is larger than about 8 MiB as JSON.
            InvalidArgument: An entry is not JSON.
        """
        # Each event loop needs its own lock; a store is seldom used in more than one.
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            for batch in _batches(key, entries):
                await self._append(key, *batch)

    async def _append(
        self, key: SessionKey, entries: list[SessionStoreEntry], additions: list[WriteOperation]
    ) -> None:
        if key.get("subpath") is not None:
            await self._client.batch_write(additions)
            return
        while True:
            state = await self._state(key)
            folded = fold_session_summary(_summary(state), key, entries)
            summary = SaveStateOperation(
                _state_key(key),
                {"summary": verbatim_json(folded["data"], "entries")},
                expected_version=state.version,
            )
            try:
                await self._client.batch_write([*additions, summary])
                return
            except Conflict:
                continue  # Another process has appended to the session.

    async def _state(self, key: SessionKey) -> StateEntry:
        try:
            return await self._client.load_state(_state_key(key))
        except NotFound:
            return StateEntry(key=_state_key(key))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries of a transcript. None: it was never written, or was deleted."""
        found = await self._client.retrieve(limit=-1, labels={TRANSCRIPT_LABEL: _transcript(key)})
        return list(entries_of(result.item for result in found)) or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the ids of a project's sessions with the times of their last appends."""
        states = self._client.list_state_keys(prefix=_prefix(project_key), page_size=1000)
        return [{"session_id": _session_id(state), "mtime": _mtime(state)} async for state in states]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's sessions."""
        states = self._client.search_state(f"{_prefix(project_key)}*", page_size=1000)
        return [summary async for state in states if (summary := _summary(state))]

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its subagents' transcripts, or one of these; also what was made only from it.

        Facts, for example, that were extracted from it. Nothing happens if there is no such session.
        """
        if key.get("subpath") is not None:
            await self._client.delete_where(labels={TRANSCRIPT_LABEL: _transcript(key)})
            return
        await self._client.delete_where(labels={SESSION_LABEL: _session(key)})
        with suppress(NotFound):
            await self._client.delete_state(_state_key(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's subagents."""
        prefix = f"{_session(key)}/"
        values = self._client.list_label_values(TRANSCRIPT_LABEL, prefix=prefix, page_size=1000)
        return [each.value.removeprefix(prefix) async for each in values]


def _batches(
    key: SessionKey, entries: Iterable[SessionStoreEntry]
) -> Iterator[tuple[list[SessionStoreEntry], list[WriteOperation]]]:
    """Yield entries with the operations that add them, as many as fit in a batch."""
    transcript = _transcript(key)
    labels = {SESSION_LABEL: _session(key), TRANSCRIPT_LABEL: transcript}
    session_id = "/".join(filter(None, (key["session_id"], key.get("subpath"))))
    batch: tuple[list[SessionStoreEntry], list[WriteOperation]] = ([], [])
    ids: set[str] = set()
    size = 0
    for entry in entries:
        items = items_of(entry, transcript)
        if items[0].id in ids:
            continue  # A batch may name an item only once.
        entry_size = len(json.dumps(entry))
        if batch[0] and (len(batch[1]) >= _BATCH_OPERATIONS or size + entry_size > _BATCH_BYTES):
            yield batch
            batch, size = ([], []), 0
        size += entry_size
        ids.update(filter(None, [items[0].id]))
        batch[0].append(entry)
        batch[1].extend(_addition(replace(item, session_id=session_id, labels=labels)) for item in items)
    if batch[0]:
        yield batch


def _addition(item: MemoryItem) -> WriteOperation:
    return AddOperation(item, on_duplicate=OnDuplicate.SKIP if item.id else OnDuplicate.FAIL)


def _session(key: SessionKey | SessionListSubkeysKey) -> str:
    # Paths of projects may be longer than the value of a label.
    return f"{sha256(key['project_key'].encode()).hexdigest()[:32]}/{key['session_id']}"


def _transcript(key: SessionKey) -> str:
    return "/".join(filter(None, (_session(key), key.get("subpath"))))


def _prefix(project_key: str) -> str:
    return f"{_STATES}{quoted(project_key)}/"


def _state_key(key: SessionKey) -> str:
    return f"{_prefix(key['project_key'])}{quoted(key['session_id'])}"


def _session_id(state: StateEntry) -> str:
    return unquote(state.key.rpartition("/")[2])


def _mtime(state: StateEntry) -> int:
    assert state.update_time is not None
    return int(state.update_time.timestamp() * 1000)


def _summary(state: StateEntry) -> SessionSummaryEntry | None:
    value: Any = state.value
    if not value:
        return None
    data = json.loads(value["summary"])
    return {"session_id": _session_id(state), "mtime": _mtime(state), "data": data}
