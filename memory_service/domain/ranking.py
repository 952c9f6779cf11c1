"""How results of words and of vectors become one order.

Each channel's scores are divided by the best of the query and summed by weight. On conversations
this finds more than reciprocal rank fusion, which buries what one channel alone finds.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.records import Hit, RetrieveMode

LEXICAL_WEIGHT = 0.7
VECTOR_WEIGHT = 0.3


class Contribution(msgspec.Struct, frozen=True):
    """The share of one channel: raw_score / scale * weight; `counted` where that is not raw_score."""

    channel: str
    raw_score: float
    weight: float
    scale: float
    counted: float | None = None

    @property
    def value(self) -> float:
        """What it adds to the score."""
        return (self.raw_score if self.counted is None else self.counted) / self.scale * self.weight


class Ranked(msgspec.Struct, frozen=True):
    """An item's place in the order."""

    position: int
    score: float
    contributions: tuple[Contribution, ...] = ()


def rank(hits: Sequence[Hit], mode: RetrieveMode, *, explain: bool) -> list[Ranked]:
    """Return hits by score, the best first; of equal ones the newer first."""
    if mode is RetrieveMode.VECTOR:
        return _by_vector(hits, explain)
    if mode is RetrieveMode.LEXICAL:
        return _by_words(hits, explain)
    return _by_both(hits, explain)


def _by_vector(hits: Sequence[Hit], explain: bool) -> list[Ranked]:
    ranked = [Ranked(h.position, h.vector_score) for h in hits if h.vector_score is not None]
    ranked.sort(key=_order)
    return [_alone(r, "vector") for r in ranked] if explain else ranked


def _by_words(hits: Sequence[Hit], explain: bool) -> list[Ranked]:
    ranked = [Ranked(h.position, h.lexical_score) for h in hits if h.lexical_score]
    ranked.sort(key=_order)
    return [_alone(r, "lexical") for r in ranked] if explain else ranked


def _alone(ranked: Ranked, channel: str) -> Ranked:
    return Ranked(ranked.position, ranked.score, (Contribution(channel, ranked.score, 1.0, 1.0),))


def _by_both(hits: Sequence[Hit], explain: bool) -> list[Ranked]:
    best_lexical = max((hit.lexical_score or 0.0 for hit in hits), default=0.0) or 1.0
    best_vector = max((hit.vector_score or 0.0 for hit in hits), default=0.0)
    best_vector = best_vector if best_vector > 0 else 1.0
    ranked = []
    for hit in hits:
        # A vector that points away does not take from what the words found.
        vector, lexical = hit.vector_score or 0.0, hit.lexical_score or 0.0
        score = lexical / best_lexical * LEXICAL_WEIGHT + max(vector, 0.0) / best_vector * VECTOR_WEIGHT
        shares: tuple[Contribution, ...] = ()
        if explain:
            shares = (
                Contribution("lexical", lexical, LEXICAL_WEIGHT, best_lexical),
                Contribution("vector", vector, VECTOR_WEIGHT, best_vector, max(vector, 0.0)),
            )
        ranked.append(Ranked(hit.position, score, shares))
    ranked.sort(key=_order)
    return ranked


def _order(ranked: Ranked) -> tuple[float, int]:
    return -ranked.score, -ranked.position
