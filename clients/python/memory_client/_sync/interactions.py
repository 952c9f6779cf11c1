# Generated from _aio/interactions.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for messages to an agent, its responses and its reflections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._calls import interactions
from memory_client._calls.fields import found_of
from memory_client._sync.transport import Bound
from memory_client.found import Found
from memory_client.interactions import Interaction, InteractionPair, OriginalMessage, RelevantContext
from memory_client.models import RetrieveMode, SourceKind


class InteractionMethods(Bound):
    """Methods for messages to an agent, its responses and its reflections, which are items."""

    def store_interaction(
        self,
        sender: str,
        content: str,
        *,
        session_id: str = "",
        create_time: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | float | None = None,
        id: str = "",
        request_id: str | None = None,
    ) -> Interaction:
        """Write a message to the agent; return it as written.

        Args:
            sender: The sender, such as a user's id.
            content: The text of the message.
            session_id: The conversation that it belongs to.
            create_time: When it was said, an aware datetime. None: now.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with it.
            ttl: Time until it expires, a timedelta or seconds. None: never.
            id: Id of the item. Empty: the server makes one.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            AlreadyExists: An item with this id exists.
        """
        call = interactions.store_interaction(
            self._namespace,
            sender,
            content,
            session_id=session_id,
            create_time=create_time,
            labels=labels,
            metadata=metadata,
            ttl=ttl,
            id=id,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def store_response(
        self,
        content: str,
        *,
        in_response_to: str = "",
        original_message: OriginalMessage | None = None,
        allow_missing: bool = False,
        sender: str = "",
        session_id: str = "",
        create_time: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | float | None = None,
        id: str = "",
        request_id: str | None = None,
    ) -> Interaction:
        """Write a response of the agent, linked to the message that it answers; return it as written.

        Args:
            content: The text of the response.
            in_response_to: The id of the message that it answers. Empty: see `original_message`.
            original_message: Contents of that message, for callers without its id: the newest message with
                these contents is linked. If both are missing, the response is not linked.
            allow_missing: Store the response even if its message does not exist yet. Reads link it to the
                message with that id, or to the first with these contents that is stored later.
            sender: The agent that answers. Empty: "system".
            session_id: The conversation that it belongs to. Empty: that of the message.
            create_time: When it was said, an aware datetime. None: now.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with it.
            ttl: Time until it expires, a timedelta or seconds. None: never.
            id: Id of the item. Empty: the server makes one.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            NotFound: There is no such message, and `allow_missing` is not set.
            AlreadyExists: An item with this id exists.
        """
        call = interactions.store_response(
            self._namespace,
            content,
            in_response_to=in_response_to,
            original_message=original_message,
            allow_missing=allow_missing,
            sender=sender,
            session_id=session_id,
            create_time=create_time,
            labels=labels,
            metadata=metadata,
            ttl=ttl,
            id=id,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def store_reflection(
        self,
        content: str,
        *,
        interaction_ids: Sequence[str] = (),
        sender: str = "",
        session_id: str = "",
        create_time: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | float | None = None,
        id: str = "",
        request_id: str | None = None,
    ) -> Interaction:
        """Write a thought of the agent about its own actions; return it as written.

        Args:
            content: The text of the reflection.
            interaction_ids: The interactions that it is about, at most 100. They need not exist.
            sender: The agent that reflects. Empty: "system".
            session_id: The conversation that it belongs to.
            create_time: When it was thought, an aware datetime. None: now.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with it.
            ttl: Time until it expires, a timedelta or seconds. None: never.
            id: Id of the item. Empty: the server makes one.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            AlreadyExists: An item with this id exists.
        """
        call = interactions.store_reflection(
            self._namespace,
            content,
            interaction_ids=interaction_ids,
            sender=sender,
            session_id=session_id,
            create_time=create_time,
            labels=labels,
            metadata=metadata,
            ttl=ttl,
            id=id,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def retrieve_relevant_context(
        self,
        query: str,
        *,
        interaction_limit: int = 5,
        reflection_limit: int = 2,
        session_id: str = "",
        sender: str = "",
        exclude_ids: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        min_score: float | None = None,
        mode: RetrieveMode | str | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> RelevantContext:
        """Return the messages and responses that match a text best, then the reflections that do.

        Args:
            query: Usually the new message.
            interaction_limit: Maximum number of messages and responses, up to 100.
            reflection_limit: Maximum number of reflections, up to 100.
            session_id: Only messages and responses of this conversation, and reflections of it or of none.
            sender: Only messages of this sender, with the responses to them. Empty: of any.
            exclude_ids: Ids to omit, such as the new message's if it is already stored. At most 100.
            labels: Only interactions that have all these labels.
            start_time: Only interactions whose create_time is at or after it.
            end_time: Only interactions whose create_time is before it.
            min_score: Only results that score at least this.
            mode: How the query is matched. None: by words and vectors together.
            max_tokens: Maximum estimated tokens of all texts together. None: no limit.
            explain: Explain the score of each result.
            min_trust: Only interactions, and answered messages, that are trusted at least this much, 0 to 1.
            sources: Only interactions from these sources. Empty: from any.
        """
        call = interactions.retrieve_relevant_context(
            self._namespace,
            query,
            interaction_limit=interaction_limit,
            reflection_limit=reflection_limit,
            session_id=session_id,
            sender=sender,
            exclude_ids=exclude_ids,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            min_score=min_score,
            mode=mode,
            max_tokens=max_tokens,
            explain=explain,
            min_trust=min_trust,
            sources=sources,
        )
        return self._transport.unary(call)

    def retrieve_last_interactions(
        self,
        limit: int = 5,
        *,
        session_id: str = "",
        sender: str = "",
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        page_size: int = 0,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> Found[InteractionPair]:
        """Return the newest messages, newest first, each with its responses.

        Args:
            limit: Maximum number of messages. -1: all.
            session_id: Only messages of this conversation. Empty: of any.
            sender: Only messages of this sender. Empty: of any.
            labels: Only messages that have all these labels.
            start_time: Only messages whose create_time is at or after it.
            end_time: Only messages whose create_time is before it.
            page_size: Number to fetch at a time; 0: as many as fit in a response.
            min_trust: Only messages and responses that are trusted at least this much, 0 to 1.
            sources: Only messages and responses from these sources. Empty: from any.
        """
        call = interactions.retrieve_last_interactions(
            self._namespace,
            limit,
            session_id=session_id,
            sender=sender,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            page_size=page_size,
            min_trust=min_trust,
            sources=sources,
        )
        return found_of(self._transport.all_pages(call))
