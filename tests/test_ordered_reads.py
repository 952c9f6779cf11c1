"""order_by and skip of List and Retrieve over gRPC."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grpc_api import Api, refusal, struct
from memory_service.v1 import memory_pb2 as pb

COUNT = 250


@pytest.fixture
def numbered(api: Api, namespace: str) -> str:
    """A namespace whose items have a number that neither ascends nor descends."""
    items = [
        pb.MemoryItem(id=f"i{n}", text="x", session_id=f"s{n % 2}", metadata=struct({"n": n * 7919 % 1009}))
        for n in range(COUNT)
    ]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items))
    return namespace


def _number(item: pb.MemoryItem) -> float:
    return item.metadata.fields["n"].number_value


def _listed(api: Api, request: pb.ListRequest) -> Iterator[pb.MemoryItem]:
    while True:
        page = api.memory.List(request)
        yield from page.items
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _retrieved(api: Api, namespace: str, **options: object) -> Iterator[list[pb.RetrieveResult]]:
    request = pb.RetrieveRequest(namespace=namespace, options=pb.RetrieveOptions(**options))  # type: ignore[arg-type]
    while True:
        page = api.memory.Retrieve(request)
        yield list(page.results)
        if not page.next_page_token:
            return
        request.options.page_token = page.next_page_token


@pytest.mark.parametrize("direction", ["asc", "desc", "DESC"])
def test_pages_of_a_list_together_are_in_order(api: Api, numbered: str, direction: str) -> None:
    request = pb.ListRequest(namespace=numbered, order_by=f"metadata.n {direction}", skip=7, page_size=20)
    found = [_number(item) for item in _listed(api, request)]
    expected = sorted((n * 7919 % 1009 for n in range(COUNT)), reverse=direction != "asc")
    assert found == expected[7:]


def test_items_that_do_not_change_come_once_whatever_else_is_written(api: Api, numbered: str) -> None:
    request = pb.ListRequest(namespace=numbered, order_by="update_time desc", page_size=20)
    first = api.memory.List(request)
    shown = [item.id for item in first.items]
    assert shown == [f"i{n}" for n in range(COUNT - 1, COUNT - 21, -1)]
    api.memory.Update(pb.UpdateRequest(namespace=numbered, item=pb.MemoryItem(id="i0", labels={"k": "v"})))
    api.memory.Delete(pb.DeleteRequest(namespace=numbered, id="i229"))
    request.page_token = first.next_page_token
    assert [item.id for item in _listed(api, request)] == [f"i{n}" for n in range(228, 0, -1)]


def test_a_limit_counts_over_all_pages(api: Api, numbered: str) -> None:
    pages = list(_retrieved(api, numbered, order_by="revision", skip=3, limit=25, page_size=10))
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [result.item.id for page in pages for result in page] == [f"i{n}" for n in range(3, 28)]
    (all_at_once,) = _retrieved(api, numbered, order_by="revision desc", limit=-1)
    assert len(all_at_once) == COUNT


def test_the_newest_that_are_left_out_are_left_out_of_every_page(api: Api, numbered: str) -> None:
    pages = _retrieved(api, numbered, skip=5, limit=25, page_size=10)
    assert [result.item.id for page in pages for result in page] == [f"i{n}" for n in range(220, 245)]
    pages = _retrieved(api, numbered, skip=5, limit=-1, max_tokens=30)
    found = [result.item.id for page in pages for result in page]
    assert found == [f"i{n}" for n in range(245 - len(found), 245)] and 0 < len(found) <= 30


def test_results_in_an_order_have_their_neighbours(api: Api, numbered: str) -> None:
    options = {"order_by": "revision desc", "context_window": 1, "limit": 5, "page_size": 2, "skip": 1}
    pages = list(_retrieved(api, numbered, **options))
    assert [len(page) for page in pages] == [2, 2, 1]
    for number, result in zip(
        range(COUNT - 2, 0, -1), (each for page in pages for each in page), strict=False
    ):
        assert result.item.id == f"i{number}"
        assert [item.id for item in result.before] == [f"i{number - 2}"]


@pytest.mark.parametrize("change", [{"order_by": "revision"}, {"skip": 2}, {"session_id": "s1"}])
def test_a_page_token_belongs_to_its_order(api: Api, numbered: str, change: dict[str, object]) -> None:
    request = pb.ListRequest(namespace=numbered, order_by="update_time", page_size=1, skip=1)
    request.page_token = api.memory.List(request).next_page_token
    request.MergeFrom(pb.ListRequest(**change))  # type: ignore[arg-type]
    assert refusal(api.memory.List, request).metadata["field"] == "page_token"
