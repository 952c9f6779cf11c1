"""The embedder contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from memory_service.data_model import Vector
from memory_service.errors import Unavailable

CosineScale = tuple[float, float]
"""The cosine that a query hardly reaches with unrelated texts, and one that only related texts reach."""

UNKNOWN_SCALE: CosineScale = (0.25, 0.65)
"""For vectors of an unknown model, such as those of clients."""


class TextsRefused(Unavailable):
    """The provider rejects these texts, or one of them, and would do so again."""

    def __init__(self) -> None:
        super().__init__("EMBEDDER_UNAVAILABLE", "the embedder rejects the text")


class Embedder(ABC):
    """Turns texts into vectors. For no embedder, use None instead of one that does nothing."""

    name: str
    """Provider and model, as in "local:wordllama-256". Vectors of the same name are comparable."""
    dimension: int
    """Values per vector; 0 until the first `embed` if only the provider knows."""
    duplicate_threshold: float
    """The cosine above which two short facts may say the same.

    Necessary but not sufficient: vectors barely reflect a "not" or a different number. It differs by model.
    """

    cosine_scale: CosineScale = UNKNOWN_SCALE
    """By which the relevance of results is judged. Doubled: results found by meaning only seem unrelated."""

    @abstractmethod
    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        """Return a vector for each text, in order; None for a text with nothing to embed.

        Vectors MUST be finite, not zero, and have `dimension` values. Equal texts MUST get equal vectors,
        whatever they are embedded together with. Raises Unavailable("EMBEDDER_UNAVAILABLE") if the provider
        does not answer in time or answers with anything but vectors; the call may be repeated. Raises
        TextsRefused if the provider will never accept one of the texts.

        With `background` no caller waits for the result: it may take longer, and MUST give way to other
        calls.
        """

    async def close(self) -> None:
        """Release connections."""
        return
