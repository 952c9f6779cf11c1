"""The Python client and its peers of the corpus leave out no field of any request or response."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from grpc_api import METHODS, path
from python_peers import AsyncPeer, SyncPeer

Peer = SyncPeer | AsyncPeer
_LEAVES: dict[str, Any] = {
    "google.protobuf.Timestamp": "2031-05-06T07:08:09.123456Z",
    "google.protobuf.Duration": "3600.500s",
    "google.protobuf.Struct": {"a": [1, "b", None, {"c": True}]},
    "google.protobuf.Value": {"a": [1, "b", None]},
    "memory_service.v1.Embedding": {"values": [0.5, -0.25]},
}
_SET_BY_THE_SERVER = {
    "AddRequest.item": {"updateTime", "revision", "kind", "facetJson"},
    "BatchAddRequest.items": {"updateTime", "revision", "kind", "facetJson"},
    "UpdateRequest.item": {"updateTime", "revision", "kind", "facetJson", "provenance"},
    "BatchWriteRequest.operations.add.item": {"updateTime", "revision", "kind", "facetJson"},
    "BatchWriteRequest.operations.update.item": {"updateTime", "revision", "kind", "facetJson", "provenance"},
    "ImportRequest.items": {"updateTime", "revision"},
    "ImportRequest.states": {"version", "updateTime", "sizeBytes", "createTime", "preview", "revision"},
    "SaveMemoryRequest.source": {"origin", "memoryIds", "model"},
    "UpdateMemoryRequest.memory": {
        "createTime",
        "updateTime",
        "version",
        "revision",
        "status",
        "supersededBy",
        "supersedes",
        "originalContent",
        "source",
        "importance",
        "provenance",
    },
    "UpdateSessionRequest.session": {
        "itemCount",
        "firstTime",
        "lastTime",
        "version",
        "updateTime",
        "forkedFrom",
        "participants",
    },
    "StoreResponseRequest.originalMessage": {"provenance"},
    "AddDocumentRequest.document": {
        "updateTime",
        "version",
        "revision",
        "fragmentCount",
        "sizeBytes",
        "preview",
        "sourceItemId",
        "provenance",
    },
}
"""Fields that have no effect in a request, and that no method has a parameter for."""


_NOT_RETURNED = {
    "revision": {
        # The written item or state has it.
        *("Add", "BatchAdd", "Update", "SaveState", "RenameState"),
        *("StoreInteraction", "StoreResponse", "StoreReflection"),
        # Entries come one by one, whatever page they were on.
        *("List", "ListLabelValues", "ListMemories", "ListDocuments", "ListFiles", "Watch", "Export"),
        *("AddDocument", "GetDocument"),
        "ListSessions",
        # Only the number of deleted items is returned.
        *("DeleteWhere", "DeleteSession"),
    },
    # The returned item has no revision then, and fewer items are returned.
    "skipped": {"Add"},
    "skippedCount": {"BatchAdd"},
    # In the items and in the document.
    "degraded": {"BatchAdd"},
    "fragments": {"HandleMessage"},
}
"""Fields of responses that the client does not return separately, by method."""


def may_be_inexpressible(message: str, field: str) -> bool:
    """Return whether a field of a request is one that the client's methods do not offer."""
    if field.rpartition(".")[2] == "pageToken":
        return True  # The client fetches the pages itself.
    path = f"{message}.{field}"
    return any(
        path.removeprefix(f"{holder}.").partition(".")[0] in names
        for holder, names in _SET_BY_THE_SERVER.items()
        if path.startswith(f"{holder}.")
    )


class Recorder:
    """Accepts every call, records its requests and returns an empty response."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answer: Any = None
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers((_Handlers(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.stop(None).wait()


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._methods = {path(method): method for method in METHODS}

    def service(self, handler_call_details: Any) -> Any:
        method = self._methods[handler_call_details.method]
        recorder, nothing = self._recorder, GetMessageClass(method.output_type)()

        def unary(request: Any, context: Any) -> Any:
            recorder.requests.append(request)
            if method.server_streaming:
                return iter([recorder.answer] if recorder.answer else [])
            return recorder.answer or nothing

        def upload(requests: Iterator[Any], context: Any) -> Any:
            recorder.requests.extend(requests)
            return recorder.answer or nothing

        make, handle = grpc.unary_unary_rpc_method_handler, unary
        if method.server_streaming:
            make = grpc.unary_stream_rpc_method_handler
        elif method.client_streaming:
            make, handle = grpc.stream_unary_rpc_method_handler, upload
        return make(
            handle,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture(scope="module", params=[SyncPeer, AsyncPeer], ids=["sync", "async"])
def peer(recorder: Recorder, request: pytest.FixtureRequest) -> Iterator[Peer]:
    peer: Peer = request.param(recorder.address)
    yield peer
    peer.close()


def fields(message: Descriptor, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each field, at any depth, as a path and the JSON of a message that has it."""
    for field in message.fields:
        kind = field.message_type
        if kind is None or kind.full_name in _LEAVES or kind.GetOptions().map_entry:
            yield field.json_name, {field.json_name: _listed(field, _leaf(field))}
        elif kind.full_name not in above and kind.name != "FieldMask":
            for inner, value in fields(kind, (*above, message.full_name)):
                yield f"{field.json_name}.{inner}", {field.json_name: _listed(field, value)}


