"""The client leaves out no field of the services for facts, interactions, documents and oversight."""

from __future__ import annotations

import dataclasses
import inspect
import re
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor

from memory_client import (
    AsyncMemoryClient,
    ClientOptions,
    Consolidation,
    Consolidations,
    DecisionFailure,
    Document,
    ExtractedMemory,
    Extraction,
    Fragment,
    HandledMessage,
    Importance,
    ImportanceAdjustment,
    Interaction,
    InteractionPair,
    KeyDecision,
    LlmUsage,
    MemoryCategory,
    MemoryClient,
    MemorySource,
    MemoryStatus,
    OriginalMessage,
    PreloadedMemories,
    Relevance,
    SavedMemory,
    StorageDecision,
    UpdatedMemory,
    UserMemory,
    chat_message,
)
from memory_client._calls import interactions, knowledge, overseer, user_memories
from memory_client._calls.fields import decided_by_to, decision_to
from memory_client._calls.user_memory_values import memory_to
from memory_client._gen.memory_service.v1 import interaction_pb2, knowledge_pb2, overseer_pb2, user_memory_pb2

MODULES: dict[Any, ModuleType] = {
    user_memory_pb2.DESCRIPTOR: user_memories,
    interaction_pb2.DESCRIPTOR: interactions,
    knowledge_pb2.DESCRIPTOR: knowledge,
    overseer_pb2.DESCRIPTOR: overseer,
}
METHODS: list[MethodDescriptor] = [
    method for file in MODULES for service in file.services_by_name.values() for method in service.methods
]
TIME = datetime(2026, 1, 31, 12, 30, 15, 123456, UTC)
OF_TYPE = {
    "bool": True,
    "float": 0.5,
    "int": 3,
    "str": "text",
    "datetime": TIME,
    "timedelta": 3600,
    "Sequence": ["text"],
    "Mapping": {"a": "b"},
    "Iterable": [chat_message("user", "text")],
    "MemorySource": MemorySource(actor="bot"),
    "OriginalMessage": OriginalMessage(content="text"),
    "RetrieveMode": "lexical",
    "DecidedBy": "rules",
    "OnContradiction": "refuse",
    "MemoryCategory": "context",
    "Any": {"a": 1},
}
NOT_SENT = {"page_token"}
"""The client fetches the pages itself."""


