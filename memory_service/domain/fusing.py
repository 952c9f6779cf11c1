"""Makes one order of the results of several queries."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Contribution
from memory_service.domain.ranking import Ranked
from memory_service.domain.relevance import Relevance

_RANKS = 60
"""As in the paper. Doubled, the first ranks of a query count more like its last."""

MATCHED_MIN = 0.2
"""The relevance from which on a query has to do with an item. Doubled, paraphrases match no query."""


class FusedRelevance(Relevance):
    """The relevance for the query that a result answers best."""

    def __init__(self, parts: Sequence[Relevance]) -> None:
        self._parts = parts

    def of(self, positions: Sequence[int]) -> list[float]:
        return [max(its) for its in zip(*(part.of(positions) for part in self._parts), strict=True)]


def fused(found: Sequence[Ranked], first: int, limit: int, *, explain: bool) -> Ranked:
    """Return the best `limit` results of several queries, all if negative.

    A score is the mean over the queries of (60 + 1) / (60 + rank), 0 where a query did not find the item:
    reciprocal rank fusion (Cormack, Clarke and Buettcher 2009). On questions split into parts it finds more
    than the highest score or the sum of scores, in which one misleading part can take all places. Of equal
    results the newer is first. `matched` has the queries for which an item is relevant at all, numbered from
    `first`; negative numbers are left out.
    """
    shares: dict[int, list[Contribution]] = {}
    matched: dict[int, list[int]] = {}
    for number, ranked in enumerate(found, first):
        positions = [position for _, position in ranked.order]
        relevances = [1.0] * len(positions) if ranked.relevance is None else ranked.relevance.of(positions)
        for rank, (position, its) in enumerate(zip(positions, relevances, strict=True), 1):
            value = (_RANKS + 1) / (_RANKS + rank)
            shares.setdefault(position, []).append(Contribution("query", value, 1 / len(found), 1.0))
            matched.setdefault(position, []).extend([number] if number >= 0 and its >= MATCHED_MIN else ())
    order = sorted(((sum(s.value for s in its), position) for position, its in shares.items()), reverse=True)
    if limit >= 0:
        del order[limit:]
    relevance = FusedRelevance([ranked.relevance for ranked in found if ranked.relevance is not None])
    explained = {position: tuple(shares[position]) for _, position in order} if explain else {}
    return Ranked(order, explained, relevance, matched)
