"""ListLabelValues over gRPC."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grpc_api import Api, refusal
from memory_service.v1 import memory_pb2 as pb


def _pages(api: Api, request: pb.ListLabelValuesRequest) -> Iterator[pb.ListLabelValuesResponse]:
    while True:
        page = api.memory.ListLabelValues(request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _fill(api: Api, namespace: str, values: list[str]) -> None:
    for at in range(0, len(values), 1000):
        items = [pb.MemoryItem(text="x", labels={"k": value}) for value in values[at : at + 1000]]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items))


def test_pages_together_have_every_value_once(api: Api, namespace: str) -> None:
    values = [f"v{n:05}" for n in range(1234)]
    _fill(api, namespace, values[::-1])
    request = pb.ListLabelValuesRequest(namespace=namespace, key="k")
    pages = list(_pages(api, request))
    assert [len(page.values) for page in pages] == [100] * 12 + [34], "a hundred at a time"
    assert [found.value for page in pages for found in page.values] == values
    assert {found.count for page in pages for found in page.values} == {1}
    assert {page.revision for page in pages} == {1234}
    largest = api.memory.ListLabelValues(
        pb.ListLabelValuesRequest(namespace=namespace, key="k", page_size=5000)
    )
    assert len(largest.values) == 1000


def test_values_that_come_and_go_do_not_move_the_next_page(api: Api, namespace: str) -> None:
    _fill(api, namespace, ["b", "d", "f", "h"])
    request = pb.ListLabelValuesRequest(namespace=namespace, key="k", page_size=2)
    request.page_token = api.memory.ListLabelValues(request).next_page_token
    _fill(api, namespace, ["a", "c", "e"])
    assert [found.value for found in api.memory.ListLabelValues(request).values] == ["e", "f"]


@pytest.mark.parametrize("change", [{"key": "l"}, {"prefix": "a"}, {"namespace": "other"}])
def test_a_page_token_belongs_to_its_request(api: Api, namespace: str, change: dict[str, str]) -> None:
    _fill(api, namespace, ["a", "b"])
    request = pb.ListLabelValuesRequest(namespace=namespace, key="k", page_size=1)
    request.page_token = api.memory.ListLabelValues(request).next_page_token
    request.MergeFrom(pb.ListLabelValuesRequest(**change))
    assert refusal(api.memory.ListLabelValues, request).metadata["field"] == "page_token"


def test_a_prefix_has_the_limit_of_a_value(api: Api, namespace: str) -> None:
    request = pb.ListLabelValuesRequest(namespace=namespace, key="k", prefix="p" * 256)
    assert not api.memory.ListLabelValues(request).values
    request.prefix += "p"
    error = refusal(api.memory.ListLabelValues, request)
    assert (error.reason, error.metadata["field"]) == ("LIMIT_EXCEEDED", "prefix")
