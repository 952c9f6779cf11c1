"""The peers of the corpus for Python: each call of a case, made through the client's public methods.

A call's fields become the parameters of the same names. If a field has no parameter of its name, or of the
name in the table below, the client cannot express the call: the answer is then "inexpressible".
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from both_clients import Blocking
from grpc_api import METHODS
from memory_client import AsyncMemoryClient, MemoryClient, MemoryItem, MemoryServiceError, files, operations
from python_peers_values import (
    CONTENT_FIELDS,
    ITEM_FIELDS,
    Inexpressible,
    content_of,
    entry_of,
    enum_name,
    fill,
    given,
    is_repeated,
    item_of,
    value_of,
)

RPCS = {f"{method.containing_service.name}/{method.name}": method for method in METHODS}
_RECORDS_MAX = 1000


class _Peer:
    """Makes one call at a time through a client, and writes down what came back."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Make the call of a step; return its `response`, `responses` or `error`, or "inexpressible"."""
        try:
            if step["call"] == "Iterate":
                return {"response": self._iterated(**step["request"])}
            return self._answered(RPCS[step["call"]], step)
        except MemoryServiceError as error:
            described = {"code": error.code, "reason": error.reason, "field": error.field}
            return {"error": {**described, "metadata": dict(error.metadata)}}
        except Inexpressible as error:
            return {"inexpressible": str(error)}

    def _answered(self, rpc: MethodDescriptor, step: Mapping[str, Any]) -> dict[str, Any]:
        message = GetMessageClass(rpc.input_type)
        written = step["requests"] if rpc.client_streaming else [step["request"]]
        requests = [json_format.ParseDict(request, message()) for request in written]
        namespace = getattr(requests[0], "namespace", "") if requests else ""
        client = self._client.namespace(namespace)
        name = _METHOD_NAMES.get(rpc.name) or re.sub(r"(?<!^)([A-Z])", r"_\1", rpc.name).lower()
        parameters = inspect.signature(getattr(MemoryClient, name)).parameters
        build = _ARGUMENTS.get(rpc.name, _arguments)
        arguments = build(requests) if rpc.client_streaming else build(requests[0], parameters)
        answer = getattr(client, name)(**arguments)
        if rpc.server_streaming:
            return {"responses": [_written(rpc, found) for found in _streamed(answer, step.get("take"))]}
        return {"response": _written(rpc, answer, requests[0] if requests else None)}

    def _iterated(self, namespace: str, by: str) -> dict[str, Any]:
        client = self._client.namespace(namespace)
        found = client.list_items(page_size=1000) if by == "list" else client.retrieve(limit=-1)
        count, ordered, first, last = 0, True, "", ""
        for entry in found:
            last = entry.text
            first = first or last
            ordered = ordered and last == f"item {count}"
            count += 1
        return {"count": count, "first": first, "last": last, "ordered": ordered}


class SyncPeer(_Peer):
    """The synchronous client as a peer."""

    def __init__(self, address: str) -> None:
        super().__init__(MemoryClient(address))

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class AsyncPeer(_Peer):
    """The asynchronous client as a peer."""

    def __init__(self, address: str) -> None:
        self._runner = asyncio.Runner()
        self._opened = AsyncMemoryClient(address)
        super().__init__(Blocking(self._runner, self._opened))

    def close(self) -> None:
        """Close the client and its event loop."""
        self._runner.run(self._opened.close())
        self._runner.close()


def _streamed(answer: Any, take: int | None) -> list[Any]:
    """The entries of a stream; of one without an end the first ones."""
    with closing(answer):
        return list(islice(answer, take))


# Requests.

_METHOD_NAMES = {
    "Import": "import_items",
    "List": "list_items",
    "GetInfo": "info",
    "GetNamespaceStats": "namespace_stats",
}
_RENAMED = {"query_text": "query", "query_embedding": "embedding"}
_NESTED = {
    # Messages whose fields are separate parameters.
    "RetrieveRequest": ("options",),
    "AddRequest": ("item",),
    "AddDocumentRequest": ("document", "split"),
    "HandleMessageRequest": ("split",),
}
_REQUIRED = {"AddRequest": "item", "AddDocumentRequest": "document"}


