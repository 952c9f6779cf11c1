# Generated from _aio/knowledge.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for documents and their fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory_client._calls import knowledge
from memory_client._calls.fields import found_of
from memory_client._sync.transport import Bound
from memory_client.found import Found
from memory_client.knowledge import Document, FragmentResult, HandledMessage, RemovedDocument
from memory_client.models import RetrieveMode, SourceKind


class KnowledgeMethods(Bound):
    """Methods for documents of the client's namespace: kept whole, searched by their fragments."""

    def handle_message(
        self,
        session_id: str,
        text: str,
        *,
        message_id: str = "",
        agent_name: str = "",
        commands: Sequence[str] = (),
        max_recent_messages: int | None = None,
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        max_characters: int | None = None,
        overlap_characters: int | None = None,
        request_id: str | None = None,
    ) -> HandledMessage:
        """Save the agent's latest message of a conversation as a document if a text is a command to save.

        Args:
            session_id: The conversation, or room, of the message.
            text: The message that may be a command, such as "save this". It is not stored.
            message_id: Item id of this message, if it is stored, so that it is not chosen.
            agent_name: Name in the agent's messages. Empty: any message of the assistant.
            commands: Recognised commands, in place of the server's.
            max_recent_messages: Number of last messages to examine. None: the server's default.
            labels: Labels of the document.
            metadata: Metadata of the document.
            max_characters: Maximum number of code points of a fragment. None: the server's default.
            overlap_characters: Maximum overlap of fragments, in code points. None: the server's default.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            MemoryServiceError: The error's `metadata["feedback"]` is a message for the user.
        """
        call = knowledge.handle_message(
            self._namespace,
            session_id,
            text,
            message_id=message_id,
            agent_name=agent_name,
            commands=commands,
            max_recent_messages=max_recent_messages,
            labels=labels,
            metadata=metadata,
            max_characters=max_characters,
            overlap_characters=overlap_characters,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def add_document(
        self,
        text: str,
        *,
        title: str = "",
        source: str = "",
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        create_time: datetime | None = None,
        ttl: timedelta | float | None = None,
        expire_time: datetime | None = None,
        id: str = "",
        max_characters: int | None = None,
        overlap_characters: int | None = None,
        replace: bool = False,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> Document:
        """Split a text and store it with its fragments, all or nothing; return it without its text.

        Args:
            text: Text of the document, at most 1 MiB.
            title: Title of the document.
            source: Where the text comes from, such as a URL or a file name. Never opened.
            session_id: The conversation that it belongs to.
            labels: For exact matching, as in {"topic": "travel"}. Searches for fragments also match them.
            metadata: JSON values to keep with the document.
            create_time: When the text was created, an aware datetime. None: now.
            ttl: Time until the document expires, a timedelta or seconds. None: never.
            expire_time: When the document expires, in place of `ttl`.
            id: Id of the document. Empty: the server makes one.
            max_characters: Maximum number of code points of a fragment. None: the server's default.
            overlap_characters: Maximum overlap of fragments, in code points. None: the server's default.
            replace: Replace the document with this id, if there is one.
            expected_version: Write only if this is the document's version; 0: only if there is none. Only
                with `replace`.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            AlreadyExists: A document with this id exists, and `replace` is not set.
            Conflict: The expected version is not the document's, which is in `metadata["current_version"]`.
        """
        call = knowledge.add_document(
            self._namespace,
            text,
            title=title,
            source=source,
            session_id=session_id,
            labels=labels,
            metadata=metadata,
            create_time=create_time,
            ttl=ttl,
            expire_time=expire_time,
            id=id,
            max_characters=max_characters,
            overlap_characters=overlap_characters,
            replace=replace,
            expected_version=expected_version,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def get_document(self, id: str, *, include_fragments: bool = False, page_size: int = 0) -> Document:
        """Return a document with its text and, if requested, all its fragments.

        `page_size` is the number of fragments to fetch at a time; 0: 100.

        Raises:
            NotFound: The namespace has no document with this id.
            InvalidArgument: The document was replaced while its fragments were fetched
                (INVALID_PAGE_TOKEN): call again.
        """
        call = knowledge.get_document(
            self._namespace, id, include_fragments=include_fragments, page_size=page_size
        )
        return knowledge.document_of(self._transport.all_pages(call))

    def list_documents(
        self,
        *,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        newest_first: bool = False,
        page_size: int = 0,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> Iterator[Document]:
        """Yield the documents without their texts, in the order in which they were first added.

        Args:
            session_id: Only documents of this conversation. Empty: of any.
            labels: Only documents that have all these labels.
            start_time: Only documents whose create_time is at or after it.
            end_time: Only documents whose create_time is before it.
            newest_first: Reverse the order.
            page_size: Number to fetch at a time; 0: 100.
            min_trust: Only documents that are trusted at least this much, 0 to 1.
            sources: Only documents whose content comes from these sources. Empty: from any.
        """
        call = knowledge.list_documents(
            self._namespace,
            session_id=session_id,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            newest_first=newest_first,
            page_size=page_size,
            min_trust=min_trust,
            sources=sources,
        )
        return self._transport.entries(call)

    def delete_document(
        self,
        id: str,
        *,
        expected_version: int | None = None,
        keep_derived: bool = False,
        request_id: str | None = None,
    ) -> RemovedDocument:
        """Remove a document and all its fragments, and what was made only from these.

        `keep_derived` keeps the latter; see `delete`.

        Raises:
            NotFound: The namespace has no document with this id.
            Conflict: The document's version is not `expected_version`.
        """
        call = knowledge.delete_document(
            self._namespace,
            id,
            expected_version=expected_version,
            keep_derived=keep_derived,
            request_id=request_id,
        )
        return self._transport.unary(call)

    def search_fragments(
        self,
        query: str,
        *,
        limit: int = 5,
        document_ids: Sequence[str] = (),
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        min_score: float | None = None,
        mode: RetrieveMode | str | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        page_size: int = 0,
        min_trust: float | None = None,
        sources: Sequence[SourceKind | str] = (),
    ) -> Found[FragmentResult]:
        """Return the fragments that match a text best, best first.

        Args:
            query: A text to find fragments for.
            limit: Maximum number of fragments. -1: all.
            document_ids: Only fragments of these documents, at most 100. Empty: of any.
            session_id: Only fragments of documents of this conversation. Empty: of any.
            labels: Only fragments of documents that have all these labels.
            start_time: Only fragments of documents whose create_time is at or after it.
            end_time: Only fragments of documents whose create_time is before it.
            min_score: Only results that score at least this.
            mode: How the query is matched. None: by words and vectors together.
            max_tokens: Maximum estimated tokens of all texts together. None: no limit.
            explain: Explain the score of each result.
            page_size: Number to fetch at a time; 0: as many as fit in a response.
            min_trust: Only fragments that are trusted at least this much, 0 to 1.
            sources: Only fragments whose content comes from these sources. Empty: from any.
        """
        call = knowledge.search_fragments(
            self._namespace,
            query,
            limit=limit,
            document_ids=document_ids,
            session_id=session_id,
            labels=labels,
            start_time=start_time,
            end_time=end_time,
            min_score=min_score,
            mode=mode,
            max_tokens=max_tokens,
            explain=explain,
            page_size=page_size,
            min_trust=min_trust,
            sources=sources,
        )
        return found_of(self._transport.all_pages(call))
