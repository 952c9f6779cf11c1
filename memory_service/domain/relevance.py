"""How likely a result answers its query: 0 to 1, whatever the other results, so that an answer may be empty.

A score is relative to the best of a search. Relevance compares with what unrelated texts reach: it is the
mean of the share of the query's words in a result and of its cosine, on a scale from unrelated to certainly
related. On conversations, 0.5 separates questions that these answer from questions about others;
`python -m benchmarks.answerable` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from memory_service.data_model import Hits
from memory_service.embedders.base import CosineScale

_DIGITS = 4


class Relevance:
    """The relevance of the hits of one search."""

    def __init__(self, hits: Hits, scale: CosineScale) -> None:
        self._hits = hits
        self._scale = scale

    @cached_property
    def _at(self) -> dict[int, int]:
        return {position: at for at, position in enumerate(self._hits.positions)}

    def __contains__(self, position: int) -> bool:
        return position in self._at

    def of(self, positions: Sequence[int]) -> list[float]:
        """Return the relevance of the hits at these positions."""
        places = self._at
        shares, cosines = self._hits.word_shares, self._hits.vector_scores
        found = []
        for position in positions:
            at = places[position]
            share = None if shares is None else shares[at]
            cosine = None if cosines is None else cosines[at]
            found.append(_relevance(share, cosine, self._scale))
        return found


def _relevance(share: float | None, cosine: float | None, scale: CosineScale) -> float:
    if cosine is None:
        return round(share or 0.0, _DIGITS)
    unrelated, related = scale
    similarity = min(max((cosine - unrelated) / (related - unrelated), 0.0), 1.0)
    return round(similarity if share is None else (share + similarity) / 2, _DIGITS)
