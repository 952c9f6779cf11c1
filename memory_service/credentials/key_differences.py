"""Differences of keys between two readings, or from the audit log's record. They contain no secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from memory_service.credentials.api_keys import ApiKey
from memory_service.namespaces import in_one_line

TOLD = ("principal", "namespaces", "roles", "trust", "certificate", "created", "expires", "revoked")
"""The recorded fields of a key: all except its id, which is recorded separately, and the secret's digest."""


class KeyDifference(msgspec.Struct, frozen=True):
    """The difference of one key. `kind` is "added", "changed", "revoked", "removed" or "present".

    `before` and `after` have the differing values as texts, without unset ones.
    """

    kind: str
    key_id: str
    principal: str
    before: dict[str, str]
    after: dict[str, str]


def differences(before: Iterable[ApiKey], after: Iterable[ApiKey]) -> Iterator[KeyDifference]:
    """Yield the differences, one per key: first the keys of `after` in their order, then removed ones."""
    known, present = ({key.id: key for key in keys} for keys in (before, after))
    for key in present.values():
        old = known.get(key.id)
        if old is None:
            yield KeyDifference("added", key.id, key.principal, {}, _told(key))
        elif old != key:
            yield _changed(_told(old), key, secret_replaced=old.digest != key.digest)
    for key in known.values():
        if key.id not in present:
            yield KeyDifference("removed", key.id, key.principal, _told(key), {})


def differences_from_told(
    told: Mapping[str, dict[str, str]], present: Iterable[ApiKey], *, first: bool
) -> Iterator[KeyDifference]:
    """Yield the differences from the last recorded values of keys, which are given by id.

    `first`: no key was ever recorded, so unrecorded keys are "present" rather than "added". Secrets are not
    recorded: if only the secret of a key was replaced, there is no difference.
    """
    gone = dict(told)
    for key in present:
        gone.pop(key.id, None)
        if key.id not in told:
            yield KeyDifference("present" if first else "added", key.id, key.principal, {}, _told(key))
        elif told[key.id] != _told(key):
            yield _changed(told[key.id], key, secret_replaced=False)
    for key_id, before in gone.items():
        yield KeyDifference("removed", key_id, before.get("principal", ""), before, {})


def _changed(before: Mapping[str, str], new: ApiKey, *, secret_replaced: bool) -> KeyDifference:
    after = _told(new)
    same = {name for name in before if before[name] == after.get(name)}
    after = {name: value for name, value in after.items() if name not in same}
    if secret_replaced:
        after["secret"] = "replaced"
    kind = "revoked" if "revoked" not in before and new.revoked is not None else "changed"
    before = {name: value for name, value in before.items() if name not in same}
    return KeyDifference(kind, new.id, new.principal, before, after)


def _told(key: ApiKey) -> dict[str, str]:
    return {name: text for name in TOLD if (text := _text(getattr(key, name)))}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return in_one_line(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)
