"""Items of LangGraph as items of the server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from langgraph.store.base import InvalidNamespaceError, MatchCondition, PutOp

from memory_client.models import MemoryItem, OnDuplicate, Provenance
from memory_client.operations import AddOperation, DeleteOperation, DeleteWhereOperation, WriteOperation

SEPARATOR = "\x1f"
PATH = "langgraph"
"""Label: the namespace of an item. Further labels are "langgraph_N", the path of its first N names, for
searches by prefix; "langgraph_indexed_N", likewise of items that queries find and of their parts; and
"langgraph_depth_N", the namespace again, if it has N names."""
PARTS_OF = "langgraph_parts_of"
"""Label of an item with several vectors, and of the items that hold the others: the id of the first."""
UNINDEXED = "langgraph_unindexed"
_INDEX_BYTES_MAX = 65_536


def operations_of(op: PutOp, texts: list[str], vectors: list[Any], has_vectors: bool) -> list[WriteOperation]:
    """Return the operations that put or delete an item.

    `texts` are those by which queries find it; each has a vector, if the store makes them (`has_vectors`).
    """
    id = id_of(op.namespace, op.key)
    if op.value is None:
        return [DeleteOperation(id, allow_missing=True)]
    path = tuple(op.namespace)
    prefixes = [(depth, path_of(path[:depth])) for depth in range(len(path) + 1)]
    indexed = {f"{PATH}_indexed_{depth}": prefix for depth, prefix in prefixes} if texts else {}
    parts = {PARTS_OF: id} if len(vectors) > 1 else {}
    common: dict[str, Any] = {
        "content": {"value": dict(op.value)},
        "metadata": {"key": op.key},
        "ttl": None if op.ttl is None else timedelta(minutes=op.ttl),
    }
    own = {f"{PATH}_{depth}": prefix for depth, prefix in prefixes}
    own |= {PATH: path_of(path), f"{PATH}_depth_{len(path)}": path_of(path)}
    unindexed = {} if texts else {UNINDEXED: "true"}
    first = MemoryItem(
        id=id,
        labels={**own, **indexed, **parts, **unindexed},
        index=_shortened(texts[0]) if texts else "",
        embedding=vectors[0] if vectors else None,
        **common,
    )
    rest = [
        MemoryItem(
            id=f"{id}_{number}",
            labels={**indexed, **parts},
            index=_shortened(text),
            embedding=vector,
            provenance=Provenance(parent_ids=[id]),
            **common,
        )
        for number, (text, vector) in enumerate(zip(texts[1:], vectors[1:], strict=bool(vectors)))
    ]
    # Of vectors that the item had before; it spares those that are added here.
    stale = [DeleteWhereOperation(labels={PARTS_OF: id})] if has_vectors else []
    return [*(AddOperation(item, OnDuplicate.REPLACE) for item in (first, *rest)), *stale]


def literal_prefix(condition: MatchCondition) -> tuple[str, ...]:
    """Return the names, up to a wildcard, with which all paths that match begin."""
    if condition.match_type != "prefix":
        return ()
    path = tuple(condition.path)
    return path[: path.index("*")] if "*" in path else path


def matches(condition: MatchCondition, path: tuple[str, ...]) -> bool:
    """Return whether a namespace matches."""
    wanted = tuple(condition.path)
    if condition.match_type == "suffix":
        wanted, path = wanted[::-1], path[::-1]
    elif condition.match_type != "prefix":
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    pairs = zip(wanted, path, strict=False)
    return len(wanted) <= len(path) and all(want == "*" or want == name for want, name in pairs)


def path_of(names: Sequence[str]) -> str:
    """Return names as one text. It begins with the text of their first names, and sorts as they do."""
    for name in names:
        if not isinstance(name, str) or not name or SEPARATOR in name:
            raise InvalidNamespaceError(f"Invalid name in a namespace: {name!r}")
    return SEPARATOR.join(("", *names, "")) if names else SEPARATOR


def id_of(namespace: Sequence[str], key: str) -> str:
    """Return the id of an item, which has a bounded length."""
    return "langgraph_" + hashlib.sha256(json.dumps([*namespace, key]).encode()).hexdigest()


def _shortened(text: str) -> str:
    return text.encode()[:_INDEX_BYTES_MAX].decode(errors="ignore")


def fields_of(item: MemoryItem) -> dict[str, Any]:
    """Return the fields of LangGraph's `Item`."""
    assert isinstance(item.content, Mapping)
    return {
        "namespace": tuple(item.labels[PATH].split(SEPARATOR)[1:-1]),
        "key": item.metadata["key"],
        "value": item.content["value"],
        "created_at": item.create_time,
        "updated_at": item.update_time,
    }
