"""Checks of the permissions that a key, token or certificate grants."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.namespaces import read_patterns
from memory_service.runtime.caller import Caller, Role

NAME_CHARS_MAX = 256
NAMESPACES_MAX = 100


class BadGrant(ValueError):
    """An invalid grant. The message describes the problem and contains no secret."""


def grant(name: object, credential_id: str, namespaces: object, roles: object, trust: object = 1.0) -> Caller:
    """Return the caller that a credential identifies. Raises BadGrant for missing or malformed values.

    The values may come from JSON, so their types are checked as well. `namespaces` are 1 to 100 patterns
    of `memory_service.namespaces`; `roles` are names of `Role`, at least one; `trust` is 0 to 1.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise BadGrant(f"the name must be 1 to {NAME_CHARS_MAX} printable characters")
    return Caller(name, credential_id, _namespaces(namespaces), _roles(roles), _trust(trust))


def _texts(value: object, what: str) -> Sequence[str]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(each, str) for each in value):
        raise BadGrant(f"{what} must be a non-empty list of texts")
    return value


def _namespaces(value: object) -> tuple[str, ...]:
    patterns = _texts(value, "namespaces")
    if len(patterns) > NAMESPACES_MAX:
        raise BadGrant(f"there must be at most {NAMESPACES_MAX} namespaces")
    try:
        read_patterns(patterns)
    except ValueError as error:
        raise BadGrant(f"a namespace {error}") from None
    return tuple(patterns)


def _roles(value: object) -> frozenset[Role]:
    try:
        return frozenset(Role(name) for name in _texts(value, "roles"))
    except ValueError:
        raise BadGrant(f"a role must be one of {', '.join(role.value for role in Role)}") from None


def _trust(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadGrant("trust must be a number from 0 to 1")
    return float(value)