def method_name(rpc: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", rpc).lower()


def value_for(parameter: inspect.Parameter) -> Any:
    """Return a value that is not the default, by the parameter's type."""
    if "MemoryCategory" in parameter.annotation:
        return ["context"] if parameter.annotation.startswith("Sequence") else "context"
    if "SourceKind" in parameter.annotation:
        return ["web"]
    return OF_TYPE[re.match(r"\w+", parameter.annotation)[0]]  # type: ignore[index]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_field_of_a_request_can_be_sent(method: MethodDescriptor) -> None:
    module = MODULES[method.containing_service.file]
    build = getattr(module, method_name(method.name))
    parameters = inspect.signature(build).parameters.values()
    positional = [value_for(p) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = {p.name: value_for(p) for p in parameters if p.kind is p.KEYWORD_ONLY}
    call = build(*positional, **named)
    assert call.method == f"/{method.containing_service.full_name}/{method.name}"
    assert (
        method.input_type,
        method.output_type,
    ) == (call.request.DESCRIPTOR, call.response_type.DESCRIPTOR)
    sent = {field.name for field, _ in call.request.ListFields()}
    assert sent == set(method.input_type.fields_by_name) - NOT_SENT


def test_every_rpc_has_a_method_in_both_clients() -> None:
    names = {method_name(method.name) for method in METHODS}
    assert len(names) == len(METHODS) == 21
    assert not [
        name for name in names for kind in (MemoryClient, AsyncMemoryClient) if not hasattr(kind, name)
    ]


def test_every_rpc_is_retried_while_the_server_is_unavailable() -> None:
    retried = {name["method"] for name in ClientOptions().service_config()["methodConfig"][0]["name"]}
    assert {method.name for method in METHODS} <= retried


def test_an_update_names_the_fields_that_are_given_and_no_others() -> None:
    unset = {
        name: user_memories.UNSET
        for name, parameter in inspect.signature(user_memories.update_memory).parameters.items()
        if "Unset" in str(parameter.annotation)
    }
    settings = {"expected_version": None, "keep_wording": False, "decide_by": None, "request_id": "r"}
    given = {**unset, "category": "context", "labels": {}, "expire_time": None}
    request = user_memories.update_memory("n", "id", **given, **settings).request
    assert sorted(request.update_mask.paths) == ["category", "expire_time", "labels"]
    assert request.memory == user_memory_pb2.UserMemory(
        id="id", category=user_memory_pb2.MEMORY_CATEGORY_CONTEXT
    )
    assert len(unset) == 10


def test_zero_is_sent_where_it_does_not_mean_the_same_as_nothing() -> None:
    """A limit of 0 returns nothing, and an expected version of 0 means that no document exists."""
    search = user_memories.search_memories
    named = {
        name: None if "None" in parameter.annotation else type(OF_TYPE[parameter.annotation])()
        for name, parameter in inspect.signature(search).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("categories", "sources")
    }
    request = search("n", "q", **named, categories=(), sources=()).request
    assert request.HasField("limit") and request.limit == 0
    assert not request.HasField("max_tokens") and not request.HasField("min_score")


VALUES: list[tuple[type, Descriptor, set[str], set[str]]] = [
    # The value, its message, fields of the message only, fields of the value only.
    (UserMemory, user_memory_pb2.UserMemory.DESCRIPTOR, {"ttl"}, set()),
    (MemorySource, user_memory_pb2.MemorySource.DESCRIPTOR, set(), set()),
    (Importance, user_memory_pb2.Importance.DESCRIPTOR, set(), set()),
    (ImportanceAdjustment, user_memory_pb2.ImportanceAdjustment.DESCRIPTOR, set(), set()),
    (SavedMemory, user_memory_pb2.SaveMemoryResponse.DESCRIPTOR, set(), set()),
    (UpdatedMemory, user_memory_pb2.UpdateMemoryResponse.DESCRIPTOR, set(), set()),
    (PreloadedMemories, user_memory_pb2.GetPreloadedMemoriesResponse.DESCRIPTOR, set(), set()),
    (Extraction, user_memory_pb2.ExtractMemoriesResponse.DESCRIPTOR, set(), set()),
    (ExtractedMemory, user_memory_pb2.ExtractedMemory.DESCRIPTOR, set(), set()),
    (Consolidations, user_memory_pb2.ConsolidateMemoriesResponse.DESCRIPTOR, set(), set()),
    (Consolidation, user_memory_pb2.Consolidation.DESCRIPTOR, set(), set()),
    (Interaction, interaction_pb2.Interaction.DESCRIPTOR, set(), {"degraded"}),
    (InteractionPair, interaction_pb2.InteractionPair.DESCRIPTOR, set(), set()),
    (OriginalMessage, interaction_pb2.OriginalMessage.DESCRIPTOR, set(), set()),
    (Document, knowledge_pb2.Document.DESCRIPTOR, {"ttl"}, {"fragments", "degraded"}),
    (Fragment, knowledge_pb2.Fragment.DESCRIPTOR, set(), set()),
    (HandledMessage, knowledge_pb2.HandleMessageResponse.DESCRIPTOR, {"fragments"}, set()),
    (Relevance, overseer_pb2.CheckRelevanceResponse.DESCRIPTOR, set(), set()),
    (KeyDecision, overseer_pb2.KeyDecision.DESCRIPTOR, set(), set()),
    (StorageDecision, overseer_pb2.EvaluateForStorageResponse.DESCRIPTOR, set(), set()),
    (DecisionFailure, overseer_pb2.DecisionFailure.DESCRIPTOR, set(), set()),
    (LlmUsage, overseer_pb2.LlmUsage.DESCRIPTOR, set(), set()),
]


@pytest.mark.parametrize(
    "kind,message,not_read,own", VALUES, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_field_of_an_answer_has_its_place(
    kind: type, message: Descriptor, not_read: set[str], own: set[str]
) -> None:
    fields = {field.name for field in dataclasses.fields(kind)}
    assert fields - own == set(message.fields_by_name) - not_read


def test_what_a_newer_server_sends_is_read_as_far_as_it_is_known() -> None:
    memory = memory_to(user_memory_pb2.UserMemory(id="x", category=99, status=99))  # type: ignore[arg-type]
    assert (memory.id, memory.category, memory.status) == (
        "x",
        MemoryCategory.UNSPECIFIED,
        MemoryStatus.UNSPECIFIED,
    )
    assert decided_by_to(99) == "unspecified"
    response = overseer_pb2.CheckRelevanceResponse()
    response.failures.add(reason=99, message="m")  # type: ignore[arg-type]
    assert decision_to(response)["failures"] == (DecisionFailure("UNSPECIFIED", "m"),)
