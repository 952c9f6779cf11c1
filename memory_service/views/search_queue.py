"""Answers concurrent searches together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memory_service.data_model import Hits, SearchQuery
from memory_service.indexes import joint_search
from memory_service.indexes.search import Found, Long, begin_long, search_all
from memory_service.indexes.view import NamespaceView
from memory_service.views.long_searches import LONG_POSTINGS, LongSearches

Waiting = tuple[SearchQuery, asyncio.Future[Hits | Long]]

_CHARS_TOGETHER = 64 * 1024
"""Length of the texts in one turn, for which the lookup of words takes 25 ms. Doubled, others wait twice as
long.
"""


class SearchQueue:
    """Collects the queries to a view in one turn of the event loop.

    Comparing sixteen queries with a matrix takes little more than comparing one: reading the matrix takes the
    time. Long queries go to `LongSearches`.
    """

    def __init__(self, waiting_searches_max: int) -> None:
        self._waiting: list[tuple[NamespaceView, Waiting]] = []
        self._long = LongSearches(waiting_searches_max)

    async def search(self, view: NamespaceView, query: SearchQuery) -> Hits:
        """Return the hits of a query; raises Overloaded if it is long and too many others are waiting."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer)
        answer: asyncio.Future[Hits | Long] = loop.create_future()
        self._waiting.append((view, (query, answer)))
        found = await answer
        if not isinstance(found, Long):
            return found
        hits: Hits = await self._long.search(view, lambda: begin_long(view, query, found))
        return hits

    async def search_together(
        self, views: Sequence[NamespaceView], queries: Sequence[SearchQuery]
    ) -> list[Hits]:
        """Return the hits of each view in a joint search; raises Overloaded like `search`."""
        joint = joint_search.begin(views, queries)
        if joint.work <= LONG_POSTINGS:
            return joint.finish()
        hits: list[Hits] = await self._long.search(
            views[0], lambda: joint_search.begin(views, queries, joint.terms)
        )
        return hits

    def close(self) -> None:
        """Stop."""
        self._long.close()

    def _take(self) -> dict[NamespaceView, list[Waiting]]:
        """Return the queries to answer in this turn of the loop: usually all, at least one."""
        chars = count = 0
        for _, (query, _answer) in self._waiting:
            chars += len(query.text or "")
            if count and chars > _CHARS_TOGETHER:
                break
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        of_views: dict[NamespaceView, list[Waiting]] = {}
        for view, waiting in taken:
            if not waiting[1].done():
                of_views.setdefault(view, []).append(waiting)
        return of_views

    def _answer(self) -> None:
        of_views = self._take()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._answer)
        for view, asked in of_views.items():
            found: Sequence[Found | Exception]
            try:
                found = search_all(view, [query for query, _ in asked], LONG_POSTINGS)
            except Exception as error:
                found = [error] * len(asked)
            for (_, answer), result in zip(asked, found, strict=True):
                if isinstance(result, Exception):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
