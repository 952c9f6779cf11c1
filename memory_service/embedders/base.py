"""The embedder contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from memory_service.data_model import Vector
from memory_service.errors import Unavailable


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
