"""Scoring: all contributions add up, whatever is weighted, boosted or missing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_service.data_model import Hits, RetrieveMode
from memory_service.domain.ranking import (
    BOOST,
    DEFAULT_HALF_LIFE_US,
    Ranked,
    ScoreWeights,
    Scoring,
    rank,
    within,
)
from memory_service.errors import InvalidArgument

DAY = 86_400_000_000
NOW = 1_700_000_000_000_000
HYBRID, VECTOR, LEXICAL = RetrieveMode.HYBRID, RetrieveMode.VECTOR, RetrieveMode.LEXICAL

_REPEATABLE = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
_weight = st.sampled_from([0.0, 1e-12, 0.1, 0.25, 1.0, 7.0, 1e9])
_hit = st.tuples(
    st.one_of(st.none(), st.floats(-1, 1)),
    st.one_of(st.just(0.0), st.floats(0, 60)),
    st.booleans(),
    st.integers(NOW - 5000 * DAY, NOW + 20 * DAY),
    st.floats(0, 1),
    st.integers(0, 10_000),
)


def weighing(**weights: float) -> Scoring:
    """Return a hybrid scoring at NOW with these weights."""
    return Scoring(HYBRID, ScoreWeights(**weights), NOW)  # type: ignore[arg-type]


def hits_of(rows: list[tuple[Any, ...]], mode: RetrieveMode = HYBRID) -> Hits:
    """Return hits for rows of (vector, lexical, named, create_us, importance, use_count), and word shares."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    return Hits(
        list(range(1, len(rows) + 1)),
        None if mode is LEXICAL else columns[0],
        None if mode is VECTOR else columns[1],
        None if mode is VECTOR else columns[2],
        *columns[3:],
    )


def scores(ranked: Ranked) -> dict[int, float]:
    return {position: score for score, position in ranked.order}


def channels(ranked: Ranked, position: int) -> dict[str, float]:
    return {share.channel: share.value for share in ranked.shares[position]}


@_REPEATABLE
@given(
    rows=st.lists(_hit, max_size=12),
    mode=st.sampled_from([HYBRID, VECTOR, LEXICAL]),
    weights=st.builds(
        ScoreWeights,
        lexical=_weight,
        vector=_weight,
        recency=_weight,
        recency_half_life_us=st.sampled_from([1, DAY, 10**15]),
        importance=_weight,
        usage=_weight,
    ),
    timed=st.sets(st.integers(1, 12)),
    quoted=st.sets(st.integers(1, 12)),
)
def test_shares_add_up_to_the_score_in_every_mode(
    rows: list[tuple[Any, ...]],
    mode: RetrieveMode,
    weights: ScoreWeights,
    timed: set[int],
    quoted: set[int],
) -> None:
    try:
        weights.check("weights")
    except InvalidArgument:
        return
    hits, scoring = hits_of(rows, mode), Scoring(mode, weights, NOW)
    there = set(hits.positions)
    boosts = {} if mode is VECTOR else {"time": timed & there, "phrase": quoted & there}
    ranked = rank(hits, scoring, boosts, explain=True)
    assert ranked.order == rank(hits, scoring, boosts, explain=False).order
    some = rank(hits, scoring, boosts, 3, explain=True)
    assert some.order == ranked.order[:3]
    assert some.shares == {position: ranked.shares[position] for _, position in some.order}
    assert ranked.order == sorted(ranked.order, reverse=True)
    assert {position for _, position in ranked.order} <= there
    for score, position in ranked.order:
        assert math.isfinite(score)
        assert sum(s.value for s in ranked.shares[position]) == pytest.approx(score, rel=1e-9, abs=1e-12)
        assert not scoring.is_sum or -1e-12 <= score <= 1 + 1e-9
        for share in ranked.shares[position]:
            direct = share.raw_score / share.scale * share.weight
            expected = max(direct, 0.0) if scoring.is_sum else direct
            assert share.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert mode is LEXICAL or len(ranked.order) == len(rows)


@_REPEATABLE
@given(rows=st.lists(_hit, min_size=1, max_size=12))
def test_the_default_weights_are_three_quarters_words_and_one_vectors(rows: list[tuple[Any, ...]]) -> None:
    hits = hits_of(rows)
    best_words = max(row[1] for row in rows) or 1.0
    best_vector = max(row[0] or 0.0 for row in rows)
    best_vector = best_vector if best_vector > 0 else 1.0
    expected = {}
    for position, (vector, words, named, *_) in enumerate(rows, 1):
        score = words / best_words * 0.75 + max(vector or 0.0, 0.0) / best_vector * 0.25
        favoured = any(row[2] for row in rows)
        expected[position] = score * (1.1 if named else 1.0) / 1.1 if favoured else score
    # To the last bit, because a page token may continue yesterday's pages.
    assert scores(rank(hits, Scoring(HYBRID), explain=False)) == expected


def test_without_weights_of_items_one_channel_gives_its_own_scores() -> None:
    rows = [(-0.5, 3.0, False, NOW, 1.0, 9), (None, 0.0, False, NOW, 0.0, 0), (0.9, 40.0, False, NOW, 0.0, 0)]
    weights = ScoreWeights(lexical=0.0, vector=5.0)
    found = rank(hits_of(rows, VECTOR), Scoring(VECTOR, weights), explain=True)
    assert found.order == [(0.9, 3), (0.0, 2), (-0.5, 1)]
    found = rank(hits_of(rows, LEXICAL), Scoring(LEXICAL, weights), explain=True)
    assert found.order == [(40.0, 3), (3.0, 1)]


