"""API keys and the certificate names stored with them, read again when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from memory_service.credentials.api_keys import ApiKey, KeyRing
from memory_service.credentials.key_differences import KeyDifference, differences
from memory_service.credentials.key_store import BadKeys, KeyStore
from memory_service.errors import Unavailable
from memory_service.runtime.event_log import EventLog
from memory_service.server.access.authenticator import NEVER_S, Authenticator, Verified

_log = EventLog(__name__)


class ToldOfKeys(Protocol):
    """Observer of the keys, which gets all keys first and then their changes."""

    def keys_found(self, present: Iterable[ApiKey]) -> None:
        """Receive the keys of the first reading."""

    def keys_changed(self, found: Sequence[KeyDifference]) -> None:
        """Receive the changes since the previous reading."""


class Keys(Authenticator):
    """Verifies tokens, certificates, or both. While the keys are damaged, every caller is rejected.

    If their database is down, the keys read last stay valid, because no key can be revoked there either.
    `told` is notified on every reading.
    """

    def __init__(
        self, store: KeyStore, *, tokens: bool, certificates: bool, told: ToldOfKeys | None = None
    ) -> None:
        """Read the keys. Raises BadKeys and Unavailable."""
        self._store = store
        self._tokens, self._certificates = tokens, certificates
        self._told = told
        self._stamp = store.stamp()
        # The keys read last, even while reading fails.
        self._last = store.read()
        self._ring: KeyRing | None = self._last
        if told is not None:
            told.keys_found(self._last.keys)

    async def verify_token(self, token: str) -> Verified | None:
        """Return the caller of an API key."""
        if not self._tokens or self._ring is None:
            return None
        return _verified(self._ring.verify(token))

    def verify_peer(self, subject: str) -> Verified | None:
        """Return the caller of a certificate."""
        if not self._certificates or self._ring is None:
            return None
        return _verified(self._ring.of_certificate(subject))

    async def refresh(self) -> bool:
        """Read the keys again if they have changed, or were unreadable."""
        try:
            return await self._look()
        except Unavailable:
            return False

    async def _look(self) -> bool:
        # In a thread, because the disk may be slow.
        stamp = await asyncio.to_thread(self._store.stamp)
        if stamp == self._stamp and self._ring is not None:
            return False
        known = self._stamp
        try:
            ring, found = await asyncio.to_thread(self._read)
            self._last = self._ring = ring
            # In the same turn of the loop as the change takes effect, so before any call with a new key.
            if self._told is not None:
                self._told.keys_changed(found)
            _log.info("api_keys_read", place=self._store.place)
        except BadKeys as error:
            if self._ring is not None or stamp != known:
                _log.error("api_keys_unreadable", problem=str(error), effect="every API key is rejected")
            self._ring = None
        self._stamp = stamp
        return True

    def _read(self) -> tuple[KeyRing, Sequence[KeyDifference]]:
        ring = self._store.read()
        return ring, list(differences(self._last.keys, ring.keys))


def _verified(key: ApiKey | None) -> Verified | None:
    if key is None:
        return None
    return Verified(key.caller(), NEVER_S if key.expires is None else key.expires.timestamp())
