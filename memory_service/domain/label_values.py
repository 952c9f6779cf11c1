"""Lists the values of a label."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.domain.checks import Checks
from memory_service.domain.page_tokens import PageTokens
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.store import Store


@dataclass(slots=True)
class LabelPage:
    """Values with their numbers of items, and the token of the next page."""

    values: list[tuple[str, int]]
    revision: int
    next_page_token: str = ""


class LabelListing:
    """Lists the values of labels of the items that List returns by default."""

    def __init__(self, store: Store, checks: Checks, tokens: PageTokens) -> None:
        self._store = store
        self._checks = checks
        self._tokens = tokens

    async def list_values(
        self, namespace: str, key: str, prefix: str, page_size: int, page_token: str
    ) -> LabelPage:
        """Return a page of the values that begin with `prefix`, in the order of their code points.

        A page continues after the last value of the one before, so values that come or go do not move it.
        """
        self._checks.namespace(namespace)
        if not key:
            raise InvalidArgument("key", "is required")
        self._checks.labels("key", {key: ""})
        self._checks.size("prefix", len(prefix.encode()), "label_value_bytes_max")
        size = self._checks.page_size(page_size)
        scope = ("label values", namespace, key, prefix)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else None
        reading = await self._store.read(namespace)
        if reading.info is None:
            return LabelPage([], 0)
        found = await reading.label_values(key, prefix, after, size + 1, now_us=now_us())
        more = len(found) > size
        token = self._tokens.make(scope, [found[size - 1][0]]) if more else ""
        return LabelPage(found[:size], reading.info.revision, token)
