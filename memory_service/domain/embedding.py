"""Which texts are embedded, and what to say when one cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.embedders.base import Embedder
from memory_service.errors import Unavailable
from memory_service.records import DegradationReason, NamespaceInfo, Vector


@dataclass(frozen=True)
class Degradation:
    """Something that could not be done for an answer."""

    reason: DegradationReason
    message: str


_NO_EMBEDDER = Degradation(
    DegradationReason.NO_EMBEDDER, "the server runs without an embedder: text is found by its words alone"
)
_UNAVAILABLE = Degradation(
    DegradationReason.EMBEDDER_UNAVAILABLE,
    "the embedder does not answer: text was searched by its words alone",
)
_FOREIGN = Degradation(
    DegradationReason.FOREIGN_VECTORS,
    "the vectors of the namespace do not come from the server's embedder: text is found by its words alone",
)


class TextEmbedding:
    """Embeds for one namespace at a time, and never mixes vectors of two models in one."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder

    @property
    def model(self) -> str:
        """The name of the embedder."""
        return self.embedder.name if self.embedder else ""

    def obstacle(self, info: NamespaceInfo | None) -> Degradation | None:
        """Return why text cannot be embedded for a namespace; None when it can."""
        if self.embedder is None:
            return _NO_EMBEDDER
        if info is None or not info.dimension:
            return None
        fits = not self.embedder.dimension or info.dimension == self.embedder.dimension
        return None if info.model == self.embedder.name and fits else _FOREIGN

    @property
    def foreign(self) -> Degradation:
        """The degradation of a namespace whose vectors are its clients' own."""
        return _FOREIGN

    async def vectors(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts to be stored. Raises Unavailable: then nothing is written."""
        assert self.embedder is not None
        return await self.embedder.embed(texts)

    async def query(self, text: str) -> tuple[Vector | None, Degradation | None]:
        """Embed a text to be searched for; what fails costs the vector only, and is told."""
        assert self.embedder is not None
        try:
            return (await self.embedder.embed([text]))[0], None
        except Unavailable:
            return None, _UNAVAILABLE
