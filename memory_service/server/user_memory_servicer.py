"""UserMemoryService: convert requests, call the domain, convert results."""

from __future__ import annotations

from typing import Any

import grpc

from memory_service.domain.answers import Answering
from memory_service.domain.facts.consolidating import Consolidated, FactConsolidating
from memory_service.domain.facts.correcting import CORRECTABLE, Correction, FactCorrecting
from memory_service.domain.facts.extracting import Extracted, FactExtracting
from memory_service.domain.facts.finding import Extraction, Found, Said
from memory_service.domain.facts.grouping import Group
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.outcomes import Outcome, Saved
from memory_service.domain.facts.preloading import UserMemoryPreloading
from memory_service.domain.facts.reading import UserMemoryReading
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.search_text import search_text
from memory_service.errors import InvalidArgument
from memory_service.server.answers import answered
from memory_service.server.decisions import (
    degradations,
    fill_decision,
    fill_explanation,
    from_decided_by,
    to_decided_by,
)
from memory_service.server.items import to_chat_message
from memory_service.server.requests import optional, request_key, to_mode
from memory_service.server.user_memories import (
    UserMemoryFilling,
    to_categories,
    to_fact_draft,
    to_memory,
    to_on_contradiction,
    to_wanted,
)
from memory_service.server.values import to_labels, to_paths, to_us, ttl_us
from memory_service.v1 import user_memory_pb2 as pb
from memory_service.v1 import user_memory_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

_MESSAGES = {
    Outcome.SAVED: "Saved to memory",
    Outcome.SUPERSEDED: "Saved to memory; superseded memories are kept as history",
    Outcome.DUPLICATE: "Similar memory already exists",
    Outcome.CONTRADICTION: "This contradicts a known memory",
}


