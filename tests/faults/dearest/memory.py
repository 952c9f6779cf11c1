"""The most expensive requests of MemoryService."""

from __future__ import annotations

import numpy as np
from google.protobuf import field_mask_pb2

from faults.dearest.world import (
    BATCH,
    FILTERS,
    KIB,
    LABELS,
    MANY_ITEMS,
    METADATA,
    MIB,
    TEXT,
    Dear,
    World,
    again,
    data_of_numbers,
    numbers,
)  # fmt: skip
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2

_MESSAGE = 16 * MIB - 64 * KIB
_DIMENSION = 4096


def _long_texts(world: World, count: int = BATCH) -> list[pb.MemoryItem]:
    each = _MESSAGE // BATCH - 32
    return [pb.MemoryItem(text=world.text(each)) for _ in range(count)]


def _vectors(count: int) -> list[pb.MemoryItem]:
    values = np.random.default_rng(7).standard_normal((count, _DIMENSION)).astype(np.float32)
    return [pb.MemoryItem(text="x", embedding={"values": row.tolist()}) for row in values]


def _batch(items: list[pb.MemoryItem], world: World) -> pb.BatchAddRequest:
    return pb.BatchAddRequest(namespace=world.fresh(), items=items)


def _vector_batches(world: World) -> list[pb.BatchAddRequest]:
    namespace, request = world.fresh(), pb.BatchAddRequest(items=_vectors(1000))
    request.namespace = namespace
    return [request] * 3


def largest_item(world: World, item_id: str = "") -> pb.MemoryItem:
    """Return an item with every field at its limit."""
    parts = [pb.Part(text=world.text(7 * KIB)) for _ in range(256)]
    return pb.MemoryItem(
        id=item_id, labels=LABELS, metadata=METADATA,
        chat_message=pb.ChatMessage(role=pb.ROLE_USER, parts=parts),
    )  # fmt: skip


def _item_of_numbers(item_id: str = "") -> pb.MemoryItem:
    return pb.MemoryItem(id=item_id, data=data_of_numbers(130_000), labels=LABELS, metadata=METADATA)


def _parts_of_numbers() -> pb.MemoryItem:
    part = pb.Part(data=data_of_numbers(650))
    return pb.MemoryItem(chat_message=pb.ChatMessage(role=pb.ROLE_USER, parts=[part] * 256))


def _adds(world: World, item: pb.MemoryItem, times: int = 5) -> list[pb.AddRequest]:
    return [pb.AddRequest(namespace=world.fresh(), item=item, request_id=f"r{at}") for at in range(times)]


def _search(world: World, **options: object) -> list[pb.RetrieveRequest]:
    wanted = pb.RetrieveOptions(**options)  # type: ignore[arg-type]
    return again(pb.RetrieveRequest(namespace=world.library, options=wanted))


def _everything(world: World, **options: object) -> list[pb.RetrieveRequest]:
    return _search(
        world, explain=True, include_embedding=True, context_window=20,
        weights={"lexical": 1, "vector": 1, "recency": 1, "importance": 1, "usage": 1}, **options,
    )  # fmt: skip


def _kept(world: World, item: pb.MemoryItem) -> str:
    return world.fill(world.fresh(), 1, lambda _: item)


def _updates(world: World, item: pb.MemoryItem) -> list[pb.UpdateRequest]:
    namespace = _kept(world, pb.MemoryItem(id="x", text="x"))
    mask = field_mask_pb2.FieldMask(paths=["*"])
    return again(pb.UpdateRequest(namespace=namespace, item=item, update_mask=mask))


def _page(world: World, **fields: object) -> list[pb.ListRequest]:
    return again(pb.ListRequest(namespace=world.library, page_size=1000, **fields))  # type: ignore[arg-type]


def _labelled(at: int) -> pb.MemoryItem:
    return pb.MemoryItem(text="x", labels={"k": f"v{at:06}"})


def _versions(world: World) -> str:
    """Return a namespace with an item that has three large versions."""
    namespace = _kept(world, largest_item(world, "x"))
    for _ in range(2):
        world.api.memory.Update(pb.UpdateRequest(namespace=namespace, item=largest_item(world, "x")))
    return namespace


def _label_values(world: World, namespace: str, key: str) -> list[pb.ListLabelValuesRequest]:
    return again(pb.ListLabelValuesRequest(namespace=namespace, key=key, page_size=1000))