def _listed(field: FieldDescriptor, value: Any) -> Any:
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    return [value] if field.is_repeated and not is_map else value


def _leaf(field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return _LEAVES.get(field.message_type.full_name, {"a": "7"})
    if field.enum_type is not None:
        return field.enum_type.values[-1].name
    return {
        FieldDescriptor.CPPTYPE_STRING: "dGV4dA==",
        FieldDescriptor.CPPTYPE_BOOL: True,
        FieldDescriptor.CPPTYPE_INT32: 3,
        FieldDescriptor.CPPTYPE_INT64: "3",
        FieldDescriptor.CPPTYPE_DOUBLE: 0.5,
    }[field.cpp_type]


def with_what_is_needed(method: MethodDescriptor, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with the fields that the client's methods require."""
    needed: dict[str, Any] = {
        "SaveState": {"value": 1},
        "EvaluateForStorage": {"result": 1},
        "Add": {"item": {}},
        "AddDocument": {"document": {}},
        "EditFile": {} if {"replace", "insert"} & request.keys() else {"append": {"text": "x"}},
        "Update": {"item": {}},
        "UpdateMemory": {"memory": {}},
        "UpdateSession": {"session": {}},
        "UndoWrites": {"since": "2026-01-31T12:30:15Z"},
        "ReviewQuarantined": {"decision": "QUARANTINE_DECISION_DELETE"},
    }.get(method.name, {})
    if method.name == "Import" and "states" in request:
        request["states"][0].setdefault("value", 1)
    for operation in request.get("operations", ()):
        for kind, required in {
            "add": {"item": {}},
            "update": {"item": {}},
            "saveState": {"value": 1},
            "editFile": {}
            if {"replace", "insert"} & operation.get("editFile", {}).keys()
            else {"append": {"text": "x"}},
        }.items():
            if kind in operation:
                operation[kind] = {**required, **operation[kind]}
    return {**needed, **request}


def holds(sent: Any, written: Any) -> bool:
    """Return whether everything that was written was sent."""
    if isinstance(written, dict):
        return isinstance(sent, dict) and all(holds(sent.get(key), inner) for key, inner in written.items())
    if isinstance(written, list):
        return isinstance(sent, list) and len(sent) == len(written) and all(map(holds, sent, written))
    return bool(sent == written)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_field_of_a_request_is_left_out(method: MethodDescriptor, peer: Peer, recorder: Recorder) -> None:
    for name, field in fields(method.input_type):
        answer = asked(peer, method, field)
        assert "error" not in answer, name
        if "inexpressible" in answer:
            assert not recorder.requests
            assert may_be_inexpressible(method.input_type.name, name), answer
            continue
        (sent,) = recorder.requests
        assert holds(json_format.MessageToDict(sent), field), name
        recorder.requests.clear()


def asked(peer: Peer, method: MethodDescriptor, request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a call with this request."""
    request = with_what_is_needed(method, request)
    written = {"requests": [request]} if method.client_streaming else {"request": request}
    call = f"{method.containing_service.name}/{method.name}"
    return peer.call({"call": call, "take": 1, **written})


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_field_of_a_response_is_left_out(method: MethodDescriptor, peer: Peer, recorder: Recorder) -> None:
    for name, field in fields(method.output_type):
        if name == "nextPageToken" or name.endswith("ttl"):
            continue  # The client fetches that page; a ttl is in requests only.
        recorder.answer = json_format.ParseDict(field, GetMessageClass(method.output_type)())
        answer = asked(peer, method, {})
        given = answer["responses"][0] if answer.get("responses") else answer.get("response", {})
        expected = method.name not in _NOT_RETURNED.get(name.partition(".")[0], ())
        assert holds(given, field) == expected, name
    recorder.answer = None
    recorder.requests.clear()
