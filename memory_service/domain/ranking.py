"""How results of words and of vectors become one order.

Each channel's scores are divided by the best of the query and summed by weight. On conversations
this finds more than reciprocal rank fusion, which buries what one channel alone finds. The weights,
the boost and what the neighbours of a turn count (indexes/turns.py) were chosen together on
conversations, each scored with what was best on the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.records import Hits, RetrieveMode

LEXICAL_WEIGHT = 0.75
VECTOR_WEIGHT = 0.25
SPEAKER_BOOST = 0.1
"""What is added to the score, as a share of it, of what somebody said whom the query names."""


DEFAULT_HALF_LIFE_US = 7 * 86_400_000_000


class ScoreWeights(msgspec.Struct, frozen=True):
    """How much each part counts in a score; they are relative."""

    lexical: float = LEXICAL_WEIGHT
    vector: float = VECTOR_WEIGHT
    recency: float = 0.0
    recency_half_life_us: int = DEFAULT_HALF_LIFE_US
    importance: float = 0.0
    usage: float = 0.0


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


Shares = tuple[Contribution, ...]


class Ranked(msgspec.Struct):
    """Scores and positions of items, the best first; `shares` by position, where they are explained."""

    order: list[tuple[float, int]]
    shares: dict[int, Shares] = {}


def merged(found: Sequence[Hits]) -> Hits:
    """Return the hits of several searches by the same channels as one, each item once."""
    whole = Hits()
    seen: set[int] = set()
    vector: list[float | None] = []
    lexical: list[float] = []
    named: list[bool] = []
    for hits in found:
        for at, position in enumerate(hits.positions):
            if position in seen:
                continue
            seen.add(position)
            whole.positions.append(position)
            if hits.vector_scores is not None:
                vector.append(hits.vector_scores[at])
            if hits.lexical_scores is not None:
                lexical.append(hits.lexical_scores[at])
            named.append(hits.named is not None and hits.named[at])
    whole.vector_scores = vector or None
    whole.lexical_scores = lexical or None
    whole.named = named
    return whole


def rank(hits: Hits, mode: RetrieveMode, *, explain: bool) -> Ranked:
    """Return hits by score, the best first; of equal ones the newer first."""
    ranked = _by_both(hits, explain) if mode is RetrieveMode.HYBRID else _by_one(hits, mode, explain)
    if hits.named is not None and any(hits.named):
        # A hybrid score is at most 1 also for what is favoured; BM25 has no such bound.
        whole = 1 + SPEAKER_BOOST if mode is RetrieveMode.HYBRID else 1.0
        spoken = {p for p, named in zip(hits.positions, hits.named, strict=True) if named}
        _favour(spoken, ranked, whole, explain)
    # Compared as pairs: by score, then by position, which is higher for the newer.
    ranked.order.sort(reverse=True)
    return ranked


def _favour(spoken: set[int], ranked: Ranked, whole: float, explain: bool) -> None:
    """Raise what somebody said whom the query names, and divide every score by `whole`."""
    if explain:
        for score, position in ranked.order:
            shares = [msgspec.structs.replace(s, weight=s.weight / whole) for s in ranked.shares[position]]
            if position in spoken:
                shares.append(Contribution("speaker", score, SPEAKER_BOOST / whole, 1.0))
            ranked.shares[position] = tuple(shares)
    ranked.order = [
        (s * (1 + SPEAKER_BOOST) / whole if p in spoken else s / whole, p) for s, p in ranked.order
    ]


def _by_one(hits: Hits, mode: RetrieveMode, explain: bool) -> Ranked:
    channel, scores = _channel(hits, mode)
    order = list(zip(scores, hits.positions, strict=True))
    if mode is RetrieveMode.LEXICAL:
        order = [pair for pair in order if pair[0] > 0]
    ranked = Ranked(order)
    if explain:
        ranked.shares = {p: (Contribution(channel, score, 1.0, 1.0),) for score, p in order}
    return ranked


def _channel(hits: Hits, mode: RetrieveMode) -> tuple[str, Sequence[float]]:
    if mode is RetrieveMode.LEXICAL:
        return "lexical", hits.lexical_scores or ()
    return "vector", [score or 0.0 for score in hits.vector_scores or ()]


def _by_both(hits: Hits, explain: bool) -> Ranked:
    nothing = [0.0] * len(hits.positions)
    lexical = hits.lexical_scores or nothing
    vector = [score or 0.0 for score in hits.vector_scores or nothing]
    best_lexical = max(lexical, default=0.0) or 1.0
    best_vector = max(vector, default=0.0)
    best_vector = best_vector if best_vector > 0 else 1.0
    # A vector that points away does not take from what the words found.
    order = [
        (w / best_lexical * LEXICAL_WEIGHT + (v / best_vector * VECTOR_WEIGHT if v > 0 else 0.0), position)
        for position, v, w in zip(hits.positions, vector, lexical, strict=True)
    ]
    if not explain:
        return Ranked(order)
    return Ranked(
        order,
        {
            position: (
                Contribution("lexical", w, LEXICAL_WEIGHT, best_lexical),
                Contribution("vector", v, VECTOR_WEIGHT, best_vector, max(v, 0.0)),
            )
            for position, v, w in zip(hits.positions, vector, lexical, strict=True)
        },
    )
