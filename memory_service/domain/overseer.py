"""Finds the saved state that a goal needs: searches for candidates, then decides on each."""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from memory_service.data_model import Contribution, DegradationReason, StateEntry
from memory_service.deciders.base import (
    REASON_CHARS_MAX,
    VALUE_BYTES_SEARCHED,
    Begin,
    Candidate,
    Deciding,
    KeySearch,
)
from memory_service.decisions import DecidedBy, Failure, FailureReason, Usage
from memory_service.domain.checks import Checks
from memory_service.domain.context_block import ContextBlock
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.errors import InvalidArgument, Unavailable
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each, give_way
from memory_service.store import Store

_LIMIT, _LIMIT_MAX = 10, 100
_TOKENS = 2000
_CANDIDATES, _CANDIDATES_MAX = 50, 200
_SCANNED_AT_ONCE = 200
# Keys compared by their vectors: as many as there can be candidates. More would make a call slow, and
# expensive with a paid provider.
_EMBEDDED_MAX = _CANDIDATES_MAX


class KeyVerdict(enum.IntEnum):
    """The decision on a key; the numbers equal the proto's."""

    RELEVANT = 1
    NOT_RELEVANT = 2
    OMITTED = 3


@dataclass(slots=True)
class KeyDecision:
    """A verdict on a key, who decided, and why. `score` is its score in the search, explained by `shares`."""

    key: str
    verdict: KeyVerdict
    decided_by: DecidedBy
    reason: str
    score: float
    shares: tuple[Contribution, ...]


@dataclass(frozen=True)
class RelevanceQuery:
    """The request; None where the choice is the server's."""

    namespace: str
    goal: str
    limit: int | None = None
    max_tokens: int | None = None
    pattern: str = ""
    max_candidates: int | None = None
    omit_values: bool = False
    decide_by: DecidedBy = DecidedBy.UNSPECIFIED


@dataclass
class RelevantState:
    """The state that a goal needs, the most relevant first, and how it was chosen."""

    entries: list[StateEntry] = field(default_factory=list)
    decided_by: DecidedBy = DecidedBy.RULES
    reason: str = ""
    decisions: list[KeyDecision] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    context_text: str = ""
    key_count: int = 0
    usage: Usage = field(default_factory=Usage)
    degraded: Sequence[Degradation] = ()
    revision: int = 0


