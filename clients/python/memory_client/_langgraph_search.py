"""Searches for checkpoints of LangGraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id

from memory_client._langgraph_records import BRANCH, RECORD, THREAD, Place, filtered, key_of, thread_label
from memory_client._mapping_filters import filter_of

PAGE = 50
"""Checkpoints to read at once; their ids must fit in a filter."""
NEWEST = "metadata.checkpoint_id desc"


class Search:
    """A search for checkpoints, page by page."""

    def __init__(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._filter = filter or {}
        self._left = limit
        self._skip = 0
        self._size = 0
        self.is_done = limit is not None and limit <= 0
        self._labels = {RECORD: "checkpoint"}
        conditions = [filter_of("metadata.metadata", filtered(self._filter))]
        if config is not None:
            thread_id, namespace, checkpoint_id = place_in(config)
            if "checkpoint_ns" in config["configurable"]:
                self._labels[BRANCH] = key_of(thread_id, namespace)
            else:
                self._labels[THREAD] = thread_label(thread_id)
            if checkpoint_id:
                conditions.append(filter_of("metadata", {"checkpoint_id": checkpoint_id}))
        if before is not None and (last := get_checkpoint_id(before)):
            conditions.append(filter_of("metadata", {"checkpoint_id": {"$lt": last}}))
        self._condition = " AND ".join(each for each in conditions if each)

    def page(self) -> dict[str, Any]:
        """Return the arguments of `retrieve` for the next page."""
        self._size = size = PAGE if self._left is None else min(PAGE, self._left)
        skip, self._skip = self._skip, self._skip + size
        return {
            "limit": size,
            "skip": skip,
            "labels": self._labels,
            "filter": self._condition,
            "order_by": NEWEST,
        }

    def accept(self, page: Sequence[CheckpointTuple]) -> list[CheckpointTuple]:
        """Return those of a page that match, also by what the server does not compare."""
        wanted = self._filter.items()
        found = [each for each in page if all(each.metadata.get(key) == value for key, value in wanted)]
        if self._left is not None:
            found = found[: self._left]
            self._left -= len(found)
        self.is_done = len(page) < self._size or self._left == 0
        return found


def place_in(config: RunnableConfig) -> Place:
    """Return thread, checkpoint namespace and checkpoint id, "" if it is not given."""
    configurable = config["configurable"]
    checkpoint_id = get_checkpoint_id(config) or ""
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns") or "", checkpoint_id


def config_of(place: Place) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {"configurable": dict(zip(names, place, strict=True))}
