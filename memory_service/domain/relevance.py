"""How much a result has to do with its query: 0 to 1, whatever the other results. An answer may be empty.

A score is relative to the best of a search. Relevance compares with what unrelated texts reach: it is the
mean of the share of the query's words in a result and of its cosine, on a scale from unrelated to certainly
related. On conversations, 0.5 separates questions that these answer from questions about others;
`python -m benchmarks.answerable` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Hits
from memory_service.domain.weighted_sums import relevances
from memory_service.embedders.base import CosineScale


class Relevance:
    """The relevance of the hits of one search."""

    def __init__(self, hits: Hits, scale: CosineScale) -> None:
        self._hits = hits
        self._scale = scale

    def of(self, positions: Sequence[int]) -> list[float]:
        """Return the relevance of the items at these positions; -1.0 for one that is no hit."""
        hits = self._hits
        return relevances(list(positions), hits.positions, hits.word_shares, hits.vector_scores, *self._scale)
