"""Ranks hits in one order.

In a hybrid search each channel's scores are divided by the query's best and summed by weight. On
conversations this finds more than reciprocal rank fusion, which buries what only one channel finds. The
weights of words and vectors, the boost of a speaker and the weight of neighbouring turns (indexes/turns.py)
were chosen together on conversations; each conversation was scored with the values that were best on the
others.

A boost adds a share of the score to hits that match something else in the query: mild, and never a filter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from memory_service.data_model import Contribution, Hits, RetrieveMode
from memory_service.domain.relevance import Relevance
from memory_service.domain.weighted_sums import best_of, descending
from memory_service.errors import InvalidArgument

LEXICAL_WEIGHT = 0.75
VECTOR_WEIGHT = 0.25
BOOST = 0.1
"""What a boost adds to a score, as a share of it."""

DEFAULT_HALF_LIFE_US = 7 * 86_400_000_000
_USES_OF_ONE_HALF = 3


class ScoreWeights(msgspec.Struct, frozen=True):
    """Relative weights of the parts of a score."""

    lexical: float = LEXICAL_WEIGHT
    vector: float = VECTOR_WEIGHT
    recency: float = 0.0
    recency_half_life_us: int = DEFAULT_HALF_LIFE_US
    importance: float = 0.0
    usage: float = 0.0

    @property
    def weigh_items(self) -> bool:
        """Return whether properties of the items count, besides their match with the query."""
        return bool(self.recency or self.importance or self.usage)

    def check(self, field: str) -> None:
        """Raise InvalidArgument, naming a part of `field`, if these weights cannot make a score."""
        parts = {
            name: getattr(self, name) for name in ("lexical", "vector", "recency", "importance", "usage")
        }
        for name, weight in parts.items():
            if not 0 <= weight < math.inf:
                raise InvalidArgument(f"{field}.{name}", "must be a finite number of at least 0")
        if self.recency_half_life_us <= 0:
            raise InvalidArgument(f"{field}.recency_half_life", "must be positive")
        if not 0 < sum(parts.values()) < math.inf:
            raise InvalidArgument(field, "must have a finite sum above 0")


DEFAULT_WEIGHTS = ScoreWeights()


Shares = tuple[Contribution, ...]
Column = tuple[Sequence[float | None], float, float, float]


class Scoring(msgspec.Struct, frozen=True):
    """How to compute scores. Ages count back from `now_us`."""

    mode: RetrieveMode
    weights: ScoreWeights = DEFAULT_WEIGHTS
    now_us: int = 0

    @property
    def is_sum(self) -> bool:
        """Return whether a score is a weighted sum, 0 to 1, and not the plain score of one channel."""
        return self.mode is RetrieveMode.HYBRID or self.weights.weigh_items


class Ranked(msgspec.Struct):
    """Scores and positions of items, the best first; `shares` by position, if an explanation was
    requested. `matched` has the numbers of the queries that found each position, if there were several.
    """

    order: list[tuple[float, int]]
    shares: dict[int, Shares] = {}
    relevance: Relevance | None = None
    matched: dict[int, list[int]] = {}

    def keep(self, min_score: float | None, min_relevance: float | None) -> None:
        """Drop results below either."""
        if min_score is not None:
            self.order = [pair for pair in self.order if pair[0] >= min_score]
        if min_relevance is not None and self.relevance is not None:
            found = self.relevance.of([position for _, position in self.order])
            self.order = [pair for pair, its in zip(self.order, found, strict=True) if its >= min_relevance]


def rank(
    hits: Hits,
    scoring: Scoring,
    boosts: Mapping[str, Collection[int]] | None = None,
    limit: int | None = None,
    *,
    explain: bool,
) -> Ranked:
    """Return the best `limit` hits by score, the best first; of equal ones the newer first.

    `boosts` maps each boost, except that of the speaker, to the positions of the hits that it applies to.
    """
    if scoring.mode is RetrieveMode.LEXICAL:
        hits = _with_words(hits)
    channels = _channels(hits, scoring)
    given = _given(hits, boosts)
    # Normalized scores stay at most 1; BM25 has no such bound.
    whole = 1 + BOOST * len(given) if scoring.is_sum else 1.0
    columns = [channel.column for channel in channels]
    count = len(hits.positions) if limit is None else limit
    ranked = Ranked(descending(hits.positions, columns, _raised(given), whole, count))
    if explain:
        places = {position: at for at, position in enumerate(hits.positions)}
        ranked.shares = {p: _shares(channels, given, whole, places[p]) for _, p in ranked.order}
    return ranked


def _with_words(hits: Hits) -> Hits:
    """Return the hits that have a word of the query."""
    scores = hits.lexical_scores or ()
    if all(scores):
        return hits
    kept = [at for at, score in enumerate(scores) if score]
    whole = Hits([hits.positions[at] for at in kept])
    for name in ("lexical_scores", "named", "create_us", "importances", "use_counts"):
        if (column := getattr(hits, name)) is not None:
            setattr(whole, name, [column[at] for at in kept])
    return whole


def within(hits: Hits, spans: Sequence[tuple[int, int]]) -> set[int]:
    """Return the positions of the hits created within one of the spans."""
    positions, times = hits.positions, hits.create_us or ()
    return {p for start, end in spans for p, us in zip(positions, times, strict=False) if start <= us < end}


Boost = tuple[str, Sequence[bool]]
"""The name of a boost, and for each hit whether it applies."""


def _given(hits: Hits, boosts: Mapping[str, Collection[int]] | None) -> list[Boost]:
    """Return the boosts that apply to any hit."""
    given: list[Boost] = []
    for name, its in boosts.items() if boosts else ():
        if its:
            given.append((name, [position in its for position in hits.positions]))
    if hits.named is not None and True in hits.named:
        given.append(("speaker", hits.named))
    return given


def _raised(boosts: Sequence[Boost]) -> list[float] | None:
    """Return the factor by which boosts raise each hit's score; None without boosts."""
    if not boosts:
        return None
    if len(boosts) == 1:
        once = 1 + BOOST
        return [once if its else 1.0 for its in boosts[0][1]]
    return [1 + BOOST * sum(each) for each in zip(*(flags for _, flags in boosts), strict=True)]


