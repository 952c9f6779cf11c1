"""The client leaves out no field of the services for items, state and administration."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from both_clients import connected
from memory_client import (
    BackupProgress,
    BackupSummary,
    Change,
    Contribution,
    ImportSummary,
    IndexStats,
    InvalidArgument,
    ItemKind,
    MemoryClient,
    MemoryItem,
    NamespaceStats,
    NamespaceSummary,
    NamespaceUsage,
    Provenance,
    QuarantinedWrite,
    Reembedding,
    Result,
    ReviewedWrite,
    ScoreWeights,
    ServerInfo,
    SourceKind,
    StateEntry,
    ToolCall,
    UndoneWrites,
    chat_message,
    tool_call_result,
)
from memory_client._calls import admin, memory
from memory_client._gen.memory_service.v1 import admin_pb2, memory_pb2, state_pb2
from memory_client.convert import imported_item_from, item_to, new_item_from
from memory_client.protojson import item_from_json, item_to_json
from server_process import ServerProcess

TIME = datetime(2026, 1, 31, 12, 30, 15, 123456, UTC)
CONTENT = {"text", "data", "chat_message", "tool_call_result"}
FILTERS: dict[str, Any] = {
    "session_id": "s",
    "labels": {"a": "b"},
    "start_time": TIME,
    "end_time": TIME,
    "include_embedding": True,
    "kinds": ["message", ItemKind.PLAIN],
    "filter": "f",
    "min_trust": 0.5,
    "sources": ["web", SourceKind.UNSPECIFIED],
    "page_size": 3,
}


@pytest.fixture(params=["sync", "async"])
def client(server: ServerProcess, namespace: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from connected(server.address, namespace, request.param)


def fields_sent(message: Any) -> set[str]:
    return {field.name for field, _ in message.ListFields()}


def test_every_option_of_a_retrieval_can_be_sent() -> None:
    own = {
        "limit": 3,
        "min_score": 0.5,
        "mode": "lexical",
        "explain": True,
        "embedding": [1.0],
        "now": TIME,
        "weights": ScoreWeights(
            lexical=1, vector=0.5, recency=2, recency_half_life=3600, importance=3, usage=4
        ),
        "context_window": 2,
        "max_tokens": 100,
        "rerank": True,
        "record_usage": True,
        "refresh_ttl": True,
        "order_by": "create_time",
        "skip": 1,
        "queries": ["herons"],
        "namespaces": ["team"],
        "min_relevance": 0.5,
        "neighbour_weight": 0.5,
        "whole_exchanges": True,
        "time_zone": "Europe/Berlin",
    }
    request = memory.retrieve("n", "q", **FILTERS, **own).request
    assert fields_sent(request.options) == set(memory_pb2.RetrieveOptions.DESCRIPTOR.fields_by_name) - {
        "page_token"
    }
    assert fields_sent(request.options.weights) == set(memory_pb2.ScoreWeights.DESCRIPTOR.fields_by_name)
    assert list(request.options.kinds) == [memory_pb2.ITEM_KIND_MESSAGE, memory_pb2.ITEM_KIND_UNSPECIFIED]


def defaults_of(method: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def options_sent(**given: Any) -> memory_pb2.RetrieveOptions:
    named = {**defaults_of(MemoryClient.retrieve), **given}
    options: memory_pb2.RetrieveOptions = memory.retrieve("n", "q", **named).request.options
    return options


def test_zero_is_sent_where_it_does_not_mean_the_same_as_nothing() -> None:
    """Zero tokens is a limit, and a weight of 0 for words is not the default."""
    options = options_sent(max_tokens=0, weights=ScoreWeights(lexical=0, recency_half_life=0))
    assert options.HasField("max_tokens")
    assert fields_sent(options.weights) == {"lexical", "recency_half_life"}
    assert not options_sent().HasField("max_tokens") and not options_sent().HasField("weights")
    assert options_sent(weights=ScoreWeights()).HasField("weights")
    assert new_item_from(MemoryItem(content="x", importance=0)).HasField("importance")
    assert not new_item_from(MemoryItem(content="x")).HasField("importance")


def test_a_half_life_is_a_timedelta_or_seconds() -> None:
    for half_life in (timedelta(days=1), 86_400):
        options = options_sent(weights=ScoreWeights(recency=1, recency_half_life=half_life))
        assert options.weights.recency_half_life.seconds == 86_400


def test_tokens_of_all_pages_are_counted_together() -> None:
    pages = [
        memory_pb2.RetrieveResponse(token_count=3, revision=7),
        memory_pb2.RetrieveResponse(token_count=4, revision=8),
    ]
    call = memory.retrieve("n", "q", **defaults_of(MemoryClient.retrieve))
    results = memory.results_of([call.read(page) for page in pages])
    assert (results.token_count, results.revision) == (7, 7)


def test_every_field_of_a_list_can_be_sent() -> None:
    request = memory.list_items("n", newest_first=True, order_by="create_time", skip=1, **FILTERS).request
    assert fields_sent(request) == set(memory_pb2.ListRequest.DESCRIPTOR.fields_by_name) - {"page_token"}


def test_every_field_of_an_undo_can_be_sent() -> None:
    request = admin.undo_writes(
        "n", TIME, writer="w", credential_id="c", any_writer=True, dry_run=True, request_id="r"
    ).request
    assert fields_sent(request) == set(admin_pb2.UndoWritesRequest.DESCRIPTOR.fields_by_name)


def test_an_undo_that_is_done_has_a_request_id_and_a_dry_run_has_none() -> None:
    named = {"writer": "w", "credential_id": "", "any_writer": False, "request_id": None}
    assert admin.undo_writes("n", TIME, dry_run=False, **named).request.request_id
    assert not admin.undo_writes("n", TIME, dry_run=True, **named).request.request_id


def test_every_field_of_a_review_can_be_sent() -> None:
    request = admin.review_quarantined("n", "w", "release").request
    assert fields_sent(request) == set(admin_pb2.ReviewQuarantinedRequest.DESCRIPTOR.fields_by_name)
    listed = admin.list_quarantined("n", 3).request
    assert fields_sent(listed) == {"namespace", "page_size"}
    with pytest.raises(ValueError):
        admin.review_quarantined("n", "w", "keep")


def test_every_field_of_a_move_can_be_sent() -> None:
    request = admin.reembed("n", True).request
    assert fields_sent(request) == set(admin_pb2.ReembedRequest.DESCRIPTOR.fields_by_name)


VALUES: list[tuple[type, Descriptor, set[str], set[str]]] = [
    # The value, its message, fields of the message only, fields of the value only.
    (MemoryItem, memory_pb2.MemoryItem.DESCRIPTOR, CONTENT, {"content", "degraded"}),
    (Change, memory_pb2.Change.DESCRIPTOR, set(), set()),
    (Result, memory_pb2.RetrieveResult.DESCRIPTOR, set(), set()),
    (ScoreWeights, memory_pb2.ScoreWeights.DESCRIPTOR, set(), set()),
    (Contribution, memory_pb2.Contribution.DESCRIPTOR, set(), set()),
    (ImportSummary, memory_pb2.ImportResponse.DESCRIPTOR, set(), set()),
    (StateEntry, state_pb2.StateEntry.DESCRIPTOR, set(), set()),
    (ServerInfo, admin_pb2.GetInfoResponse.DESCRIPTOR, set(), set()),
    (BackupProgress, admin_pb2.BackupProgress.DESCRIPTOR, set(), set()),
    (NamespaceSummary, admin_pb2.NamespaceSummary.DESCRIPTOR, set(), set()),
    (NamespaceStats, admin_pb2.GetNamespaceStatsResponse.DESCRIPTOR, set(), set()),
    (NamespaceUsage, admin_pb2.NamespaceUsage.DESCRIPTOR, set(), set()),
    (Reembedding, admin_pb2.ReembedResponse.DESCRIPTOR, set(), set()),
    (IndexStats, admin_pb2.IndexStats.DESCRIPTOR, set(), set()),
    (Provenance, memory_pb2.Provenance.DESCRIPTOR, set(), set()),
    (UndoneWrites, admin_pb2.UndoWritesResponse.DESCRIPTOR, set(), set()),
    (QuarantinedWrite, admin_pb2.QuarantinedWrite.DESCRIPTOR, set(), set()),
    (ReviewedWrite, admin_pb2.ReviewQuarantinedResponse.DESCRIPTOR, set(), set()),
    (BackupSummary, admin_pb2.BackupResponse.DESCRIPTOR, set(), set()),
]


@pytest.mark.parametrize(
    "kind,message,not_read,own", VALUES, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_field_of_an_answer_has_its_place(
    kind: type, message: Descriptor, not_read: set[str], own: set[str]
) -> None:
    fields = {field.name for field in dataclasses.fields(kind)}
    assert fields - own == set(message.fields_by_name) - not_read


def test_every_field_of_an_item_is_a_parameter_of_its_addition(client: Any) -> None:
    parameters = set(inspect.signature(memory.update).parameters) - {"namespace", "expected_revision"}
    set_by_callers = {field.name for field in dataclasses.fields(MemoryItem)} - {
        "update_time",
        "revision",
        "kind",
        "facet_json",
        "degraded",
        "provenance",  # Of a version: it is set when an item is added, and never changes.
    }
    assert parameters - {"request_id"} == set_by_callers
    until = datetime.now(UTC) + timedelta(hours=1)
    assert client.add("x", expire_time=until).expire_time == until
    with pytest.raises(InvalidArgument) as caught:
        client.add("x", expire_time=until, ttl=3600)
    assert caught.value.field == "item.ttl"


def test_kind_and_facet_are_sent_by_an_import_and_by_nothing_else() -> None:
    item = MemoryItem(content="x", kind=ItemKind.RESPONSE, facet_json='{"tags":{}}')
    packed = imported_item_from(item)
    assert (packed.kind, packed.facet_json) == (memory_pb2.ITEM_KIND_RESPONSE, '{"tags":{}}')
    assert item_to(packed) == item
    assert item_from_json(item_to_json(item)) == item
    assert fields_sent(new_item_from(item)) == {"text"}
    newer = memory_pb2.MemoryItem(text="x", kind=99)  # type: ignore[arg-type]
    assert item_to(newer).kind is ItemKind.UNSPECIFIED
    with pytest.raises(ValueError):
        imported_item_from(item_to(newer))


def test_items_of_other_services_are_read_where_they_are_asked_for(client: Any) -> None:
    client.add("plain tea")
    client.store_interaction("ada", "a message about tea")
    client.save_memory("I prefer green tea", "preference", "What the user drinks")
    document = client.add_document("A text about tea.")
    for find in (client.retrieve, client.list_items):
        # Without kinds, these are the items of a conversation.
        assert {kind_of(found) for found in find()} == {"plain", "message"}
        assert {kind_of(found) for found in find(kinds=["plain"])} == {"plain"}
        assert {kind_of(found) for found in find(kinds=["user_memory", ItemKind.FRAGMENT])} == {
            "user_memory",
            "fragment",
        }
    assert client.get(document.id).kind is ItemKind.DOCUMENT
    with pytest.raises(InvalidArgument):
        client.retrieve(kinds="plain")


def kind_of(found: Any) -> ItemKind:
    kind: ItemKind = getattr(found, "item", found).kind
    return kind


def test_facts_interactions_and_documents_survive_an_export_and_an_import(
    client: Any, namespace: str
) -> None:
    message = client.store_interaction("ada", "How does AI work?")
    client.store_response("By statistics.", in_response_to=message.id)
    client.save_memory("I live in Paris", "identity", "Where the user lives")
    client.add_document("The train to Lisbon leaves at noon.", title="Plan")
    records = list(client.export())
    copy = client.namespace(namespace + "/copy")
    copy.import_items(records)
    assert [fact.content for fact in copy.list_memories()] == ["User lives in Paris"]
    assert [pair.responses[0].content for pair in copy.retrieve_last_interactions()] == ["By statistics."]
    assert [found.document.title for found in copy.search_fragments("train")] == ["Plan"]


def test_pages_of_any_size_are_joined(client: Any) -> None:
    client.batch_add([f"tea number {number}" for number in range(7)])
    for size in (1, 3, 7):
        assert [found.text for found in client.retrieve(limit=5, page_size=size)] == [
            f"tea number {number}" for number in range(2, 7)
        ]
        assert len(client.retrieve("tea", limit=-1, page_size=size)) == 7
    document = client.add_document("A sentence about tea. " * 40, max_characters=100, overlap_characters=0)
    for size in (1, 4):
        whole = client.get_document(document.id, include_fragments=True, page_size=size)
        assert " ".join(fragment.text for fragment in whole.fragments).split() == whole.text.split()
        assert len(client.search_fragments("tea", limit=6, page_size=size)) == 6


def test_a_vector_without_values_is_refused_and_not_passed_over(client: Any) -> None:
    for call in (
        lambda: client.add("x", embedding=[]),
        lambda: client.retrieve("x", embedding=[]),
        lambda: client.batch_add([MemoryItem(content="x", embedding=())]),
    ):
        with pytest.raises(InvalidArgument):
            call()


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    ("deepest", "wrap"),
    [(43, lambda value: [value]), (28, lambda value: {"in": value})],
    ids=["lists", "dicts"],
)
def test_what_is_nested_as_deep_as_can_be_sent_is_kept(client: Any, deepest: int, wrap: Any) -> None:
    data = {"deep": nested(deepest, wrap)}
    call = chat_message("assistant", ToolCall("search", data), tool_call_result("search", data))
    (added,) = client.batch_add([call])
    assert client.get(added.id).content == call
    client.save_state("k", data)
    assert client.load_state("k").value == data
    for depth in (deepest + 5, 60, 5000):
        for write in (client.add, lambda data: client.save_state("k", data)):
            with pytest.raises(ValueError, match="nested too deeply"):
                write({"deep": nested(depth, wrap)})
