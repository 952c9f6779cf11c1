"""The caller of the current call, and its permissions.

The caller is a context variable, because it belongs to the call rather than to the request, and would
otherwise be an argument of everything in between. It comes from the credential alone: nothing in a request
changes it.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_service.namespaces import Patterns, read_patterns

EVERYWHERE = "*"
"""The pattern that matches every namespace."""


class Role(enum.Enum):
    """A permission of a credential."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity and permissions that a credential grants.

    `namespaces` are patterns as in `memory_service.namespaces`; "*" alone matches every namespace. `trust`,
    0 to 1, is the maximum trust of the caller's writes.
    """

    name: str
    credential_id: str
    namespaces: tuple[str, ...]
    roles: frozenset[Role]
    trust: float = 1.0
    allowed: Patterns = field(init=False, repr=False, compare=False)
    """What `namespaces` match."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", read_patterns(self.namespaces))

    def may_use(self, namespace: str) -> bool:
        """Return whether the credential covers a namespace."""
        return self.allowed.match(namespace)

    @property
    def administers_server(self) -> bool:
        """Whether the credential permits operations on the whole server."""
        return Role.ADMIN in self.roles and EVERYWHERE in self.namespaces


Holder = str | bytes
"""The holder of places in a queue: a caller, or a namespace if callers are anonymous."""


class Owner(NamedTuple):
    """The owner of a call: its caller ("" if callers are anonymous) and its namespace."""

    caller: str
    namespace: bytes

    @property
    def holder(self) -> Holder:
        """The holder of the call's place. Places are counted per caller, not per namespace of a caller."""
        return self.caller or self.namespace


ANYBODY = Caller("", "", ("*",), frozenset(Role))
"""Any caller of a server without authentication, and the server itself."""

_CALLER: ContextVar[Caller] = ContextVar("caller", default=ANYBODY)


def set_caller(caller: Caller) -> None:
    """Set the caller of the current call."""
    _CALLER.set(caller)


def present_caller() -> Caller:
    """Return the caller of the current call."""
    return _CALLER.get()
