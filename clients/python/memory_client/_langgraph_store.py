"""A store of LangGraph on a memory server."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)
from langgraph.store.base.batch import AsyncBatchedBaseStore

from memory_client._both_clients import (
    BothClients,
    Closing,
    Steps,
    calling,
    embedded,
    embedded_query,
    reading,
)
from memory_client._langgraph_items import (
    PARTS_OF,
    PATH,
    SEPARATOR,
    UNINDEXED,
    fields_of,
    id_of,
    literal_prefix,
    matches,
    operations_of,
    path_of,
)
from memory_client._mapping_filters import filter_of
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import NotFound
from memory_client.labels import LabelValue
from memory_client.models import MemoryItem
from memory_client.operations import WriteOperation

_OPERATIONS_MAX = 900
"""Operations of a batch: the server takes 1000, and an item with vectors may need some more."""
_IDS_MAX = 50
"""Ids in a filter, which may have 64 comparisons."""
_SINGLE_GETS_MAX = 16
"""Gets of a batch that are calls; more are searches by id, for which the server loads all ids once."""
_NAMESPACES_AT_ONCE = 400
"""Namespaces to look at in a call: with more, the first come later; with fewer, a suffix needs more calls."""
_READS_AT_ONCE = 32
"""Calls that a batch makes side by side: more would wait at the server, fewer leave it idle."""


class MemoryServiceStore(Closing, BaseStore):
    """A `BaseStore` on a memory server; the items are plain items of the client's namespace.

    Without `index`, or with one without "embed", queries search words and the server's vectors of the fields.
    With "embed", they search these vectors by cosine; then nothing else may write vectors to this namespace
    of the server. The puts and deletes of a batch of up to 900 are applied together or not at all, after its
    reads. Times to live are kept by the server: expired items are never returned.

    A namespace may have up to 30 names, together about 250 bytes, and a value up to 256 KiB of JSON without
    integers beyond 2^53.
    """

    supports_ttl = True
    __slots__ = ("_clients", "_fields", "_loops", "embeddings", "index_config", "ttl_config")

    def __init__(
        self,
        client: MemoryClient | AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        """Make a store; nothing is written before the first item.

        Args:
            client: A client, which stays open, or the address of a server.
            namespace: Namespace of the server for the items. None: the client's, or "default".
            index: LangGraph's settings for searches.
            ttl: LangGraph's times to live, in minutes: "default_ttl", "refresh_on_read".
        """
        self._clients = BothClients(client, namespace)
        self._loops: dict[asyncio.AbstractEventLoop, _Batches] = {}
        self.index_config = index
        self.ttl_config = ttl
        embed = (index or {}).get("embed")
        self.embeddings = ensure_embeddings(embed) if embed is not None else None
        self._fields = list((index or {}).get("fields") or ["$"])

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Run operations, first the reads, then the writes; return their results.

        Raises:
            asyncio.InvalidStateError: In an event loop's thread, of a store made from an asynchronous client.
        """
        operations = list(ops)
        results: dict[int, Any] = {}
        for steps in self._reads(operations):
            results |= self._clients.run(steps)
        self._clients.run(self._write([op for op in operations if isinstance(op, PutOp)]))
        return [results.get(number) for number in range(len(operations))]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        """Run operations, first the reads, side by side, then the writes; return their results."""
        operations = list(ops)
        results: dict[int, Any] = {}
        at_once = asyncio.Semaphore(_READS_AT_ONCE)

        async def read(steps: Steps[dict[int, Any]]) -> None:
            async with at_once:
                results.update(await self._clients.arun(steps))

        await asyncio.gather(*map(read, self._reads(operations)))
        await self._clients.arun(self._write([op for op in operations if isinstance(op, PutOp)]))
        return [results.get(number) for number in range(len(operations))]

    async def aget(self, *arguments: Any, **named: Any) -> Item | None:
        """As in `BaseStore`; asynchronous calls of one turn of the event loop become one batch."""
        return await self._batches().aget(*arguments, **named)

    async def asearch(self, *arguments: Any, **named: Any) -> list[SearchItem]:
        """As in `BaseStore`."""
        return await self._batches().asearch(*arguments, **named)

    async def aput(self, *arguments: Any, **named: Any) -> None:
        """As in `BaseStore`."""
        await self._batches().aput(*arguments, **named)

    async def adelete(self, *arguments: Any, **named: Any) -> None:
        """As in `BaseStore`."""
        await self._batches().adelete(*arguments, **named)

    async def alist_namespaces(self, *arguments: Any, **named: Any) -> list[tuple[str, ...]]:
        """As in `BaseStore`."""
        return await self._batches().alist_namespaces(*arguments, **named)

    def _batches(self) -> _Batches:
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for ended in [each for each in self._loops if each.is_closed()]:
                self._loops.pop(ended, None)
            self._loops[loop] = _Batches(self)
        return self._loops[loop]

    def _reads(self, operations: list[Op]) -> list[Steps[dict[int, Any]]]:
        """Return the steps of all reads; each gives results by the number of the operation."""
        gets: dict[tuple[bool, int], dict[int, str]] = {}
        is_joined = sum(isinstance(op, GetOp) for op in operations) > _SINGLE_GETS_MAX
        reads: list[Steps[dict[int, Any]]] = []
        for number, op in enumerate(operations):
            if isinstance(op, GetOp):
                group = (op.refresh_ttl, 0 if is_joined else number)
                gets.setdefault(group, {})[number] = id_of(op.namespace, op.key)
            elif isinstance(op, SearchOp):
                reads.append(self._search(number, op))
            elif isinstance(op, ListNamespacesOp):
                reads.append(_list_namespaces(number, op))
            elif not isinstance(op, PutOp):
                raise ValueError(f"Unknown operation type: {type(op)}")
        return [*(_get(ids, refresh) for (refresh, _), ids in gets.items()), *reads]

    def _search(self, number: int, op: SearchOp) -> Steps[dict[int, Any]]:
        prefix, condition = tuple(op.namespace_prefix), filter_of("data.value", op.filter)
        if not op.query:
            label = {f"{PATH}_{len(prefix)}": path_of(prefix)}
            found = yield from _newest(label, condition, op.limit, op.offset, op.refresh_ttl)
            scored: list[tuple[MemoryItem, float | None]] = [(item, None) for item in found]
        else:
            scored = yield from self._best(op, {f"{PATH}_indexed_{len(prefix)}": path_of(prefix)}, condition)
            if len(scored) < op.limit and not op.offset:
                # As LangGraph's own store, which goes on with items that have no vector.
                label = {f"{PATH}_{len(prefix)}": path_of(prefix), UNINDEXED: "true"}
                rest = yield from _newest(label, condition, op.limit - len(scored), 0, op.refresh_ttl)
                scored += [(item, None) for item in rest]
        if op.refresh_ttl:
            yield from _refresh_parts([item for item, _ in scored])
        return {number: [SearchItem(**fields_of(item), score=score) for item, score in scored]}

    def _best(
        self, op: SearchOp, label: dict[str, str], condition: str
    ) -> Steps[list[tuple[MemoryItem, float | None]]]:
        """Return the best items for the query. An item with several vectors has the score of the nearest."""
        query: dict[str, Any] = {"query": op.query}
        if self.embeddings is not None:
            vector = yield from embedded_query(self.embeddings, op.query or "")
            query = {"embedding": vector, "mode": "vector"}
        wanted = op.offset + op.limit
        count = wanted
        while True:
            found = yield calling(
                "retrieve", **query, limit=count, labels=label, filter=condition, refresh_ttl=op.refresh_ttl
            )
            scores: dict[str, float] = {}
            for result in found:
                scores.setdefault(result.item.labels.get(PARTS_OF, result.item.id), result.score)
            if len(scores) >= wanted or len(found) < count:
                break
            count *= 2
        items = {result.item.id: result.item for result in found}
        best = list(scores)[op.offset : wanted]
        items |= yield from _items([each for each in best if each not in items], op.refresh_ttl)
        return [(items[each], scores[each]) for each in best if each in items]

    def _write(self, puts: list[PutOp]) -> Steps[None]:
        last = list({(tuple(op.namespace), op.key): op for op in puts}.values())
        texts = [self._texts(op) for op in last]
        vectors: list[Any] = []
        if self.embeddings is not None and any(texts):
            vectors = yield from embedded(self.embeddings, [text for each in texts for text in each])
        operations: list[list[WriteOperation]] = []
        for op, each in zip(last, texts, strict=True):
            operations.append(operations_of(op, each, vectors[: len(each)], self.embeddings is not None))
            vectors = vectors[len(each) :]
        while operations:
            batch: list[WriteOperation] = []
            while operations and len(batch) + len(operations[0]) <= max(_OPERATIONS_MAX, len(operations[0])):
                batch += operations.pop(0)
            yield calling("batch_write", batch)

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts by which queries find the item; each has a vector, if this store makes them."""
        if op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else op.index
        texts = [
            text
            for path in paths
            for text in get_text_at_path(op.value, path if path == "$" else tokenize_path(path))
        ]
        return texts if self.embeddings is not None or not texts else ["\n".join(texts)]


class _Batches(AsyncBatchedBaseStore):
    """LangGraph's queue of the calls of one event loop, which it joins to batches of the store."""

    supports_ttl = True

    def __init__(self, store: MemoryServiceStore) -> None:
        self._store = weakref.ref(store)
        self.ttl_config = store.ttl_config
        super().__init__()

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        store = self._store()
        assert store is not None, "its caller has it"
        return await store.abatch(ops)


