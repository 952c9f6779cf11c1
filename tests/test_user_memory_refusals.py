"""UserMemoryService refuses invalid requests and names the field."""

from __future__ import annotations

import math
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from grpc_api import Api, Refusal, refusal
from memory_service.v1 import user_memory_pb2 as pb
from user_memories import (
    PREFERENCE,
    REASONING,
    User,
    at,
)


@pytest.fixture
def user(api: Api, namespace: str) -> User:
    return User(api, namespace)


def refused(user: User, method: str, request: Any) -> Refusal:
    found = refusal(getattr(user.service, method), request)
    # RESOURCE_EXHAUSTED for values that are too large, otherwise INVALID_ARGUMENT.
    assert found.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    return found


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("namespace", {"namespace": ""}),
        ("category", {"category": 0}),
        ("category", {"category": 99}),
        ("content", {"content": "  short    "}),
        ("reasoning", {"reasoning": "too short"}),
        ("reasoning", {"reasoning": "x" * 201}),
        ("request_id", {"request_id": "x" * 65}),
        ("quote", {"source": pb.MemorySource(quote="x" * 2049)}),
        ("item_ids", {"source": pb.MemorySource(item_ids=["x"] * 101)}),
        ("item_ids", {"source": pb.MemorySource(item_ids=[""])}),
        ("actor", {"source": pb.MemorySource(actor="x" * 257)}),
        ("session_id", {"source": pb.MemorySource(session_id="x" * 257)}),
        ("on_contradiction", {"on_contradiction": 9}),
        ("decide_by", {"decide_by": 9}),
        ("ttl", {"ttl": Duration(seconds=0)}),
        ("ttl", {"ttl": Duration(seconds=-5)}),
        ("labels", {"labels": {"": "x"}}),
        ("valid_from_time", {"valid_from_time": at(-(10**12))}),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_saved(user: User, field: str, fields: dict[str, Any]) -> None:
    good = {
        "namespace": user.namespace,
        "content": "User prefers dark mode",
        "category": PREFERENCE,
        "reasoning": REASONING,
    }
    found = refused(user, "SaveMemory", pb.SaveMemoryRequest(**{**good, **fields}))
    assert found.names(field), found.fields
    assert user.memories() == []


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("query", {"query": ""}),
        ("query", {"query": "x" * 65537}),
        ("limit", {"limit": -2}),
        ("categories", {"categories": [77]}),
        ("as_of_time", {"as_of_time": at(1), "include_history": True}),
        ("min_importance", {"min_importance": math.nan}),
        ("max_tokens", {"max_tokens": 0}),
        ("mode", {"mode": 99}),
        ("page_size", {"page_size": -1}),
        ("page_token", {"page_token": "forged"}),
        ("labels", {"labels": {"": "x"}}),
    ],
)
def test_a_bad_field_of_a_search_is_named(user: User, field: str, fields: dict[str, Any]) -> None:
    request = pb.SearchMemoriesRequest(**{"namespace": user.namespace, "query": "x", **fields})
    assert refused(user, "SearchMemories", request).names(field)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("as_of_time", {"as_of_time": at(1), "include_history": True}),
        ("min_importance", {"min_importance": math.nan}),
        ("ids", {"ids": ["x"] * 1001}),
        ("page_size", {"page_size": -1}),
        ("page_token", {"page_token": "forged"}),
        ("categories", {"categories": [0]}),
    ],
)
def test_a_bad_field_of_a_list_is_named(user: User, field: str, fields: dict[str, Any]) -> None:
    request = pb.ListMemoriesRequest(namespace=user.namespace, **fields)
    assert refused(user, "ListMemories", request).names(field)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("limit", {"limit": -1}),
        ("limit", {"limit": 1001}),
        ("max_tokens", {"max_tokens": -2}),
        ("min_importance", {"min_importance": math.nan}),
        ("if_not_revision", {"if_not_revision": -1}),
    ],
)
def test_a_bad_field_of_a_preload_is_named(user: User, field: str, fields: dict[str, Any]) -> None:
    request = pb.GetPreloadedMemoriesRequest(namespace=user.namespace, **fields)
    assert refused(user, "GetPreloadedMemories", request).names(field)


@pytest.mark.parametrize(
    ("field", "fields", "paths"),
    [
        ("update_mask", {"content": "User prefers tea"}, ["contents"]),
        ("update_mask", {"content": "User prefers tea"}, ["version"]),
        ("update_mask", {}, []),
        ("content", {"content": "short"}, []),
        ("content", {}, ["content"]),
        ("category", {"category": 99}, []),
        ("reasoning", {"reasoning": "short"}, []),
        ("importance", {"importance": pb.Importance(score=math.nan)}, []),
        ("importance", {"importance": pb.Importance(score=-1)}, []),
        ("importance", {}, ["importance"]),
        ("valid_until_time", {"valid_until_time": at(1)}, []),
        ("expire_time", {"expire_time": at(1)}, []),
        ("ttl", {"ttl": Duration()}, []),
        ("ttl", {"ttl": Duration(seconds=9), "expire_time": at(2**32)}, []),
    ],
)
def test_a_bad_field_of_an_update_is_named(
    user: User, field: str, fields: dict[str, Any], paths: list[str]
) -> None:
    before = user.save("User prefers dark mode").memory
    memory = pb.UserMemory(id=before.id, **fields)
    mask = FieldMask(paths=paths)
    request = pb.UpdateMemoryRequest(namespace=user.namespace, memory=memory, update_mask=mask)
    found = refused(user, "UpdateMemory", request)
    assert found.names(field), found.fields
    assert user.memories() == [before]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("similarity_threshold", {"similarity_threshold": 0}),
        ("similarity_threshold", {"similarity_threshold": 1.1}),
        ("similarity_threshold", {"similarity_threshold": math.nan}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": 501}),
        ("memory_ids", {"memory_ids": ["x"] * 1001}),
    ],
)
def test_a_bad_field_of_a_consolidation_is_named(user: User, field: str, fields: dict[str, Any]) -> None:
    request = pb.ConsolidateMemoriesRequest(namespace=user.namespace, **fields)
    assert refused(user, "ConsolidateMemories", request).names(field)


@pytest.mark.parametrize("method", ["UpdateMemory", "DeleteMemory"])
def test_a_memory_that_does_not_exist_is_not_found(user: User, method: str) -> None:
    requests = {
        "UpdateMemory": pb.UpdateMemoryRequest(
            namespace=user.namespace, memory=pb.UserMemory(id="none", reasoning=REASONING)
        ),
        "DeleteMemory": pb.DeleteMemoryRequest(namespace=user.namespace, id="none"),
    }
    found = refusal(getattr(user.service, method), requests[method])
    assert (found.code, found.reason) == (grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND")
