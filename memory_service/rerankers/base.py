"""The reranker contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class CannotLoad(RuntimeError):
    """The reranker cannot be loaded; the message gives the operator the reason."""


class RerankerFailed(Exception):
    """The reranker returned no usable scores."""


class Reranker(ABC):
    """Scores how well texts answer a query. For no reranker, use None instead of one that does nothing."""

    name: str
    """Provider and model, as in "fastembed:Xenova/ms-marco-MiniLM-L-6-v2"."""

    @abstractmethod
    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each text, in order, as log-odds: 0 means as likely as not to answer the query.

        A score MUST be finite and MUST NOT depend on the other texts, except for rounding. Texts longer than
        the model's limit are cut. It MUST NOT block the event loop, MUST NOT score for more calls at once
        than the machine has cores, and MUST stop working soon after cancellation. Raises RerankerFailed when
        there are no scores; the call may be repeated.
        """

    async def close(self) -> None:
        """Release its resources."""
        return
