"""API keys, and certificates that are named beside them, which are read again when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

import structlog

from memory_service.credentials.api_keys import ApiKey, KeyRing
from memory_service.credentials.key_differences import KeyDifference, differences
from memory_service.credentials.key_store import BadKeys, KeyStore
from memory_service.errors import Unavailable
from memory_service.server.access.authenticator import NEVER_S, Authenticator, Verified

_log = structlog.get_logger(__name__)


class ToldOfKeys(Protocol):
    """Is told which keys there are, once, and from then on what becomes of them."""

    def keys_found(self, present: Iterable[ApiKey]) -> None:
        """Take the keys of the first reading."""

    def keys_changed(self, found: Sequence[KeyDifference]) -> None:
        """Take what is other than at the reading before."""


class Keys(Authenticator):
    """Verifies tokens, certificates, or both. While the keys are damaged, everybody is refused.

    While they are in a database that is away, those that were read last count: nobody can change them there
    either. `told` is told of them each time that they are read.
    """

    def __init__(
        self, store: KeyStore, *, tokens: bool, certificates: bool, told: ToldOfKeys | None = None
    ) -> None:
        """Read the keys. Raises BadKeys and Unavailable."""
        self._store = store
        self._tokens, self._certificates = tokens, certificates
        self._told = told
        self._stamp = store.stamp()
        # What was read last, also while nothing can be read.
        self._last = store.read()
        self._ring: KeyRing | None = self._last
        if told is not None:
            told.keys_found(self._last.keys)

    async def verify_token(self, token: str) -> Verified | None:
        """Return whom a key names."""
        if not self._tokens or self._ring is None:
            return None
        return _verified(self._ring.verify(token))

    def verify_peer(self, subject: str) -> Verified | None:
        """Return whom a certificate names."""
        if not self._certificates or self._ring is None:
            return None
        return _verified(self._ring.of_certificate(subject))

    async def refresh(self) -> bool:
        """Read the keys again if they were changed, or could not be read before."""
        try:
            return await self._look()
        except Unavailable:
            return False

    async def _look(self) -> bool:
        # In a thread: a file may be on a disk that is slow to answer.
        stamp = await asyncio.to_thread(self._store.stamp)
        if stamp == self._stamp and self._ring is not None:
            return False
        known = self._stamp
        try:
            ring, found = await asyncio.to_thread(self._read)
            self._last = self._ring = ring
            # In the turn of the loop from which it counts: so before any call by what is new.
            if self._told is not None:
                self._told.keys_changed(found)
            _log.info("api_keys_read", place=self._store.place)
        except BadKeys as error:
            if self._ring is not None or stamp != known:
                _log.error("api_keys_unreadable", problem=str(error), effect="every API key is refused")
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