def _imports(world: World) -> list[list[pb.ImportRequest]]:
    namespace = world.fresh()
    messages = [pb.ImportRequest(namespace=namespace, items=_long_texts(world)) for _ in range(2)]
    return [messages]


def _state_imports(world: World) -> list[list[pb.ImportRequest]]:
    entries = [state_pb2.StateEntry(key=f"k{at}", value=numbers(240)) for at in range(1000)]
    request = pb.ImportRequest(namespace=world.fresh(), states=entries, on_duplicate=pb.ON_DUPLICATE_REPLACE)
    return [[request] * 3]


def _again_in_fresh(world: World, items: list[pb.MemoryItem], times: int) -> list[pb.BatchAddRequest]:
    return [_batch(items, world) for _ in range(times)]


def _long_text(world: World) -> pb.MemoryItem:
    return pb.MemoryItem(text=world.text(2000))


def _where(namespace: str, text: str, **fields: object) -> pb.DeleteWhereRequest:
    kinds = [] if text else [pb.ITEM_KIND_UNSPECIFIED]
    return pb.DeleteWhereRequest(namespace=namespace, filter=text, kinds=kinds, **fields)  # type: ignore[arg-type]


def _to_add(item: pb.MemoryItem) -> pb.WriteOperation:
    return pb.WriteOperation(add=pb.AddOperation(item=item))


def _to_save(key: str) -> pb.WriteOperation:
    return pb.WriteOperation(save_state=pb.SaveStateOperation(key=key, value=numbers(240)))


def _write_batches(world: World, operations: list[pb.WriteOperation]) -> list[pb.BatchWriteRequest]:
    return [pb.BatchWriteRequest(namespace=world.fresh(), operations=operations) for _ in range(2)]


