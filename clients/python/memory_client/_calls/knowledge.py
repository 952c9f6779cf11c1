"""The calls of KnowledgeService: requests from arguments, answers from responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replaced
from datetime import datetime, timedelta
from typing import Any

from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._calls.fields import (
    explanation_to,
    mode_number,
    set_metadata,
    set_times,
    set_ttl,
    source_numbers,
)
from memory_client._gen.memory_service.v1 import knowledge_pb2 as pb
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.convert import degraded_to, enum_to, item_to, provenance_to, time_to
from memory_client.knowledge import (
    Document,
    Fragment,
    FragmentResult,
    HandledMessage,
    HandleMessageOutcome,
    RemovedDocument,
)
from memory_client.models import RetrieveMode, SourceKind
from memory_client.values import struct_to

_SERVICE = "/memory_service.v1.KnowledgeService/"


def _fragment_to(proto: pb.Fragment) -> Fragment:
    return Fragment(
        id=proto.id,
        document_id=proto.document_id,
        document_version=proto.document_version,
        index=proto.index,
        text=proto.text,
        start_offset=proto.start_offset,
        end_offset=proto.end_offset,
        start_byte=proto.start_byte,
        end_byte=proto.end_byte,
        create_time=time_to(proto, "create_time"),
        provenance=provenance_to(proto),
    )


def _document_to(
    proto: pb.Document,
    fragments: Iterable[pb.Fragment] = (),
    degraded: Iterable[memory_pb2.Degradation] = (),
) -> Document:
    return Document(
        id=proto.id,
        text=proto.text,
        title=proto.title,
        source=proto.source,
        source_item_id=proto.source_item_id,
        session_id=proto.session_id,
        labels=dict(proto.labels),
        metadata=struct_to(proto.metadata),
        create_time=time_to(proto, "create_time"),
        update_time=time_to(proto, "update_time"),
        expire_time=time_to(proto, "expire_time"),
        version=proto.version,
        fragment_count=proto.fragment_count,
        size_bytes=proto.size_bytes,
        preview=proto.preview,
        revision=proto.revision,
        provenance=provenance_to(proto),
        fragments=tuple(_fragment_to(fragment) for fragment in fragments),
        degraded=degraded_to(degraded),
    )


def _set_split(request: Any, max_characters: int | None, overlap_characters: int | None) -> None:
    if max_characters is not None:
        request.split.max_characters = max_characters
    if overlap_characters is not None:
        request.split.overlap_characters = overlap_characters


def document_of(pages: Iterable[Page[Document]]) -> Document:
    """Return the document of the first page with the fragments of all pages."""
    documents = [page.entries[0] for page in pages]
    fragments = tuple(fragment for document in documents for fragment in document.fragments)
    return replaced(documents[0], fragments=fragments)


def handle_message(
    namespace: str,
    session_id: str,
    text: str,
    *,
    message_id: str,
    agent_name: str,
    commands: Sequence[str],
    max_recent_messages: int | None,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    max_characters: int | None,
    overlap_characters: int | None,
    request_id: str | None,
) -> Call[HandledMessage]:
    """Call HandleMessage."""
    request = pb.HandleMessageRequest(
        namespace=namespace,
        session_id=session_id,
        text=text,
        message_id=message_id,
        agent_name=agent_name,
        commands=commands,
        max_recent_messages=max_recent_messages,
        labels=dict(labels or {}),
        request_id=request_id_or_new(request_id),
    )
    set_metadata(request, metadata)
    _set_split(request, max_characters, overlap_characters)
    return Call(_SERVICE + "HandleMessage", request, pb.HandleMessageResponse, _handled)


def _handled(response: pb.HandleMessageResponse) -> HandledMessage:
    unknown = HandleMessageOutcome.UNSPECIFIED
    return HandledMessage(
        outcome=enum_to(
            pb.HandleMessageOutcome,
            "HANDLE_MESSAGE_OUTCOME_",
            response.outcome,
            HandleMessageOutcome,
            unknown,
        ),
        feedback=response.feedback,
        command=response.command,
        message=item_to(response.message) if response.HasField("message") else None,
        document=_document_to(response.document, response.fragments)
        if response.HasField("document")
        else None,
        revision=response.revision,
        degraded=degraded_to(response.degraded),
    )


def add_document(
    namespace: str,
    text: str,
    *,
    title: str,
    source: str,
    session_id: str,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
    create_time: datetime | None,
    ttl: timedelta | float | None,
    expire_time: datetime | None,
    id: str,
    max_characters: int | None,
    overlap_characters: int | None,
    replace: bool,
    expected_version: int | None,
    request_id: str | None,
) -> Call[Document]:
    """Call AddDocument."""
    document = pb.Document(
        id=id, text=text, title=title, source=source, session_id=session_id, labels=dict(labels or {})
    )
    set_metadata(document, metadata)
    set_times(document, create_time=create_time, expire_time=expire_time)
    set_ttl(document, ttl)
    request = pb.AddDocumentRequest(
        namespace=namespace,
        document=document,
        replace=replace,
        expected_version=expected_version,
        request_id=request_id_or_new(request_id),
    )
    _set_split(request, max_characters, overlap_characters)

    def read(response: pb.AddDocumentResponse) -> Document:
        return _document_to(response.document, degraded=response.degraded)

    return Call(_SERVICE + "AddDocument", request, pb.AddDocumentResponse, read)


def get_document(namespace: str, id: str, *, include_fragments: bool, page_size: int) -> Call[Page[Document]]:
    """Call GetDocument for its first page."""
    request = pb.GetDocumentRequest(
        namespace=namespace, id=id, include_fragments=include_fragments, page_size=page_size
    )

    def read(response: pb.GetDocumentResponse) -> Page[Document]:
        document = _document_to(response.document, response.fragments)
        return Page([document], response.next_page_token, response)

    return Call(_SERVICE + "GetDocument", request, pb.GetDocumentResponse, read)


def list_documents(
    namespace: str,
    *,
    session_id: str,
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    newest_first: bool,
    page_size: int,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[Page[Document]]:
    """Call ListDocuments."""
    request = pb.ListDocumentsRequest(
        namespace=namespace,
        page_size=page_size,
        session_id=session_id,
        labels=dict(labels or {}),
        newest_first=newest_first,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, start_time=start_time, end_time=end_time)

    def read(response: pb.ListDocumentsResponse) -> Page[Document]:
        documents = [_document_to(document) for document in response.documents]
        return Page(documents, response.next_page_token, response)

    return Call(_SERVICE + "ListDocuments", request, pb.ListDocumentsResponse, read)


def delete_document(
    namespace: str, id: str, *, expected_version: int | None, keep_derived: bool, request_id: str | None
) -> Call[RemovedDocument]:
    """Call DeleteDocument."""
    request = pb.DeleteDocumentRequest(
        namespace=namespace,
        id=id,
        expected_version=expected_version,
        keep_derived=keep_derived,
        request_id=request_id_or_new(request_id),
    )

    def read(response: pb.DeleteDocumentResponse) -> RemovedDocument:
        return RemovedDocument(response.removed_fragment_count, response.revision, response.derived_count)

    return Call(_SERVICE + "DeleteDocument", request, pb.DeleteDocumentResponse, read)


def search_fragments(
    namespace: str,
    query: str,
    *,
    limit: int,
    document_ids: Sequence[str],
    session_id: str,
    labels: Mapping[str, str] | None,
    start_time: datetime | None,
    end_time: datetime | None,
    min_score: float | None,
    mode: RetrieveMode | str | None,
    max_tokens: int | None,
    explain: bool,
    page_size: int,
    min_trust: float | None,
    sources: Sequence[SourceKind | str],
) -> Call[Page[FragmentResult]]:
    """Call SearchFragments."""
    request = pb.SearchFragmentsRequest(
        namespace=namespace,
        query=query,
        limit=limit,
        document_ids=document_ids,
        session_id=session_id,
        labels=dict(labels or {}),
        min_score=min_score,
        mode=mode_number(mode),
        max_tokens=max_tokens,
        explain=explain,
        page_size=page_size,
        min_trust=min_trust,
        sources=source_numbers(sources),
    )
    set_times(request, start_time=start_time, end_time=end_time)

    def read(response: pb.SearchFragmentsResponse) -> Page[FragmentResult]:
        results = [
            FragmentResult(
                _fragment_to(result.fragment),
                _document_to(result.document),
                result.score,
                explanation_to(result.explanation),
            )
            for result in response.results
        ]
        return Page(results, response.next_page_token, response)

    return Call(_SERVICE + "SearchFragments", request, pb.SearchFragmentsResponse, read)
