"""MemoryService: convert requests, call the domain, convert results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc

from memory_service.data_model import Item, ItemDraft, OnDuplicate, RequestKey, StateWrite
from memory_service.domain.batches import Batches
from memory_service.domain.change_feed import ChangeFeed
from memory_service.domain.deleting import Deleting
from memory_service.domain.item_writing import Added
from memory_service.domain.items import Items
from memory_service.domain.label_values import LabelListing
from memory_service.domain.late_parents import LateParents
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.states import States
from memory_service.domain.versions import Versions
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part, each
from memory_service.server.batches import fill_result, operation_name, to_operation
from memory_service.server.decisions import degradations
from memory_service.server.items import (
    encoded,
    encoded_export,
    encoded_item,
    encoded_results,
    encoded_revision,
    fill_item,
    fill_stamp,
    to_draft,
    to_facet,
)
from memory_service.server.provenance import to_claimed
from memory_service.server.requests import optional, request_key
from memory_service.server.retrievals import fill_results, to_retrieve_options
from memory_service.server.selections import (
    to_on_duplicate,
    to_selection,
    to_trusted_selection,
    update_fields,
)
from memory_service.server.states import change_of, fill_state, to_state_write
from memory_service.server.values import duration_us, to_us
from memory_service.server.versions import fill_item_version
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc, state_pb2

Context = grpc.aio.ServicerContext[Any, Any]

_HEARTBEAT_S = 15.0
_HEARTBEAT_MIN_S = 0.1
_HEARTBEAT_MAX_S = 3600.0


def _to_imported(field: str, item: pb.MemoryItem) -> ItemDraft:
    """Return a draft with everything that was exported."""
    draft = to_draft(field, item)
    draft.facet = to_facet(field, item)
    draft.provenance = to_claimed(field, item)
    return draft


class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):
    """Items over gRPC."""

    def __init__(
        self,
        items: Items,
        batches: Batches,
        deleting: Deleting,
        labels: LabelListing,
        states: States,
        retrieval: Retrieval,
        feed: ChangeFeed,
        versions: Versions,
        page_bytes_max: int,
    ) -> None:
        self._items = items
        self._batches = batches
        self._deleting = deleting
        self._labels = labels
        self._states = states
        self._feed = feed
        self._versions = versions
        self._retrieval = retrieval
        self._page_bytes_max = page_bytes_max

    async def Add(self, request: pb.AddRequest, context: Context) -> pb.AddResponse | bytes:
        draft = to_draft("item", _item_of(request))
        key = await request_key(request.request_id, request)
        on_duplicate = to_on_duplicate("on_duplicate", request.on_duplicate)
        added = await self._items.add(
            request.namespace, [draft], fields=("item",), on_duplicate=on_duplicate, request=key
        )
        response = pb.AddResponse(revision=added.receipt.revision, degraded=degradations(added.degraded))
        if not added.items:
            response.skipped = True
            return response
        return encoded_item(added.items[0]) + response.SerializeToString()

    async def BatchAdd(self, request: pb.BatchAddRequest, context: Context) -> pb.BatchAddResponse:
        if not request.items:
            raise InvalidArgument("items", "is empty")
        self._items.check_batch(len(request.items))
        added = await self._add_all(
            request.namespace,
            request.items,
            await request_key(request.request_id, request),
            on_duplicate=to_on_duplicate("on_duplicate", request.on_duplicate),
        )
        response = pb.BatchAddResponse(revision=added.receipt.revision, degraded=degradations(added.degraded))
        response.skipped_count = added.receipt.skipped_count
        # Omit contents that the caller sent if the response would exceed what clients accept.
        whole = sum(await each(lambda item: len(encoded(item)), added.items)) <= self._page_bytes_max
        fill = fill_item if whole else fill_stamp
        await each(lambda item: fill(response.items.add(), item), added.items)
        return response

    async def _add_all(
        self,
        namespace: str,
        items: Sequence[pb.MemoryItem],
        key: RequestKey | None = None,
        states: Sequence[StateWrite] = (),
        on_duplicate: OnDuplicate = OnDuplicate.FAIL,
        late: LateParents | None = None,
    ) -> Added:
        """Add items; with `late`, as an import."""
        fields = [f"items[{at}]" for at in range(len(items))]
        to = _to_imported if late else to_draft
        drafts = await each(lambda named: to(*named), zip(fields, items, strict=True))
        added = await self._items.add(
            namespace, drafts, fields=fields, states=states, on_duplicate=on_duplicate, request=key,
            apart=late is not None,
        )  # fmt: skip
        if late:
            await late.imported(drafts)
        return added

    async def Import(
        self, request_iterator: AsyncIterator[pb.ImportRequest], context: Context
    ) -> pb.ImportResponse:
        response = pb.ImportResponse()
        namespace, on_duplicate = "", OnDuplicate.FAIL
        async for request in request_iterator:
            if not namespace:
                self._items.check_namespace(request.namespace)
                namespace, on_duplicate = (
                    request.namespace,
                    to_on_duplicate("on_duplicate", request.on_duplicate),
                )
                late = self._items.late_parents(namespace)
            elif request.namespace not in ("", namespace):
                raise InvalidArgument("namespace", "may not change within an import")
            await self._import_batch(namespace, request, on_duplicate, late, response)
        if not namespace:
            raise InvalidArgument("namespace", "is required")
        return response

    async def _import_batch(
        self,
        namespace: str,
        request: pb.ImportRequest,
        on_duplicate: OnDuplicate,
        late: LateParents,
        response: pb.ImportResponse,
    ) -> None:
        self._items.check_batch(len(request.items), len(request.states))
        # Skip anything that has expired since it was exported.
        now = now_us()
        items = [item for item in request.items if not _expired(item, now)]
        entries = [entry for entry in request.states if not _expired(entry, now)]
        response.skipped_count += len(request.items) - len(items)
        response.skipped_state_count += len(request.states) - len(entries)
        states = await each(lambda named: to_state_write(f"states[{named[0]}]", named[1]), enumerate(entries))
        if not items and not states:
            return
        added = await self._add_all(namespace, items, states=states, on_duplicate=on_duplicate, late=late)
        receipt = added.receipt
        response.imported_count += len(receipt.items)
        response.skipped_count += receipt.skipped_count
        response.imported_state_count += len(states) - receipt.skipped_state_count
        response.skipped_state_count += receipt.skipped_state_count
        response.revision = receipt.revision
        for degradation in degradations(added.degraded):
            if degradation not in response.degraded:
                response.degraded.append(degradation)

    async def Retrieve(self, request: pb.RetrieveRequest, context: Context) -> pb.RetrieveResponse | bytes:
        options = to_retrieve_options(request)
        page = await self._retrieval.retrieve(request.namespace, options)
        plain = not (options.explain or options.include_embedding or page.matched or page.namespaces)
        if plain and not (page.next_page_token or page.token_count or page.degraded):
            return encoded_results(page) + encoded_revision(page.revision)
        response = pb.RetrieveResponse(
            revision=page.revision, next_page_token=page.next_page_token, token_count=page.token_count
        )
        if page.degraded:
            response.degraded.extend(degradations(page.degraded))
        if plain:
            return encoded_results(page) + response.SerializeToString()
        fill_results(response, page, options)
        return response

    async def Get(self, request: pb.GetRequest, context: Context) -> pb.GetResponse:
        include = request.include_embedding
        if request.revision:
            item = await self._item_at(request)
        else:
            item = await self._items.get(
                request.namespace, request.id, include_embedding=include, refresh_ttl=request.refresh_ttl
            )
        response = pb.GetResponse()
        fill_item(response.item, item, include_embedding=include)
        return response

    async def _item_at(self, request: pb.GetRequest) -> Item:
        if request.include_embedding:
            raise InvalidArgument("include_embedding", "cannot be given together with revision")
        if request.refresh_ttl:
            raise InvalidArgument("refresh_ttl", "cannot be given together with revision")
        return await self._versions.item(request.namespace, request.id, request.revision)

    async def ListItemVersions(
        self, request: pb.ListItemVersionsRequest, context: Context
    ) -> pb.ListItemVersionsResponse:
        page = await self._versions.list_items(
            request.namespace, request.id, request.page_size, request.page_token
        )
        response = pb.ListItemVersionsResponse(next_page_token=page.next_page_token)
        await each(lambda version: fill_item_version(response.versions.add(), version), page.versions)
        return response

    async def RedactVersion(
        self, request: pb.RedactVersionRequest, context: Context
    ) -> pb.RedactVersionResponse:
        revision = await self._versions.redact_item(request.namespace, request.id, request.revision)
        return pb.RedactVersionResponse(revision=revision)

    async def List(self, request: pb.ListRequest, context: Context) -> pb.ListResponse:
        page = await self._items.list_items(
            request.namespace,
            to_trusted_selection(request),
            page_size=request.page_size,
            page_token=request.page_token,
            newest_first=request.newest_first,
            include_embedding=request.include_embedding,
            order_by=request.order_by,
            skip=request.skip,
        )
        response = pb.ListResponse(revision=page.revision, next_page_token=page.next_page_token)
        include = request.include_embedding
        await each(lambda item: fill_item(response.items.add(), item, include_embedding=include), page.items)
        return response

    async def ListLabelValues(
        self, request: pb.ListLabelValuesRequest, context: Context
    ) -> pb.ListLabelValuesResponse:
        page = await self._labels.list_values(
            request.namespace, request.key, request.prefix, request.page_size, request.page_token
        )
        return pb.ListLabelValuesResponse(
            values=[pb.LabelValue(value=value, count=count) for value, count in page.values],
            next_page_token=page.next_page_token,
            revision=page.revision,
        )

    async def Update(self, request: pb.UpdateRequest, context: Context) -> pb.UpdateResponse:
        updated = await self._items.update(
            request.namespace,
            to_draft("item", _item_of(request)),
            update_fields("", request),
            expected_revision=optional(request, "expected_revision"),
            request=await request_key(request.request_id, request),
        )
        response = pb.UpdateResponse(
            revision=updated.receipt.revision, degraded=degradations(updated.degraded)
        )
        fill_item(response.item, updated.items[0])
        return response

    async def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.DeleteResponse:
        receipt = await self._items.delete(
            request.namespace,
            request.id,
            expected_revision=optional(request, "expected_revision"),
            request=await request_key(request.request_id, request),
            keep_derived=request.keep_derived,
        )
        return pb.DeleteResponse(revision=receipt.revision, derived_count=receipt.derived_count)

    async def DeleteWhere(self, request: pb.DeleteWhereRequest, context: Context) -> pb.DeleteWhereResponse:
        deleted = await self._deleting.delete_where(
            request.namespace,
            to_selection(request),
            keep_derived=request.keep_derived,
            dry_run=request.dry_run,
            page_token=request.page_token,
            request=await request_key(request.request_id, request),
        )
        return pb.DeleteWhereResponse(
            deleted_count=deleted.count,
            derived_count=deleted.derived_count,
            revision=deleted.revision,
            next_page_token=deleted.next_page_token,
        )

    async def BatchWrite(self, request: pb.BatchWriteRequest, context: Context) -> pb.BatchWriteResponse:
        if not request.operations:
            raise InvalidArgument("operations", "is empty")
        self._batches.check_size(len(request.operations))
        part, operations = Part(), {}
        for at, operation in enumerate(request.operations):
            name = operation_name(at, operation)
            operations[name] = await to_operation(name, operation, self._states)
            await part.give_way_if_long()
        key = await request_key(request.request_id, request)
        written = await self._batches.write(request.namespace, operations, key)
        response = pb.BatchWriteResponse(revision=written.revision, degraded=degradations(written.degraded))
        await each(lambda result: fill_result(response.results.add(), result), written.results)
        return response

    async def Reset(self, request: pb.ResetRequest, context: Context) -> pb.ResetResponse:
        receipt = await self._items.reset(
            request.namespace, request=await request_key(request.request_id, request)
        )
        return pb.ResetResponse(
            removed_count=receipt.removed_count,
            removed_state_count=receipt.removed_state_count,
            revision=receipt.revision,
        )

    async def Watch(self, request: pb.WatchRequest, context: Context) -> AsyncIterator[pb.WatchResponse]:
        heartbeat_s = _heartbeat_s(request)
        after = optional(request, "after_revision")
        if after is not None and after < 0:
            raise InvalidArgument("after_revision", "must not be negative")
        async for event in self._feed.watch(request.namespace, after, heartbeat_s):
            yield change_of(event)

    async def Export(
        self, request: pb.ExportRequest, context: Context
    ) -> AsyncIterator[pb.ExportResponse | bytes]:
        include, part = request.include_embedding, Part()
        async for event in self._feed.export(
            request.namespace, request.after_revision, include_embedding=include
        ):
            response = pb.ExportResponse(revision=event.revision)
            # Reading a large item or state takes as long as encoding it.
            await part.give_way_if_long()
            if event.item is not None:
                yield encoded_export(event.item, include_embedding=include) + response.SerializeToString()
            elif event.state is not None:
                fill_state(response.state, event.state)
                yield response


def _item_of(request: pb.AddRequest | pb.UpdateRequest) -> pb.MemoryItem:
    if not request.HasField("item"):
        raise InvalidArgument("item", "is required")
    return request.item


def _expired(record: pb.MemoryItem | state_pb2.StateEntry, now: int) -> bool:
    return record.HasField("expire_time") and to_us("expire_time", record.expire_time) <= now


def _heartbeat_s(request: pb.WatchRequest) -> float:
    if not request.HasField("heartbeat_interval"):
        return _HEARTBEAT_S
    seconds = duration_us("heartbeat_interval", request.heartbeat_interval) / 1e6
    if seconds < _HEARTBEAT_MIN_S:
        raise InvalidArgument("heartbeat_interval", "must be at least 100 ms")
    return min(seconds, _HEARTBEAT_MAX_S)
