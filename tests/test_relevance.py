"""Relevance from the share of words and the cosine, and that of several queries."""

from __future__ import annotations

import pytest

from memory_service.data_model import Hits
from memory_service.domain.fusing import FusedRelevance, fused
from memory_service.domain.ranking import Ranked
from memory_service.domain.relevance import Relevance

_SCALE = (0.25, 0.75)


def test_it_is_the_mean_of_the_share_and_the_cosine_on_its_scale() -> None:
    hits = Hits([7, 3, 5, 4], [0.5, 0.1, None, 0.9], word_shares=[1.0, 0.0, 0.25, 1 / 3])
    assert Relevance(hits, _SCALE).of([3, 4, 5, 7, 6]) == [0.0, 0.6667, 0.25, 0.75, -1.0]


def test_it_is_either_where_the_other_is_unknown() -> None:
    assert Relevance(Hits([1, 2], [0.5, -1.0]), _SCALE).of([1, 2]) == [0.5, 0.0]
    assert Relevance(Hits([1], word_shares=[0.4]), _SCALE).of([1]) == [0.4]
    assert Relevance(Hits(), _SCALE).of([1]) == [-1.0]


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        Relevance(Hits([1, 2], [0.5]), _SCALE).of([1])


def test_several_queries_are_fused_by_rank() -> None:
    first = Ranked([(0.9, 1), (0.8, 2)], relevance=Relevance(Hits([1, 2], [0.5, 0.75]), _SCALE))
    second = Ranked([(5.0, 2), (4.0, 3)], relevance=Relevance(Hits([2, 3], [0.3, 0.5]), _SCALE))
    found = fused([first, second], -1, 2, explain=True)
    assert found.order == [(pytest.approx((61 / 62 + 1) / 2), 2), (pytest.approx(0.5), 1)]
    assert found.matched == {1: [], 2: [], 3: [0]}
    assert found.relevance is not None and found.relevance.of([2, 1]) == [1.0, 0.5]
    assert isinstance(found.relevance, FusedRelevance)
    for score, position in found.order:
        assert sum(share.value for share in found.shares[position]) == pytest.approx(score)