class UserMemoryServicer(user_memory_pb2_grpc.UserMemoryServiceServicer):
    """Facts about users over gRPC."""

    def __init__(
        self,
        saving: FactSaving,
        correcting: FactCorrecting,
        extracting: FactExtracting,
        consolidating: FactConsolidating,
        reading: UserMemoryReading,
        preloading: UserMemoryPreloading,
        judging: Judging,
    ) -> None:
        self._saving = saving
        self._correcting = correcting
        self._extracting = extracting
        self._consolidating = consolidating
        self._reading = reading
        self._preloading = preloading
        self._judging = judging
        self._filling = UserMemoryFilling(reading)

    async def SaveMemory(
        self, request: pb.SaveMemoryRequest, context: Context
    ) -> pb.SaveMemoryResponse | bytes:
        async def save(asked: Answering[Saved] | None) -> Saved:
            decide_by = to_decided_by("decide_by", request.decide_by)
            return await self._saving.save(request.namespace, to_fact_draft(request), decide_by, asked)

        key = await request_key(request.request_id, request)
        return await answered(key, save, self._of_saved, pb.SaveMemoryResponse)

    def _of_saved(self, saved: Saved) -> pb.SaveMemoryResponse:
        response = pb.SaveMemoryResponse(
            message=_message(saved),
            duplicate_threshold=self._judging.threshold,
            reason=saved.reason[:500],
            rephrased_by=from_decided_by(saved.rephrased_by),
        )
        self._fill_saved(response, saved)
        self._filling.fill_all(response.superseded, saved.superseded)
        if saved.similarity is not None:
            response.similarity = saved.similarity
        return response

    async def UpdateMemory(
        self, request: pb.UpdateMemoryRequest, context: Context
    ) -> pb.UpdateMemoryResponse | bytes:
        if not request.HasField("memory"):
            raise InvalidArgument("memory", "is required")
        fields = _corrected_fields(request)
        memory = request.memory
        correction = Correction(
            to_memory(memory, fields),
            fields,
            memory.importance.score,
            ttl_us("memory.ttl", memory.ttl) if memory.HasField("ttl") else None,
            optional(request, "expected_version"),
            request.keep_wording,
        )

        async def update(asked: Answering[Saved] | None) -> Saved:
            decide_by = to_decided_by("decide_by", request.decide_by)
            return await self._correcting.update(request.namespace, correction, decide_by, asked)

        key = await request_key(request.request_id, request)
        return await answered(key, update, self._of_corrected, pb.UpdateMemoryResponse)

    def _of_corrected(self, saved: Saved) -> pb.UpdateMemoryResponse:
        response = pb.UpdateMemoryResponse(rephrased_by=from_decided_by(saved.rephrased_by))
        self._fill_saved(response, saved)
        return response

    def _fill_saved(self, response: pb.SaveMemoryResponse | pb.UpdateMemoryResponse, saved: Saved) -> None:
        response.outcome = int(saved.outcome)  # type: ignore[assignment]
        response.decided_by = from_decided_by(saved.decided_by)
        response.revision = saved.revision
        response.degraded.extend(degradations(saved.degraded))
        if saved.memory is not None:
            self._filling.fill(response.memory, saved.memory)
        if saved.existing is not None:
            self._filling.fill(response.existing, saved.existing)
        if saved.deciding is not None:
            fill_decision(response, saved.deciding.failures, saved.deciding.usage)

    async def DeleteMemory(
        self, request: pb.DeleteMemoryRequest, context: Context
    ) -> pb.DeleteMemoryResponse:
        receipt = await self._correcting.delete(
            request.namespace,
            request.id,
            expected_version=optional(request, "expected_version"),
            include_history=request.include_history,
            keep_derived=request.keep_derived,
            request=await request_key(request.request_id, request),
        )
        return pb.DeleteMemoryResponse(
            removed_count=receipt.removed_count,
            revision=receipt.revision,
            derived_count=receipt.derived_count,
        )

    async def SearchMemories(
        self, request: pb.SearchMemoriesRequest, context: Context
    ) -> pb.SearchMemoriesResponse:
        wanted = to_wanted(request)
        wanted.include_history, wanted.session_id = request.include_history, request.session_id
        page = await self._reading.search(
            request.namespace,
            request.query,
            wanted,
            limit=optional(request, "limit"),
            min_score=optional(request, "min_score"),
            mode=to_mode("mode", request.mode),
            max_tokens=optional(request, "max_tokens"),
            explain=request.explain,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        response = pb.SearchMemoriesResponse(next_page_token=page.next_page_token, revision=page.revision)
        response.degraded.extend(degradations(page.degraded))
        for memory, score, shares in zip(page.memories, page.scores, page.shares, strict=True):
            result = response.results.add(score=score)
            self._filling.fill(result.memory, memory)
            if request.explain:
                fill_explanation(result.explanation, shares)
        return response

    async def ListMemories(
        self, request: pb.ListMemoriesRequest, context: Context
    ) -> pb.ListMemoriesResponse:
        wanted = to_wanted(request)
        wanted.include_history, wanted.session_id = request.include_history, request.session_id
        if request.HasField("start_time"):
            wanted.start_us = to_us("start_time", request.start_time)
        if request.HasField("end_time"):
            wanted.end_us = to_us("end_time", request.end_time)
        page = await self._reading.list_memories(
            request.namespace,
            wanted,
            ids=list(request.ids),
            page_size=request.page_size,
            page_token=request.page_token,
            newest_first=request.newest_first,
        )
        response = pb.ListMemoriesResponse(next_page_token=page.next_page_token, revision=page.revision)
        self._filling.fill_all(response.memories, page.memories)
        return response

    async def GetPreloadedMemories(
        self, request: pb.GetPreloadedMemoriesRequest, context: Context
    ) -> pb.GetPreloadedMemoriesResponse:
        found = await self._preloading.preload(
            request.namespace,
            to_wanted(request),
            max_tokens=optional(request, "max_tokens"),
            limit=optional(request, "limit"),
            if_not_revision=optional(request, "if_not_revision"),
        )
        response = pb.GetPreloadedMemoriesResponse(
            text=found.text,
            token_count=found.token_count,
            omitted_count=found.omitted_count,
            revision=found.revision,
            unchanged=found.unchanged,
        )
        self._filling.fill_all(response.memories, found.memories)
        return response

    async def ExtractMemories(
        self, request: pb.ExtractMemoriesRequest, context: Context
    ) -> pb.ExtractMemoriesResponse | bytes:
        async def extract(asked: Answering[Extracted] | None) -> Extracted:
            decide_by = to_decided_by("decide_by", request.decide_by)
            return await self._extracting.extract(request.namespace, _extraction(request), decide_by, asked)

        key = await request_key(request.request_id, request)
        return await answered(key, extract, self._of_extracted, pb.ExtractMemoriesResponse)

    def _of_extracted(self, extracted: Extracted) -> pb.ExtractMemoriesResponse:
        response = pb.ExtractMemoriesResponse(
            decided_by=from_decided_by(extracted.decided_by),
            reason=extracted.reason,
            examined_count=extracted.examined_count,
            examined_revision=extracted.examined_revision,
            more=extracted.more,
            revision=extracted.revision,
        )
        self._fill_extracted(response, extracted)
        return response

    def _fill_extracted(self, response: pb.ExtractMemoriesResponse, extracted: Extracted) -> None:
        fill_decision(response, extracted.deciding.failures, extracted.deciding.usage)
        told = list(extracted.degraded)
        for found, saved in extracted.results:
            self._fill_result(response.results.add(), found, saved)
            told += [degradation for degradation in saved.degraded if degradation not in told]
        response.degraded.extend(degradations(told))

    def _fill_result(self, target: pb.ExtractedMemory, found: Found, saved: Saved) -> None:
        target.outcome = int(saved.outcome)  # type: ignore[assignment]
        target.decided_by = from_decided_by(found.decided_by)
        target.reason = saved.reason[:500]
        if saved.memory is not None:
            self._filling.fill(target.memory, saved.memory)
        if saved.existing is not None:
            self._filling.fill(target.existing, saved.existing)
        self._filling.fill_all(target.superseded, saved.superseded)
        if saved.similarity is not None:
            target.similarity = saved.similarity
        if found.confidence is not None:
            target.confidence = found.confidence

    async def ConsolidateMemories(
        self, request: pb.ConsolidateMemoriesRequest, context: Context
    ) -> pb.ConsolidateMemoriesResponse | bytes:
        has = request.HasField

        async def consolidate(asked: Answering[Consolidated] | None) -> Consolidated:
            return await self._consolidating.consolidate(
                request.namespace,
                dry_run=request.dry_run,
                categories=to_categories(request.categories),
                memory_ids=list(request.memory_ids),
                similarity_threshold=request.similarity_threshold if has("similarity_threshold") else None,
                limit=request.limit if has("limit") else None,
                decide_by=to_decided_by("decide_by", request.decide_by),
                request=asked,
            )

        key = await request_key(request.request_id, request)
        return await answered(key, consolidate, self._of_consolidated, pb.ConsolidateMemoriesResponse)

    def _of_consolidated(self, done: Consolidated) -> pb.ConsolidateMemoriesResponse:
        response = pb.ConsolidateMemoriesResponse(
            decided_by=from_decided_by(done.decided_by),
            reason=done.reason[:500],
            examined_count=done.examined_count,
            more=done.more,
            revision=done.revision,
        )
        fill_decision(response, done.deciding.failures, done.deciding.usage)
        response.degraded.extend(degradations(done.degraded))
        for group in done.groups:
            self._fill_group(response, group)
        return response

    def _fill_group(self, response: pb.ConsolidateMemoriesResponse, group: Group) -> None:
        target = response.consolidations.add(
            action=int(group.action),
            applied=group.applied,
            similarity=group.similarity,
            decided_by=from_decided_by(group.decided_by),
            reason=group.reason[:500],
        )
        self._filling.fill_all(target.sources, group.sources)
        if group.memory is not None:
            self._filling.fill(target.memory, group.memory)


def _message(saved: Saved) -> str:
    message = _MESSAGES[saved.outcome]
    if saved.outcome in (Outcome.DUPLICATE, Outcome.CONTRADICTION) and saved.existing is not None:
        return f"{message}: {saved.existing.content}"
    return message


def _corrected_fields(request: pb.UpdateMemoryRequest) -> frozenset[str]:
    """Return the fields that an update corrects."""
    paths = to_paths(request.update_mask, CORRECTABLE)
    if paths == ["*"]:
        # A full replacement sets the expiry once, by either of the two fields.
        unset = {"expire_time" if request.memory.HasField("ttl") else "ttl"}
        return CORRECTABLE - unset - (set() if request.memory.HasField("importance") else {"importance"})
    if not paths:
        paths = [field.name for field, _ in request.memory.ListFields() if field.name in CORRECTABLE]
    if "importance" in paths and not request.memory.HasField("importance"):
        raise InvalidArgument("memory.importance", "is required")
    return frozenset(paths)


def _extraction(request: pb.ExtractMemoriesRequest) -> Extraction:
    said = []
    for at, message in enumerate(request.messages):
        content = to_chat_message(f"messages[{at}]", message)
        name = f"{content.name}: " if content.name else ""
        said.append(Said(content.role, search_text(content).removeprefix(name), content.message_id))
    return Extraction(
        said,
        request.session_id,
        request.after_revision,
        optional(request, "limit"),
        list(request.recalled_memory_ids),
        to_categories(request.categories),
        request.dry_run,
        to_on_contradiction(request.on_contradiction),
        request.actor,
        to_labels("labels", request.labels),
    )
