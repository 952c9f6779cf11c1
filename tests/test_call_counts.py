"""Calls are counted by namespace, in bounded memory."""

from __future__ import annotations

import pytest

from memory_service.limits import Limits
from memory_service.server import call_counts
from memory_service.server.call_counts import CallCounts
from memory_service.v1 import memory_pb2 as pb

ADD = "/memory_service.v1.MemoryService/Add"
RETRIEVE = "/memory_service.v1.MemoryService/Retrieve"
IMPORT = "/memory_service.v1.MemoryService/Import"


@pytest.fixture
def counts() -> CallCounts:
    return CallCounts(Limits())


def count(counts: CallCounts, namespace: str) -> None:
    """Count a call of Add."""
    decode = counts.counting(ADD, pb.AddRequest.FromString)
    request = pb.AddRequest(namespace=namespace, request_id="r")
    assert decode(request.SerializeToString()) == request


def test_each_namespace_that_a_call_names_is_counted_once(counts: CallCounts) -> None:
    decode = counts.counting(RETRIEVE, pb.RetrieveRequest.FromString)
    for names in (["b", "a", "b"], ["c"], []):
        decode(pb.RetrieveRequest(namespace="a", namespaces=names).SerializeToString())
    assert [counts.of(name).count for name in "abcd"] == [3, 1, 1, 0]


def test_an_upload_is_one_call(counts: CallCounts) -> None:
    begin = counts.counting_upload(IMPORT, lambda: pb.ImportRequest.FromString)
    for _ in range(2):
        decode = begin()
        for name in ("a", "", "a"):
            decode(pb.ImportRequest(namespace=name).SerializeToString())
    assert counts.of("a").count == 2


def test_calls_without_a_namespace_are_not_counted(counts: CallCounts) -> None:
    plain = pb.AddRequest.FromString
    assert counts.counting("/memory_service.v1.AdminService/GetInfo", plain) is plain
    assert counts.counting("/unknown.Service/Method", plain) is plain
    for name in ("", "x" * (Limits().namespace_name_bytes_max + 1)):
        count(counts, name)
        assert counts.of(name).count == 0


def test_what_was_called_longest_ago_is_forgotten(
    counts: CallCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_counts, "_NAMESPACES_MAX", 2)
    start_us = counts.of("a").since_us
    for name in ("a", "b", "a", "c"):
        count(counts, name)
    assert [counts.of(name).count for name in "abc"] == [2, 0, 1]
    assert counts.of("a").since_us == counts.of("c").since_us == start_us < counts.of("b").since_us