DEAREST = {
    "Add": [
        Dear("256 parts", lambda w: _adds(w, largest_item(w))),
        Dear("one word", lambda w: _adds(w, pb.MemoryItem(text="a" * TEXT)), 4),
        Dear("many words", lambda w: _adds(w, pb.MemoryItem(text=w.most_words())), 4),
        Dear("numbers", lambda w: _adds(w, _item_of_numbers())),
        Dear("parts of numbers", lambda w: _adds(w, _parts_of_numbers())),
        Dear(
            "labels and metadata",
            lambda w: _adds(w, pb.MemoryItem(text="x", labels=LABELS, metadata=METADATA)),
            4,
        ),
    ],
    "BatchAdd": [
        Dear("long texts", lambda w: _again_in_fresh(w, _long_texts(w), 2)),
        Dear(
            "one long word each", lambda w: _again_in_fresh(w, [pb.MemoryItem(text="ab" * 8000)] * BATCH, 2)
        ),
        Dear("long vectors", _vector_batches),
        Dear("large items", lambda w: _again_in_fresh(w, [largest_item(w)] * 7, 2)),
        Dear(
            "labels and metadata",
            lambda w: _again_in_fresh(w, [pb.MemoryItem(text="x", labels=LABELS)] * 650, 3),
        ),
        Dear("numbers", lambda w: _again_in_fresh(w, [pb.MemoryItem(data=data_of_numbers(240))] * 1000, 3)),
        Dear(
            "a large number of numbers",
            lambda w: _again_in_fresh(
                w, [_item_of_numbers(), pb.MemoryItem(data=data_of_numbers(110_000))], 3
            ),
        ),
    ],
    "Import": [Dear("long texts", _imports), Dear("states", _state_imports)],
    "Retrieve": [
        Dear("newest, all, with neighbours", lambda w: _search(w, limit=-1, context_window=20)),
        Dear("one word of 64 KiB", lambda w: _search(w, limit=1000, query_text="a" * TEXT)),
        Dear("many words", lambda w: _search(w, limit=1000, query_text=w.most_words())),
        Dear("many words, all", lambda w: _search(w, limit=-1, query_text=w.most_words(), page_size=1000)),
        Dear("many words, all that there is", lambda w: _everything(w, limit=-1, query_text=w.most_words())),
        Dear("stop words", lambda w: _search(w, limit=1000, query_text="the and of to " * 4600)),
        Dear(
            "quotations", lambda w: _search(w, limit=1000, query_text='"' + '" "'.join(w.words[:400]) + '"')
        ),
        Dear("spaces", lambda w: _search(w, limit=1000, query_text="a" + " " * 65_000 + "b")),
        *(
            Dear(
                f"filter of {name}",
                lambda w, text=text: _search(w, limit=1000, query_text=w.text(4000), filter=text),
            )
            for name, text in FILTERS.items()
        ),
        Dear("tokens", lambda w: _search(w, limit=-1, query_text=w.text(4000), max_tokens=1_000_000)),
        Dear("few words at once", lambda w: _search(w, limit=1000, query_text=w.text(400)), 4),
        Dear("usage", lambda w: _search(w, limit=1000, query_text=w.text(400), record_usage=True)),
    ],
    "ListItemVersions": [
        Dear(
            "largest",
            lambda w: again(pb.ListItemVersionsRequest(namespace=_versions(w), id="x", page_size=1000), 3),
        ),
    ],
    "RedactVersion": [
        Dear(
            "largest",
            lambda w: [pb.RedactVersionRequest(namespace=_versions(w), id="x", revision=1) for _ in range(2)],
        ),
    ],
    "Get": [
        Dear("largest", lambda w: again(pb.GetRequest(namespace=_kept(w, largest_item(w, "x")), id="x")), 4),
        Dear("numbers", lambda w: again(pb.GetRequest(namespace=_kept(w, _item_of_numbers("x")), id="x")), 4),
        Dear(
            "vector",
            lambda w: again(
                pb.GetRequest(
                    namespace=_kept(w, pb.MemoryItem(id="x", text="x", embedding={"values": [1.0] * 4096})),
                    id="x",
                    include_embedding=True,
                ),
                20,
            ),
            4,
        ),
    ],
    "List": [
        Dear("page", lambda w: _page(w)),
        Dear("vectors", lambda w: _page(w, include_embedding=True)),
        Dear("by update time", lambda w: _page(w, order_by="update_time desc", skip=500)),
        Dear("by metadata", lambda w: _page(w, order_by="metadata.m7")),
        *(
            Dear(f"filter of {name}", lambda w, text=text: _page(w, filter=text))
            for name, text in FILTERS.items()
        ),
    ],
    "ListLabelValues": [
        Dear("of all items", lambda w: _label_values(w, w.library, "topic")),
        Dear("many", lambda w: _label_values(w, w.fill(w.fresh(), MANY_ITEMS, _labelled), "k")),
    ],
    "Update": [
        Dear("largest", lambda w: _updates(w, largest_item(w, "x"))),
        Dear("numbers", lambda w: _updates(w, _item_of_numbers("x"))),
    ],
    "Delete": [
        Dear(
            "largest",
            lambda w: [
                pb.DeleteRequest(namespace=_kept(w, largest_item(w, "x")), id="x", request_id="r")
                for _ in range(3)
            ],
        ),
    ],
    "DeleteWhere": [
        Dear("ten thousand", lambda w: [_where(w.short_items(), "")]),
        Dear("long texts", lambda w: [_where(w.fill(w.fresh(), 2000, lambda _: _long_text(w)), "")]),
        *(
            Dear(f"filter of {name}", lambda w, text=text: [_where(w.library, text, dry_run=True)] * 3)
            for name, text in FILTERS.items()
        ),
    ],
    "BatchWrite": [
        Dear("long texts", lambda w: _write_batches(w, [_to_add(item) for item in _long_texts(w)])),
        Dear("numbers", lambda w: _write_batches(w, [_to_add(_item_of_numbers())])),
        Dear("states", lambda w: _write_batches(w, [_to_save(f"k{at}") for at in range(1000)])),
    ],
    "Reset": [
        Dear("many items", lambda w: [pb.ResetRequest(namespace=w.short_items(), request_id="r")]),
        Dear(
            "long texts",
            lambda w: [
                pb.ResetRequest(namespace=w.fill(w.fresh(), 2000, lambda _: pb.MemoryItem(text=w.text(2000))))
            ],
        ),
    ],
    "Watch": [
        Dear("from the beginning", lambda w: again(pb.WatchRequest(namespace=w.library, after_revision=0), 1))
    ],
    "Export": [
        Dear(
            "from the beginning",
            lambda w: again(pb.ExportRequest(namespace=w.library, include_embedding=True), 2),
        ),
    ],
}
