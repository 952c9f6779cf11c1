"""Searches that are asked for at the same time are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memory_service.data_model import Hits, SearchQuery
from memory_service.indexes.search import Found, Long, search_all
from memory_service.indexes.view import NamespaceView
from memory_service.views.long_searches import LONG_POSTINGS, LongSearches

Waiting = tuple[SearchQuery, asyncio.Future[Hits | Long]]


class SearchQueue:
    """Hands a view all the queries of one turn of the event loop at once.

    To compare sixteen queries with a matrix takes little more than to compare one: what takes long
    is to read the matrix. A query that takes long goes its own way, see `LongSearches`.
    """

    def __init__(self, waiting_searches_max: int) -> None:
        self._waiting: dict[NamespaceView, list[Waiting]] = {}
        self._long = LongSearches(waiting_searches_max)

    async def search(self, view: NamespaceView, query: SearchQuery) -> Hits:
        """Return what the view finds; raises Overloaded where it takes long and too many others do."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer)
        answer: asyncio.Future[Hits | Long] = loop.create_future()
        self._waiting.setdefault(view, []).append((query, answer))
        found = await answer
        return await self._long.search(view, query) if isinstance(found, Long) else found

    def close(self) -> None:
        """Stop."""
        self._long.close()

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for view, asked in waiting.items():
            asked = [(query, answer) for query, answer in asked if not answer.done()]
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
