# Generated from _aio/user_memories.py by generate_sync.py. Do not edit: change that and generate anew.
"""The methods of a client that keep facts about a user."""

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
    """Facts about a user: each once, with its importance, its source and the time for which it holds."""

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
        """Save a fact in the third person, unless it is known already.

        A fact that contradicts a known one takes its place; that one stays in the history with its end.

        Args:
            content: The fact, 10 to 500 characters.
            category: What it is about, such as "preference".
            reasoning: Why it is worth remembering, 10 to 200 characters.
            source: Where it came from: session, items, quote, actor.
            explicit_request: The user asked for it to be remembered, which makes it more important.
            on_contradiction: What becomes of it if it contradicts a known one. None: it supersedes that.
            valid_from_time: When it began to hold, an aware datetime. None: now.
            ttl: How long the memory lives, a timedelta or seconds. None: for ever.
            labels: For exact matching, as in {"topic": "travel"}.
            metadata: JSON values to keep with the memory.
            keep_wording: Save the content as it is given, not in the third person.
            decide_by: Who is to rephrase and to compare. None: the language model if it can, else rules.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Raises:
            InvalidArgument: A field is missing, too short, too long or malformed.
            FailedPrecondition: `decide_by` is "llm" and the server has none (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and it failed (LLM_UNAVAILABLE). Nothing was written.
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
        """Return the memories that fit a text best, the best first.

        Args:
            query: A text to find memories for.
            limit: The most memories wanted. -1: all.
            categories: Only memories of one of these. Empty: of any.
            as_of_time: Memories that held then. None: those that hold now.
            include_history: Also memories that hold no more.
            min_importance: Only memories whose importance is now at least this.
            labels: Only memories that have all these labels.
            session_id: Only memories that came from this conversation. Empty: from any.
            min_score: Only results that score at least this.
            mode: By what the query is answered. None: words and vectors together.
            max_tokens: What the contents may take together, estimated. None: no bound.
            explain: Add to each result how its score came about.
            page_size: How many are fetched at a time; 0: as many as fit into a response.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from one of these. Empty: from any.
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
            categories: Only memories of one of these. Empty: of any.
            ids: Only these memories; those that do not exist are left out. Empty: any. At most 1000.
            as_of_time: Memories that held then. None: those that hold now.
            include_history: Also memories that hold no more.
            min_importance: Only memories whose importance is now at least this.
            labels: Only memories that have all these labels.
            session_id: Only memories that came from this conversation. Empty: from any.
            start_time: Only memories whose create_time is at or after it.
            end_time: Only memories whose create_time is before it.
            newest_first: Turn the order round.
            page_size: How many are fetched at a time; 0: 100.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from one of these. Empty: from any.
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
        """Correct those fields of a memory that are given, for the whole time that it holds.

        For a change in the world, such as a move to another city, save the new fact instead. New content
        is put into the third person, embedded and rated anew. `importance` is a score. `labels` and
        `metadata` are replaced whole; `expire_time=None` lets the memory live for ever. With
        `expected_version` the change happens only if that is the memory's version.

        Raises:
            NotFound: No memory of this id is in the namespace.
            Conflict: The memory has another version; `metadata["current_version"]` tells which.
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
        request_id: str | None = None,
    ) -> RemovedMemories:
        """Remove a memory from the records and from every index.

        With `include_history` also the memories that it superseded or was made out of go; without it they
        stay in the history, and none of them comes back to hold.

        Raises:
            NotFound: No memory of this id is in the namespace.
            Conflict: The memory has another version than `expected_version`.
        """
        call = user_memories.delete_memory(
            self._namespace,
            id,
            expected_version=expected_version,
            include_history=include_history,
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
    ) -> PreloadedMemories:
        """Return the memories that belong into every system prompt, and as a block of text for it.

        Args:
            max_tokens: What the text may take, estimated. -1: no bound.
            categories: To preload. Empty: identity, preference and relationship.
            limit: The most memories wanted, at most 1000.
            min_importance: Only memories whose importance is now at least this.
            as_of_time: Memories that held then. None: those that hold now.
            labels: Only memories that have all these labels.
            min_trust: Only memories that are trusted at least this much, 0 to 1.
            sources: Only memories whose content comes from one of these. Empty: from any.
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
        """Find facts about the user in messages, or in what a session holds, and save each.

        Args:
            messages: To look through, at most 200; they are not stored. Empty: the items of the session.
            session_id: The session to look through; with messages, the conversation that they are of.
            after_revision: Only items of the session written later. Only without messages.
            limit: The most items of the session, the oldest first. None: 100. Only without messages.
            recalled_memory_ids: Memories that were put into the conversation: what repeats them is not new.
            categories: To look for. Empty: all.
            dry_run: Tell what would be saved, and write nothing.
            on_contradiction: What becomes of a fact that contradicts a known one. None: it supersedes that.
            decide_by: Who is to extract. None: the language model if it can, else rules.
            actor: Who has the memories saved, such as an agent's name.
            labels: For the memories.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has none (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and it failed (LLM_UNAVAILABLE). Nothing was written.
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
            dry_run: Tell what would be done, and write nothing.
            categories: Of the memories to look at. Empty: all.
            memory_ids: Of the memories to look at. Empty: all that hold.
            similarity_threshold: The cosine from which on memories are looked at together. None: the
                embedder's own.
            limit: The most groups to work on, the most similar first.
            decide_by: Who is to decide and to word. None: the language model if it can, else rules.
            request_id: Applied once, however often it is sent. None: a new one for this call.
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
