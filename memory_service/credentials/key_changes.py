"""Creating, revoking and rotating keys. Each is one atomic change of the key store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from memory_service.credentials.api_keys import ApiKey, digest_of, new_id, new_secret, token_of
from memory_service.credentials.grants import BadGrant
from memory_service.credentials.key_store import KeyStore


class NoSuchKey(ValueError):
    """No key has this id, or the key is not in the required state."""


@dataclass(frozen=True)
class NewKey:
    """A key to create. `lifetime` None: it does not expire. `certificate`: see `ApiKey`."""

    principal: str
    namespaces: tuple[str, ...]
    roles: tuple[str, ...]
    trust: float = 1.0
    lifetime: timedelta | None = None
    certificate: str = ""


def create(store: KeyStore, wanted: NewKey) -> tuple[ApiKey, str]:
    """Create a key; return it and its token, which is not stored ("" for a certificate).

    Raises BadGrant and BadKeys.
    """
    made: list[tuple[ApiKey, str]] = []

    def change(keys: list[ApiKey], pepper: bytes) -> list[ApiKey]:
        now = _now()
        if wanted.certificate and any(k.certificate == wanted.certificate and k.is_good(now) for k in keys):
            raise BadGrant("another key has this certificate: revoke that key first")
        made.append(_make(wanted, now, pepper))
        return [*keys, made[0][0]]

    store.change(change)
    return made[0]


def revoke(store: KeyStore, key_id: str) -> ApiKey:
    """Revoke a key permanently; a revoked key is not changed. Raises NoSuchKey and BadKeys."""
    return _alter(store, key_id, lambda key, now, _: [_ended(key, now)])


def rotate(
    store: KeyStore, key_id: str, overlap: timedelta, lifetime: timedelta | None = None
) -> tuple[ApiKey, str]:
    """Create a key for the same principal with the same permissions; the old one stays valid for `overlap`.

    The new key has its own id, which distinguishes its writes from those of the old one. `lifetime` None: the
    lifetime of the old key. Raises NoSuchKey if the old key is no longer valid or has a certificate, and
    BadKeys.
    """
    made: list[tuple[ApiKey, str]] = []

    def alter(key: ApiKey, now: datetime, pepper: bytes) -> list[ApiKey]:
        if not key.is_good(now) or key.certificate:
            raise NoSuchKey(f"key {key.id} is revoked, expired or for a certificate: create a new one")
        lives = lifetime if lifetime is not None or key.expires is None else key.expires - key.created
        wanted = NewKey(key.principal, key.namespaces, key.roles, key.trust, lives)
        made.append(_make(wanted, now, pepper))
        end = now + overlap
        if key.expires is not None:
            end = min(end, key.expires)
        return [msgspec.structs.replace(key, expires=end), made[0][0]]

    _alter(store, key_id, alter)
    return made[0]


def _make(wanted: NewKey, now: datetime, pepper: bytes) -> tuple[ApiKey, str]:
    key_id, secret = new_id(), "" if wanted.certificate else new_secret()
    settings = {
        name: value for name, value in dataclasses.asdict(wanted).items() if name in ApiKey.__struct_fields__
    }
    try:
        expires = None if wanted.lifetime is None else now + wanted.lifetime
    except OverflowError:
        raise BadGrant("the lifetime of the key is too long") from None
    key = ApiKey(
        id=key_id,
        created=now,
        expires=expires,
        digest=digest_of(pepper, secret) if secret else "",
        **settings,
    )
    return key, token_of(key_id, secret) if secret else ""


def _ended(key: ApiKey, now: datetime) -> ApiKey:
    return key if key.revoked is not None else msgspec.structs.replace(key, revoked=now)


def _alter(store: KeyStore, key_id: str, alter: Callable[[ApiKey, datetime, bytes], list[ApiKey]]) -> ApiKey:
    """Replace a key by the results of `alter`, of which the first is the altered key."""
    found: list[ApiKey] = []

    def change(keys: list[ApiKey], pepper: bytes) -> list[ApiKey]:
        changed: list[ApiKey] = []
        for key in keys:
            if key.id == key_id:
                found.extend(alter(key, _now(), pepper))
                changed.append(found[0])
            else:
                changed.append(key)
        if not found:
            raise NoSuchKey(f"there is no key {key_id!r}")
        return changed + found[1:]

    store.change(change)
    return found[0]


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
