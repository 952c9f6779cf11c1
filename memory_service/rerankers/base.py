"""The contract of a reranker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class CannotLoad(RuntimeError):
    """The reranker cannot be loaded; tells why, for who runs the server."""


class RerankerFailed(Exception):
    """The reranker gave no scores that can be used."""


class Reranker(ABC):
    """Tells how well texts answer a query. No reranker at all is None, not one that does nothing."""

    name: str
    """Provider and model, as in "fastembed:Xenova/ms-marco-MiniLM-L-6-v2"."""

    @abstractmethod
    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each text, in order: a log-odds, 0 for one that may answer or may not.

        A score MUST be finite, and MUST NOT depend on the other texts but for rounding. Texts that are
        longer than the model takes are cut. It MUST NOT hold up the event loop, and MUST NOT score for
        more calls at once than the machine has cores; when it is cancelled it MUST soon stop working.
        Raises RerankerFailed when there are no scores; the call may be repeated.
        """

    async def close(self) -> None:
        """Release what it holds."""
        return
