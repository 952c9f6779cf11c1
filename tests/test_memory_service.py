"""Writing, reading, changing and removing items through the API; every store must behave alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, eventually, exactly, refusal, struct, texts_of
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2

SET_BY_THE_SERVER = ("create_time", "update_time", "revision")
FAR_FUTURE = Timestamp(seconds=4_102_444_800, nanos=123_456_000)


def test_the_server_fills_in_id_times_and_revision(api: Api, namespace: str) -> None:
    first, second = api.add(namespace, text="one"), api.add(namespace, text="two")
    assert len({first.id, second.id, ""}) == 3
    assert (first.revision, second.revision) == (1, 2)
    assert first.create_time == first.update_time
    assert not first.HasField("expire_time")


def test_times_are_kept_to_the_microsecond(api: Api, namespace: str) -> None:
    item = api.add(namespace, text="x", create_time=Timestamp(seconds=5, nanos=123_456_789))
    assert api.get(namespace, item.id).create_time == Timestamp(seconds=5, nanos=123_456_000)


def test_a_ttl_is_returned_as_an_expire_time(api: Api, namespace: str) -> None:
    item = api.add(namespace, text="x", ttl=Duration(seconds=3600))
    assert not item.HasField("ttl")
    assert item.expire_time.ToMicroseconds() == item.update_time.ToMicroseconds() + 3600 * 10**6


def test_a_client_vector_keeps_every_bit(api: Api, namespace: str) -> None:
    values = [0.1, -0.0, 1e-45, 3.0, -1.5]  # including a negative zero and a denormal
    sent = pb.Embedding(values=values)
    added = api.add(namespace, text="x", embedding=sent)
    assert not added.HasField("embedding")
    assert not api.get(namespace, added.id).HasField("embedding")
    assert exactly(api.get(namespace, added.id, include_embedding=True).embedding) == exactly(sent)
    listed = api.memory.List(pb.ListRequest(namespace=namespace, include_embedding=True)).items
    exported = api.memory.Export(pb.ExportRequest(namespace=namespace, include_embedding=True))
    assert exactly(listed[0].embedding) == exactly(next(exported).item.embedding) == exactly(sent)


def test_an_id_that_is_taken_is_refused(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="first")
    request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="second"))
    error = refusal(api.memory.Add, request)
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ITEM_ALREADY_EXISTS")
    assert error.metadata == {"namespace": namespace, "id": "a"}
    assert texts_of(api.items(namespace)) == ["first"]


def test_a_batch_is_written_in_order_or_not_at_all(api: Api, namespace: str) -> None:
    response = api.add_texts(namespace, "a", "b", "c")
    assert texts_of(response.items) == ["a", "b", "c"]
    assert [item.revision for item in response.items] == [1, 2, 3]
    assert response.revision == 3
    taken = response.items[0].id
    items = [pb.MemoryItem(text="d"), pb.MemoryItem(id=taken, text="e")]
    error = refusal(api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=items))
    assert error.reason == "ITEM_ALREADY_EXISTS"
    assert texts_of(api.items(namespace)) == ["a", "b", "c"]


def test_an_id_twice_in_a_batch_is_refused(api: Api, namespace: str) -> None:
    items = [pb.MemoryItem(id="a", text="1"), pb.MemoryItem(id="a", text="2")]
    error = refusal(api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=items))
    assert error.reason == "ITEM_ALREADY_EXISTS"
    assert api.items(namespace) == []


def test_namespaces_do_not_see_each_other(api: Api, namespace: str) -> None:
    for name in (namespace, namespace + "/b", namespace.upper()):
        api.add(name, id="same", text=f"a pelican in {name}")
    for name in (namespace, namespace + "/b", namespace.upper()):
        assert texts_of(api.items(name)) == [f"a pelican in {name}"]
        assert api.found(name, query_text="pelican") == [f"a pelican in {name}"]


def test_an_unknown_item_is_not_found(api: Api, namespace: str) -> None:
    requests: list[tuple[Callable[..., object], object]] = [
        (api.memory.Get, pb.GetRequest(namespace=namespace, id="x")),
        (api.memory.Delete, pb.DeleteRequest(namespace=namespace, id="x")),
        (api.memory.Update, pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="x", text="t"))),
    ]
    for call, request in requests:
        error = refusal(call, request)
        assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "ITEM_NOT_FOUND")
        assert error.metadata == {"namespace": namespace, "id": "x"}


# List


def list_pages(api: Api, **fields: Any) -> Iterator[pb.ListResponse]:
    token = ""
    while True:
        response = api.memory.List(pb.ListRequest(page_token=token, **fields))
        yield response
        token = response.next_page_token
        if not token:
            return


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("page_size", [1, 7, 24, 25, 26])
def test_list_pages_add_up_to_the_whole(api: Api, namespace: str, page_size: int, newest_first: bool) -> None:
    texts = [f"text {i}" for i in range(25)]
    api.add_texts(namespace, *texts)
    pages = list(list_pages(api, namespace=namespace, page_size=page_size, newest_first=newest_first))
    assert all(len(page.items) <= page_size for page in pages)
    listed = [text for page in pages for text in texts_of(page.items)]
    assert listed == (texts[::-1] if newest_first else texts)
    assert {page.revision for page in pages} == {25}


def test_list_page_size_has_a_default_and_a_ceiling(api: Api, namespace: str) -> None:
    vector = pb.Embedding(values=[1.0, 0.0])
    items = [pb.MemoryItem(text=f"t{i}", embedding=vector) for i in range(1000)]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items))
    api.add(namespace, text="t1000", embedding=vector)
    sizes = {
        wanted: len(api.memory.List(pb.ListRequest(namespace=namespace, page_size=wanted)).items)
        for wanted in (0, 1000, 1001, 2**31 - 1)
    }
    assert sizes == {0: 100, 1000: 1000, 1001: 1000, 2**31 - 1: 1000}


def test_list_filters_by_session_labels_and_time(api: Api, namespace: str) -> None:
    for i in range(4):
        session, color = f"s{i % 2}", "red" if i < 2 else "blue"
        labels = {"color": color, "n": str(i)}
        api.add(namespace, text=str(i), session_id=session, labels=labels, create_time=Timestamp(seconds=i))

    def listed(**fields: Any) -> list[str]:
        return texts_of(api.memory.List(pb.ListRequest(namespace=namespace, **fields)).items)

    assert listed(session_id="s1") == ["1", "3"]
    assert listed(labels={"color": "red"}) == ["0", "1"]
    assert listed(labels={"color": "red", "n": "1"}) == ["1"]
    assert listed(labels={"color": "green"}) == listed(session_id="s") == []
    assert listed(start_time=Timestamp(seconds=1), end_time=Timestamp(seconds=3)) == ["1", "2"]
    assert listed(session_id="s0", labels={"color": "blue"}, newest_first=True) == ["2"]


def test_the_order_is_that_of_writing_and_not_of_time(api: Api, namespace: str) -> None:
    for i in range(5):
        api.add(namespace, text=str(i), create_time=Timestamp(seconds=1000 - i))
    assert texts_of(api.items(namespace)) == ["0", "1", "2", "3", "4"]
    assert api.found(namespace, limit=2) == ["3", "4"]


# Update


def update(api: Api, namespace: str, item: pb.MemoryItem, *paths: str, **fields: Any) -> pb.MemoryItem:
    mask = FieldMask(paths=paths) if paths else None
    request = pb.UpdateRequest(namespace=namespace, item=item, update_mask=mask, **fields)
    return api.memory.Update(request).item


def full_item(api: Api, namespace: str) -> pb.MemoryItem:
    return api.add(
        namespace,
        id="a",
        session_id="s",
        text="the heron stands still",
        create_time=Timestamp(seconds=7),
        expire_time=FAR_FUTURE,
        labels={"color": "red"},
        metadata=struct({"k": 1.0}),
    )


def test_update_without_a_mask_takes_the_fields_that_are_set(api: Api, namespace: str) -> None:
    before = full_item(api, namespace)
    after = update(api, namespace, pb.MemoryItem(id="a", labels={"size": "big"}))
    expected = pb.MemoryItem()
    expected.CopyFrom(before)
    expected.ClearField("labels")
    expected.labels["size"] = "big"
    expected.update_time.CopyFrom(after.update_time)
    expected.revision = 2
    assert exactly(after) == exactly(expected) == exactly(api.get(namespace, "a"))


@pytest.mark.parametrize("field", ["session_id", "expire_time", "labels", "metadata"])
def test_update_clears_a_field_that_is_masked_and_not_set(api: Api, namespace: str, field: str) -> None:
    before = full_item(api, namespace)
    after = update(api, namespace, pb.MemoryItem(id="a"), field)
    before.ClearField(field)
    before.update_time.CopyFrom(after.update_time)
    before.revision = 2
    assert exactly(after) == exactly(before) == exactly(api.get(namespace, "a"))


def test_update_leaves_alone_what_the_mask_does_not_name(api: Api, namespace: str) -> None:
    full_item(api, namespace)
    item = pb.MemoryItem(id="a", text="ignored", session_id="t", labels={"x": "y"})
    after = update(api, namespace, item, "session_id")
    assert (after.text, after.session_id) == ("the heron stands still", "t")
    assert dict(after.labels) == {"color": "red"}


def test_update_with_a_star_replaces_the_whole_item(api: Api, namespace: str) -> None:
    before = full_item(api, namespace)
    after = update(api, namespace, pb.MemoryItem(id="a", text="new"), "*")
    assert (after.text, after.session_id) == ("new", "")
    assert {field.name for field, _ in after.ListFields()} == {"id", "text", *SET_BY_THE_SERVER}
    assert after.revision == before.revision + 1


@pytest.mark.parametrize("path", ["content", "text"])
def test_new_content_is_found_and_the_old_is_not(api: Api, namespace: str, path: str) -> None:
    full_item(api, namespace)
    old = api.get(namespace, "a", include_embedding=True).embedding
    update(api, namespace, pb.MemoryItem(id="a", text="a walrus sleeps"), path)
    assert api.found(namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL) == []
    assert api.found(namespace, query_text="walrus", mode=pb.RETRIEVE_MODE_LEXICAL) != []
    assert api.get(namespace, "a", include_embedding=True).embedding != old


def test_update_may_change_the_kind_of_the_content(api: Api, namespace: str) -> None:
    full_item(api, namespace)
    message = pb.ChatMessage(role=pb.ROLE_USER, parts=[pb.Part(text="hello")])
    after = update(api, namespace, pb.MemoryItem(id="a", chat_message=message), "chat_message")
    assert after.chat_message == message
    assert api.get(namespace, "a").WhichOneof("content") == "chat_message"


def test_other_fields_change_without_touching_the_vector(api: Api, namespace: str) -> None:
    vector = pb.Embedding(values=[1.0, 2.0])
    api.add(namespace, id="a", text="x", embedding=vector)
    update(api, namespace, pb.MemoryItem(id="a", labels={"k": "v"}))
    assert api.get(namespace, "a", include_embedding=True).embedding == vector
    found = api.found(namespace, query_embedding=vector, labels={"k": "v"})
    assert found == ["x"]


def test_a_new_vector_takes_the_place_of_the_old(api: Api, namespace: str) -> None:
    east, north = pb.Embedding(values=[1.0, 0.0]), pb.Embedding(values=[0.0, 1.0])
    api.add(namespace, id="a", text="a", embedding=east)
    api.add(namespace, id="b", text="b", embedding=pb.Embedding(values=[1.0, 0.1]))
    update(api, namespace, pb.MemoryItem(id="a", embedding=north), "embedding")
    assert api.found(namespace, query_embedding=east, limit=1) == ["b"]
    assert api.found(namespace, query_embedding=north, limit=1) == ["a"]


def test_update_keeps_the_place_in_the_order(api: Api, namespace: str) -> None:
    for name in "abc":
        api.add(namespace, id=name, text=name)
    update(api, namespace, pb.MemoryItem(id="a", text="A"))
    assert texts_of(api.items(namespace)) == ["A", "b", "c"]
    assert api.found(namespace) == ["A", "b", "c"]


def test_update_can_move_an_item_in_time_and_let_it_expire(api: Api, namespace: str) -> None:
    full_item(api, namespace)
    item = pb.MemoryItem(id="a", create_time=Timestamp(seconds=99), ttl=Duration(seconds=60))
    after = update(api, namespace, item, "create_time", "ttl")
    assert after.create_time.seconds == 99
    assert after.expire_time.ToMicroseconds() == after.update_time.ToMicroseconds() + 60 * 10**6


@pytest.mark.parametrize("path", ["id", "revision", "update_time", "nonsense", "labels.color", ""])
def test_a_mask_of_what_cannot_be_changed_is_refused(api: Api, namespace: str, path: str) -> None:
    full_item(api, namespace)
    request = pb.UpdateRequest(
        namespace=namespace, item=pb.MemoryItem(id="a", text="t"), update_mask=FieldMask(paths=[path])
    )
    error = refusal(api.memory.Update, request)
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert error.names("update_mask")
    assert api.get(namespace, "a").revision == 1


def test_a_stale_revision_is_refused_with_the_current_one(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="1")
    update(api, namespace, pb.MemoryItem(id="a", text="2"), expected_revision=1)
    change = pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="3"), expected_revision=1)
    removal = pb.DeleteRequest(namespace=namespace, id="a", expected_revision=1)
    for error in (refusal(api.memory.Update, change), refusal(api.memory.Delete, removal)):
        assert (error.code, error.reason) == (grpc.StatusCode.ABORTED, "REVISION_MISMATCH")
        assert error.metadata == {"id": "a", "expected_revision": "1", "current_revision": "2"}
    assert api.get(namespace, "a").text == "2"
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a", expected_revision=2))
    assert api.items(namespace) == []


# Delete and Reset


def test_a_deleted_item_is_gone_from_every_read(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="a heron")
    vector = api.get(namespace, "a", include_embedding=True).embedding
    api.add(namespace, id="b", text="a walrus")
    response = api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a"))
    assert response.revision == 3
    assert refusal(api.memory.Get, pb.GetRequest(namespace=namespace, id="a")).reason == "ITEM_NOT_FOUND"
    assert texts_of(api.items(namespace)) == ["a walrus"]
    assert api.found(namespace) == ["a walrus"]
    assert api.found(namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL) == []
    assert api.found(namespace, query_embedding=vector) == ["a walrus"]
    exported = [m.item.id for m in api.memory.Export(pb.ExportRequest(namespace=namespace))]
    assert exported == ["b"]


def test_a_deleted_id_can_be_used_again(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="old heron")
    api.add(namespace, id="b", text="b")
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a"))
    api.add(namespace, id="a", text="new walrus")
    assert texts_of(api.items(namespace)) == ["b", "new walrus"]
    assert api.found(namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL) == []


def test_reset_empties_the_namespace_and_revisions_go_on(api: Api, namespace: str) -> None:
    api.add_texts(namespace, "a", "b", "c")
    api.save(namespace, "k", 1)
    response = api.memory.Reset(pb.ResetRequest(namespace=namespace))
    assert (response.removed_count, response.removed_state_count, response.revision) == (3, 1, 5)
    assert api.items(namespace) == []
    assert api.found(namespace, query_text="a") == api.found(namespace) == []
    keys = api.state.ListStateKeys(state_pb2.ListStateKeysRequest(namespace=namespace))
    assert list(keys.entries) == []
    assert api.add(namespace, text="d").revision == 6


def test_after_a_reset_any_dimension_is_taken(api: Api, namespace: str) -> None:
    api.add(namespace, text="x", embedding=pb.Embedding(values=[1.0, 2.0, 3.0]))
    api.memory.Reset(pb.ResetRequest(namespace=namespace))
    vector = pb.Embedding(values=[1.0, 2.0])
    api.add(namespace, text="y", embedding=vector)
    assert api.found(namespace, query_embedding=vector) == ["y"]


def test_reset_of_nothing_removes_nothing(api: Api, namespace: str) -> None:
    response = api.memory.Reset(pb.ResetRequest(namespace=namespace))
    assert (response.removed_count, response.removed_state_count) == (0, 0)


# Expiry


def test_an_expired_item_is_gone_from_every_read(api: Api, namespace: str) -> None:
    vector = pb.Embedding(values=[1.0, 0.0])
    api.add(namespace, id="a", text="a heron", embedding=vector, ttl=Duration(nanos=200_000_000))
    api.add(namespace, id="b", text="a walrus", embedding=pb.Embedding(values=[0.0, 1.0]))
    eventually(lambda: len(api.items(namespace)) == 1, "expiry")
    assert refusal(api.memory.Get, pb.GetRequest(namespace=namespace, id="a")).reason == "ITEM_NOT_FOUND"
    assert api.found(namespace) == ["a walrus"]
    assert api.found(namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL) == []
    assert api.found(namespace, query_embedding=vector) == ["a walrus"]
    assert api.add(namespace, id="a", text="again", embedding=vector).text == "again"


def test_an_expired_item_cannot_be_changed(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="a heron", ttl=Duration(nanos=1_000_000))
    eventually(lambda: api.items(namespace) == [], "expiry")
    change = pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="x"))
    assert refusal(api.memory.Update, change).reason == "ITEM_NOT_FOUND"
    removal = pb.DeleteRequest(namespace=namespace, id="a")
    assert refusal(api.memory.Delete, removal).reason == "ITEM_NOT_FOUND"


# Concurrent writers


def test_writers_at_once_each_get_a_revision_of_their_own(api: Api, namespace: str) -> None:
    threads, each = 8, 15
    start = threading.Barrier(threads)

    def write(thread: int) -> list[int]:
        start.wait()
        return [api.add(namespace, text=f"{thread} {i}").revision for i in range(each)]

    with ThreadPoolExecutor(threads) as pool:
        revisions = list(pool.map(write, range(threads)))
    everyone = list(range(1, threads * each + 1))
    assert all(mine == sorted(mine) for mine in revisions)
    assert sorted(r for mine in revisions for r in mine) == everyone
    assert [item.revision for item in api.items(namespace)] == everyone


# Dimensions


def test_the_first_vector_sets_the_dimension(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="a", embedding=pb.Embedding(values=[1.0, 0.0, 0.0]))
    wrong = pb.Embedding(values=[1.0, 0.0])
    item = pb.MemoryItem(text="b", embedding=wrong)
    update_request = pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", embedding=wrong))
    search = pb.RetrieveRequest(namespace=namespace, options=pb.RetrieveOptions(query_embedding=wrong))
    refused = {
        "embedding": [
            refusal(api.memory.Add, pb.AddRequest(namespace=namespace, item=item)),
            refusal(api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=[item])),
            refusal(api.memory.Update, update_request),
        ],
        "query_embedding": [refusal(api.memory.Retrieve, search)],
    }
    for field, errors in refused.items():
        for error in errors:
            assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "DIMENSION_MISMATCH")
            assert (error.metadata["expected"], error.metadata["actual"]) == ("3", "2")
            assert error.names(field)
    assert api.stats(namespace).revision == 1


def test_a_batch_cannot_hold_two_dimensions(api: Api, namespace: str) -> None:
    items = [
        pb.MemoryItem(text="a", embedding=pb.Embedding(values=[1.0, 0.0])),
        pb.MemoryItem(text="b", embedding=pb.Embedding(values=[1.0, 0.0, 0.0])),
    ]
    error = refusal(api.memory.BatchAdd, pb.BatchAddRequest(namespace=namespace, items=items))
    assert error.reason == "DIMENSION_MISMATCH"
    # A refused batch must not set the dimension for the next writer.
    api.add(namespace, text="c", embedding=pb.Embedding(values=[1.0, 0.0, 0.0]))
    assert texts_of(api.items(namespace)) == ["c"]
