"""How results of words and of vectors become one order.

Each channel's scores are divided by the best of the query and summed by weight. On conversations
this finds more than reciprocal rank fusion, which buries what one channel alone finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.records import Hit, RetrieveMode

LEXICAL_WEIGHT = 0.7
VECTOR_WEIGHT = 0.3


@dataclass(slots=True, frozen=True)
class Contribution:
    """The share of one channel: raw_score / scale * weight."""

    channel: str
    raw_score: float
    weight: float
    scale: float

    @property
    def value(self) -> float:
        """What it adds to the score."""
        return self.raw_score / self.scale * self.weight


@dataclass(slots=True, frozen=True)
class Ranked:
    """An item's place in the order."""

    position: int
    score: float
    contributions: tuple[Contribution, ...] = ()


def rank(hits: Sequence[Hit], mode: RetrieveMode, *, explain: bool) -> list[Ranked]:
    """Return hits by score, the best first; of equal ones the newer first."""
    if mode is RetrieveMode.VECTOR:
        return _by_one(hits, "vector", "vector_score", explain)
    if mode is RetrieveMode.LEXICAL:
        return _by_one([h for h in hits if h.lexical_score], "lexical", "lexical_score", explain)
    return _by_both(hits, explain)


def _by_one(hits: Sequence[Hit], channel: str, attribute: str, explain: bool) -> list[Ranked]:
    ranked = []
    for hit in hits:
        score = getattr(hit, attribute)
        if score is not None:
            shares = (Contribution(channel, score, 1.0, 1.0),) if explain else ()
            ranked.append(Ranked(hit.position, score, shares))
    ranked.sort(key=_order)
    return ranked


def _by_both(hits: Sequence[Hit], explain: bool) -> list[Ranked]:
    best_lexical = max((hit.lexical_score or 0.0 for hit in hits), default=0.0) or 1.0
    best_vector = max((hit.vector_score or 0.0 for hit in hits), default=0.0)
    best_vector = best_vector if best_vector > 0 else 1.0
    ranked = []
    for hit in hits:
        # A vector that points away does not take from what the words found.
        vector = max(hit.vector_score or 0.0, 0.0)
        shares = (
            Contribution("lexical", hit.lexical_score or 0.0, LEXICAL_WEIGHT, best_lexical),
            Contribution("vector", vector, VECTOR_WEIGHT, best_vector),
        )
        ranked.append(Ranked(hit.position, shares[0].value + shares[1].value, shares if explain else ()))
    ranked.sort(key=_order)
    return ranked


def _order(ranked: Ranked) -> tuple[float, int]:
    return -ranked.score, -ranked.position
