"""Sessions and memories of Google ADK on a memory server. Needs the extra `google-adk`.

sessions = MemoryServiceSessionService("127.0.0.1:50051", namespace="guide")
runner = Runner(agent=agent, app_name="guide", session_service=sessions)
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python

from memory_client._adapters import AsyncAdapter, completed, label_of, quoted
from memory_client._adk_events import ID_LABEL, event_json, item_of, value_of
from memory_client._adk_memory import MemoryServiceMemoryService
from memory_client._verbatim import verbatim_json
from memory_client.aio import AsyncMemoryClient
from memory_client.errors import AlreadyExists, Conflict, LimitExceeded, NotFound
from memory_client.models import StateEntry
from memory_client.operations import (
    AddOperation,
    DeleteStateOperation,
    DeleteWhereOperation,
    SaveStateOperation,
    WriteOperation,
)

__all__ = ["SESSION_LABEL", "MemoryServiceMemoryService", "MemoryServiceSessionService"]

SESSION_LABEL = "google_adk_session"
"""The label of every event of a session."""


class MemoryServiceSessionService(AsyncAdapter, BaseSessionService):
    """A session service for `Runner(session_service=...)`.

    Sessions of all apps and users are in one namespace. An event and the changes of states that come with it
    are one atomic change, on disk when `append_event` returns. Events are kept verbatim. Each is also an item
    of the namespace, which `retrieve` finds. Many processes may use one session. An append that is cancelled
    is completed first.
    """

    def __init__(self, client: AsyncMemoryClient | str, *, namespace: str | None = None) -> None:
        """Make a service.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace for all sessions. None: the client's, or "default" for an address.
        """
        self._connect(client, namespace)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session.

        Raises:
            AlreadyExistsError: There is a session with this id.
        """
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        keys = _keys(app_name, user_id, session_id)
        deltas = _deltas(state or {})
        now = time.time()
        while True:
            stored = await self._stored(keys)
            if "session" in stored:
                raise AlreadyExistsError(f"Session with id {session_id} already exists.")
            try:
                await self._client.batch_write(_saves(keys, stored, deltas, now))
            except Conflict:
                continue
            merged = {scope: _state(stored.get(scope)) | deltas[scope] for scope in deltas}
            return _session(app_name, user_id, session_id, merged, now)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, or the newest of them. None: there is none."""
        session_id = session_id.strip()
        keys = _keys(app_name, user_id, session_id)
        stored = await self._stored(keys)
        if "session" not in stored:
            return None
        states = {scope: _state(stored.get(scope)) for scope in keys}
        session = _session(app_name, user_id, session_id, states, stored["session"].value["update_time"])
        limit = -1 if config is None or config.num_recent_events is None else config.num_recent_events
        if limit != 0:
            after = config.after_timestamp if config else None
            found = await self._client.retrieve(
                limit=limit,
                labels={SESSION_LABEL: label_of(app_name, user_id, session_id)},
                start_time=datetime.fromtimestamp(after, UTC) if after else None,
            )
            events = [Event.model_validate(value_of(result.item)) for result in found]
            session.events = [event for event in events if not after or event.timestamp >= after]
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users of an app, without events, the newest last."""
        whose = "*" if user_id is None else quoted(user_id)
        apps, users, found = await asyncio.gather(
            self._stored({"app": _app_key(app_name)}),
            _listed(self._client.search_state(f"google_adk/users/{quoted(app_name)}/{whose}")),
            _listed(self._client.search_state(f"google_adk/sessions/{quoted(app_name)}/{whose}/*")),
        )
        user_states = {entry.key: _state(entry) for entry in users}
        sessions = []
        for entry in found:
            value: Any = entry.value
            states = {
                "app": _state(apps.get("app")),
                "user": user_states.get(_user_key(app_name, value["user_id"]), {}),
                "session": _state(entry),
            }
            sessions.append(_session(app_name, value["user_id"], value["id"], states, value["update_time"]))
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events, up to 10,000 atomically, and what was made only from them."""
        session_id = session_id.strip()
        events = {SESSION_LABEL: label_of(app_name, user_id, session_id)}
        key = _keys(app_name, user_id, session_id)["session"]
        delete: list[WriteOperation] = [
            DeleteStateOperation(key, allow_missing=True),
            DeleteWhereOperation(labels=events),
        ]
        try:
            await self._client.batch_write(delete)
        except LimitExceeded:
            await self._client.delete_where(labels=events)
            await self._client.batch_write(delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state that all sessions of a user in an app share."""
        stored = await self._stored({"user": _user_key(app_name, user_id)})
        return _state(stored.get("user"))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event, and apply its changes of states.

        Raises:
            StaleSessionError: The stored session is newer than the given one.
            SessionNotFoundError: There is no such session.
            AlreadyExistsError: The session has an event with this id.
        """
        if event.partial:
            return event
        return await completed(self._append(session, event))

    async def _append(self, session: Session, event: Event) -> Event:
        kept = {k: v for k, v in event.actions.state_delta.items() if not k.startswith(State.TEMP_PREFIX)}
        actions = event.actions.model_copy(update={"state_delta": kept})
        scope = label_of(session.app_name, session.user_id, session.id)
        item = item_of(
            event_json(event.model_copy(update={"actions": actions})),
            event.content,
            event.author,
            scope=scope,
            id=event.id,
            timestamp=event.timestamp,
        )
        add = AddOperation(replace(item, labels={SESSION_LABEL: scope, ID_LABEL: label_of(event.id)}))
        deltas = _deltas(kept)
        keys = _keys(session.app_name, session.user_id, session.id)
        keys = {scope: key for scope, key in keys.items() if deltas[scope] or scope == "session"}
        while True:
            stored = await self._stored(keys)
            if "session" not in stored:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            if stored["session"].value["update_time"] > session.last_update_time:
                raise StaleSessionError("The session was changed since it was read: get it again.")
            try:
                await self._client.batch_write([add, *_saves(keys, stored, deltas, event.timestamp)])
            except Conflict:
                continue
            except AlreadyExists:
                raise AlreadyExistsError(f"Event with id {event.id} already exists.") from None
            session.last_update_time = event.timestamp
            return await super().append_event(session, event)

    async def _stored(self, keys: Mapping[str, str]) -> dict[str, StateEntry]:
        """Return the states that exist, by scope."""

        async def loaded(key: str) -> StateEntry | None:
            try:
                return await self._client.load_state(key)
            except NotFound:
                return None

        entries = await asyncio.gather(*map(loaded, keys.values()))
        return {scope: entry for scope, entry in zip(keys, entries, strict=True) if entry is not None}


def _app_key(app_name: str) -> str:
    return f"google_adk/apps/{quoted(app_name)}"


def _user_key(app_name: str, user_id: str) -> str:
    return f"google_adk/users/{quoted(app_name)}/{quoted(user_id)}"


def _keys(app_name: str, user_id: str, session_id: str) -> dict[str, str]:
    """Return the keys of the states that a session sees, by scope."""
    session = f"google_adk/sessions/{quoted(app_name)}/{quoted(user_id)}/{quoted(session_id)}"
    return {"app": _app_key(app_name), "user": _user_key(app_name, user_id), "session": session}


def _deltas(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the changes of each scope's state as JSON, without temporary ones.

    What JSON cannot express is replaced by a text.
    """
    deltas: dict[str, dict[str, Any]] = {"app": {}, "user": {}, "session": {}}
    prefixes = {State.APP_PREFIX: "app", State.USER_PREFIX: "user"}
    for key, value in state.items():
        prefix = next((prefix for prefix in prefixes if key.startswith(prefix)), "")
        if not key.startswith(State.TEMP_PREFIX):
            scope = prefixes.get(prefix, "session")
            deltas[scope][key.removeprefix(prefix)] = to_jsonable_python(value, serialize_unknown=True)
    return deltas


