"""Import and Export: bulk streams that can be resumed after they break."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, exactly, json_value, refusal, struct, texts_of
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2


def items_of(*ids: str, prefix: str = "") -> list[pb.MemoryItem]:
    return [pb.MemoryItem(id=item_id, text=prefix + item_id) for item_id in ids]


def states_of(*keys: str, value: object = 1) -> list[state_pb2.StateEntry]:
    return [state_pb2.StateEntry(key=key, value=json_value(value), description="d") for key in keys]


def batches(namespace: str, *groups: str, **first: Any) -> Iterator[pb.ImportRequest]:
    """Return one batch per group, with an item per letter."""
    for number, ids in enumerate(groups):
        head = {"namespace": namespace, **first} if number == 0 else {}
        yield pb.ImportRequest(items=items_of(*ids), **head)


def export(api: Api, namespace: str, **fields: Any) -> list[pb.ExportResponse]:
    return list(api.memory.Export(pb.ExportRequest(namespace=namespace, **fields)))


def load(api: Api, namespace: str, key: str) -> state_pb2.StateEntry:
    return api.state.LoadState(state_pb2.LoadStateRequest(namespace=namespace, key=key)).entry


# Import


def test_an_import_writes_all_its_batches_in_order(api: Api, namespace: str) -> None:
    response = api.memory.Import(batches(namespace, "abc", "", "de"))
    assert (response.imported_count, response.skipped_count, response.revision) == (5, 0, 5)
    assert texts_of(api.items(namespace)) == list("abcde")
    assert api.found(namespace, query_text="d", mode=pb.RETRIEVE_MODE_LEXICAL) == ["d"]


def test_an_import_takes_thousands_of_items(api: Api, namespace: str) -> None:
    def stream() -> Iterator[pb.ImportRequest]:
        for batch in range(3):
            items = [pb.MemoryItem(text=f"number {batch * 1000 + i}") for i in range(1000)]
            yield pb.ImportRequest(namespace=namespace, items=items)

    response = api.memory.Import(stream())
    assert (response.imported_count, response.revision) == (3000, 3000)
    assert api.found(namespace, query_text="2718", mode=pb.RETRIEVE_MODE_LEXICAL) == ["number 2718"]


@pytest.mark.parametrize("on_duplicate", [pb.ON_DUPLICATE_UNSPECIFIED, pb.ON_DUPLICATE_FAIL])
def test_a_duplicate_ends_the_import_and_its_batch_is_not_written(
    api: Api, namespace: str, on_duplicate: pb.OnDuplicate
) -> None:
    api.memory.Import(batches(namespace, "x"))
    error = refusal(api.memory.Import, batches(namespace, "ab", "cxd", "e", on_duplicate=on_duplicate))
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ITEM_ALREADY_EXISTS")
    assert error.metadata["id"] == "x"
    assert texts_of(api.items(namespace)) == ["x", "a", "b"]


def test_skipping_duplicates_makes_an_import_resumable(api: Api, namespace: str) -> None:
    skip = pb.ON_DUPLICATE_SKIP
    api.memory.Import(batches(namespace, "ab", on_duplicate=skip))
    kept = [exactly(item) for item in api.items(namespace)]
    response = api.memory.Import(batches(namespace, "ab", "cd", on_duplicate=skip))
    assert (response.imported_count, response.skipped_count) == (2, 2)
    assert texts_of(api.items(namespace)) == list("abcd")
    assert [exactly(item) for item in api.items(namespace)[:2]] == kept


def test_replacing_duplicates_keeps_their_place(api: Api, namespace: str) -> None:
    api.memory.Import(batches(namespace, "abc"))
    again = pb.ImportRequest(
        namespace=namespace, items=items_of("b", prefix="new "), on_duplicate=pb.ON_DUPLICATE_REPLACE
    )
    assert api.memory.Import(iter([again])).imported_count == 1
    assert texts_of(api.items(namespace)) == ["a", "new b", "c"]
    assert api.found(namespace, query_text="new", mode=pb.RETRIEVE_MODE_LEXICAL) == ["new b"]


def test_states_are_imported_with_items(api: Api, namespace: str) -> None:
    batch = pb.ImportRequest(namespace=namespace, items=items_of("a"), states=states_of("k", "l"))
    response = api.memory.Import(iter([batch]))
    assert (response.imported_count, response.imported_state_count) == (1, 2)
    assert (load(api, namespace, "k").value, load(api, namespace, "k").version) == (json_value(1), 1)
    assert load(api, namespace, "l").description == "d"


@pytest.mark.parametrize(
    ("on_duplicate", "counts", "kept"),
    [(pb.ON_DUPLICATE_SKIP, (1, 1), ("old", 1)), (pb.ON_DUPLICATE_REPLACE, (2, 0), ("new", 2))],
)
def test_a_state_that_exists_is_skipped_or_replaced(
    api: Api, namespace: str, on_duplicate: pb.OnDuplicate, counts: tuple[int, int], kept: tuple[str, int]
) -> None:
    api.save(namespace, "k", "old")
    states = states_of("k", "l", value="new")
    batch = pb.ImportRequest(namespace=namespace, states=states, on_duplicate=on_duplicate)
    response = api.memory.Import(iter([batch]))
    assert (response.imported_state_count, response.skipped_state_count) == counts
    entry = load(api, namespace, "k")
    assert (entry.value.string_value, entry.version) == kept


def test_a_state_that_exists_ends_an_import_that_fails_on_duplicates(api: Api, namespace: str) -> None:
    api.save(namespace, "k", "old")
    batch = pb.ImportRequest(namespace=namespace, items=items_of("a"), states=states_of("l", "k"))
    error = refusal(api.memory.Import, iter([batch]))
    assert error.code in {grpc.StatusCode.ABORTED, grpc.StatusCode.ALREADY_EXISTS}
    # A batch is written whole or not at all: neither its item nor its other state may remain.
    assert api.items(namespace) == []
    keys = api.state.ListStateKeys(state_pb2.ListStateKeysRequest(namespace=namespace))
    assert [entry.key for entry in keys.entries] == ["k"]


def test_an_import_cannot_change_its_namespace(api: Api, namespace: str) -> None:
    stream = [
        pb.ImportRequest(namespace=namespace, items=items_of("a")),
        pb.ImportRequest(namespace=namespace, items=items_of("b")),
        pb.ImportRequest(namespace=namespace + "/b", items=items_of("c")),
    ]
    error = refusal(api.memory.Import, iter(stream))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert error.names("namespace")
    assert texts_of(api.items(namespace)) == ["a", "b"]
    assert api.items(namespace + "/b") == []


def test_an_import_without_a_namespace_is_refused(api: Api, namespace: str) -> None:
    error = refusal(api.memory.Import, iter([pb.ImportRequest(items=items_of("a"))]))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert error.names("namespace")
    assert api.items(namespace) == []


def test_a_bad_item_ends_the_import_before_its_batch(api: Api, namespace: str) -> None:
    good = pb.ImportRequest(namespace=namespace, items=items_of("a"))
    bad = pb.ImportRequest(items=[*items_of("b"), pb.MemoryItem(id="c")])
    error = refusal(api.memory.Import, iter([good, bad]))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert texts_of(api.items(namespace)) == ["a"]


# Export


def fill(api: Api, namespace: str) -> None:
    api.memory.Import(batches(namespace, "abcdef"))
    api.save(namespace, "k", {"n": [1, None]}, description="a counter")
    replacement = pb.MemoryItem(id="b", text="B", metadata=struct({"m": 1}))
    mask = FieldMask(paths=["text", "metadata"])
    request = pb.UpdateRequest(namespace=namespace, item=replacement, update_mask=mask)
    api.memory.Update(request)
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="d"))
    api.save(namespace, "l", "x")


def keys_of(records: list[pb.ExportResponse]) -> list[str]:
    return [r.item.id if r.HasField("item") else "state " + r.state.key for r in records]


def test_an_export_holds_everything_in_the_order_of_revisions(api: Api, namespace: str) -> None:
    fill(api, namespace)
    records = export(api, namespace)
    assert keys_of(records) == ["a", "c", "e", "f", "state k", "b", "state l"]
    exported = {r.item.id: exactly(r.item) for r in records if r.HasField("item")}
    assert exported == {item.id: exactly(item) for item in api.items(namespace)}
    assert exactly(records[4].state) == exactly(load(api, namespace, "k"))
    revisions = [record.revision for record in records]
    assert revisions == sorted(set(revisions))


def test_an_export_resumes_after_any_message(api: Api, namespace: str) -> None:
    fill(api, namespace)
    whole = export(api, namespace)
    for count in range(1, len(whole) + 1):
        stream = api.memory.Export(pb.ExportRequest(namespace=namespace))
        head = list(islice(stream, count))
        stream.cancel()
        tail = export(api, namespace, after_revision=head[-1].revision)
        assert keys_of(head + tail) == keys_of(whole)


def test_an_export_of_nothing_is_refused(api: Api, namespace: str) -> None:
    error = refusal(api.memory.Export, pb.ExportRequest(namespace=namespace))
    assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "NAMESPACE_NOT_FOUND")
    assert error.metadata == {"namespace": namespace}


def test_an_export_can_be_imported_elsewhere(api: Api, namespace: str) -> None:
    fill(api, namespace)
    records = export(api, namespace, include_embedding=True)
    batch = pb.ImportRequest(
        namespace=namespace + "/copy",
        items=[r.item for r in records if r.HasField("item")],
        states=[r.state for r in records if r.HasField("state")],
    )
    api.memory.Import(iter([batch]))
    copies = export(api, namespace + "/copy", include_embedding=True)

    def comparable(record: pb.ExportResponse) -> tuple[object, ...]:
        item, state = record.item, record.state
        times = item.create_time.ToMicroseconds(), state.key, exactly(state.value), state.description
        return item.id, item.text, exactly(item.metadata), exactly(item.embedding), times

    assert sorted(map(comparable, copies)) == sorted(map(comparable, records))


def test_an_export_of_much_is_complete(api: Api, namespace: str) -> None:
    text = "x" * 20_000
    for batch in range(5):
        items = [pb.MemoryItem(id=f"{batch}-{i}", text=text) for i in range(100)]
        api.memory.Import(iter([pb.ImportRequest(namespace=namespace, items=items)]))
    assert len(set(keys_of(export(api, namespace)))) == 500


def test_what_has_expired_since_the_export_is_passed_over(api: Api, namespace: str) -> None:
    gone = pb.MemoryItem(id="gone", text="old news", expire_time=Timestamp(seconds=1))
    kept = pb.MemoryItem(id="kept", text="news")
    state = state_pb2.StateEntry(key="gone", value=json_value(1), expire_time=Timestamp(seconds=1))
    request = pb.ImportRequest(namespace=namespace, items=[gone, kept], states=[state])
    answer = api.memory.Import(iter([request]))
    assert (answer.imported_count, answer.skipped_count) == (1, 1)
    assert (answer.imported_state_count, answer.skipped_state_count) == (0, 1)
    assert [item.id for item in api.items(namespace)] == ["kept"]
