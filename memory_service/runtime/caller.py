"""Who makes the present call, and what they may do.

It belongs to the call and not to what is asked, so it goes with the call's context and not through the
arguments of everything in between. It comes from the credential alone: nothing in a request changes it.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

EVERYWHERE = "*"
"""The pattern of every namespace."""


class Role(enum.Enum):
    """What a credential may be good for."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a credential names.

    `namespaces` are names, or prefixes of names that end with "*"; "*" alone is every namespace. `trust`, 0
    to 1, is the most that what they write is trusted.
    """

    name: str
    credential_id: str
    namespaces: tuple[str, ...]
    roles: frozenset[Role]
    trust: float = 1.0

    def may_use(self, namespace: str) -> bool:
        """Whether the credential is good for a namespace."""
        return any(
            namespace.startswith(pattern[:-1]) if pattern.endswith("*") else namespace == pattern
            for pattern in self.namespaces
        )

    @property
    def administers_server(self) -> bool:
        """Whether the credential is good for what concerns the server as a whole."""
        return Role.ADMIN in self.roles and EVERYWHERE in self.namespaces


Holder = str | bytes
"""Who holds places: a caller, or where callers have no names a namespace."""


class Owner(NamedTuple):
    """Whose a call is: of which caller, "" where callers have no names, and of which of its namespaces."""

    caller: str
    namespace: bytes

    @property
    def holder(self) -> Holder:
        """Who holds the place that the call takes: a caller takes none for each of its namespaces."""
        return self.caller or self.namespace


ANYBODY = Caller("", "", ("*",), frozenset(Role))
"""Whoever calls a server that asks for no credentials, and the server itself."""

_CALLER: ContextVar[Caller] = ContextVar("caller", default=ANYBODY)


def set_caller(caller: Caller) -> None:
    """Note who makes this call."""
    _CALLER.set(caller)


def present_caller() -> Caller:
    """Return who makes this call."""
    return _CALLER.get()
