"""The API for tests: stubs over one channel, any RPC by its descriptor, decoded errors."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import struct_pb2
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from memory_service.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    error_reason_pb2,
    file_pb2,
    interaction_pb2,
    knowledge_pb2,
    memory_pb2,
    memory_pb2_grpc,
    overseer_pb2,
    session_pb2,
    state_pb2,
    state_pb2_grpc,
    user_memory_pb2,
)
from server_process import ServerProcess

# A graph is built from this size up, so that a few items are enough to test it.
SMALL_GRAPHS = {"MEMORY_SERVICE_EXACT_VECTORS_MAX": "64", "MEMORY_SERVICE_TAIL_VECTORS_MAX": "32"}

ERROR_DOMAIN = "memory_service.v1"
SERVICES = (
    memory_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    state_pb2.DESCRIPTOR.services_by_name["StateService"],
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
    overseer_pb2.DESCRIPTOR.services_by_name["OverseerService"],
    interaction_pb2.DESCRIPTOR.services_by_name["InteractionService"],
    user_memory_pb2.DESCRIPTOR.services_by_name["UserMemoryService"],
    knowledge_pb2.DESCRIPTOR.services_by_name["KnowledgeService"],
    session_pb2.DESCRIPTOR.services_by_name["SessionService"],
    file_pb2.DESCRIPTOR.services_by_name["FileService"],
)
METHODS: tuple[MethodDescriptor, ...] = tuple(method for service in SERVICES for method in service.methods)

# Codes that a test may expect. Not among them: UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS.
FORESEEN = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
}

# A call that hangs ends its test with DEADLINE_EXCEEDED. No retries: tests must see the first response.
_SERVICE_CONFIG = {"methodConfig": [{"name": [{}], "timeout": "60s"}]}
_CHANNEL_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.enable_retries", 0),
    # By default channels to one address share a connection; a test that kills its server must not leave the
    # next test a connection in back-off.
    ("grpc.use_local_subchannel_pool", 1),
]

# A path to a field: "item.embedding", "items[3].labels['topic']".
_FIELD_PATH = re.compile(r"[a-z_0-9]+(\[.*?\])?(\.[a-z_0-9]+(\[.*?\])?)*", re.DOTALL)

_PROTOS = Path(__file__).parents[1] / "protos" / "memory_service" / "v1"
_COMMENTED_REASON = re.compile(r"((?: *//.*\n)+) *ERROR_REASON_(\w+) = ")


def _promised_codes() -> dict[str, str]:
    """The code of each reason, from its comment in the proto: "Code NOT_FOUND"."""
    text = (_PROTOS / "error_reason.proto").read_text()
    found = {
        reason: re.search(r"\bCode (\w+)", comment) for comment, reason in _COMMENTED_REASON.findall(text)
    }
    return {reason: match[1] for reason, match in found.items() if match}


CODE_OF_REASON = _promised_codes()

# Internals that no caller may see: code, drivers, files.
_SECRETS = (
    "Traceback",
    "site-packages",
    ".py",
    "<class ",
    "sqlite",
    "apsw",
    "hnswlib",
    "numpy",
    tempfile.gettempdir(),
    str(Path(__file__).parents[1]),
)


@dataclass(frozen=True)
class Api:
    """The stubs of all services over one channel."""

    channel: grpc.Channel
    memory: Any
    state: Any
    admin: Any

    @classmethod
    def connect(cls, address: str, credentials: grpc.ChannelCredentials | None = None) -> Api:
        """Connect to the server at `address`, with a client's default limits."""
        if credentials is None:
            channel = grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.secure_channel(address, credentials, options=_CHANNEL_OPTIONS)
        return cls(
            channel,
            memory_pb2_grpc.MemoryServiceStub(channel),
            state_pb2_grpc.StateServiceStub(channel),
            admin_pb2_grpc.AdminServiceStub(channel),
        )

    def call(
        self, method: MethodDescriptor, request: Message | bytes, *, after: Sequence[Message | bytes] = ()
    ) -> Message:
        """Call any RPC with one request and return its (first) response; bytes are sent unchanged.

        `after`: in a stream of requests, the requests before it.
        """
        kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
            "stream" if method.server_streaming else "unary"
        )
        remote = getattr(self.channel, kind)(
            path(method),
            request_serializer=lambda r: r if isinstance(r, bytes) else r.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        answer = remote(iter([*after, request]) if method.client_streaming else request)
        return first_response(method, answer) if method.server_streaming else answer

    def add(self, namespace: str, **fields: Any) -> memory_pb2.MemoryItem:
        """Add an item with these fields."""
        item = memory_pb2.MemoryItem(**fields)
        return self.memory.Add(memory_pb2.AddRequest(namespace=namespace, item=item)).item

    def add_texts(self, namespace: str, *texts: str) -> memory_pb2.BatchAddResponse:
        """Add items with these texts in one batch."""
        items = [memory_pb2.MemoryItem(text=text) for text in texts]
        return self.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))

    def get(self, namespace: str, item_id: str, *, include_embedding: bool = False) -> memory_pb2.MemoryItem:
        """Get one item."""
        request = memory_pb2.GetRequest(namespace=namespace, id=item_id, include_embedding=include_embedding)
        return self.memory.Get(request).item

    def items(self, namespace: str) -> list[memory_pb2.MemoryItem]:
        """Return all items of a namespace, page by page, the oldest first."""
        items, token = [], ""
        while True:
            request = memory_pb2.ListRequest(namespace=namespace, page_size=1000, page_token=token)
            page = self.memory.List(request)
            items += page.items
            token = page.next_page_token
            if not token:
                return items

    def retrieve(self, namespace: str, **options: Any) -> memory_pb2.RetrieveResponse:
        """Call Retrieve with these options."""
        wanted = memory_pb2.RetrieveOptions(**options)
        return self.memory.Retrieve(memory_pb2.RetrieveRequest(namespace=namespace, options=wanted))

    def found(self, namespace: str, **options: Any) -> list[str]:
        """Return the texts that Retrieve finds with these options."""
        return texts_of(result.item for result in self.retrieve(namespace, **options).results)

    def save(self, namespace: str, key: str, value: Any, **fields: Any) -> state_pb2.StateEntry:
        """Save a JSON value under a key."""
        request = state_pb2.SaveStateRequest(namespace=namespace, key=key, value=json_value(value), **fields)
        return self.state.SaveState(request).entry

    def limits(self) -> dict[str, int]:
        """Return the limits that the server reports."""
        return dict(self.admin.GetInfo(admin_pb2.GetInfoRequest()).limits)

    def stats(self, namespace: str) -> admin_pb2.GetNamespaceStatsResponse:
        """Return the statistics of a namespace."""
        return self.admin.GetNamespaceStats(admin_pb2.GetNamespaceStatsRequest(namespace=namespace))


