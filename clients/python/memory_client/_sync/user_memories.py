# Generated from _aio/user_memories.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for facts about a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._calls import user_memories
from memory_client._calls.fields import found_of
from memory_client._sync.transport import Bound
from memory_client.decisions import DecidedBy
from memory_client.found import Found
from memory_client.messages import ChatMessage
from memory_client.models import RetrieveMode, SourceKind
from memory_client.unset import UNSET, Unset
from memory_client.user_memories import (
    Consolidations,
    Extraction,
    MemoryCategory,
    MemoryResult,
    MemorySource,
    OnContradiction,
    PreloadedMemories,
    RemovedMemories,
    SavedMemory,
    UpdatedMemory,
    UserMemory,
)


class UserMemoryMethods(Bound):
    """Methods for facts about a user: each once, with importance, source and the time when it holds."""

    def save_memory(
        self,
        content: str,
        category: MemoryCategory | str,
        reasoning: str,
        *,
        source: MemorySource | None = None,
        explicit_request: bool = False,
        on_contradiction: OnContradiction | str | None = None,
        valid_from_time: datetime | None = None,
        ttl: timedelta | float | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        keep_wording: bool = False,
        decide_by: DecidedBy | str | None = None,
        request_id: str | None = None,
    ) -> SavedMemory:
        """Save a fact in the third person, unless it is already known.

        A fact that contradicts a known one replaces it; the history keeps the old one with its end.

        Args:
            content: The fact, 10 to 500 characters.
            category: What it is about, such as "preference".
            reasoning: Why it is worth remembering, 10 to 200 characters.
            source: Where it came from: session, items, quote, actor.
            explicit_request: The user asked to remember it, which makes it more important.
            on_contradiction: What to do if it contradicts a known one. None: supersede that one.
            valid_from_time: When it began to hold, an aware datetime. None: now.
            ttl: Time until the memory expires, a timedelta or seconds. None: never.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with the memory.
            keep_wording: Save the content as given, not in the third person.
            decide_by: The decider. None: the language model if it can, else rules.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            InvalidArgument: A field is missing, too short, too long or malformed.
            FailedPrecondition: `decide_by` is "llm" and the server has no model (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and the model failed (LLM_UNAVAILABLE). Nothing was written.
        """
        call = user_memories.save_memory(
            self._namespace,
            content,
            category,
            reasoning,
            source=source,
            explicit_request=explicit_request,
            on_contradiction=on_contradiction,
            valid_from_time=valid_from_time,
            ttl=ttl,
            labels=labels,
            metadata=metadata,
            keep_wording=keep_wording,
            decide_by=decide_by,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def search_memories(
        self,
        query: str,
        *,
        limit: int = 5,
        categories: Sequence[MemoryCategory | str] = (),
        as_of_time: datetime | None = None,
        include_history: bool = False,
        min_importance: float | None = None,
        labels: Mapping[str, str] | None = None,
        session_id: str = "",
        min_score: float | None = None,
        mode: RetrieveMode | str | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        page_size: int = 0,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> Found[MemoryResult]:
        """Return the memories that match a text best, best first.

        Args:
            query: A text to find memories for.
            limit: Maximum number of memories. -1: all.
            categories: Only memories of these categories. Empty: of any.
            as_of_time: Memories that held at this time. None: those that hold now.
            include_history: Also memories that no longer hold.
            min_importance: Only memories whose current importance is at least this.
            labels: Only memories that have all these labels.
            session_id: Only memories that came from this conversation. Empty: from any.
            min_score: Only results that score at least this.
            mode: How the query is matched. None: by words and vectors together.
            max_tokens: Maximum estimated tokens of all contents together. None: no limit.
            explain: Explain the score of each result.
            page_size: Number to fetch at a time; 0: as many as fit in a response.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from these sources. Empty: from any.
        """
        call = user_memories.search_memories(
            self._namespace,
            query,
            limit=limit,
            categories=categories,
            as_of_time=as_of_time,
            include_history=include_history,
            min_importance=min_importance,
            labels=labels,
            session_id=session_id,
            min_score=min_score,
            mode=mode,
            max_tokens=max_tokens,
            explain=explain,
            page_size=page_size,
            min_trust=min_trust,
            sources=sources,
        )
        return found_of(self._transport.all_pages(call))

    def list_memories(
        self,
        *,
        categories: Sequence[MemoryCategory | str] = (),
        ids: Sequence[str] = (),
        as_of_time: datetime | None = None,
        include_history: bool = False,
        min_importance: float | None = None,
        labels: Mapping[str, str] | None = None,
        session_id: str = "",
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        newest_first: bool = False,
        page_size: int = 0,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> Iterator[UserMemory]:
        """Yield the memories in the order in which they were saved, page by page.

        Args:
            categories: Only memories of these categories. Empty: of any.
            ids: Only these memories, at most 1000; missing ones are skipped. Empty: any.
            as_of_time: Memories that held at this time. None: those that hold now.
            include_history: Also memories that no longer hold.
            min_importance: Only memories whose current importance is at least this.
            labels: Only memories that have all these labels.
            session_id: Only memories that came from this conversation. Empty: from any.
            start_time: Only memories whose create_time is at or after it.
            end_time: Only memories whose create_time is before it.
            newest_first: Reverse the order.
            page_size: Number to fetch at a time; 0: 100.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from these sources. Empty: from any.
        """
        call = user_memories.list_memories(
            self._namespace,
            categories=categories,
            ids=ids,
            as_of_time=as_of_time,
            include_history=include_history,
            min_importance=min_importance,
            labels=labels,
            session_id=session_id,
            start_time=start_time,
            end_time=end_time,
            newest_first=newest_first,
            page_size=page_size,
            min_trust=min_trust,
            sources=sources,
        )
        return self._transport.entries(call)

    def update_memory(
        self,
        id: str,
        *,
        content: str | Unset = UNSET,
        category: MemoryCategory | str | Unset = UNSET,
        reasoning: str | Unset = UNSET,
        importance: float | Unset = UNSET,
        valid_from_time: datetime | Unset = UNSET,
        valid_until_time: datetime | Unset | None = UNSET,
        expire_time: datetime | Unset | None = UNSET,
        ttl: timedelta | float | Unset = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
        expected_version: int | None = None,
        keep_wording: bool = False,
        decide_by: DecidedBy | str | None = None,
        request_id: str | None = None,
    ) -> UpdatedMemory:
        """Correct the given fields of a memory, for the whole time that it holds.

        For a change in the world, such as a move to another city, save a new fact instead. New content is
        put into the third person, embedded and rated again. `importance` is a score. `labels` and `metadata`
        are replaced as a whole; `expire_time=None` clears the expiry. With `expected_version`, the change
        happens only if that is the memory's version.

        Raises:
            NotFound: The namespace has no memory with this id.
            Conflict: The expected version is not the memory's, which is in `metadata["current_version"]`.
        """
        call = user_memories.update_memory(
            self._namespace,
            id,
            content=content,
            category=category,
            reasoning=reasoning,
            importance=importance,
            valid_from_time=valid_from_time,
            valid_until_time=valid_until_time,
            expire_time=expire_time,
            ttl=ttl,
            labels=labels,
            metadata=metadata,
            expected_version=expected_version,
            keep_wording=keep_wording,
            decide_by=decide_by,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def delete_memory(
        self,
        id: str,
        *,
        expected_version: int | None = None,
        include_history: bool = False,
        keep_derived: bool = False,
        request_id: str | None = None,
    ) -> RemovedMemories:
        """Remove a memory, and what was made only from it, from the records and from every index.

        `include_history` also removes the memories that it superseded or was derived from. Otherwise they
        stay in the history, and none of them holds again. `keep_derived` keeps what was made from them; see
        `delete`.

        Raises:
            NotFound: The namespace has no memory with this id.
            Conflict: The memory's version is not `expected_version`.
        """
        call = user_memories.delete_memory(
            self._namespace,
            id,
            expected_version=expected_version,
            include_history=include_history,
            keep_derived=keep_derived,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def get_preloaded_memories(
        self,
        *,
        max_tokens: int = 1000,
        categories: Sequence[MemoryCategory | str] = (),
        limit: int = 100,
        min_importance: float | None = None,
        as_of_time: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
        if_not_revision: int | None = None,
    ) -> PreloadedMemories:
        """Return the memories that belong in every system prompt, also as a block of text for it.

        Args:
            max_tokens: Maximum estimated tokens of the text. -1: no limit.
            categories: Categories to preload. Empty: identity, preference and relationship.
            limit: Maximum number of memories, up to 1000.
            min_importance: Only memories whose current importance is at least this.
            as_of_time: Memories that held at this time. None: those that hold now.
            labels: Only memories that have all these labels.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from these sources. Empty: from any.
            if_not_revision: The revision of an earlier result with the same arguments. If the text is known
                to be the same since, the result is `unchanged` and has no text and memories.
        """
        call = user_memories.get_preloaded_memories(
            self._namespace,
            max_tokens=max_tokens,
            categories=categories,
            limit=limit,
            min_importance=min_importance,
            as_of_time=as_of_time,
            labels=labels,
            min_trust=min_trust,
            sources=sources,
            if_not_revision=if_not_revision,
        )
        return self._transport.unary(call)

    def extract_memories(
        self,
        messages: Iterable[ChatMessage] = (),
        *,
        session_id: str = "",
        after_revision: int = 0,
        limit: int | None = None,
        recalled_memory_ids: Sequence[str] = (),
        categories: Sequence[MemoryCategory | str] = (),
        dry_run: bool = False,
        on_contradiction: OnContradiction | str | None = None,
        decide_by: DecidedBy | str | None = None,
        actor: str = "",
        labels: Mapping[str, str] | None = None,
        request_id: str | None = None,
    ) -> Extraction:
        """Find facts about the user in messages or in the items of a session, and save them.

        Args:
            messages: Messages to examine, at most 200; they are not stored. Empty: the session's items.
            session_id: The session to examine; with messages, the conversation that they belong to.
            after_revision: Examine items written after this revision. Only without messages.
            limit: Maximum number of items of the session, oldest first. None: 100. Only without messages.
            recalled_memory_ids: Memories recalled into the conversation, so that repeating them is not new.
            categories: Categories to look for. Empty: all.
            dry_run: Return what would be saved, and write nothing.
            on_contradiction: What to do with a fact that contradicts a known one. None: supersede that one.
            decide_by: The decider. None: the language model if it can, else rules.
            actor: The actor that saves the memories, such as an agent's name.
            labels: Labels of the memories.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has no model (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and the model failed (LLM_UNAVAILABLE). Nothing was written.
        """
        call = user_memories.extract_memories(
            self._namespace,
            messages,
            session_id=session_id,
            after_revision=after_revision,
            limit=limit,
            recalled_memory_ids=recalled_memory_ids,
            categories=categories,
            dry_run=dry_run,
            on_contradiction=on_contradiction,
            decide_by=decide_by,
            actor=actor,
            labels=labels,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def consolidate_memories(
        self,
        *,
        dry_run: bool = False,
        categories: Sequence[MemoryCategory | str] = (),
        memory_ids: Sequence[str] = (),
        similarity_threshold: float | None = None,
        limit: int = 50,
        decide_by: DecidedBy | str | None = None,
        request_id: str | None = None,
    ) -> Consolidations:
        """Merge memories that say much the same, and end those that a later one contradicts.

        Args:
            dry_run: Return what would be done, and write nothing.
            categories: Categories to examine. Empty: all.
            memory_ids: Memories to examine. Empty: all that hold.
            similarity_threshold: Cosine similarity from which memories are grouped. None: the embedder's
                default.
            limit: Maximum number of groups to work on, most similar first.
            decide_by: The decider. None: the language model if it can, else rules.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.
        """
        call = user_memories.consolidate_memories(
            self._namespace,
            dry_run=dry_run,
            categories=categories,
            memory_ids=memory_ids,
            similarity_threshold=similarity_threshold,
            limit=limit,
            decide_by=decide_by,
            request_id=request_id,
        )
        return self._transport.unary(call)