def test_weights_are_relative() -> None:
    rows = [(0.4, 9.0, False, NOW - DAY, 0.2, 1), (0.9, 1.0, False, NOW, 0.9, 0)]
    few, many = (
        weighing(recency=0.5, importance=0.25),
        weighing(lexical=75, vector=25, recency=50, importance=25),
    )
    assert scores(rank(hits_of(rows), few, explain=False)) == pytest.approx(
        scores(rank(hits_of(rows), many, explain=False))
    )


@pytest.mark.parametrize("weight", ["lexical", "vector", "recency", "importance", "usage"])
def test_a_weight_alone_orders_by_its_channel(weight: str) -> None:
    # Each item is the best by one channel.
    old = NOW - 9 * DAY
    plain = {"vector": 0.1, "lexical": 1.0, "named": False, "recency": old, "importance": 0.1, "usage": 1}
    better = {"vector": 0.9, "lexical": 9.0, "recency": NOW, "importance": 1.0, "usage": 50}
    rows = [tuple((plain | {name: value}).values()) for name, value in better.items()]
    alone = dict.fromkeys(("lexical", "vector"), 0.0) | {weight: 2.0}
    ranked = rank(hits_of(rows), weighing(**alone), explain=True)
    assert ranked.order[0][1] == list(better).index(weight) + 1
    assert {c for _, p in ranked.order for c, v in channels(ranked, p).items() if v} == {weight}


def test_recency_halves_with_each_half_life_and_is_whole_in_the_future() -> None:
    ages = [0, DAY, 2 * DAY, -DAY, -400 * DAY]
    rows = [(None, 1.0, False, NOW - age, 0.5, 0) for age in ages]
    weights = {"lexical": 0.0, "vector": 0.0, "recency": 1.0}
    found = scores(rank(hits_of(rows), weighing(**weights, recency_half_life_us=DAY), explain=False))
    assert [found[p] for p in range(1, 6)] == pytest.approx([1.0, 0.5, 0.25, 1.0, 1.0])
    found = scores(rank(hits_of(rows), weighing(**weights), explain=False))
    assert found[2] == pytest.approx(0.5 ** (DAY / DEFAULT_HALF_LIFE_US))


def test_importance_counts_as_it_is_and_use_the_less_the_more_there_was() -> None:
    rows = [(None, 1.0, False, NOW, i / 10, uses) for i, uses in enumerate([0, 3, 9, 10**9])]
    nothing = {"lexical": 0.0, "vector": 0.0}
    found = scores(rank(hits_of(rows), weighing(**nothing, importance=1.0), explain=False))
    assert [found[p] for p in range(1, 5)] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    found = scores(rank(hits_of(rows), weighing(**nothing, usage=1.0), explain=False))
    assert [found[p] for p in range(1, 5)] == pytest.approx([0.0, 0.5, 0.75, 1.0], abs=1e-8)


@pytest.mark.parametrize("mode", [HYBRID, LEXICAL])
def test_each_boost_adds_a_tenth(mode: RetrieveMode) -> None:
    rows = [(0.5, 4.0, named, NOW, 0.5, 0) for named in (False, True, True, False)]
    boosts = {"time": {3}, "phrase": {3, 4}, "nobody's": set()}
    ranked = rank(hits_of(rows, mode), Scoring(mode), boosts, explain=True)
    base = 1.0 if mode is HYBRID else 4.0
    whole = 1 + 3 * BOOST if mode is HYBRID else 1.0
    expected = {1: base, 2: 1.1 * base, 3: 1.3 * base, 4: 1.1 * base}
    assert scores(ranked) == pytest.approx({p: score / whole for p, score in expected.items()})
    assert set(channels(ranked, 3)) - {"lexical", "vector"} == {"speaker", "time", "phrase"}
    assert channels(ranked, 4)["phrase"] == pytest.approx(base * BOOST / whole)
    assert set(channels(ranked, 1)) <= {"lexical", "vector"}


def test_a_boost_is_for_times_within_a_span() -> None:
    rows = [(None, 1.0, False, NOW + at, 0.5, 0) for at in (-1, 0, 9, 10)]
    assert within(hits_of(rows), [(NOW, NOW + 10)]) == {2, 3}
    assert within(hits_of(rows), [(NOW + 9, NOW + 10), (0, NOW)]) == {1, 3}
    assert within(hits_of(rows), []) == within(Hits(), [(0, NOW)]) == set()


@pytest.mark.parametrize("name", ["lexical", "vector", "recency", "importance", "usage"])
@pytest.mark.parametrize("value", [-1e-9, -math.inf, math.inf, math.nan])
def test_a_weight_that_is_no_number_from_0_on_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidArgument) as raised:
        ScoreWeights(**{name: value}).check("options.weights")  # type: ignore[arg-type]
    assert raised.value.field == f"options.weights.{name}"


@pytest.mark.parametrize(
    ("weights", "field"),
    [
        (ScoreWeights(lexical=0.0, vector=0.0), "options.weights"),
        (ScoreWeights(lexical=1.5e308, vector=1.5e308), "options.weights"),
        (ScoreWeights(recency_half_life_us=0), "options.weights.recency_half_life"),
        (ScoreWeights(recency_half_life_us=-DAY), "options.weights.recency_half_life"),
    ],
    ids=["none above 0", "sum beyond numbers", "no half-life", "negative half-life"],
)
def test_weights_that_make_no_score_are_refused(weights: ScoreWeights, field: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        weights.check("options.weights")
    assert raised.value.field == field