Connect = Callable[[ServerProcess], Api]
"""Type of the `connect` fixture."""


@dataclass(frozen=True)
class Refusal:
    """A call that failed, decoded. `reason` is the ErrorReason without its prefix."""

    code: grpc.StatusCode
    message: str
    reason: str
    metadata: dict[str, str]
    fields: tuple[str, ...]
    retry_after_s: float | None

    def names(self, field: str) -> bool:
        """Return whether the BadRequest names this field: "embedding" fits "items[1].embedding"."""
        return any(field in re.sub(r"\[.*?\]", "", path).split(".") for path in self.fields)


def texts_of(items: Iterable[memory_pb2.MemoryItem]) -> list[str]:
    """Return the texts of items that are texts."""
    return [item.text for item in items]


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    """Return a JSON object as a message."""
    message = struct_pb2.Struct()
    message.update(value)
    return message


def json_value(value: Any) -> struct_pb2.Value:
    """Return a JSON value as a message."""
    return struct({"value": value}).fields["value"]


def exactly(message: Message) -> bytes:
    """Return every bit of a message: -0.0 differs from 0.0, and an empty field from an unset one."""
    return message.SerializeToString(deterministic=True)


def valid_request(method: MethodDescriptor, namespace: str) -> Message:
    """Return a request that any RPC accepts for a namespace with an item and a state called "old"."""
    item = memory_pb2.MemoryItem(text="x")
    fields: dict[str, dict[str, Any]] = {
        "Add": {"item": item},
        "BatchAdd": {"items": [item]},
        "Import": {"items": [item]},
        "Get": {"id": "old"},
        "ListItemVersions": {"id": "old"},
        "RedactVersion": {"id": "old", "revision": 1},
        "Update": {"item": memory_pb2.MemoryItem(id="old", text="x")},
        "Delete": {"id": "old"},
        "DeleteWhere": {"session_id": "s"},
        "ListLabelValues": {"key": "k"},
        "BatchWrite": {"operations": [{"add": {"item": item}}]},
        "SaveState": {"key": "k", "value": json_value(1)},
        "LoadState": {"key": "old"},
        "ListStateVersions": {"key": "old"},
        "RedactStateVersion": {"key": "old", "revision": 1},
        "DeleteState": {"key": "old"},
        "RenameState": {"key": "old", "new_key": "k"},
        "SearchState": {"pattern": "*"},
        "CheckRelevance": {"goal": "x"},
        "EvaluateForStorage": {"tool_name": "t", "result": json_value(1)},
        "StoreInteraction": {"sender": "ada", "content": "x"},
        "StoreResponse": {"content": "x"},
        "StoreReflection": {"content": "x"},
        "RetrieveRelevantContext": {"query": "x"},
        "SaveMemory": {"content": "User likes tea", "category": 2, "reasoning": "A lasting preference"},
        "SearchMemories": {"query": "x"},
        "UpdateMemory": {"memory": user_memory_pb2.UserMemory(id="fact", content="User likes green tea")},
        "DeleteMemory": {"id": "fact"},
        "ExtractMemories": {"session_id": "s"},
        "HandleMessage": {"session_id": "s", "text": "hello"},
        "AddDocument": {"document": knowledge_pb2.Document(text="x")},
        "GetDocument": {"id": "book"},
        "DeleteDocument": {"id": "book"},
        "SearchFragments": {"query": "x"},
        "GetSession": {"session_id": "s"},
        "UpdateSession": {"session": session_pb2.Session(session_id="s", title="x")},
        "DeleteSession": {"session_id": "s"},
        "ForkSession": {"session_id": "s"},
        "ReadFile": {"path": "/file"},
        "WriteFile": {"path": "/file", "content": "x"},
        "EditFile": {"path": "/file", "append": memory_pb2.AppendText(text="x")},
        "RenameFile": {"path": "/file", "new_path": "/moved"},
        "DeleteFile": {"path": "/file"},
        "SearchFiles": {"query": "x"},
        "ListFileVersions": {"path": "/file"},
        "RedactFileVersion": {"path": "/file", "version": 1},
        "UndoWrites": {"writer": "nobody", "since": {"seconds": 1}},
        "ReviewQuarantined": {"id": "held", "decision": 2},
        "UpdateNamespace": {"time_zone": "Europe/Berlin"},
    }
    request: Any = GetMessageClass(method.input_type)(**fields.get(method.name, {}))
    if "namespace" in method.input_type.fields_by_name:
        request.namespace = namespace
    return request


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def path(method: MethodDescriptor) -> str:
    """Return the path of an RPC on the wire."""
    return f"/{method.containing_service.full_name}/{method.name}"