def _shares(channels: Sequence[_Channel], boosts: Sequence[Boost], whole: float, at: int) -> Shares:
    """Return the parts that add up to the score of one hit."""
    shares = [channel.share(at, whole) for channel in channels]
    score = sum(channel.value(at) for channel in channels)
    shares += [Contribution(name, score, BOOST / whole, 1.0) for name, flags in boosts if flags[at]]
    return tuple(shares)


@dataclass(slots=True)
class _Channel:
    """A column of scores, their weight in the sum and their divisor.

    Values below `least` count as `least`: a vector that points in the opposite direction must not reduce the
    score by words.
    """

    name: str
    scores: Sequence[float | None]
    weight: float
    scale: float = 1.0
    least: float = 0.0

    @property
    def column(self) -> Column:
        """The channel in the form that is summed."""
        return self.scores, self.scale, self.weight, self.least

    def value(self, at: int) -> float:
        """Return its value for one item."""
        return max(self.scores[at] or 0.0, self.least) / self.scale * self.weight

    def share(self, at: int, whole: float) -> Contribution:
        """Return its share in the score of one item, with all weights divided by `whole`."""
        raw = self.scores[at] or 0.0
        return Contribution(self.name, raw, self.weight / whole, self.scale, max(raw, self.least))


def _channels(hits: Hits, scoring: Scoring) -> list[_Channel]:
    """Return the channels that count, with weights that sum up to 1."""
    weights, mode = scoring.weights, scoring.mode
    nothing = [0.0] * len(hits.positions)
    words, vectors = hits.lexical_scores or nothing, hits.vector_scores or nothing
    if not scoring.is_sum:
        name, scores = ("lexical", words) if mode is RetrieveMode.LEXICAL else ("vector", vectors)
        return [_Channel(name, scores, 1.0, least=-math.inf)]
    channels = []
    if mode is not RetrieveMode.VECTOR:
        channels.append(_Channel("lexical", words, weights.lexical, best_of(words)))
    if mode is not RetrieveMode.LEXICAL:
        channels.append(_Channel("vector", vectors, weights.vector, best_of(vectors)))
    if weights.recency:
        channels.append(_Channel("recency", _recencies(hits, scoring), weights.recency))
    if weights.importance:
        channels.append(_Channel("importance", list(hits.importances or ()), weights.importance))
    if weights.usage:
        shares = [uses / (uses + _USES_OF_ONE_HALF) for uses in hits.use_counts or ()]
        channels.append(_Channel("usage", shares, weights.usage))
    total = sum(channel.weight for channel in channels)
    for channel in channels:
        channel.weight /= total
    return channels


def _recencies(hits: Hits, scoring: Scoring) -> list[float]:
    """Return the recency of each hit, 0 to 1, halved with each half-life."""
    ages = np.maximum(scoring.now_us - np.array(hits.create_us or (), np.float64), 0.0)
    recencies: list[float] = (0.5 ** (ages / scoring.weights.recency_half_life_us)).tolist()
    return recencies