def _get(ids: dict[int, str], refresh: bool) -> Steps[dict[int, Any]]:
    if len(ids) > 1:
        items = yield from _items(list(dict.fromkeys(ids.values())), refresh)
    else:
        (id,) = ids.values()
        try:
            items = {id: (yield calling("get", id, refresh_ttl=refresh))}
        except NotFound:
            items = {}
    if refresh:
        yield from _refresh_parts(list(items.values()))
    return {number: Item(**fields_of(items[id])) for number, id in ids.items() if id in items}


def _newest(
    label: dict[str, str], condition: str, limit: int, skip: int, refresh: bool
) -> Steps[list[MemoryItem]]:
    """Return items, the one written last first."""
    found = yield calling(
        "retrieve",
        limit=limit,
        skip=skip,
        labels=label,
        filter=condition,
        order_by="revision desc",
        refresh_ttl=refresh,
    )
    return [result.item for result in found]


def _items(ids: list[str], refresh: bool) -> Steps[dict[str, MemoryItem]]:
    items: dict[str, MemoryItem] = {}
    for start in range(0, len(ids), _IDS_MAX):
        names = ", ".join(ids[start : start + _IDS_MAX])
        found = yield calling("retrieve", limit=-1, filter=f"id IN ({names})", refresh_ttl=refresh)
        items |= {result.item.id: result.item for result in found}
    return items


