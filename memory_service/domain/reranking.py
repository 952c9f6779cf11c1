"""Reorders the best results by a reranker."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from memory_service.data_model import Contribution, DegradationReason
from memory_service.domain.embedding import Degradation
from memory_service.domain.ranking import Ranked
from memory_service.domain.search_text import indexed_text
from memory_service.reading import SearchReading
from memory_service.rerankers.base import Reranker, RerankerFailed
from memory_service.runtime.yielding import aside

RERANKED_MAX = 50
"""How many of the best results a reranker reorders; the others follow in their order."""

_NO_RERANKER = Degradation(
    DegradationReason.NO_RERANKER, "the server has no reranker: results are ordered by score"
)
_UNAVAILABLE = Degradation(
    DegradationReason.RERANKER_UNAVAILABLE, "the reranker does not answer: results are ordered by score"
)
# Further digits depend on the batch in which a text is scored.
_DIGITS = 4

Scored = list[tuple[int, float]]
"""Positions and the reranker's scores of them."""


class Reranking:
    """Asks a reranker, for `timeout_s` at most; None if there is none."""

    def __init__(self, reranker: Reranker | None, timeout_s: float) -> None:
        self._reranker = reranker
        self._timeout_s = timeout_s

    @property
    def degradation(self) -> Degradation:
        """The degradation if requested reranking fails."""
        return _NO_RERANKER if self._reranker is None else _UNAVAILABLE

    async def score(self, reading: SearchReading, query: str, ranked: Ranked) -> Scored | None:
        """Return the scores of the best results; None, a degradation, if the reranker fails."""
        if self._reranker is None:
            return None
        positions = [position for _, position in ranked.order[:RERANKED_MAX]]
        loaded = await reading.load_items(positions)
        there = [(item.position, indexed_text(item)) for item in loaded if item is not None]
        if not there:
            return []
        try:
            async with asyncio.timeout(self._timeout_s):
                scores = await aside(self._reranker.score(query, [text for _, text in there]))
        except (RerankerFailed, TimeoutError):
            return None
        return [(position, round(s, _DIGITS)) for (position, _), s in zip(there, scores, strict=True)]


def reorder(ranked: Ranked, scored: Sequence[tuple[int, float]], *, explain: bool) -> None:
    """Move the scored results to the front, the best first; of equal ones the newer first."""
    found = {position for _, position in ranked.order}
    best = sorted(((score, position) for position, score in scored if position in found), reverse=True)
    first = {position for _, position in best}
    ranked.order = [
        *((_probability(score), position) for score, position in best),
        *(pair for pair in ranked.order if pair[1] not in first),
    ]
    if explain:
        for score, position in best:
            share = Contribution("reranker", score, 1.0, 1.0, _probability(score))
            ranked.shares[position] = (share,)


def _probability(log_odds: float) -> float:
    """Return the logistic function of a score: 0 to 1."""
    return 0.5 * (1.0 + math.tanh(0.5 * log_odds))