def _arguments(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that say what a request says."""
    name = request.DESCRIPTOR.name
    if name in _REQUIRED and not request.HasField(_REQUIRED[name]):
        raise Inexpressible(f"{name}.{_REQUIRED[name]}: unset")
    nested = [getattr(request, part) for part in _NESTED.get(name, ())]
    taken: dict[str, FieldDescriptor] = {}
    arguments: dict[str, Any] = {}
    for message in (request, *nested):
        for found in message.DESCRIPTOR.fields:
            taken.setdefault(_RENAMED.get(found.name, found.name), found)
        arguments |= _set_arguments(message, parameters, _NESTED.get(name, ()))
    for parameter in parameters.values():
        required = parameter.default is parameter.empty and parameter.name not in ("self", *arguments)
        if required and parameter.name != "content":
            arguments[parameter.name] = _empty(taken[parameter.name])
    if "content" in parameters and "content" not in arguments:
        arguments["content"] = None if name == "AddRequest" else ""
    return arguments


def _set_arguments(message: Any, parameters: Mapping[str, Any], nested: Iterable[str]) -> dict[str, Any]:
    arguments = {}
    for found, _ in message.ListFields():
        name = _RENAMED.get(found.name, found.name)
        if name == "namespace" or found.name in nested:
            continue
        if message.DESCRIPTOR.name == "MemoryItem" and found.name in CONTENT_FIELDS:
            arguments["content"] = content_of(message)
        elif name in parameters:
            arguments[name] = value_of(message, found)
        else:
            raise Inexpressible(f"{message.DESCRIPTOR.name}.{found.name}")
    return arguments


def _empty(found: FieldDescriptor) -> Any:
    """Return the value of a required parameter whose field is unset; a message cannot be omitted."""
    if is_repeated(found):
        return []
    if found.message_type is not None:
        raise Inexpressible(f"{found.containing_type.name}.{found.name}: unset")
    if found.enum_type is not None:
        return enum_name(found.enum_type, 0, found.name)
    return found.default_value


def _item_update(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    _must_be_set(request, "item")
    values = given(request.item, {"id", *ITEM_FIELDS, *CONTENT_FIELDS} - {"provenance"})
    if content := CONTENT_FIELDS & values.keys():
        values["content"] = values.pop(content.pop())
    paths = ["content" if path in CONTENT_FIELDS else path for path in request.update_mask.paths]
    return _update(request, "item", values, paths, parameters)


def _memory_update(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    _must_be_set(request, "memory")
    memory = type(request.memory)()
    memory.CopyFrom(request.memory)
    score = given(memory.importance, {"score"})
    memory.ClearField("importance")
    values = given(memory, parameters)
    if request.memory.HasField("importance"):
        values["importance"] = score.get("score", 0.0)
    return _update(request, "memory", values, list(request.update_mask.paths), parameters)


def _namespace_update(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    rest = type(request)()
    rest.CopyFrom(request)
    rest.ClearField("namespace")
    rest.ClearField("update_mask")
    values = given(rest, {"time_zone", "default_ttl", "expected_version"})
    if not request.HasField("update_mask"):
        return values
    paths = set(request.update_mask.paths)
    if paths - {"time_zone", "default_ttl"} or values.keys() - {"expected_version"} - paths:
        raise Inexpressible("UpdateNamespaceRequest.update_mask")
    empty = {"time_zone": "", "default_ttl": None}
    return {**{path: empty[path] for path in paths}, **values}


def _session_update(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    _must_be_set(request, "session")
    values = given(request.session, {"session_id", "title", "labels", "metadata"})
    session_id = values.pop("session_id", "")
    arguments = _update(request, "session", values, list(request.update_mask.paths), parameters)
    del arguments["id"]
    return {"session_id": session_id, **arguments}


def _must_be_set(request: Any, name: str) -> None:
    if not request.HasField(name):
        raise Inexpressible(f"{request.DESCRIPTOR.name}.{name}: unset")


def _update(
    request: Any, holder: str, values: dict[str, Any], paths: list[str], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of an update: the client names just those fields in the mask that it is given."""
    settings = {
        "expected_revision", "expected_version", "request_id", "keep_wording", "decide_by", "allow_missing"
    }  # fmt: skip
    rest = type(request)()
    rest.CopyFrom(request)
    for name in {"namespace", holder, "update_mask"} & set(rest.DESCRIPTOR.fields_by_name):
        rest.ClearField(name)
    arguments = given(rest, settings & set(parameters))
    item_id = values.pop("id", "")
    if unnamed := set(values) - set(paths or values):
        raise Inexpressible(f"{request.DESCRIPTOR.name}.{holder}.{min(unnamed)}: not in the mask")
    for path in paths:
        if path not in set(parameters) - settings - {"self", "id"} or (holder, path) == (
            "session",
            "session_id",
        ):
            raise Inexpressible(f"{request.DESCRIPTOR.name}.update_mask: {path}")
        values.setdefault(path, _cleared(getattr(request, holder), path))
    return {"id": item_id, **values, **arguments}


def _cleared(message: Any, path: str) -> Any:
    """What clears a field that the mask names and that is not set."""
    found = message.DESCRIPTOR.fields_by_name.get(path)
    if path in ("labels", "metadata"):
        return {}
    return None if found is None or found.has_presence else _empty(found)


def _imported(requests: list[Any]) -> dict[str, Any]:
    """The parameters of an import: the batches have to be such as the client makes itself."""
    if not requests:
        raise Inexpressible("ImportRequest: none")
    first = requests[0]
    for later in requests[1:]:
        if later.namespace not in ("", first.namespace) or later.on_duplicate not in (0, first.on_duplicate):
            raise Inexpressible("ImportRequest.namespace: another one")
    sizes = [len(request.items) + len(request.states) for request in requests]
    sizes = [size for size in sizes if size]
    if any(size != sizes[0] for size in sizes[:-1]) or any(size > sizes[0] for size in sizes):
        raise Inexpressible("ImportRequest: batches of several sizes")
    if sizes and sizes[0] > _RECORDS_MAX:
        raise Inexpressible(f"ImportRequest: more than {_RECORDS_MAX} records")
    records: list[Any] = []
    for request in requests:
        records += [item_of(item, ("kind", "facet_json")) for item in request.items]
        records += [entry_of(entry) for entry in request.states]
    arguments: dict[str, Any] = {"records": records}
    if sizes:
        arguments["batch_records"] = sizes[0]
    if first.on_duplicate:
        found = first.DESCRIPTOR.fields_by_name["on_duplicate"]
        arguments["on_duplicate"] = value_of(first, found)
    return arguments


def _batch(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a batch of operations."""
    given_id = {"request_id": request.request_id} if request.request_id else {}
    return {"operations": [_operation(operation) for operation in request.operations], **given_id}


def _operation(message: Any) -> Any:
    kind = message.WhichOneof("operation")
    if kind is None:
        raise Inexpressible("WriteOperation.operation: unset")
    operation = getattr(message, kind)
    made = getattr(operations, operation.DESCRIPTOR.name)
    build = {"update": _item_update, "edit_file": _file_edit}.get(kind, _arguments)
    return made(**build(operation, inspect.signature(made).parameters))


def _file_edit(request: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an edit of a file."""
    kind = request.WhichOneof("edit")
    if kind is None:
        raise Inexpressible("EditFileRequest.edit: unset")
    edit = getattr(request, kind)
    made = getattr(files, edit.DESCRIPTOR.name)
    rest = type(request)()
    rest.CopyFrom(request)
    rest.ClearField(kind)
    values = {found.name: getattr(edit, found.name) for found in edit.DESCRIPTOR.fields}
    return {"path": request.path, "edit": made(**values), **_set_arguments(rest, parameters, ())}


_ARGUMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "BatchWrite": _batch,
    "EditFile": _file_edit,
    "Import": _imported,
    "Update": _item_update,
    "UpdateMemory": _memory_update,
    "UpdateNamespace": _namespace_update,
    "UpdateSession": _session_update,
}


# Answers: what the client returned, under the names of the fields of the response.


def _item_written(item: MemoryItem) -> dict[str, Any]:
    return {"item": item, "revision": item.revision, "degraded": item.degraded}


def _items_written(items: list[MemoryItem]) -> dict[str, Any]:
    last = items[-1:]
    return {
        "items": items,
        "revision": last[0].revision if last else None,
        "degraded": last[0].degraded if last else (),
    }


def _interaction_written(stored: Any) -> dict[str, Any]:
    return {"interaction": stored, "revision": stored.revision, "degraded": stored.degraded}


def _session(session: Any) -> dict[str, Any]:
    return {"session": session, "revision": session.revision, "degraded": session.degraded}


def _found(results: Any) -> dict[str, Any]:
    return {"results": results, "degraded": results.degraded, "revision": results.revision}


def _packed(results: Any) -> dict[str, Any]:
    return {**_found(results), "token_count": results.token_count}


def _under(name: str) -> Callable[[Any], dict[str, Any]]:
    """Return a converter to an answer with one field; iterators are read to the end."""
    return lambda answer: {name: list(answer) if hasattr(answer, "__next__") else answer}


def _deleted(name: str) -> Callable[[Any], dict[str, Any]]:
    """Return a converter to an answer with a number, under this name, and the count of derived items."""
    return lambda answer: {name: int(answer), "derived_count": answer.derived_count}


def _taken(**names: str) -> Callable[[Any], dict[str, Any]]:
    """Answers whose fields have other names in the client."""
    return lambda answer: {field: getattr(answer, name) for field, name in names.items()}


_ANSWERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Add": _item_written,
    "BatchAdd": _items_written,
    "Update": _item_written,
    "Retrieve": _packed,
    "Get": _under("item"),
    "ListItemVersions": _under("versions"),
    "RedactVersion": _under("revision"),
    "ListStateVersions": _under("versions"),
    "RedactStateVersion": _under("revision"),
    "List": _under("items"),
    "ListLabelValues": _under("values"),
    "Delete": _deleted("revision"),
    "DeleteWhere": _deleted("deleted_count"),
    "BatchWrite": _found,
    "Reset": _taken(removed_count="item_count", removed_state_count="state_count", revision="revision"),
    "Watch": _under("change"),
    "Export": lambda record: {"item" if isinstance(record, MemoryItem) else "state": record},
    "SaveState": lambda entry: {"entry": entry, "revision": entry.revision},
    "LoadState": _under("entry"),
    "ListStateKeys": _under("entries"),
    "SearchState": _under("entries"),
    "DeleteState": _under("revision"),
    "RenameState": lambda entry: {"entry": entry, "revision": entry.revision},
    "ClearState": _taken(removed_count="state_count", revision="revision"),
    "SearchMemories": _found,
    "ListMemories": _under("memories"),
    "DeleteMemory": _taken(removed_count="count", revision="revision", derived_count="derived_count"),
    "StoreInteraction": _interaction_written,
    "StoreResponse": _interaction_written,
    "StoreReflection": _interaction_written,
    "RetrieveRelevantContext": _packed,
    "RetrieveLastInteractions": lambda found: {"interactions": found, "revision": found.revision},
    "AddDocument": lambda document: {"document": document, "degraded": document.degraded},
    "GetDocument": lambda document: {"document": document, "fragments": document.fragments},
    "ListDocuments": _under("documents"),
    "DeleteDocument": _taken(
        removed_fragment_count="fragment_count", revision="revision", derived_count="derived_count"
    ),
    "SearchFragments": _found,
    "ListSessions": _under("sessions"),
    "GetSession": lambda session: {"session": session, "revision": session.revision},
    "UpdateSession": _session,
    "DeleteSession": _deleted("deleted_count"),
    "ForkSession": _session,
    "ListFiles": _under("entries"),
    "SearchFiles": _found,
    "ListFileVersions": _under("versions"),
    "RedactFileVersion": _under("revision"),
    "ListNamespaces": _under("namespaces"),
    "DeleteNamespace": _taken(removed_item_count="item_count", removed_state_count="state_count"),
    "ListQuarantined": _under("writes"),
    "Flush": _under("duration"),
    "UpdateNamespace": _under("settings"),
}


def _written(rpc: MethodDescriptor, answer: Any, request: Any = None) -> dict[str, Any]:
    message = GetMessageClass(rpc.output_type)()
    if rpc.name in _ANSWERS:
        values = _ANSWERS[rpc.name](answer)
    else:
        values = {name: getattr(answer, name, None) for name in rpc.output_type.fields_by_name}
    if rpc.name == "HandleMessage" and answer.document is not None:
        values["fragments"] = answer.document.fragments
    if rpc.name == "Add" and request.on_duplicate and not answer.revision and not answer.degraded:
        values = {"skipped": True}
    if rpc.name == "BatchAdd":
        values["skipped_count"] = len(request.items) - len(answer)
    fill(message, values)
    written: dict[str, Any] = json_format.MessageToDict(message)
    return written
