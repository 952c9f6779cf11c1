"""Chooses the server of a call among several over the same records, and another if it is unavailable.

The order in which a namespace's calls try the servers is the same in every client: see "Several servers" in
clients/README.md, and clients/placement.json for examples.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Sequence

from memory_client.errors import MemoryServiceError

PASSED_OVER_S = 5.0
"""How long a failed server is tried last. Doubled, its namespaces stay twice as long at servers that have to
load them, and calls meet a hanging server half as often."""

HEADER = "memory-namespace"
"""Metadata key by which proxies see the namespace of a call."""
_HEADER_BYTES_MAX = 1024
"""Longer names are not valid namespaces, and would fill the metadata."""

_AWAY = frozenset({"", "SHUTTING_DOWN", "STORAGE_UNAVAILABLE"})
"""Reasons of UNAVAILABLE for which to try another server; empty: no server answered. Other reasons, such as
LLM_UNAVAILABLE, concern what all servers share."""

_DELAY_FIRST_S = 0.1
_DELAY_MAX_S = 2.0
"""Pauses once all servers were tried, as in gRPC's own retries. Doubled, calls survive a longer restart of
all servers, but may finish two seconds later."""

_ENCODED = re.compile(rb"[^\x20-\x24\x26-\x7e]")


def order_of(addresses: Sequence[str], namespace: str) -> list[int]:
    """Return the indexes of the addresses in the order in which the calls of a namespace try them.

    They are ordered by weight, highest first. A weight is the first 8 bytes of the SHA-256 of the address, a
    zero byte and the namespace, as UTF-8, read as an unsigned big-endian integer. Without a namespace, the
    order is that in which the addresses were given.
    """
    indexes = list(range(len(addresses)))
    if not namespace or len(addresses) == 1:
        return indexes
    return sorted(indexes, key=lambda index: weight_of(addresses[index], namespace), reverse=True)


def weight_of(address: str, namespace: str) -> int:
    """Return the weight of an address for a namespace, 0 to 2^64 - 1."""
    digest = hashlib.sha256(f"{address}\0{namespace}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def header_of(namespace: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata with the namespace, encoded like grpc-message. Empty: none."""
    encoded = _ENCODED.sub(_percent, namespace.encode(errors="surrogatepass"))
    if not 0 < len(encoded) <= _HEADER_BYTES_MAX:
        return ()
    return ((HEADER, encoded.decode("ascii")),)


def _percent(found: re.Match[bytes]) -> bytes:
    return f"%{found[0][0]:02X}".encode()


class Servers:
    """Servers over the same records, with their recent failures. Safe for use from many threads."""

    def __init__(self, addresses: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.addresses = tuple(addresses)
        self._clock = clock
        self._passed_over_until = [float("-inf")] * len(self.addresses)

    def order(self, namespace: str) -> list[int]:
        """Return the servers for a namespace in order; those that failed recently are last."""
        now = self._clock()
        order = order_of(self.addresses, namespace)
        return sorted(order, key=lambda server: self._passed_over_until[server] > now)

    def failed(self, server: int) -> None:
        """Note that a server is unavailable."""
        self._passed_over_until[server] = self._clock() + PASSED_OVER_S


class Attempts:
    """The attempts of one call at the servers.

    With one server there is one attempt, which gRPC itself retries.
    """

    def __init__(self, servers: Servers, namespace: str, attempts_max: int, waits: bool) -> None:
        """Begin with the first server of the namespace.

        Args:
            servers: All servers.
            namespace: The namespace of the call. Empty: none.
            attempts_max: Maximum number of attempts. If more than 1, each server is tried at least once.
            waits: Whether attempts that no server answers do not count.
        """
        self._servers = servers
        self._order = servers.order(namespace)
        count = len(self._order)
        self._left = 1 if count == 1 or attempts_max == 1 else max(attempts_max, count)
        self._waits = waits and self._left > 1
        self._moves = 0
        self._pauses = 0

    @property
    def server(self) -> int:
        """The server for the next attempt."""
        return self._order[self._moves % len(self._order)]

    def delay_after(self, error: MemoryServiceError) -> float | None:
        """Note a failed attempt; return the seconds until the next one. None: there is none."""
        if error.code not in ("UNAVAILABLE", "CANCELLED"):
            return None
        is_away = error.reason in _AWAY
        if is_away:
            self._servers.failed(self.server)
        self._left -= 0 if self._waits and not error.reason else 1
        if self._left <= 0:
            return None
        if is_away:
            self._moves += 1
            if self._moves < len(self._order):
                return 0.0
        delay = min(_DELAY_MAX_S, _DELAY_FIRST_S * 2.0**self._pauses)
        self._pauses += 1
        # Spread out, so that clients do not all return at once after a restart of the servers.
        return delay * random.uniform(0.8, 1.2)