def refusal(call: Callable[..., Any], request: object) -> Refusal:
    """Make a call that must fail and decode its error."""
    try:
        answer = call(request)
        if isinstance(answer, Iterator):
            answer = next(answer)
    except grpc.RpcError as error:
        return decode(error)
    raise AssertionError(f"accepted, with the answer {str(answer)[:1000]!r}")


def first_response(method: MethodDescriptor, stream: Iterator[Any]) -> Any:
    """Return the first response of a stream, or None. Streams that end by themselves are read to their end.

    Dropping a stream cancels it, perhaps before the server has ended it.
    """
    first = next(stream, None)
    if method.name != "Watch":
        deque(stream, maxlen=0)
    return first


def outcome(call: Callable[[], object]) -> grpc.StatusCode:
    """Return the code that a call ends with."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def decode(error: grpc.RpcError) -> Refusal:
    """Parse the google.rpc.Status of an error; every error of this server must carry one."""
    assert isinstance(error, grpc.Call)
    status = rpc_status.from_call(error)
    assert status is not None, f"{error.code()} without google.rpc.Status: {error.details()}"
    text = str(status)
    assert [secret for secret in _SECRETS if secret in text] == []
    info = _detail(status, error_details_pb2.ErrorInfo())
    assert info is not None, f"{error.code()} without ErrorInfo: {text}"
    assert info.domain == ERROR_DOMAIN
    reason = info.reason.removeprefix("ERROR_REASON_")
    assert info.reason in error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_name, info.reason
    assert error.code().name == CODE_OF_REASON[reason], info.reason
    bad_request = _detail(status, error_details_pb2.BadRequest())
    if bad_request:
        assert [v.field for v in bad_request.field_violations if not _FIELD_PATH.fullmatch(v.field)] == []
    retry = _detail(status, error_details_pb2.RetryInfo())
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # Clients retry this code, but a request that is too large fails however often it is sent.
        pushback = str(retry.retry_delay.ToMilliseconds()) if retry else "-1"
        assert dict(error.trailing_metadata())["grpc-retry-pushback-ms"] == pushback
    return Refusal(
        code=error.code(),
        message=status.message,
        reason=reason,
        metadata=dict(info.metadata),
        fields=tuple(v.field for v in bad_request.field_violations) if bad_request else (),
        retry_after_s=retry.retry_delay.ToMilliseconds() / 1000 if retry else None,
    )


def _detail(status: status_pb2.Status, into: Any) -> Any:
    return next((into for detail in status.details if detail.Unpack(into)), None)


def is_serving(api: Api) -> bool:
    """Return whether the health check says that the server is serving."""
    answer = health_pb2_grpc.HealthStub(api.channel).Check(health_pb2.HealthCheckRequest())
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def eventually(check: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    """Poll until the condition holds; for what the server does by itself, such as expiry."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, f"never happened: {what}"
        # The server needs the processor that a busy loop would use.
        time.sleep(0.01)
