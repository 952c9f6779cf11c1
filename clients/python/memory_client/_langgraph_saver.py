"""A checkpointer of LangGraph on a memory server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from memory_client._both_clients import BothClients, Closing, Steps, calling, reading
from memory_client._langgraph_records import (
    BRANCH,
    CHECKPOINT,
    RECORD,
    THREAD,
    Typed,
    filtered,
    items_of,
    key_of,
    piece_ids,
    place_of,
    thread_label,
    values_of,
)
from memory_client._langgraph_search import NEWEST, PAGE, Search, config_of, place_in
from memory_client._mapping_filters import filter_of
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import invalid
from memory_client.models import MemoryItem, OnDuplicate
from memory_client.operations import AddOperation, DeleteWhereOperation


class MemoryServiceSaver(Closing, BaseCheckpointSaver[Any]):
    """A checkpointer on a memory server: threads, their checkpoints and pending writes.

    They are items that no search finds, but that lists show: give them a namespace of the server that has no
    other items. A checkpoint and the writes of a task are stored whole or not at all, up to 15 MB.
    """

    def __init__(
        self,
        client: MemoryClient | AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        """Make a checkpointer; nothing is written before the first checkpoint.

        Args:
            client: A client, which stays open, or the address of a server.
            namespace: Namespace of the server for the checkpoints. None: the client's, or "default".
            serde: LangGraph's serializer. None: its default.
        """
        super().__init__(serde=serde)
        self._clients = BothClients(client, namespace)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest of its thread; None: there is none."""
        return self._clients.run(self._get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await self._clients.arun(self._get_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first, page by page."""
        search = Search(config, filter, before, limit)
        while not search.is_done:
            yield from self._clients.run(self._page(search))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        search = Search(config, filter, before, limit)
        while not search.is_done:
            for found in await self._clients.arun(self._page(search)):
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and return its config; it replaces one of the same id."""
        return self._clients.run(self._put(config, checkpoint, metadata))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await self._clients.arun(self._put(config, checkpoint, metadata))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task to a checkpoint; those that it has already are kept."""
        self._clients.run(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await self._clients.arun(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, up to 10,000 items at a time."""
        self._clients.run(_delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self._clients.arun(_delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, and their writes."""
        self._clients.run(_delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self._clients.arun(_delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another, one record at a time."""
        self._clients.run(self._copy_thread(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await self._clients.arun(self._copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads, or with "keep_latest" all but the newest of each namespace.

        Also kept are those before the newest that it needs to restore a `DeltaChannel`.
        """
        self._clients.run(self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await self._clients.arun(self._prune(thread_ids, strategy))

    def _get_tuple(self, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
        thread_id, namespace, checkpoint_id = place_in(config)
        if checkpoint_id:
            label = {CHECKPOINT: key_of(thread_id, namespace, checkpoint_id)}
            found = yield calling("retrieve", limit=-1, labels=label)
        else:
            label = {BRANCH: key_of(thread_id, namespace), RECORD: "checkpoint"}
            found = yield calling("retrieve", limit=1, labels=label, order_by=NEWEST)
            if found:
                label = {CHECKPOINT: found[0].item.id, RECORD: "write"}
                found += yield calling("retrieve", limit=-1, labels=label)
        items = [result.item for result in found]
        tuples = yield from self._tuples(
            [item for item in items if item.labels[RECORD] == "checkpoint"],
            [item for item in items if item.labels[RECORD] == "write"],
        )
        return tuples[0] if tuples else None

    def _page(self, search: Search) -> Steps[Sequence[CheckpointTuple]]:
        found = yield calling("retrieve", **search.page())
        items = [result.item for result in found]
        writes: Sequence[MemoryItem] = []
        if items:
            condition = f"labels.{CHECKPOINT} IN ({', '.join(item.id for item in items)})"
            results = yield calling("retrieve", limit=-1, labels={RECORD: "write"}, filter=condition)
            writes = [result.item for result in results]
        tuples = yield from self._tuples(items, writes)
        return search.accept(tuples)

    def _tuples(
        self, items: Sequence[MemoryItem], writes: Sequence[MemoryItem]
    ) -> Steps[Sequence[CheckpointTuple]]:
        pending: dict[str, Any] = {}
        for item in writes:
            (value,) = yield from _values(item)
            about = item.metadata
            order = writes_sort_key(about["task_path"], about["task_id"], about["index"])
            write = (about["task_id"], about["channel"], self.serde.loads_typed(value))
            pending.setdefault(item.labels[CHECKPOINT], []).append((order, write))
        tuples = []
        for item in items:
            checkpoint, metadata = yield from _values(item)
            thread_id, namespace, _ = place = place_of(item)
            parent = item.metadata["parent"]
            in_order = sorted(pending.get(item.id, []), key=lambda each: each[0])
            tuples.append(
                CheckpointTuple(
                    config=config_of(place),
                    checkpoint=self.serde.loads_typed(checkpoint),
                    metadata=self.serde.loads_typed(metadata),
                    parent_config=config_of((thread_id, namespace, parent)) if parent else None,
                    pending_writes=[write for _, write in in_order],
                )
            )
        return tuples

    def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> Steps[RunnableConfig]:
        thread_id, namespace, parent = place_in(config)
        place = (thread_id, namespace, checkpoint["id"])
        whole = get_serializable_checkpoint_metadata(config, metadata)
        values = [self.serde.dumps_typed(checkpoint), self.serde.dumps_typed(whole)]
        about = {"parent": parent, "metadata": filtered(whole)}
        items = items_of(key_of(*place), place, "checkpoint", values, about)
        yield calling("batch_write", [AddOperation(item, OnDuplicate.REPLACE) for item in items])
        return config_of(place)

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Steps[None]:
        place = place_in(config)
        operations = []
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            about = {"task_id": task_id, "task_path": task_path, "index": index, "channel": channel}
            id = key_of(*place, task_id, index)
            mode = OnDuplicate.REPLACE if index < 0 else OnDuplicate.SKIP
            for item in items_of(id, place, "write", [self.serde.dumps_typed(value)], about):
                operations.append(AddOperation(item, mode))
        if operations:
            yield calling("batch_write", operations)

    def _copy_thread(self, source: str, target: str) -> Steps[None]:
        records: Any = []
        label = {THREAD: thread_label(source)}
        yield reading("list_items", _collect(records), labels=label, filter=f"NOT labels.{RECORD} = piece")
        for item in records:
            values = yield from _values(item)
            _, namespace, checkpoint_id = place_of(item)
            place = (target, namespace, checkpoint_id)
            about = {key: value for key, value in item.metadata.items() if key != "place"}
            if item.labels[RECORD] == "checkpoint":
                id = key_of(*place)
            else:
                id = key_of(*place, about["task_id"], about["index"])
            copies = items_of(id, place, item.labels[RECORD], values, about)
            yield calling("batch_write", [AddOperation(copy, OnDuplicate.REPLACE) for copy in copies])

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Steps[None]:
        if strategy not in ("keep_latest", "delete"):
            raise invalid("strategy", f'must be "keep_latest" or "delete", not {strategy!r}')
        for thread_id in thread_ids:
            if strategy == "delete":
                yield from _delete_thread(thread_id)
                continue
            search = Search({"configurable": {"thread_id": thread_id}}, None, None, None)
            newest: dict[str, set[str]] = {}  # Channels to restore, by namespace.
            expected: dict[str, str] = {}
            unneeded: Any = []
            while not search.is_done:
                for found in (yield from self._page(search)):
                    _, namespace, checkpoint_id = place_in(found.config)
                    if namespace not in newest:
                        newest[namespace] = set(found.metadata.get("counters_since_delta_snapshot") or ())
                    elif not newest[namespace] or checkpoint_id != expected[namespace]:
                        unneeded.append(key_of(*place_in(found.config)))
                        continue
                    newest[namespace] -= found.checkpoint["channel_values"].keys()
                    expected[namespace] = place_in(found.parent_config)[2] if found.parent_config else ""
            yield from _delete_checkpoints(unneeded)


def _values(item: MemoryItem) -> Steps[list[Typed]]:
    pieces = []
    for id in piece_ids(item):
        pieces.append((yield calling("get", id)))
    return values_of(item, pieces)


def _delete_thread(thread_id: str) -> Steps[None]:
    yield calling("delete_where", labels={THREAD: thread_label(str(thread_id))})


def _delete_for_runs(run_ids: Sequence[str]) -> Steps[None]:
    found: list[MemoryItem] = []
    for run_id in run_ids:
        condition = filter_of("metadata.metadata", {"run_id": run_id})
        yield reading("list_items", _collect(found), labels={RECORD: "checkpoint"}, filter=condition)
    yield from _delete_checkpoints([item.id for item in found])


def _delete_checkpoints(ids: list[str]) -> Steps[None]:
    for start in range(0, len(ids), PAGE):
        labels = [{CHECKPOINT: id} for id in ids[start : start + PAGE]]
        yield calling("batch_write", [DeleteWhereOperation(labels=each) for each in labels])


def _collect(items: list[MemoryItem]) -> Any:
    """Return a function that takes all entries."""

    def add(item: MemoryItem) -> bool:
        items.append(item)
        return False

    return add
