"""API keys, and certificates that are named beside them, from a file that is read again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

import structlog

from memory_service.credentials.api_keys import ApiKey, KeyRing
from memory_service.credentials.key_differences import KeyDifference, differences
from memory_service.credentials.key_file import BadKeyFile, KeyFile
from memory_service.server.access.authenticator import NEVER_S, Authenticator, Verified

_log = structlog.get_logger(__name__)


class ToldOfKeys(Protocol):
    """Is told which keys there are, once, and from then on what becomes of them."""

    def keys_found(self, present: Iterable[ApiKey]) -> None:
        """Take the keys of the first reading."""

    def keys_changed(self, found: Sequence[KeyDifference]) -> None:
        """Take what is other than at the reading before."""


class Keys(Authenticator):
    """Verifies tokens, certificates, or both, by one file. While it cannot be read, everybody is refused.

    `told` is told of them each time that the file is read.
    """

    def __init__(
        self, file: KeyFile, *, tokens: bool, certificates: bool, told: ToldOfKeys | None = None
    ) -> None:
        """Read the file. Raises BadKeyFile."""
        self._file = file
        self._tokens, self._certificates = tokens, certificates
        self._told = told
        self._stamp = file.stamp()
        # What was read last, also while the file cannot be read.
        self._last = file.read()
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
        """Read the file again if it was changed, or could not be read before."""
        # In a thread: the file may be on a disk that is slow to answer.
        stamp = await asyncio.to_thread(self._file.stamp)
        if stamp == self._stamp and self._ring is not None:
            return False
        known, self._stamp = self._stamp, stamp
        try:
            ring, found = await asyncio.to_thread(self._read)
            self._last = self._ring = ring
            # In the turn of the loop from which it counts: so before any call by what is new.
            if self._told is not None:
                self._told.keys_changed(found)
            _log.info("api_keys_read", path=str(self._file.path))
        except BadKeyFile as error:
            if self._ring is not None or stamp != known:
                _log.error("api_keys_unreadable", problem=str(error), effect="every API key is refused")
            self._ring = None
        return True

    def _read(self) -> tuple[KeyRing, Sequence[KeyDifference]]:
        ring = self._file.read()
        return ring, list(differences(self._last.keys, ring.keys))


def _verified(key: ApiKey | None) -> Verified | None:
    if key is None:
        return None
    return Verified(key.caller(), NEVER_S if key.expires is None else key.expires.timestamp())
