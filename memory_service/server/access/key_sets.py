"""JSON Web Key Sets: the public keys that verify tokens, from a file or a URL."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from jwt import PyJWK, PyJWTError

from memory_service.runtime.event_log import EventLog
from memory_service.runtime.files import stamp_of

_BYTES_MAX = 1 << 20
_RSA_BITS_MIN = 2048
_FETCH_TIMEOUT_S = 5.0
_FETCH_EVERY_S = 300.0
"""Interval of fetching keys, after which a withdrawn key is no longer accepted."""
_FETCH_AGAIN_S = 5.0
"""Least time between fetches, however many unknown keys tokens name."""
_KEPT_S = 3600.0
"""How long keys are used after the last successful fetch."""
_WAITING_MAX = 100
_PRIVATE = ("d", "p", "q", "k")
_log = EventLog(__name__)

SigningKeys = Mapping[str, PyJWK]


class BadKeySet(ValueError):
    """The input is no key set with a usable key."""


def read_key_set(raw: bytes, algorithms: Sequence[str]) -> SigningKeys:
    """Return the keys by their ids. Raises BadKeySet.

    A key has one algorithm, its own, whatever a token says. Unusable keys are skipped: symmetric and private
    keys, short ones, keys for encryption or other algorithms, keys without an id, and those with a duplicate
    id.
    """
    try:
        document = json.loads(raw)
        entries = document["keys"]
        ids = [entry.get("kid") for entry in entries]
        times = Counter(kid for kid in ids if isinstance(kid, str))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadKeySet("is no JSON Web Key Set") from None
    found = {
        kid: key
        for kid, entry in zip(ids, entries, strict=True)
        if isinstance(kid, str) and kid and times[kid] == 1 and (key := _usable(entry, algorithms))
    }
    if not found:
        raise BadKeySet(f"has no public key with a kid for {', '.join(algorithms)}")
    return found


def _usable(entry: Mapping[str, Any], algorithms: Sequence[str]) -> PyJWK | None:
    if any(name in entry for name in _PRIVATE) or entry.get("use", "sig") != "sig":
        return None
    try:
        key = PyJWK.from_dict(dict(entry))
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError):
        return None
    if key.algorithm_name not in algorithms:
        return None
    short = key.algorithm_name == "RS256" and key.key.key_size < _RSA_BITS_MIN
    return None if short else key


class KeySource(ABC):
    """A source of keys."""

    @abstractmethod
    async def find(self, kid: str) -> PyJWK | None:
        """Return the key with this id, or None."""

    @abstractmethod
    async def refresh(self) -> bool:
        """Check for changed keys; True: they have changed since the last check."""


class KeysInFile(KeySource):
    """A file, read again when it changes. While it is unreadable there are no keys."""

    def __init__(self, path: Path, algorithms: Sequence[str]) -> None:
        """Read the file. Raises BadKeySet."""
        self._path, self._algorithms = path, algorithms
        self._stamp = stamp_of(path)
        self._keys: SigningKeys = self._read()

    def _read(self) -> SigningKeys:
        try:
            with self._path.open("rb") as file:
                raw = file.read(_BYTES_MAX + 1)
        except OSError as error:
            raise BadKeySet(f"cannot be read: {error.strerror}") from None
        if len(raw) > _BYTES_MAX:
            raise BadKeySet(f"is larger than {_BYTES_MAX} bytes")
        return read_key_set(raw, self._algorithms)

    async def find(self, kid: str) -> PyJWK | None:
        """Return a key of the file as last read."""
        return self._keys.get(kid)

    async def refresh(self) -> bool:
        """Read the file again if it has changed, or was unreadable."""
        stamp = await asyncio.to_thread(stamp_of, self._path)
        if stamp == self._stamp and self._keys:
            return False
        known, self._stamp = self._stamp, stamp
        try:
            self._keys = await asyncio.to_thread(self._read)
            _log.info("jwt_keys_read", kids=sorted(self._keys))
        except BadKeySet as error:
            if self._keys or stamp != known:
                _log.error("jwt_keys_unreadable", problem=str(error), effect="every JWT is rejected")
            self._keys = {}
        return True


class KeysAtUrl(KeySource):
    """A URL, fetched periodically and when a token names an unknown key.

    After an unusable response, the previous keys stay valid for at most an hour.
    """

    def __init__(self, url: str, algorithms: Sequence[str]) -> None:
        self._url, self._algorithms = url, algorithms
        self._keys: SigningKeys = {}
        self._raw = b""
        self._changed = False
        self._fetched_s = self._tried_s = -_KEPT_S
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0

    async def find(self, kid: str) -> PyJWK | None:
        """Return a key; if it is unknown, fetch the keys unless the last fetch is too recent."""
        if kid not in self._keys and self._waiting < _WAITING_MAX:
            self._waiting += 1
            try:
                await self._fetch(_FETCH_AGAIN_S)
            finally:
                self._waiting -= 1
        return self._keys.get(kid)

    async def refresh(self) -> bool:
        """Fetch the keys if they are old, without waiting for the response."""
        now_s = time.monotonic()
        if self._fetching is None and now_s - self._tried_s > (
            _FETCH_EVERY_S if self._keys else _FETCH_AGAIN_S
        ):
            self._begin()
        if self._keys and now_s - self._fetched_s > _KEPT_S:
            _log.error("jwt_keys_too_old", effect="every JWT is rejected")
            self._take({}, b"")
        changed, self._changed = self._changed, False
        return changed

    async def _fetch(self, pause_s: float) -> None:
        if self._fetching is None and time.monotonic() - self._tried_s > pause_s:
            self._begin()
        if self._fetching is not None:
            # Other callers wait for the same fetch, and one that disconnects must not cancel it.
            await asyncio.shield(self._fetching)

    def _begin(self) -> None:
        self._tried_s = time.monotonic()
        self._fetching = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_FETCH_TIMEOUT_S):
                raw = await self._download()
            keys = read_key_set(raw, self._algorithms)
            self._fetched_s = time.monotonic()
            self._take(keys, raw)
        except (httpx.HTTPError, httpx.InvalidURL, BadKeySet, TimeoutError, OSError) as error:
            # The message may quote a proxy or a resolver; the type is enough.
            problem = str(error) if isinstance(error, BadKeySet) else type(error).__name__
            _log.warning("jwt_keys_not_fetched", problem=problem)
        finally:
            self._fetching = None

    def _take(self, keys: SigningKeys, raw: bytes) -> None:
        if raw != self._raw:
            _log.info("jwt_keys_read", kids=sorted(keys))
            self._changed = True
        self._keys, self._raw = keys, raw

    async def _download(self) -> bytes:
        raw = bytearray()
        # No redirects: the keys come only from the configured URL.
        async with (
            httpx.AsyncClient(timeout=_FETCH_TIMEOUT_S, follow_redirects=False) as client,
            client.stream("GET", self._url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise BadKeySet(f"the response has status {response.status_code}")
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > _BYTES_MAX:
                    raise BadKeySet(f"is larger than {_BYTES_MAX} bytes")
        return bytes(raw)
