"""What became of keys from one reading of their file to the next, or since a record of what was told of them.

Nothing of a secret is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from memory_service.credentials.api_keys import ApiKey

TOLD = ("principal", "namespaces", "roles", "trust", "certificate", "created", "expires", "revoked")
"""What may be told of a key: all but its id, which is told beside it, and the digest of its secret."""


class KeyDifference(msgspec.Struct, frozen=True):
    """What became of one key: `kind` is "added", "changed", "revoked", "removed" or "present".

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
            yield _changed(_told(old), key, secret_replaced=old.digest != key.digest)
    for key in known.values():
        if key.id not in present:
            yield KeyDifference("removed", key.id, key.principal, _told(key), {})


def differences_from_told(
    told: Mapping[str, dict[str, str]], present: Iterable[ApiKey], *, first: bool
) -> Iterator[KeyDifference]:
    """Yield what differs from what was told of keys, by their ids, last.

    `first`: nothing ever was, so that what is unknown is "present", not "added". Secrets are never told: that
    one was replaced, and nothing else of its key changed, is not found.
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
        return " ".join(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)
