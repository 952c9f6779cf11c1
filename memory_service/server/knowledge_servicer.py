"""KnowledgeService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.fragment_search import FragmentHit, FragmentQuery, FragmentSearch
from memory_service.domain.knowledge import Knowledge
from memory_service.domain.retrieve_options import Selection
from memory_service.domain.save_command import SaveCommand, Spoken
from memory_service.errors import InvalidArgument
from memory_service.runtime.yielding import Part, each
from memory_service.server.decisions import degradations, fill_explanation
from memory_service.server.documents import fill_document, fill_fragment, to_document_draft, to_split
from memory_service.server.items import fill_item
from memory_service.server.provenance import to_trust
from memory_service.server.requests import optional, request_key, to_mode
from memory_service.server.values import to_dict, to_labels, to_us
from memory_service.v1 import knowledge_pb2 as pb
from memory_service.v1 import knowledge_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class KnowledgeServicer(knowledge_pb2_grpc.KnowledgeServiceServicer):
    """Documents over gRPC."""

    def __init__(self, knowledge: Knowledge, search: FragmentSearch, save_command: SaveCommand) -> None:
        self._knowledge = knowledge
        self._search = search
        self._save_command = save_command

    async def HandleMessage(
        self, request: pb.HandleMessageRequest, context: Context
    ) -> pb.HandleMessageResponse:
        spoken = Spoken(
            request.session_id,
            request.text,
            request.message_id,
            request.agent_name,
            tuple(request.commands),
            optional(request, "max_recent_messages"),
            to_labels("labels", request.labels),
            to_dict("metadata", request.metadata) if request.HasField("metadata") else None,
            optional(request.split, "max_characters"),
            optional(request.split, "overlap_characters"),
        )
        key = await request_key(request.request_id, request)
        handled = await self._save_command.handle(request.namespace, spoken, key)
        response = pb.HandleMessageResponse(
            outcome=int(handled.outcome),  # type: ignore[arg-type]
            feedback=handled.feedback,
            command=handled.command,
            revision=handled.revision,
            degraded=degradations(handled.degraded),
        )
        if handled.message is not None:
            fill_item(response.message, handled.message)
        if handled.document is not None:
            fill_document(response.document, handled.document, with_text=True)
        for fragment in handled.fragments:
            fill_fragment(response.fragments.add(), fragment)
        return response

    async def AddDocument(self, request: pb.AddDocumentRequest, context: Context) -> pb.AddDocumentResponse:
        if not request.HasField("document"):
            raise InvalidArgument("document", "is required")
        written = await self._knowledge.add(
            request.namespace,
            to_document_draft("document", request.document),
            to_split(request.split, self._knowledge.split),
            replace=request.replace,
            expected_version=optional(request, "expected_version"),
            request=await request_key(request.request_id, request),
        )
        response = pb.AddDocumentResponse(
            revision=written.receipt.revision, degraded=degradations(written.degraded)
        )
        fill_document(response.document, written.document)
        return response

    async def GetDocument(self, request: pb.GetDocumentRequest, context: Context) -> pb.GetDocumentResponse:
        found = await self._knowledge.get(
            request.namespace,
            request.id,
            include_fragments=request.include_fragments,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        response = pb.GetDocumentResponse(revision=found.revision, next_page_token=found.next_page_token)
        fill_document(response.document, found.document, with_text=not request.page_token)
        await each(lambda fragment: fill_fragment(response.fragments.add(), fragment), found.fragments)
        return response

    async def ListDocuments(
        self, request: pb.ListDocumentsRequest, context: Context
    ) -> pb.ListDocumentsResponse:
        page = await self._knowledge.list_documents(
            request.namespace,
            _selection(request),
            page_size=request.page_size,
            page_token=request.page_token,
            newest_first=request.newest_first,
        )
        response = pb.ListDocumentsResponse(revision=page.revision, next_page_token=page.next_page_token)
        for document in page.documents:
            fill_document(response.documents.add(), document, with_preview=True)
        return response

    async def DeleteDocument(
        self, request: pb.DeleteDocumentRequest, context: Context
    ) -> pb.DeleteDocumentResponse:
        receipt = await self._knowledge.delete(
            request.namespace,
            request.id,
            expected_version=optional(request, "expected_version"),
            keep_derived=request.keep_derived,
            request=await request_key(request.request_id, request),
        )
        return pb.DeleteDocumentResponse(
            # The document itself is one of what was removed.
            removed_fragment_count=receipt.removed_count - 1,
            revision=receipt.revision,
            derived_count=receipt.derived_count,
        )

    async def SearchFragments(
        self, request: pb.SearchFragmentsRequest, context: Context
    ) -> pb.SearchFragmentsResponse:
        mode = to_mode("mode", request.mode)
        query = FragmentQuery(
            request.query,
            _selection(request),
            optional(request, "limit"),
            tuple(request.document_ids),
            optional(request, "min_score"),
            mode,
            optional(request, "max_tokens"),
            request.explain,
            request.page_size,
            request.page_token,
        )
        page = await self._search.search(request.namespace, query)
        response = pb.SearchFragmentsResponse(
            revision=page.revision, next_page_token=page.next_page_token, degraded=degradations(page.degraded)
        )
        documents: dict[str, pb.Document] = {}
        part = Part()
        for hit in page.hits:
            document = documents.get(hit.document.item.id)
            if document is None:
                document = documents[hit.document.item.id] = pb.Document()
                fill_document(document, hit.document, with_preview=True)
            _fill_result(response.results.add(), hit, document, explain=request.explain)
            await part.give_way_if_long()
        return response


def _selection(request: pb.ListDocumentsRequest | pb.SearchFragmentsRequest) -> Selection:
    min_trust, sources = to_trust(request)
    return Selection(
        request.session_id,
        to_labels("labels", request.labels),
        to_us("start_time", request.start_time) if request.HasField("start_time") else None,
        to_us("end_time", request.end_time) if request.HasField("end_time") else None,
        min_trust=min_trust,
        sources=sources,
    )


def _fill_result(
    target: pb.FragmentResult, hit: FragmentHit, document: pb.Document, *, explain: bool
) -> None:
    fill_fragment(target.fragment, hit.fragment)
    target.document.CopyFrom(document)
    target.score = hit.score
    if explain:
        fill_explanation(target.explanation, hit.shares or ())
