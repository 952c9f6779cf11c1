"""API keys: tokens, stored form and verification.

A token is `mem_<id>_<secret>`. The secret has 256 random bits, so no slow hash is needed. It is stored as
HMAC-SHA256 with a pepper from another file, so write access to the key file alone is not enough to create a
key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import msgspec

from memory_service.credentials.grants import BadGrant, grant
from memory_service.runtime.caller import Caller
from memory_service.runtime.clock import latest_s

PEPPER_BYTES = 32
_SECRET_BYTES = 32
_TOKEN = re.compile(r"mem_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_ID = re.compile(r"[0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CERTIFICATE = re.compile(r"spiffe://[^/\s]+(/\S*)?|CN=\S.*")
_NO_DIGEST = "0" * 64


class ApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The stored form of a key, which has either the `digest` of a secret or the subject of a `certificate`.

    `certificate` is a SPIFFE URI, or "CN=" and the common name. Times have a time zone.
    """

    id: str
    principal: str
    namespaces: tuple[str, ...]
    roles: tuple[str, ...]
    created: datetime
    trust: float = 1.0
    expires: datetime | None = None
    revoked: datetime | None = None
    digest: str = ""
    certificate: str = ""

    def is_good(self, now: datetime) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def caller(self) -> Caller:
        """Return the caller that the key identifies. Raises BadGrant."""
        return grant(self.principal, self.id, self.namespaces, self.roles, self.trust)

    def verify(self) -> None:
        """Raise BadGrant if the key is invalid."""
        self.caller()
        if not _ID.fullmatch(self.id):
            raise BadGrant("the id of a key must be 16 hexadecimal digits")
        if bool(self.digest) == bool(self.certificate):
            raise BadGrant("a key must have either a digest or a certificate")
        if self.digest and not _DIGEST.fullmatch(self.digest):
            raise BadGrant("a digest must be 64 hexadecimal digits")
        if self.certificate and not _CERTIFICATE.fullmatch(self.certificate):
            raise BadGrant('a certificate must be a SPIFFE URI, or "CN=" and a common name')
        if any(time is not None and time.tzinfo is None for time in self._times()):
            raise BadGrant("times must have a time zone")

    def _times(self) -> Sequence[datetime | None]:
        return self.created, self.expires, self.revoked


def new_id() -> str:
    """Return an id for a new key."""
    return secrets.token_hex(8)


def new_secret() -> str:
    """Return 256 random bits, as text."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def token_of(key_id: str, secret: str) -> str:
    """Return the token that a caller sends."""
    return f"mem_{key_id}_{secret}"


def digest_of(pepper: bytes, secret: str) -> str:
    """Return the stored digest of a secret."""
    return hmac.new(pepper, secret.encode(), hashlib.sha256).hexdigest()


class KeyRing:
    """The keys of a server. Verification takes equally long for known and unknown ids."""

    def __init__(self, pepper: bytes, keys: Sequence[ApiKey]) -> None:
        self._pepper = pepper
        self._by_id = {key.id: key for key in keys}
        self._by_certificate: dict[str, list[ApiKey]] = {}
        for key in keys:
            if key.certificate:
                self._by_certificate.setdefault(key.certificate, []).append(key)

    @property
    def keys(self) -> Collection[ApiKey]:
        """All keys, including revoked and expired ones."""
        return self._by_id.values()

    def verify(self, token: str, now: datetime | None = None) -> ApiKey | None:
        """Return the key of a token; None if it is malformed, unknown, wrong, revoked or expired."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        key = self._by_id.get(parts[1])
        known = key.digest if key is not None and key.digest else _NO_DIGEST
        same = hmac.compare_digest(known, digest_of(self._pepper, parts[2]))
        return key if same and key is not None and key.digest and key.is_good(now or _now()) else None

    def of_certificate(self, subject: str) -> ApiKey | None:
        """Return the key with a certificate's subject; None if there is none, or more than one."""
        named = self._by_certificate.get(subject, ())
        found = [key for key in named if key.is_good(_now())]
        return found[0] if len(found) == 1 else None


def _now() -> datetime:
    return datetime.fromtimestamp(latest_s(), UTC)