class Overseer:
    """Finds the state that goals need. `entry_bytes` returns the size of an entry in a response."""

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        checks: Checks,
        begin: Begin,
        entry_bytes: Callable[[StateEntry], int],
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._checks = checks
        self._begin = begin
        self._entry_bytes = entry_bytes

    async def check_relevance(self, query: RelevanceQuery) -> RelevantState:
        """Return the state that a goal needs. Raises LLM_REQUIRED and LLM_UNAVAILABLE, see `Begin`."""
        limit, max_tokens, max_candidates = self._check(query)
        deciding = self._begin(query.decide_by, query.namespace)
        info = await self._store.namespace(query.namespace)
        # Read before the keys: a client that watches changes from this revision misses none.
        answer = RelevantState(revision=info.revision if info else 0)
        search, _ = await deciding.ask(lambda decider: decider.search(query.goal))
        async for entries in self._scan(query.namespace, query.pattern):
            await each(search.add, entries)
            answer.key_count += len(entries)
        if not answer.key_count:
            answer.reason = "no key matches the pattern" if query.pattern else "there is no saved state"
            return answer
        ranked, answer.degraded = await self._rank(query.goal, search)
        chosen = await self._decide(query.goal, ranked[:max_candidates], deciding, answer)
        await self._load(query, chosen, limit, max_tokens, answer)
        answer.usage = deciding.usage
        answer.failures = [*deciding.failures, *answer.failures]
        return answer

    def _check(self, query: RelevanceQuery) -> tuple[int, int, int]:
        """Return the limit, the token budget (-1: none) and the number of candidates."""
        self._checks.namespace(query.namespace)
        self._checks.size("goal", len(query.goal.encode()), "goal_bytes_max")
        if not query.goal.strip():
            raise InvalidArgument("goal", "is required")
        bytes_max = self._checks.limits.pattern_bytes_max
        self._checks.name("pattern", query.pattern, bytes_max, required=False)
        max_tokens = _TOKENS if query.max_tokens is None else query.max_tokens
        if max_tokens < -1:
            raise InvalidArgument("max_tokens", "must be -1 or more")
        return (
            _within("limit", query.limit, 0, _LIMIT_MAX, _LIMIT),
            max_tokens,
            _within("max_candidates", query.max_candidates, 1, _CANDIDATES_MAX, _CANDIDATES),
        )

    async def _scan(self, namespace: str, pattern: str) -> AsyncIterator[list[StateEntry]]:
        """Yield the entries whose key matches a glob pattern, some at a time."""
        matches = re.compile(fnmatch.translate(pattern or "*")).match
        after = ""
        while True:
            entries = await self._store.scan_states(
                namespace, after, _SCANNED_AT_ONCE, now_us=now_us(), value_chars=VALUE_BYTES_SEARCHED
            )
            fitting = await each(lambda entry: matches(entry.key), entries)
            yield [entry for entry, fits in zip(entries, fitting, strict=True) if fits]
            if len(entries) < _SCANNED_AT_ONCE:
                return
            after = entries[-1].key
            # Let other calls run, however many keys there are.
            await give_way()

    async def _rank(self, goal: str, search: KeySearch) -> tuple[list[Candidate], Sequence[Degradation]]:
        """Return candidates by words and by meaning, the best first, and degradations."""
        pool = await search.best(_EMBEDDED_MAX)
        # Vectors of state are not stored, so those of the namespace are no obstacle.
        trouble = self._embedding.obstacle(None)
        if trouble is not None:
            return search.rank(pool), (trouble,)
        try:
            goal_vector, *vectors = await self._embedding.vectors([goal, *map(search.text, pool)])
        except Unavailable as error:
            return search.rank(pool), (_unavailable(error),)
        return search.rank(pool, goal_vector, vectors), ()

    async def _decide(
        self, goal: str, ranked: list[Candidate], deciding: Deciding, answer: RelevantState
    ) -> list[KeyDecision]:
        """Decide on candidates; set the answer's decisions except for loaded keys.

        Return the relevant ones.
        """
        found, by = await deciding.ask(lambda decider: decider.relevant(goal, ranked))
        answer.decided_by, answer.reason = by, found.reason
        answer.decisions = [
            KeyDecision(candidate.key, verdict, by, why, candidate.score, candidate.shares)
            for verdict, some in (
                (KeyVerdict.RELEVANT, found.needed),
                (KeyVerdict.NOT_RELEVANT, found.others),
            )
            for candidate, why in some
        ]
        return answer.decisions[: len(found.needed)]

    async def _load(
        self,
        query: RelevanceQuery,
        chosen: list[KeyDecision],
        limit: int,
        max_tokens: int,
        answer: RelevantState,
    ) -> None:
        """Load the entries of relevant keys within the limits, and report what was left out."""
        block = ContextBlock(max_tokens, self._checks.limits.page_bytes_max, self._entry_bytes)
        for decision in chosen:
            if len(answer.entries) >= limit:
                _omit(decision, f"beyond the limit of {limit}")
                continue
            entry = await live_entry(self._store, query.namespace, decision.key)
            if entry is None:
                _omit(decision, "it was removed in the meantime")
                message = "the key was removed during the decision"
                answer.failures.append(Failure(FailureReason.CHANGED_MEANWHILE, message, decision.key))
            elif why := "" if query.omit_values else block.add(entry):
                _omit(decision, why)
            else:
                answer.entries.append(entry)
        answer.context_text = block.text
        # Decisions on loaded entries come first, then those left out, then the others.
        answer.decisions.sort(key=lambda decision: _ORDER[decision.verdict])


_ORDER = {KeyVerdict.RELEVANT: 0, KeyVerdict.OMITTED: 1, KeyVerdict.NOT_RELEVANT: 2}


def _within(field_name: str, value: int | None, least: int, most: int, default: int) -> int:
    if value is None:
        return default
    if not least <= value <= most:
        raise InvalidArgument(field_name, f"must be {least} to {most}")
    return value


async def live_entry(store: Store, namespace: str, key: str) -> StateEntry | None:
    """Return an entry; None if it does not exist or has expired."""
    entry = (await store.load_states(namespace, [key])).get(key)
    return None if entry is None or entry.expired(now_us()) else entry


def _unavailable(error: Unavailable) -> Degradation:
    return Degradation(
        DegradationReason.EMBEDDER_UNAVAILABLE, f"{error.message}: state was searched only by words"
    )


def _omit(decision: KeyDecision, why: str) -> None:
    decision.verdict = KeyVerdict.OMITTED
    decision.reason = f"{why}; needed because: {decision.reason}"[:REASON_CHARS_MAX]
