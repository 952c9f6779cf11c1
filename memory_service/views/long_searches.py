"""Long searches: one at a time in a separate thread, with callers and namespaces taking turns.

The event loop continues in the meantime. Calls here have passed admission, so searches are shed here too: if
one could not begin within half of its caller's remaining time, or if the queue is full.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from memory_service.errors import Overloaded
from memory_service.indexes.view import NamespaceView
from memory_service.indexes.word_scoring import Scratch
from memory_service.runtime.caller import present_caller
from memory_service.runtime.deadline import remaining_s
from memory_service.runtime.fair_queue import FairQueue
from memory_service.runtime.yielding import aside

LONG_POSTINGS = 50_000
"""A search through more postings takes above about a millisecond, which is worth a change of threads."""
# The assumed duration of a search until one was measured.
_FIRST_SEARCH_S = 0.002
_SMOOTHING = 0.2


class LongSearch(Protocol):
    """A search that can be finished in another thread, of views that must not change meanwhile."""

    @property
    def views(self) -> list[NamespaceView]:
        """The views that it reads."""

    def finish(self, scratch: Scratch) -> Any:
        """Return what was found."""


Begin = Callable[[], LongSearch]
_Waiting = tuple[Begin, asyncio.Future[Any]]


class LongSearches:
    """For one event loop."""

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._scratch = Scratch()
        self._turns = FairQueue[NamespaceView, _Waiting]()
        self._running = False
        self._search_s = _FIRST_SEARCH_S

    async def search(self, view: NamespaceView, begin: Begin) -> Any:
        """Begin a long search in its turn, and return what it found; raises Overloaded.

        It takes its turn among those of the same caller and of this view, which it reads.
        """
        owner = present_caller().name, view
        self._find_room(owner, remaining_s())
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._turns.put(owner, (begin, answer))
        if not self._running:
            self._next()
        return await aside(answer)

    def close(self) -> None:
        """Stop."""
        self._thread.shutdown()

    def _find_room(self, owner: tuple[str, NamespaceView], caller_waits_s: float | None) -> None:
        """Reject this search, or a waiting one, if there is no room for both."""
        ahead = self._running + self._turns.ahead_of(owner)
        if caller_waits_s is not None and ahead * self._search_s > caller_waits_s / 2:
            raise self._overloaded()
        if len(self._turns) < self._waiting_max:
            return
        pushed_out = self._turns.push_out_for(owner)
        if pushed_out is None:
            raise self._overloaded()
        answer = pushed_out[1]
        if not answer.done():
            answer.set_exception(self._overloaded())

    def _next(self) -> None:
        self._running = False
        while not self._running and (waiting := self._turns.take()) is not None:
            if not waiting[1].done():
                self._begin(*waiting)

    def _begin(self, begin: Begin, answer: asyncio.Future[Any]) -> None:
        try:
            search = begin()
        except Exception as error:
            answer.set_exception(error)
            return
        self._running = True
        for view in search.views:
            view.searched.acquire()
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._finish, search)
        work.add_done_callback(partial(self._answer, answer))

    def _finish(self, search: LongSearch) -> Any:
        began = time.perf_counter()
        try:
            return search.finish(self._scratch)
        finally:
            for view in search.views:
                view.searched.release()
            self._search_s += _SMOOTHING * (time.perf_counter() - began - self._search_s)

    def _answer(self, answer: asyncio.Future[Any], work: asyncio.Future[Any]) -> None:
        error = work.exception()
        if answer.done():
            pass
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(work.result())
        self._next()

    def _overloaded(self) -> Overloaded:
        return Overloaded("waiting_searches_max", self._waiting_max)