def _refresh_parts(items: list[MemoryItem]) -> Steps[None]:
    """Let the vectors of items live as long as the items, which were refreshed."""
    ids = [item.id for item in items if item.expire_time is not None and PARTS_OF in item.labels]
    for start in range(0, len(ids), _IDS_MAX):
        names = ", ".join(ids[start : start + _IDS_MAX])
        yield calling("retrieve", limit=-1, filter=f"labels.{PARTS_OF} IN ({names})", refresh_ttl=True)


def _list_namespaces(number: int, op: ListNamespacesOp) -> Steps[dict[int, Any]]:
    """List namespaces from the values of labels. Only a wildcard or a suffix needs to look at many."""
    conditions = op.match_conditions or ()
    prefix = max((literal_prefix(each) for each in conditions), key=len, default=())
    wanted = op.offset + op.limit
    is_prefix = all(tuple(each.path) == literal_prefix(each) for each in conditions)
    keys, size = [PATH], min(1000, max(1, wanted)) if is_prefix else _NAMESPACES_AT_ONCE
    if is_prefix and op.max_depth is not None and len(prefix) <= op.max_depth:
        # Deeper namespaces, shortened, and those that are not as deep.
        keys = [f"{PATH}_{op.max_depth}", *(f"{PATH}_depth_{each}" for each in range(1, op.max_depth))]
        conditions = ()
    found: list[tuple[str, ...]] = []
    for key in keys if wanted > 0 else []:
        paths: dict[tuple[str, ...], None] = {}

        def is_enough(value: LabelValue, paths: dict[tuple[str, ...], None] = paths) -> bool:
            path = tuple(value.value.split(SEPARATOR)[1:-1])
            if all(matches(each, path) for each in conditions):
                paths[path[: op.max_depth]] = None
            return len(paths) >= wanted

        yield reading("list_label_values", is_enough, key, prefix=path_of(prefix), page_size=size)
        found += paths
    return {number: sorted(found)[op.offset : wanted]}
