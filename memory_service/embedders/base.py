"""The contract of an embedder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from memory_service.data_model import Vector
from memory_service.errors import Unavailable


class TextsRefused(Unavailable):
    """The provider refuses these texts, or one of them, and would do so again."""

    def __init__(self) -> None:
        super().__init__("EMBEDDER_UNAVAILABLE", "the embedder refuses the text")


class Embedder(ABC):
    """Turns texts into vectors. No embedder at all is None, not an embedder that does nothing."""

    name: str
    """Provider and model, as in "local:wordllama-256". Vectors of one name are comparable."""
    dimension: int
    """Values of each vector; 0 until the first `embed` where only the provider knows."""
    duplicate_threshold: float
    """Cosine that the vectors of two short facts must be above for the facts to say the same.

    Necessary, not sufficient: vectors hardly see a "not" or another number. Each model has its own.
    """

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        """Return a vector for each text, in order; None for a text with nothing to embed.

        Vectors MUST be finite and not zero, and of `dimension` values. Equal texts MUST have equal
        vectors, whatever they are embedded together with. Raises Unavailable("EMBEDDER_UNAVAILABLE")
        when the provider does not answer in time, or answers with something else than vectors; the call
        may be repeated. Where it will not take one of the texts ever, that is TextsRefused.

        With `background` no caller waits for it: it may take longer, and MUST leave their turn to others.
        """

    async def close(self) -> None:
        """Release connections."""
        return
