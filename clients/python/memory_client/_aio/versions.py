"""The client's methods for versions of items and states."""

from __future__ import annotations

from collections.abc import AsyncIterator

from memory_client._aio.transport import Bound
from memory_client._calls import versions
from memory_client.versions import ItemVersion, StateVersion


class VersionMethods(Bound):
    """Methods for the kept versions of items and states in the client's namespace."""

    def list_item_versions(self, id: str, *, page_size: int = 0) -> AsyncIterator[ItemVersion]:
        """Yield the versions and removals of an item, newest first, page by page.

        Replaced versions are kept for 30 days, unless the server has another setting; a deletion removes all.

        Raises:
            NotFound: There is no such item, and there was none.
        """
        return self._transport.entries(versions.list_item_versions(self._namespace, id, page_size))

    async def redact_version(self, id: str, revision: int) -> int:
        """Remove the content of a replaced version of an item; return the namespace's revision.

        Raises:
            NotFound: There is no such item or version.
            FailedPrecondition: It is the current version.
        """
        return await self._transport.unary(versions.redact_version(self._namespace, id, revision))

    def list_state_versions(self, key: str, *, page_size: int = 0) -> AsyncIterator[StateVersion]:
        """Yield the versions and removals of a key, newest first, page by page.

        Raises:
            NotFound: There is no such key, and there was none.
        """
        return self._transport.entries(versions.list_state_versions(self._namespace, key, page_size))

    async def redact_state_version(self, key: str, revision: int) -> int:
        """Remove the value of a replaced version of a key; return the namespace's revision.

        Raises:
            NotFound: There is no such key or version.
            FailedPrecondition: It is the current version.
        """
        return await self._transport.unary(versions.redact_state_version(self._namespace, key, revision))
