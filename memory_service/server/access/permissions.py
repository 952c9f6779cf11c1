"""What each method needs. A method that is not here is refused to everybody.

A method needs every role of what it does: one that gives back what was there before reads, too, and one that
may remove what somebody else wrote forgets. Nothing in a request takes a need away; it can only add one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_service.caller import EVERYWHERE, Role


class Reach(enum.Enum):
    """What of the server a method touches, and so which namespaces the credential has to be good for."""

    NAMESPACE = "the one that the field `namespace` names"
    OWN = "none in the request: the answer tells of the caller's own only"
    SERVER = "all of them"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Permission:
    """What a method needs: all of these roles, for what it reaches, and what a request adds."""

    roles: frozenset[Role]
    reach: Reach = Reach.NAMESPACE
    added: Callable[[Any], frozenset[Role]] | None = None


_NOTHING_MORE = frozenset[Role]()
_READ_MORE = frozenset({Role.READ})
_WRITE_MORE = frozenset({Role.WRITE})


def _recording_usage(request: Any) -> frozenset[Role]:
    # A count of uses is stored, and changes what others find.
    return _WRITE_MORE if request.options.record_usage else _NOTHING_MORE


def _naming_parents(request: Any) -> frozenset[Role]:
    # The answer tells whether there is such an item, and how far it is trusted.
    items = request.items if hasattr(request, "items") else (request.item,)
    return _READ_MORE if any(item.provenance.parent_ids for item in items) else _NOTHING_MORE


def _naming_interactions(request: Any) -> frozenset[Role]:
    # They are its parents.
    return _READ_MORE if request.interaction_ids else _NOTHING_MORE


def _needs(*roles: Role, reach: Reach = Reach.NAMESPACE) -> Permission:
    return Permission(frozenset(roles), reach)


_READ = _needs(Role.READ)
_WRITE = _needs(Role.WRITE)
_FORGET = _needs(Role.FORGET)
_READ_WRITE = _needs(Role.READ, Role.WRITE)
_ADD = Permission(frozenset({Role.WRITE}), added=_naming_parents)

_BY_SERVICE: Mapping[str, Mapping[str, Permission]] = {
    "MemoryService": {
        "Add": _ADD,
        "BatchAdd": _ADD,
        "Import": _ADD,
        "Retrieve": Permission(frozenset({Role.READ}), added=_recording_usage),
        "Get": _READ,
        "List": _READ,
        # It answers with the whole item, of which the request may have named one field.
        "Update": _READ_WRITE,
        "Delete": _FORGET,
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
        "ClearState": _FORGET,
    },
    "OverseerService": {
        "CheckRelevance": _READ,
        # It looks at the state that is there, and may save.
        "EvaluateForStorage": _READ_WRITE,
    },
    "InteractionService": {
        "StoreInteraction": _WRITE,
        # It answers with the message that was answered.
        "StoreResponse": _READ_WRITE,
        "StoreReflection": Permission(frozenset({Role.WRITE}), added=_naming_interactions),
        "RetrieveRelevantContext": _READ,
        "RetrieveLastInteractions": _READ,
    },
    "UserMemoryService": {
        # It answers with the memory that decided.
        "SaveMemory": _READ_WRITE,
        "SearchMemories": _READ,
        "ListMemories": _READ,
        "UpdateMemory": _READ_WRITE,
        "DeleteMemory": _FORGET,
        "GetPreloadedMemories": _READ,
        # It reads the conversation and writes what it finds there.
        "ExtractMemories": _READ_WRITE,
        # It reads, merges and ends memories that others wrote.
        "ConsolidateMemories": _needs(Role.READ, Role.WRITE, Role.FORGET),
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
    "AdminService": {
        "GetInfo": _needs(reach=Reach.NONE),
        "ListNamespaces": _needs(Role.READ, reach=Reach.OWN),
        "GetNamespaceStats": _READ,
        "DeleteNamespace": _needs(Role.FORGET, Role.ADMIN),
        "UndoWrites": _needs(Role.FORGET, Role.ADMIN),
        "ListQuarantined": _needs(Role.READ, Role.ADMIN),
        # What is released may end what others wrote; what is deleted is forgotten.
        "ReviewQuarantined": _needs(Role.WRITE, Role.FORGET, Role.ADMIN),
        "Flush": _needs(Role.ADMIN, reach=Reach.SERVER),
        "Backup": _needs(Role.ADMIN, reach=Reach.SERVER),
        "Reembed": _needs(Role.ADMIN),
    },
}

PERMISSIONS: Mapping[str, Permission] = {
    f"/memory_service.v1.{service}/{method}": permission
    for service, methods in _BY_SERVICE.items()
    for method, permission in methods.items()
}
"""What each method needs, by its path on the wire."""


def may_enter(permission: Permission, roles: frozenset[Role], namespaces: tuple[str, ...]) -> bool:
    """Whether a credential is good for a method, as far as that can be told without the request."""
    if not permission.roles <= roles:
        return False
    return permission.reach is not Reach.SERVER or EVERYWHERE in namespaces
