# Generated from _aio/knowledge.py by generate_sync.py. Do not edit: change that and generate anew.
"""The methods of a client that keep documents and search their fragments."""

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
    """Documents: kept whole, searched by their fragments. All in the client's namespace."""

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
        """Save the agent's latest message of a conversation as a document, if a text is a command to.

        Args:
            session_id: The conversation, or room, that the message was sent in.
            text: The message that may be a command, such as "save this". It is not stored.
            message_id: The id of the item that is this message, if it is stored: it is never chosen.
            agent_name: The name that the agent's messages have. Empty: any message of the assistant.
            commands: Commands that count, in place of the server's.
            max_recent_messages: How many of the last messages are looked at. None: the server's number.
            labels: For the document.
            metadata: For the document.
            max_characters: The most code points of a fragment. None: the server's number.
            overlap_characters: The most that a fragment repeats of the one before. None: the server's.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Raises:
            MemoryServiceError: `metadata["feedback"]` of the error is what to tell the user.
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
        """Split a text and keep it with its fragments, all or nothing; return it without its text.

        Args:
            text: Of the document, at most 1 MiB.
            title: Of the document.
            source: What the text comes from, such as a URL or a file's name. Never opened.
            session_id: The conversation that it belongs to.
            labels: For exact matching, as in {"topic": "travel"}. Its fragments are found by them too.
            metadata: JSON values to keep with the document.
            create_time: When the text came about, an aware datetime. None: now.
            ttl: How long the document lives, a timedelta or seconds. None: for ever.
            expire_time: Another way to say it: the moment when the document ceases to exist.
            id: Names the document. Empty: the server makes an id.
            max_characters: The most code points of a fragment. None: the server's number.
            overlap_characters: The most that a fragment repeats of the one before. None: the server's.
            replace: Take the place of the document that has this id, if there is one.
            expected_version: Only if this is the document's version; 0: only if there is none. Only with
                `replace`.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Raises:
            AlreadyExists: A document of this id exists, and `replace` is not set.
            Conflict: The document has another version; `metadata["current_version"]` tells which.
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
        """Return a document with its text and, if asked for, all its fragments.

        `page_size` is how many fragments are fetched at a time; 0: 100.

        Raises:
            NotFound: No document of this id is in the namespace.
            InvalidArgument: The document was replaced while its fragments were fetched
                (INVALID_PAGE_TOKEN): ask again.
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
            newest_first: Turn the order round.
            page_size: How many are fetched at a time; 0: 100.
            min_trust: Only documents that are trusted at least this much, 0 to 1.
            sources: Only documents whose content comes from one of these. Empty: from any.
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
        self, id: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> RemovedDocument:
        """Remove a document and all its fragments.

        Raises:
            NotFound: No document of this id is in the namespace.
            Conflict: The document has another version than `expected_version`.
        """
        call = knowledge.delete_document(
            self._namespace, id, expected_version=expected_version, request_id=request_id
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
        """Return the fragments that fit a text best, the best first.

        Args:
            query: A text to find fragments for.
            limit: The most fragments wanted. -1: all.
            document_ids: Only of these documents, at most 100. Empty: of any.
            session_id: Only of documents of this conversation. Empty: of any.
            labels: Only of documents that have all these labels.
            start_time: Only of documents whose create_time is at or after it.
            end_time: Only of documents whose create_time is before it.
            min_score: Only results that score at least this.
            mode: By what the query is answered. None: words and vectors together.
            max_tokens: What the texts may take together, estimated. None: no bound.
            explain: Add to each result how its score came about.
            page_size: How many are fetched at a time; 0: as many as fit into a response.
            min_trust: Only fragments that are trusted at least this much, 0 to 1.
            sources: Only fragments whose content comes from one of these. Empty: from any.
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
