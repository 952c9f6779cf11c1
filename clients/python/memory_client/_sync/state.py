# Generated from _aio/state.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from memory_client._calls import state
from memory_client._sync.transport import Bound
from memory_client.models import Removed, StateEntry


class StateMethods(Bound):
    """Methods for named JSON values with versions in the client's namespace."""

    def save_state(
        self,
        key: str,
        value: Any,
        *,
        expected_version: int | None = None,
        ttl: timedelta | float | None = None,
        description: str | None = None,
        request_id: str | None = None,
    ) -> StateEntry:
        """Write a value under a key, creating the key or raising its version.

        Args:
            key: 1 to 512 bytes.
            value: Any JSON value, at most 1 MiB.
            expected_version: Write only if this is the key's version; 0: only if there is no such key.
            ttl: Time until the entry expires, a timedelta or seconds. None: never.
            description: Purpose of the value. None: keep the current description.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Returns:
            The entry as it is now, without its value.

        Raises:
            Conflict: The expected version is not the key's, which is in `metadata["current_version"]`.
        """
        call = state.save_state(
            self._namespace,
            key,
            value,
            expected_version=expected_version,
            ttl=ttl,
            description=description,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def load_state(self, key: str, *, revision: int = 0) -> StateEntry:
        """Return the entry of a key, with its value.

        Args:
            key: The key.
            revision: Return the version that was written at this revision; 0: the current one.

        Raises:
            NotFound: There is no such key, or the version is not kept.
        """
        return self._transport.unary(state.load_state(self._namespace, key, revision))

    def list_state_keys(
        self, *, prefix: str = "", include_preview: bool = False, page_size: int = 0
    ) -> Iterator[StateEntry]:
        """Yield the entries whose key begins with `prefix`, without values, ordered by key, page by page."""
        call = state.list_state_keys(self._namespace, prefix, include_preview, page_size)
        return self._transport.entries(call)

    def search_state(self, pattern: str, *, page_size: int = 0) -> Iterator[StateEntry]:
        """Yield the entries whose whole key matches a glob such as "plan/*", with values, ordered by key."""
        return self._transport.entries(state.search_state(self._namespace, pattern, page_size))

    def delete_state(
        self, key: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> int:
        """Remove a key; return the namespace's revision.

        Raises:
            NotFound: There is no such key.
            Conflict: The key's version is not `expected_version`.
        """
        call = state.delete_state(self._namespace, key, expected_version, request_id)
        return self._transport.unary(call)

    def rename_state(
        self,
        key: str,
        new_key: str,
        *,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> StateEntry:
        """Give a value another key; its times, description and earlier versions go along.

        Returns:
            The entry under its new key, without its value.

        Raises:
            NotFound: There is no such key.
            AlreadyExists: `new_key` exists.
            Conflict: The key's version is not `expected_version`.
        """
        call = state.rename_state(self._namespace, key, new_key, expected_version, request_id)
        return self._transport.unary(call)

    def clear_state(self, *, request_id: str | None = None) -> Removed:
        """Remove every key of the namespace, but not its items."""
        return self._transport.unary(state.clear_state(self._namespace, request_id))
