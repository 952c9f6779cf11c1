"""Counts the calls to each namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memory_service.limits import Limits
from memory_service.runtime.clock import now_us
from memory_service.server.methods import SERVED, Reach

Decoder = Callable[[bytes], Any]

# About 200 bytes each. Doubled: twice the memory; halved: on servers with more namespaces, counts of those
# that are seldom called begin again sooner.
_NAMESPACES_MAX = 10_000


@dataclass(slots=True)
class CallCount:
    """The number of calls since a time."""

    count: int
    since_us: int


class CallCounts:
    """Counts of the namespaces called last. A call counts once it is decoded and its credential allows it."""

    def __init__(self, limits: Limits) -> None:
        self._name_chars_max = limits.namespace_name_bytes_max
        # The namespace called longest ago comes first.
        self._counts: dict[str, CallCount] = {}
        self._start_us = now_us()
        self._forgot = False

    def of(self, namespace: str) -> CallCount:
        """Return the count of a namespace."""
        return self._counts.get(namespace) or self._zero()

    def _zero(self) -> CallCount:
        return CallCount(0, now_us() if self._forgot else self._start_us)

    def counting(self, method: str, decode: Decoder) -> Decoder:
        """Return a decoder that counts the call of each request."""
        served = SERVED.get(method)
        if served is None or served.reach is not Reach.NAMESPACE:
            return decode
        others = served.others

        def decoder(raw: bytes) -> Any:
            request = decode(raw)
            if others is None:
                self._add(request.namespace)
            else:
                for name in {request.namespace, *others(request)}:
                    self._add(name)
            return request

        return decoder

    def counting_upload(self, method: str, begin: Callable[[], Decoder]) -> Callable[[], Decoder]:
        """Return a factory of decoders, one per upload, of which each counts its first request."""

        def begin_counting() -> Decoder:
            decode = begin()
            first = self.counting(method, decode)

            def decoder(raw: bytes) -> Any:
                nonlocal first
                request = first(raw)
                first = decode
                return request

            return decoder

        return begin_counting

    def _add(self, name: str) -> None:
        # The domain refuses other names.
        if not name or len(name) > self._name_chars_max:
            return
        count = self._counts.pop(name, None) or self._zero()
        count.count += 1
        self._counts[name] = count
        if len(self._counts) > _NAMESPACES_MAX:
            del self._counts[next(iter(self._counts))]
            self._forgot = True
