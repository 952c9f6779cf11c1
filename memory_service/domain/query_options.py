"""Options of a retrieval by a query: further texts and namespaces, relevance, neighbours, time zone."""

from __future__ import annotations

import msgspec

from memory_service.domain.checks import Checks
from memory_service.domain.time_zones import zone_of
from memory_service.errors import InvalidArgument


class QueryOptions(msgspec.Struct, frozen=True):
    """The options, as in the proto. They are rarely used, so that they are kept apart from the others."""

    queries: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    min_relevance: float | None = None
    neighbour_weight: float | None = None
    time_zone: str = ""
    whole_exchanges: bool = False

    @property
    def neighbours_weigh(self) -> float:
        """The factor of the weights of neighbours."""
        return 1.0 if self.neighbour_weight is None else self.neighbour_weight

    def names(self, namespace: str) -> list[str]:
        """Return the names of all namespaces to search together, each once; none if there is but one."""
        if not self.namespaces:
            return []
        return list(dict.fromkeys((namespace, *self.namespaces) if namespace else self.namespaces))

    def scope(self) -> tuple[object, ...]:
        """Return the part of a request that a page token is bound to."""
        return () if self == NO_OPTIONS else msgspec.structs.astuple(self)

    def check(self, namespace: str, checks: Checks, *, with_query: bool) -> None:
        """Check all, and the namespace, which may be empty if there are others."""
        if namespace or not self.namespaces:
            checks.namespace(namespace)
        if self is NO_OPTIONS:
            return
        checks.size("namespaces", len(self.namespaces), "search_namespaces_max")
        for at, name in enumerate(self.namespaces):
            checks.namespace(name, f"namespaces[{at}]")
        checks.size("options.queries", len(self.queries), "search_queries_max")
        for at, text in enumerate(self.queries):
            if not text:
                raise InvalidArgument(f"options.queries[{at}]", "is empty")
            checks.text(f"options.queries[{at}]", text)
        for field in ("min_relevance", "neighbour_weight"):
            value = getattr(self, field)
            if value is not None and not 0 <= value <= 1:
                raise InvalidArgument(f"options.{field}", "must be a number from 0 to 1")
        zone_of(self.time_zone)
        if with_query and self.whole_exchanges:
            raise InvalidArgument("options.whole_exchanges", "is only for reads without a query")
        if not with_query:
            self._check_no_query()

    def _check_no_query(self) -> None:
        """Reject options that have no effect without a query."""
        if self.namespaces:
            raise InvalidArgument("namespaces", "needs a query")
        for field in ("min_relevance", "neighbour_weight"):
            if getattr(self, field) is not None:
                raise InvalidArgument(f"options.{field}", "needs a query")
        if self.time_zone:
            raise InvalidArgument("options.time_zone", "needs a query")


NO_OPTIONS = QueryOptions()
