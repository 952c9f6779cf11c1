# Generated from _aio/sessions.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory_client._calls import sessions
from memory_client._sync.transport import Bound
from memory_client.found import Deleted
from memory_client.sessions import Session
from memory_client.unset import UNSET, Unset


class SessionMethods(Bound):
    """Methods for the sessions of the client's namespace: its conversations.

    A session exists as soon as an item names it; nothing has to be created first.
    """

    def list_sessions(
        self, *, prefix: str = "", labels: Mapping[str, str] | None = None, page_size: int = 0
    ) -> Iterator[Session]:
        """Yield the sessions, the one with the latest activity first.

        Args:
            prefix: Only sessions whose id begins with it.
            labels: Only sessions that have all these labels.
            page_size: Number to fetch at a time; 0: 100.
        """
        call = sessions.list_sessions(self._namespace, prefix=prefix, labels=labels, page_size=page_size)
        return self._transport.entries(call)

    def get_session(self, session_id: str) -> Session:
        """Return a session.

        Raises:
            NotFound: The namespace has no session with this id.
        """
        return self._transport.unary(sessions.get_session(self._namespace, session_id))

    def update_session(
        self,
        session_id: str,
        *,
        title: str | Unset = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
        expected_version: int | None = None,
        allow_missing: bool = False,
        request_id: str | None = None,
    ) -> Session:
        """Change the given fields of a session. `labels` and `metadata` are replaced as a whole.

        Args:
            session_id: The session.
            title: The new title; empty: none.
            labels: The new labels of the session itself.
            metadata: The new metadata.
            expected_version: Change it only if that is its version; 0: only if none of these was ever set.
            allow_missing: Create the session if no item names it.
            request_id: Makes a retry safe. None: a new id for this call.

        Raises:
            NotFound: The namespace has no session with this id.
            Conflict: The expected version is not the session's, which is in `metadata["current_version"]`.
        """
        call = sessions.update_session(
            self._namespace,
            session_id,
            title=title,
            labels=labels,
            metadata=metadata,
            expected_version=expected_version,
            allow_missing=allow_missing,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def delete_session(
        self, session_id: str, *, keep_derived: bool = False, request_id: str | None = None
    ) -> Deleted:
        """Remove a session with all its items and what was made only from them; return the number of items
        without the latter, which is its `derived_count`. A session that does not exist has none.

        The server removes up to 10,000 items per call, so several calls may be made: if one fails, the items
        of the earlier ones stay removed. Items that are added after the first call are kept.

        Args:
            session_id: The session.
            keep_derived: Keep what was made from the items; see `delete`.
            request_id: Makes a retry of the first call safe; the others get new ids. None: a new id.
        """
        call = sessions.delete_session(
            self._namespace, session_id, keep_derived=keep_derived, request_id=request_id
        )
        deleted = [each for page in self._transport.all_pages(call) for each in page.entries]
        return Deleted(sum(deleted), sum(each.derived_count for each in deleted))

    def fork_session(
        self,
        session_id: str,
        *,
        new_session_id: str = "",
        until_item_id: str = "",
        until_revision: int | None = None,
        request_id: str | None = None,
    ) -> Session:
        """Copy a session, or its beginning, to a new one, all or nothing; return the new one.

        The copies have new ids. Later changes of one session do not affect the other.

        Args:
            session_id: The session to copy, of at most 1000 items.
            new_session_id: The new session, which must not exist. Empty: the server makes an id.
            until_item_id: The last item to copy. Empty: the last one.
            until_revision: Copy only items that were added at or before this revision. None: all.
            request_id: Makes a retry safe. None: a new id for this call.

        Raises:
            NotFound: The namespace has no session, or the session no item, with this id.
            AlreadyExists: There is a session with the new id.
            LimitExceeded: There is too much to copy.
        """
        call = sessions.fork_session(
            self._namespace,
            session_id,
            new_session_id=new_session_id,
            until_item_id=until_item_id,
            until_revision=until_revision,
            request_id=request_id,
        )
        return self._transport.unary(call)
