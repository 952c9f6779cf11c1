"""Get and Retrieve can let items live on; every store must behave alike."""

from __future__ import annotations

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, refusal
from memory_service.v1 import memory_pb2 as pb

HOUR = Duration(seconds=3600)


def _get(api: Api, namespace: str, item_id: str, **fields: object) -> pb.MemoryItem:
    return api.memory.Get(pb.GetRequest(namespace=namespace, id=item_id, **fields)).item


def _us(time: Timestamp) -> int:
    return time.ToMicroseconds()


def test_get_lets_an_item_live_on(api: Api, namespace: str) -> None:
    added = api.add(namespace, id="a", text="kiwi", ttl=HOUR)
    assert _get(api, namespace, "a") == added
    refreshed = _get(api, namespace, "a", refresh_ttl=True)
    longer = _us(refreshed.expire_time) - _us(added.expire_time)
    assert 0 < longer < 60 * 1_000_000
    assert (refreshed.revision, refreshed.update_time) == (added.revision, added.update_time)
    assert _get(api, namespace, "a") == refreshed
    again = _get(api, namespace, "a", refresh_ttl=True)
    assert 0 < _us(again.expire_time) - _us(refreshed.expire_time) < 60 * 1_000_000, "the same ttl"
    api.add(namespace, id="forever", text="kiwi")
    assert not _get(api, namespace, "forever", refresh_ttl=True).HasField("expire_time")


def test_an_update_keeps_the_time_to_live(api: Api, namespace: str) -> None:
    added = api.add(namespace, id="a", text="kiwi", ttl=HOUR)
    item = pb.MemoryItem(id="a", labels={"k": "v"})
    update = pb.UpdateRequest(namespace=namespace, item=item)
    update.update_mask.paths.append("labels")
    updated = api.memory.Update(update).item
    assert updated.expire_time == added.expire_time
    refreshed = _get(api, namespace, "a", refresh_ttl=True)
    assert _us(refreshed.expire_time) - _us(updated.update_time) >= 3600 * 1_000_000


def test_retrieve_lets_its_results_live_on(api: Api, namespace: str) -> None:
    before = {name: api.add(namespace, id=name, text=f"kiwi {name}", ttl=HOUR) for name in ("a", "b")}
    api.add(namespace, id="forever", text="kiwi")
    (found,) = api.retrieve(namespace, query_text="b", limit=1, refresh_ttl=True).results
    assert found.item.id == "b"
    assert _us(found.item.expire_time) > _us(before["b"].expire_time)
    assert _get(api, namespace, "b").expire_time == found.item.expire_time
    assert _get(api, namespace, "a") == before["a"]
    assert api.retrieve(namespace, refresh_ttl=True).revision == 3
    assert _us(_get(api, namespace, "a").expire_time) > _us(before["a"].expire_time)


def test_a_version_cannot_live_on(api: Api, namespace: str) -> None:
    added = api.add(namespace, id="a", text="kiwi", ttl=HOUR)
    request = pb.GetRequest(namespace=namespace, id="a", revision=added.revision, refresh_ttl=True)
    error = refusal(api.memory.Get, request)
    assert (error.code, error.metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "refresh_ttl")
