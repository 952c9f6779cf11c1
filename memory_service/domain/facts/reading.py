"""Reads memories: by search, and in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from memory_service.data_model import ItemKind, RetrieveMode, SourceKind
from memory_service.deciders.base import Category
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation
from memory_service.domain.facts.user_memory import UserMemory, memory_of
from memory_service.domain.packing import Budget
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.ranking import Shares
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import RetrieveOptions, Selection
from memory_service.errors import InvalidArgument, NotFound
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each
from memory_service.store import Store

KINDS = frozenset({ItemKind.USER_MEMORY})
_DAY_US = 86_400_000_000
_SEARCH_LIMIT = 5
_READ_AT_ONCE = 500


class Wanted(msgspec.Struct):
    """Which memories to return; as_of_us None: those that hold now, unless the history is included."""

    categories: Sequence[Category] = ()
    as_of_us: int | None = None
    include_history: bool = False
    min_importance: float | None = None
    labels: dict[str, str] = {}
    session_id: str = ""
    start_us: int | None = None
    end_us: int | None = None
    min_trust: float | None = None
    sources: frozenset[SourceKind] | None = None
    """None: any."""

    def scope(self) -> tuple[object, ...]:
        """The query that a page token belongs to."""
        return (
            sorted(self.categories), self.as_of_us, self.include_history, self.min_importance,
            sorted(self.labels.items()), self.session_id, self.start_us, self.end_us, self.min_trust,
            None if self.sources is None else sorted(self.sources),
        )  # fmt: skip

    def selection(self) -> Selection:
        """Return the conditions that a store checks; the others are checked by `UserMemoryReading.fits`."""
        tags = [("category", self.categories[0].name.lower())] if len(self.categories) == 1 else []
        if self.as_of_us is None and not self.include_history:
            tags.append(("status", "active"))
        return Selection(
            self.session_id, self.labels, self.start_us, self.end_us, kinds=KINDS, tags=tuple(tags),
            min_trust=self.min_trust, sources=self.sources,
        )  # fmt: skip


class UserMemoryPage(msgspec.Struct):
    """One page of memories; those found by a search have scores, and shares if an explanation was
    requested.
    """

    memories: list[UserMemory]
    revision: int
    next_page_token: str = ""
    scores: list[float] = []
    shares: list[Shares] = []
    degraded: Sequence[Degradation] = ()


class UserMemoryReading:
    """Reads memories. `half_life_days` is that of their importance; None: no decay."""

    def __init__(
        self,
        store: Store,
        retrieval: Retrieval,
        checks: Checks,
        tokens: PageTokens,
        memory_bytes: Callable[[UserMemory], int],
        half_life_days: float | None = None,
    ) -> None:
        self._store = store
        self._retrieval = retrieval
        self._checks = checks
        self._tokens = tokens
        self._memory_bytes = memory_bytes
        self._half_life_days = half_life_days

    # --- single ones ----------------------------------------------------------------------------

    async def by_ids(self, namespace: str, ids: Sequence[str]) -> list[UserMemory]:
        """Return the memories with these ids, in their order, without those that do not exist."""
        found = await self._store.get_items(namespace, ids)
        items = [found[i] for i in ids if i in found]
        memories = [memory_of(item) for item in items if not item.expired(now_us())]
        return [memory for memory in memories if memory is not None]

    async def get(self, namespace: str, memory_id: str) -> UserMemory:
        """Return a memory. Raises NotFound."""
        found = await self.by_ids(namespace, [memory_id])
        if not found:
            raise NotFound.memory(namespace, memory_id)
        return found[0]

    async def unreadable(self, namespace: str, memory_id: str) -> bool:
        """Return whether an import replaced a memory by something else, which can only be deleted."""
        item = (await self._store.get_items(namespace, [memory_id])).get(memory_id)
        if item is None or item.kind is not ItemKind.USER_MEMORY or item.expired(now_us()):
            return False
        return memory_of(item) is None

    async def all(self, namespace: str, wanted: Wanted) -> list[UserMemory]:
        """Return all wanted memories, in the order in which they were saved."""
        selection = self._selection(wanted)
        reading = await self._store.read(namespace)
        positions = await reading.scan(selection.to_filter(), -1, newest=False)
        return [m for _, m in await _load(reading, positions) if self.fits(m, wanted)]

    async def stored(self, namespace: str, wanted: Wanted) -> list[UserMemory]:
        """Return the memories that a store finds for this, in the order in which they were saved.

        Among them are those that hold no longer or not yet, or have expired and are not removed yet.
        """
        reading = await self._store.read(namespace)
        ever = msgspec.structs.replace(self._selection(wanted).to_filter(), now_us=0)
        items = await reading.load_items(await reading.scan(ever, -1, newest=False))
        memories = await each(lambda item: None if item is None else memory_of(item), items)
        return [memory for memory in memories if memory is not None]

    async def revision(self, namespace: str) -> int:
        """Return the revision of a namespace; 0 if it was never written to."""
        info = await self._store.namespace(namespace)
        return info.revision if info else 0

    # --- importance -----------------------------------------------------------------------------

    @property
    def decays(self) -> bool:
        """Whether importance depends on age."""
        return self._half_life_days is not None

    def decay(self, memory: UserMemory) -> float:
        """Return the factor by which age has reduced the importance of a memory, 0 to 1."""
        age_days = max(now_us() - memory.update_us, 0) / _DAY_US
        return decay_factor(age_days, self._half_life_days)

    def current_importance(self, memory: UserMemory) -> float:
        """Return the current importance of a memory."""
        return memory.fact.importance.score * self.decay(memory)

    def standing(self, memory: UserMemory) -> float:
        """Return a number that orders memories as their current importance does, at any time.

        Decay takes the same share of every importance, so it does not change their order.
        """
        score = memory.fact.importance.score
        if self._half_life_days is None or score <= 0:
            return score if self._half_life_days is None else -math.inf
        return math.log2(score) + memory.update_us / _DAY_US / self._half_life_days

    def fits(self, memory: UserMemory, wanted: Wanted) -> bool:
        """Return whether a memory that a store finds is wanted."""
        if wanted.categories and memory.fact.category not in wanted.categories:
            return False
        if not wanted.include_history:
            at = now_us() if wanted.as_of_us is None else wanted.as_of_us
            if not memory.holds_at(at):
                return False
        least = wanted.min_importance
        return least is None or self.current_importance(memory) >= least

    # --- pages ----------------------------------------------------------------------------------

    def _selection(self, wanted: Wanted) -> Selection:
        """Return the conditions that a store checks, validated; the others are checked by `fits`."""
        selection = wanted.selection()
        self._retrieval.check_selection(selection)
        return selection

    def check(self, namespace: str, wanted: Wanted) -> Selection:
        """Validate the options, and return the conditions that a store checks."""
        self._checks.namespace(namespace)
        if wanted.as_of_us is not None and wanted.include_history:
            raise InvalidArgument("as_of_time", "cannot be given together with include_history")
        if wanted.min_importance is not None and wanted.min_importance != wanted.min_importance:
            raise InvalidArgument("min_importance", "is not a number")
        return self._selection(wanted)

    async def list_memories(
        self,
        namespace: str,
        wanted: Wanted,
        *,
        ids: Sequence[str] = (),
        page_size: int = 0,
        page_token: str = "",
        newest_first: bool = False,
    ) -> UserMemoryPage:
        """Return a page of memories in the order in which they were saved, or in reverse."""
        selection = self.check(namespace, wanted)
        self._checks.size("ids", len(ids), "batch_items_max")
        size = self._checks.page_size(page_size)
        scope = ("memories", namespace, newest_first, tuple(ids), *wanted.scope())
        bound = int(self._tokens.read(scope, page_token)[0]) if page_token else None
        reading = await self._store.read(namespace)
        revision = reading.info.revision if reading.info else 0
        positions = await reading.scan(selection.to_filter(), -1, newest=False)
        if ids:
            known = {item.position for item in (await self._store.get_items(namespace, ids)).values()}
            positions = [position for position in positions if position in known]
        if newest_first:
            positions = [p for p in reversed(positions) if bound is None or p <= bound]
        else:
            positions = [p for p in positions if bound is None or p >= bound]
        memories, rest = await self._fill_page(reading, positions, wanted, size)
        token = self._tokens.make(scope, [rest]) if rest is not None else ""
        return UserMemoryPage(memories, revision, token)

    async def _fill_page(
        self, reading: Reading, positions: Sequence[int], wanted: Wanted, size: int
    ) -> tuple[list[UserMemory], int | None]:
        page: list[UserMemory] = []
        nbytes = 0
        for start in range(0, len(positions), _READ_AT_ONCE):
            for position, memory in await _load(reading, positions[start : start + _READ_AT_ONCE]):
                if not self.fits(memory, wanted):
                    continue
                nbytes += self._memory_bytes(memory)
                if len(page) >= size or (page and nbytes > self._checks.limits.page_bytes_max):
                    return page, position
                page.append(memory)
        return page, None

    # --- search ---------------------------------------------------------------------------------

    async def search(
        self,
        namespace: str,
        query: str,
        wanted: Wanted,
        *,
        limit: int | None = None,
        min_score: float | None = None,
        mode: RetrieveMode = RetrieveMode.UNSPECIFIED,
        max_tokens: int | None = None,
        explain: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> UserMemoryPage:
        """Return the memories that match a text best, the best first."""
        self.check(namespace, wanted)
        if not query.strip():
            raise InvalidArgument("query", "is required")
        self._checks.text("query", query)
        if max_tokens is not None and max_tokens <= 0:
            raise InvalidArgument("max_tokens", "must be positive")
        limit = _SEARCH_LIMIT if limit is None else limit
        if limit < -1:
            raise InvalidArgument("limit", "must be -1 (no limit), 0 or more")
        self._checks.count("page_size", page_size)
        options = RetrieveOptions(
            wanted.selection(), -1, query, min_score=min_score, mode=mode, explain=explain
        )
        enough = limit if max_tokens is None else -1
        found = await self._search_all(namespace, options, wanted, enough)
        _pack(found, limit, max_tokens)
        scope = (
            "search", namespace, query, limit, min_score, int(mode), max_tokens, explain, *wanted.scope(),
        )  # fmt: skip
        return self._cut(found, scope, page_size, page_token)

    async def _search_all(
        self, namespace: str, options: RetrieveOptions, wanted: Wanted, enough: int
    ) -> UserMemoryPage:
        """Return matching memories in order: at least `enough`, if there are; all if it is -1."""
        found = UserMemoryPage([], 0)
        if enough >= 0:
            options.page_size = 2 * enough + 1
        while True:
            page = await self._retrieval.retrieve(namespace, options)
            shares = page.shares or [()] * len(page.items)
            for item, score, share in zip(page.items, page.scores, shares, strict=True):
                memory = memory_of(item)
                if memory is not None and self.fits(memory, wanted):
                    found.memories.append(memory)
                    found.scores.append(score)
                    found.shares.append(share)
            found.revision, found.degraded = page.revision, page.degraded
            if not page.next_page_token or 0 <= enough <= len(found.memories):
                return found
            options = msgspec.structs.replace(options, page_token=page.next_page_token, page_size=0)

    def _cut(
        self, found: UserMemoryPage, scope: tuple[object, ...], page_size: int, page_token: str
    ) -> UserMemoryPage:
        first = int(self._tokens.read(scope, page_token)[0]) if page_token else 0
        size = min(page_size or self._checks.limits.page_items_max, self._checks.limits.page_items_max)
        nbytes, end = 0, first
        for memory in found.memories[first : first + size]:
            nbytes += self._memory_bytes(memory)
            if nbytes > self._checks.limits.page_bytes_max and end > first:
                break
            end += 1
        token = self._tokens.make(scope, [end]) if end < len(found.memories) else ""
        part = slice(first, end)
        return UserMemoryPage(
            found.memories[part],
            found.revision,
            token,
            found.scores[part],
            found.shares[part],
            found.degraded,
        )


def _pack(found: UserMemoryPage, limit: int, max_tokens: int | None) -> None:
    """Drop memories beyond the limit, and those that do not fit into the budget."""
    kept: list[int] = []
    budget = Budget(max_tokens)
    for at, memory in enumerate(found.memories):
        if 0 <= limit <= len(kept):
            break
        texts = [(memory.id, memory.content)]
        if budget.fits(texts):
            budget.take(texts)
            kept.append(at)
    found.memories = [found.memories[at] for at in kept]
    found.scores = [found.scores[at] for at in kept]
    found.shares = [found.shares[at] for at in kept]


def decay_factor(age_days: float, half_life_days: float | None) -> float:
    """Return the factor for an importance at this age, 0 to 1: halved after each half-life. None: no
    decay.
    """
    if half_life_days is None:
        return 1.0
    return float(0.5 ** (max(0.0, age_days) / half_life_days))


async def _load(reading: Reading, positions: Sequence[int]) -> list[tuple[int, UserMemory]]:
    items = await reading.load_items(positions)
    memories = await each(
        lambda item: None if item is None or item.expired(now_us()) else memory_of(item), items
    )
    return [(p, memory) for p, memory in zip(positions, memories, strict=True) if memory is not None]
