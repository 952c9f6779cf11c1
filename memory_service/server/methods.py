"""The served methods, with the roles each needs and how the audit log records it.

A method missing here is denied to every caller and audited ahead of its execution. A method needs the roles
of everything it does: returning earlier content needs read, and possibly removing data of another writer
needs forget. Request fields can add a required role, never remove one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_service.limits import Limits
from memory_service.runtime.caller import EVERYWHERE, Role


class Reach(enum.Enum):
    """The namespaces that a method accesses, which the credential must cover."""

    NAMESPACE = "the namespace in the field `namespace`, and those that the method's `others` returns"
    OWN = "no namespace in the request; the response has only those of the caller"
    SERVER = "all namespaces"
    NONE = "no namespace"


class Audit(enum.Enum):
    """How the audit log records a method."""

    READ = "changes nothing; recorded with `--audit-reads`, or if rejected"
    WRITE = "recorded with its outcome"
    WRITE_IN_PARTS = "as WRITE; if the disk is full, it may have been applied in part"
    AHEAD = "removes or administers; recorded on disk before its effect, and again with its outcome"


@dataclass(frozen=True, slots=True)
class Method:
    """The requirements of a method: its roles, its reach, and what a request adds.

    `others` returns further namespaces that a request accesses; with some, `namespace` may be empty.
    """

    audit: Audit
    roles: frozenset[Role]
    reach: Reach = Reach.NAMESPACE
    added: Callable[[Any], frozenset[Role]] | None = None
    others: Callable[[Any], Sequence[str]] | None = None

    def may_enter(self, roles: frozenset[Role], namespaces: tuple[str, ...]) -> bool:
        """Whether a credential may call it, as far as can be decided without the request."""
        return self.roles <= roles and (self.reach is not Reach.SERVER or EVERYWHERE in namespaces)


_NOTHING_MORE = frozenset[Role]()
_READ_MORE = frozenset({Role.READ})
_WRITE_MORE = frozenset({Role.WRITE})


def _recording_usage(request: Any) -> frozenset[Role]:
    # A use count or an expiry is stored, and changes results of other callers.
    options = request.options
    return _WRITE_MORE if options.record_usage or options.refresh_ttl else _NOTHING_MORE


def _refreshing(request: Any) -> frozenset[Role]:
    return _WRITE_MORE if request.refresh_ttl else _NOTHING_MORE


def _counting(request: Any) -> frozenset[Role]:
    # The count shows which contents and labels there are, without a trace.
    return _READ_MORE if request.dry_run else _NOTHING_MORE


# The domain refuses a request with more, so those need neither a check nor a count.
_JOINED_MAX = Limits().search_namespaces_max


def _joined_namespaces(request: Any) -> Sequence[str]:
    names: Sequence[str] = request.namespaces[:_JOINED_MAX]
    return names


def _naming_parents(request: Any) -> frozenset[Role]:
    # The response shows whether the parents exist, and their trust.
    items = request.items if hasattr(request, "items") else (request.item,)
    return _READ_MORE if any(item.provenance.parent_ids for item in items) else _NOTHING_MORE


def _in_a_batch(request: Any) -> frozenset[Role]:
    kinds = {operation.WhichOneof("operation") for operation in request.operations}
    roles = {Role.FORGET} if kinds & {"delete", "delete_where", "delete_state", "delete_file"} else set()
    if "edit_file" in kinds or any(
        operation.add.item.provenance.parent_ids or operation.write_file.expected_sha256
        for operation in request.operations
    ):
        roles.add(Role.READ)
    return frozenset(roles)


def _expecting_a_digest(request: Any) -> frozenset[Role]:
    # The outcome shows whether the file has a certain content.
    return _READ_MORE if request.expected_sha256 else _NOTHING_MORE


def _naming_interactions(request: Any) -> frozenset[Role]:
    # The interactions become parents.
    return _READ_MORE if request.interaction_ids else _NOTHING_MORE


def _method(audit: Audit, *roles: Role, reach: Reach = Reach.NAMESPACE) -> Method:
    return Method(audit, frozenset(roles), reach)


_READ = _method(Audit.READ, Role.READ)
_WRITE = _method(Audit.WRITE, Role.WRITE)
_READ_WRITE = _method(Audit.WRITE, Role.READ, Role.WRITE)
_FORGET = _method(Audit.AHEAD, Role.FORGET)
_ADD = Method(Audit.WRITE, _WRITE_MORE, added=_naming_parents)

_BY_SERVICE: Mapping[str, Mapping[str, Method]] = {
    "MemoryService": {
        "Add": _ADD,
        "BatchAdd": _ADD,
        "Import": Method(Audit.WRITE_IN_PARTS, _WRITE_MORE, added=_naming_parents),
        "Retrieve": Method(Audit.READ, _READ_MORE, added=_recording_usage, others=_joined_namespaces),
        "Get": Method(Audit.READ, _READ_MORE, added=_refreshing),
        "ListItemVersions": _READ,
        "RedactVersion": _FORGET,
        "List": _READ,
        "ListLabelValues": _READ,
        # It returns the whole item, of which the request may have set one field.
        "Update": _READ_WRITE,
        "Delete": _FORGET,
        "DeleteWhere": Method(Audit.AHEAD, frozenset({Role.FORGET}), added=_counting),
        # Audited ahead of its effect, because it may delete.
        "BatchWrite": Method(Audit.AHEAD, _WRITE_MORE, added=_in_a_batch),
        "Reset": _FORGET,
        "Watch": _READ,
        "Export": _READ,
    },
    "StateService": {
        "SaveState": _WRITE,
        "LoadState": _READ,
        "ListStateKeys": _READ,
        "SearchState": _READ,
        "DeleteState": _FORGET,
        "ListStateVersions": _READ,
        "RedactStateVersion": _FORGET,
        # It returns the description that another writer may have given.
        "RenameState": _READ_WRITE,
        "ClearState": _FORGET,
    },
    "AdminService": {
        "GetInfo": _method(Audit.READ, reach=Reach.NONE),
        "ListNamespaces": _method(Audit.READ, Role.READ, reach=Reach.OWN),
        "GetNamespaceStats": _READ,
        "UpdateNamespace": _method(Audit.AHEAD, Role.ADMIN),
        "DeleteNamespace": _method(Audit.AHEAD, Role.FORGET, Role.ADMIN),
        "UndoWrites": _method(Audit.AHEAD, Role.FORGET, Role.ADMIN),
        "ListQuarantined": _method(Audit.READ, Role.READ, Role.ADMIN),
        # Releasing a write may end data of other writers; deleting one forgets it.
        "ReviewQuarantined": _method(Audit.AHEAD, Role.WRITE, Role.FORGET, Role.ADMIN),
        "Flush": _method(Audit.AHEAD, Role.ADMIN, reach=Reach.SERVER),
        "Backup": _method(Audit.AHEAD, Role.ADMIN, reach=Reach.SERVER),
        "Reembed": _method(Audit.AHEAD, Role.ADMIN),
    },
    "OverseerService": {
        "CheckRelevance": _READ,
        # It reads the current state, and may save.
        "EvaluateForStorage": _READ_WRITE,
    },
    "InteractionService": {
        "StoreInteraction": _WRITE,
        # It returns the message that was answered.
        "StoreResponse": _READ_WRITE,
        "StoreReflection": Method(Audit.WRITE, _WRITE_MORE, added=_naming_interactions),
        "RetrieveRelevantContext": _READ,
        "RetrieveLastInteractions": _READ,
    },
    "UserMemoryService": {
        # It returns the memory that led to the decision.
        "SaveMemory": _READ_WRITE,
        "SearchMemories": _READ,
        "ListMemories": _READ,
        "UpdateMemory": _READ_WRITE,
        "DeleteMemory": _FORGET,
        "GetPreloadedMemories": _READ,
        # It reads the conversation and writes the facts that it finds.
        "ExtractMemories": _method(Audit.WRITE_IN_PARTS, Role.READ, Role.WRITE),
        # It reads, merges and ends memories of other writers.
        "ConsolidateMemories": _method(Audit.WRITE_IN_PARTS, Role.READ, Role.WRITE, Role.FORGET),
    },
    "KnowledgeService": {
        # It reads the last messages and saves one.
        "HandleMessage": _READ_WRITE,
        "AddDocument": _WRITE,
        "GetDocument": _READ,
        "ListDocuments": _READ,
        "DeleteDocument": _FORGET,
        "SearchFragments": _READ,
    },
    "SessionService": {
        "ListSessions": _READ,
        "GetSession": _READ,
        # It returns the whole session, of which the request may have set one field.
        "UpdateSession": _READ_WRITE,
        "DeleteSession": _FORGET,
        # It reads the items that it copies.
        "ForkSession": _READ_WRITE,
    },
    "FileService": {
        "ReadFile": _READ,
        "WriteFile": Method(Audit.WRITE, _WRITE_MORE, added=_expecting_a_digest),
        # Its errors show how often a text occurs.
        "EditFile": _READ_WRITE,
        "RenameFile": _WRITE,
        "DeleteFile": _FORGET,
        "ListFiles": _READ,
        "SearchFiles": _READ,
        "ListFileVersions": _READ,
        "RedactFileVersion": _FORGET,
    },
}

SERVICES = tuple(f"memory_service.v1.{service}" for service in _BY_SERVICE)
SERVED: Mapping[str, Method] = {
    f"/memory_service.v1.{service}/{name}": method
    for service, methods in _BY_SERVICE.items()
    for name, method in methods.items()
}
"""Every method by its path on the wire."""


def audit_of(path: str) -> Audit:
    """Return how the audit log records a method, even one that is not served."""
    method = SERVED.get(path)
    return Audit.AHEAD if method is None else method.audit


def may_write(path: str) -> bool:
    """Whether a method has requests that change data."""
    return audit_of(path) is not Audit.READ or SERVED[path].added is not None


def writes(path: str, request: Any) -> bool:
    """Whether a request changes data; for a method that reads, whether this request needs the write role."""
    if audit_of(path) is not Audit.READ:
        return True
    added = SERVED[path].added
    return added is not None and Role.WRITE in added(request)
