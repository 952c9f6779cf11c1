"""What became of keys from one reading of their file to the next. Nothing of a secret is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from memory_service.credentials.api_keys import ApiKey

TOLD = ("principal", "namespaces", "roles", "trust", "certificate", "created", "expires", "revoked")
"""What may be told of a key: all but its id, which is told beside it, and the digest of its secret."""


class KeyDifference(msgspec.Struct, frozen=True):
    """What became of one key: `kind` is "added", "changed", "revoked" or "removed".

    `before` and `after` have the values that differ, as texts; one that is not set is in neither.
    """

    kind: str
    key_id: str
    principal: str
    before: dict[str, str]
    after: dict[str, str]


def differences(before: Iterable[ApiKey], after: Iterable[ApiKey]) -> Iterator[KeyDifference]:
    """Yield what differs, a key at a time: in the order of the keys after, then those that are gone."""
    known, present = ({key.id: key for key in keys} for keys in (before, after))
    for key in present.values():
        old = known.get(key.id)
        if old is None:
            yield KeyDifference("added", key.id, key.principal, {}, _told(key))
        elif old != key:
            yield _changed(old, key)
    for key in known.values():
        if key.id not in present:
            yield KeyDifference("removed", key.id, key.principal, _told(key), {})


def _changed(old: ApiKey, new: ApiKey) -> KeyDifference:
    before, after = _told(old), _told(new)
    same = {name for name in before if before[name] == after.get(name)}
    after = {name: value for name, value in after.items() if name not in same}
    if old.digest != new.digest:
        after["secret"] = "replaced"
    kind = "revoked" if old.revoked is None and new.revoked is not None else "changed"
    before = {name: value for name, value in before.items() if name not in same}
    return KeyDifference(kind, new.id, new.principal, before, after)


def _told(key: ApiKey) -> dict[str, str]:
    return {name: text for name in TOLD if (text := _text(getattr(key, name)))}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)
