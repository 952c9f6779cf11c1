"""How what was found becomes one order.

In a hybrid search each channel's scores are divided by the best of the query and summed by weight. On
conversations this finds more than reciprocal rank fusion, which buries what one channel alone finds.
The weights of words and vectors, the boost of a speaker and what the neighbours of a turn count
(indexes/turns.py) were chosen together on conversations, each scored with what was best on the others.

A boost adds a share of the score to what fits something that the query says: mild, and never a filter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.errors import InvalidArgument
from memory_service.records import Hits, RetrieveMode

LEXICAL_WEIGHT = 0.75
VECTOR_WEIGHT = 0.25
BOOST = 0.1
"""What a boost adds to a score, as a share of it."""

DEFAULT_HALF_LIFE_US = 7 * 86_400_000_000
_USES_OF_ONE_HALF = 3


class ScoreWeights(msgspec.Struct, frozen=True):
    """How much each part counts in a score; they are relative."""

    lexical: float = LEXICAL_WEIGHT
    vector: float = VECTOR_WEIGHT
    recency: float = 0.0
    recency_half_life_us: int = DEFAULT_HALF_LIFE_US
    importance: float = 0.0
    usage: float = 0.0

    @property
    def weigh_items(self) -> bool:
        """Whether something of the items themselves counts, beside what the query has to do with them."""
        return bool(self.recency or self.importance or self.usage)

    def check(self, field: str) -> None:
        """Raise InvalidArgument, of a part of `field`, where a score cannot be built with these."""
        parts = {
            name: getattr(self, name) for name in ("lexical", "vector", "recency", "importance", "usage")
        }
        for name, weight in parts.items():
            if not 0 <= weight < math.inf:
                raise InvalidArgument(f"{field}.{name}", "must be a finite number that is not negative")
        if self.recency_half_life_us <= 0:
            raise InvalidArgument(f"{field}.recency_half_life", "must be positive")
        if not 0 < sum(parts.values()) < math.inf:
            raise InvalidArgument(field, "must have a sum that is finite and above 0")


DEFAULT_WEIGHTS = ScoreWeights()


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


class Scoring(msgspec.Struct, frozen=True):
    """How scores are made. Ages count back from `now_us`."""

    mode: RetrieveMode
    weights: ScoreWeights = DEFAULT_WEIGHTS
    now_us: int = 0

    @property
    def is_sum(self) -> bool:
        """Whether a score is a weighted sum, 0 to 1, and not the bare score of one channel."""
        return self.mode is RetrieveMode.HYBRID or self.weights.weigh_items


class Ranked(msgspec.Struct):
    """Scores and positions of items, the best first; `shares` by position, where they are explained."""

    order: list[tuple[float, int]]
    shares: dict[int, Shares] = {}


def merged(found: Sequence[Hits]) -> Hits:
    """Return the hits of several searches by the same channels as one, each item once."""
    places: dict[int, tuple[Hits, int]] = {}
    for hits in found:
        for at, position in enumerate(hits.positions):
            places.setdefault(position, (hits, at))
    whole = Hits(list(places))
    for name in ("vector_scores", "lexical_scores", "create_us", "importances", "use_counts"):
        # A search that finds nothing need not have its columns.
        columns = [(getattr(hits, name), at) for hits, at in places.values()]
        if columns and columns[0][0] is not None:
            setattr(whole, name, [column[at] for column, at in columns])
    whole.named = [hits.named is not None and hits.named[at] for hits, at in places.values()]
    return whole


def rank(
    hits: Hits, scoring: Scoring, boosts: Mapping[str, Collection[int]] | None = None, *, explain: bool
) -> Ranked:
    """Return hits by score, the best first; of equal ones the newer first.

    `boosts` has for each the positions of the items found that it is for, beside that of the speaker.
    """
    ranked = _by_sum(hits, scoring, explain) if scoring.is_sum else _by_one(hits, scoring.mode, explain)
    given = [(name, its) for name, its in boosts.items() if its] if boosts else []
    if hits.named is not None and any(hits.named):
        given.append(("speaker", {p for p, named in zip(hits.positions, hits.named, strict=True) if named}))
    if given:
        _favour(ranked, given, scoring.is_sum, explain)
    # Compared as pairs: by score, then by position, which is higher for the newer.
    ranked.order.sort(reverse=True)
    return ranked


def within(hits: Hits, spans: Sequence[tuple[int, int]]) -> set[int]:
    """Return the positions of what was made within one of the spans."""
    times = zip(hits.positions, hits.create_us or (), strict=False)
    return {p for p, time in times if any(start <= time < end for start, end in spans)}


def _favour(
    ranked: Ranked, boosts: Sequence[tuple[str, Collection[int]]], divided: bool, explain: bool
) -> None:
    """Raise what the boosts are for.

    Where scores are `divided` they stay at most 1; BM25 has no such bound.
    """
    whole = 1 + BOOST * len(boosts) if divided else 1.0
    if explain:
        for score, position in ranked.order:
            shares = [msgspec.structs.replace(s, weight=s.weight / whole) for s in ranked.shares[position]]
            shares += [
                Contribution(name, score, BOOST / whole, 1.0) for name, its in boosts if position in its
            ]
            ranked.shares[position] = tuple(shares)
    raised = 1 + BOOST
    if len(boosts) == 1:
        ((_, its),) = boosts
        ranked.order = [(s * raised / whole if p in its else s / whole, p) for s, p in ranked.order]
        return
    factors = [(1 + BOOST * count) / whole for count in range(len(boosts) + 1)]
    ranked.order = [(s * factors[sum(p in its for _, its in boosts)], p) for s, p in ranked.order]


def _by_one(hits: Hits, mode: RetrieveMode, explain: bool) -> Ranked:
    """Score by one channel alone, by what it gives."""
    if mode is RetrieveMode.LEXICAL:
        channel, scores = "lexical", hits.lexical_scores or ()
        order = [pair for pair in zip(scores, hits.positions, strict=False) if pair[0] > 0]
    else:
        channel = "vector"
        order = [
            (score or 0.0, p) for score, p in zip(hits.vector_scores or (), hits.positions, strict=False)
        ]
    ranked = Ranked(order)
    if explain:
        ranked.shares = {p: (Contribution(channel, score, 1.0, 1.0),) for score, p in order}
    return ranked


@dataclass(slots=True)
class _Channel:
    """A column of scores, what counts of them, their weight in the sum and what they are divided by."""

    name: str
    scores: Sequence[float | None]
    counted: NDArray[np.float64]
    weight: float
    scale: float = 1.0

    @classmethod
    def found(cls, name: str, scores: Sequence[float | None] | None, count: int, weight: float) -> _Channel:
        """Return the scores of a search, which are divided by the best of them.

        A vector that is not there, or points away, does not take from what the words found.
        """
        scores = scores or [0.0] * count
        counted = np.fmax(np.array(scores, np.float64), 0.0)
        best = float(counted.max(initial=0.0))
        return cls(name, scores, counted, weight, best if best > 0 else 1.0)

    @classmethod
    def told(cls, name: str, values: NDArray[np.float64], weight: float) -> _Channel:
        """Return what is told of the items themselves, 0 to 1."""
        return cls(name, values.tolist(), values, weight)

    def share(self, at: int) -> Contribution:
        """Return the share of one item."""
        raw = self.scores[at] or 0.0
        return Contribution(self.name, raw, self.weight, self.scale, max(raw, 0.0))


def _by_sum(hits: Hits, scoring: Scoring, explain: bool) -> Ranked:
    """Score by the weighted sum of all that counts, each divided by the best there can be."""
    channels = _channels(hits, scoring)
    sums = sum(c.counted / c.scale * c.weight for c in channels)
    order = list(zip(cast("NDArray[np.float64]", sums).tolist(), hits.positions, strict=True))
    ranked = Ranked(order)
    if scoring.mode is RetrieveMode.LEXICAL:
        ranked.order = [pair for pair, words in zip(order, channels[0].scores, strict=True) if words]
    if explain:
        ranked.shares = {p: tuple(c.share(at) for c in channels) for at, p in enumerate(hits.positions)}
    return ranked


def _channels(hits: Hits, scoring: Scoring) -> list[_Channel]:
    """Return what counts, the weights made to sum up to 1."""
    weights, mode, count = scoring.weights, scoring.mode, len(hits.positions)
    channels = []
    if mode is not RetrieveMode.VECTOR:
        channels.append(_Channel.found("lexical", hits.lexical_scores, count, weights.lexical))
    if mode is not RetrieveMode.LEXICAL:
        channels.append(_Channel.found("vector", hits.vector_scores, count, weights.vector))
    if weights.recency:
        ages = np.maximum(scoring.now_us - np.array(hits.create_us or (), np.float64), 0.0)
        channels.append(
            _Channel.told("recency", 0.5 ** (ages / weights.recency_half_life_us), weights.recency)
        )
    if weights.importance:
        importances = np.array(hits.importances or (), np.float64)
        channels.append(_Channel.told("importance", importances, weights.importance))
    if weights.usage:
        uses = np.array(hits.use_counts or (), np.float64)
        channels.append(_Channel.told("usage", uses / (uses + _USES_OF_ONE_HALF), weights.usage))
    total = sum(channel.weight for channel in channels)
    for channel in channels:
        channel.weight /= total
    return channels