def _state(entry: StateEntry | None) -> dict[str, Any]:
    value: Any = entry.value if entry else None
    return dict(json.loads(value["state"])) if value else {}


def _saves(
    keys: Mapping[str, str],
    stored: Mapping[str, StateEntry],
    deltas: Mapping[str, dict[str, Any]],
    now: float,
) -> list[WriteOperation]:
    """Return the operations that apply changes to the states as they are stored."""
    saves: list[WriteOperation] = []
    for scope, key in keys.items():
        if deltas[scope] or scope == "session":
            entry = stored.get(scope)
            # As a text, since the server would round large integers.
            state = verbatim_json(_state(entry) | deltas[scope], "state")
            names = [unquote(part) for part in key.split("/")[3:]]
            value = {"state": state, "update_time": now, **dict(zip(("user_id", "id"), names, strict=False))}
            saves.append(SaveStateOperation(key, value, expected_version=entry.version if entry else 0))
    return saves


def _session(
    app_name: str, user_id: str, session_id: str, states: Mapping[str, Mapping[str, Any]], update_time: float
) -> Session:
    merged = dict(states["session"])
    for prefix, scope in ((State.APP_PREFIX, "app"), (State.USER_PREFIX, "user")):
        merged |= {f"{prefix}{key}": value for key, value in states[scope].items()}
    return Session(
        app_name=app_name, user_id=user_id, id=session_id, state=merged, last_update_time=update_time
    )


async def _listed(entries: AsyncIterator[StateEntry]) -> list[StateEntry]:
    return [entry async for entry in entries]
