"""Embeds texts, and reports a degradation if that is impossible."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.data_model import DegradationReason, NamespaceInfo, Vector
from memory_service.embedders.base import UNKNOWN_SCALE, CosineScale, Embedder
from memory_service.errors import Unavailable


@dataclass(frozen=True)
class Degradation:
    """Something that an answer had to do without."""

    reason: DegradationReason
    message: str


_NO_EMBEDDER = Degradation(
    DegradationReason.NO_EMBEDDER, "the server has no embedder: text is searched only by words"
)
_UNAVAILABLE = Degradation(
    DegradationReason.EMBEDDER_UNAVAILABLE,
    "the embedder does not answer: text was searched only by words",
)
_FOREIGN = Degradation(
    DegradationReason.FOREIGN_VECTORS,
    "the vectors of the namespace do not come from the server's embedder: text is searched only by words",
)
_DELAYED = Degradation(
    DegradationReason.EMBEDDING_PENDING,
    "the embedder does not answer: until it does, text is searched only by words",
)


def pending_items(count: int) -> Degradation:
    """Return the degradation of a vector search while this many items are pending."""
    waiting = "1 item has" if count == 1 else f"{count} items have"
    return Degradation(
        DegradationReason.EMBEDDING_PENDING,
        f"{waiting} no vector yet, and can only be found by words",
    )


class WaitingNamespaces:
    """The namespaces known to have pending items, each once, in order of arrival."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._names)

    def add(self, namespace: str) -> None:
        """Append a namespace, unless it is waiting already."""
        self._names.setdefault(namespace)
        self._some.set()

    def take(self, count: int) -> list[str]:
        """Remove and return up to `count` namespaces from the front."""
        taken = list(self._names)[:count]
        for name in taken:
            del self._names[name]
        if not self._names:
            self._some.clear()
        return taken

    async def some(self) -> None:
        """Return as soon as a namespace is waiting."""
        await self._some.wait()


class TextEmbedding:
    """Embeds texts for one namespace at a time, and never mixes vectors of two models in it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self.waiting = WaitingNamespaces()
        self.answered = asyncio.Event()
        """Set whenever the embedder has answered a call."""

    @property
    def model(self) -> str:
        """The name of the embedding model."""
        return self.embedder.name if self.embedder else ""

    @property
    def dimension(self) -> int:
        """Dimension of the embedder's vectors; 0 if it is unknown or there is no embedder."""
        return self.embedder.dimension if self.embedder else 0

    def obstacle(self, info: NamespaceInfo | None) -> Degradation | None:
        """Return why texts cannot be embedded for a namespace; None if they can."""
        if self.embedder is None:
            return _NO_EMBEDDER
        if info is None or not info.model:
            return None
        fits = not self.embedder.dimension or info.dimension in (0, self.embedder.dimension)
        return None if info.model == self.embedder.name and fits else _FOREIGN

    @property
    def foreign(self) -> Degradation:
        """The degradation of a namespace whose vectors come from its clients."""
        return _FOREIGN

    @property
    def delayed(self) -> Degradation:
        """The degradation of a write whose vectors are filled in later."""
        return _DELAYED

    def scale(self, info: NamespaceInfo) -> CosineScale:
        """Return the scale of the cosines of a namespace's vectors."""
        if self.embedder is None or info.model != self.embedder.name:
            return UNKNOWN_SCALE
        return self.embedder.cosine_scale

    async def vectors(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts. Raises Unavailable."""
        assert self.embedder is not None
        vectors = await self.embedder.embed(texts)
        self.answered.set()
        return vectors

    async def fitting_vectors(
        self, info: NamespaceInfo | None, texts: Sequence[str]
    ) -> tuple[Sequence[Vector | None], Degradation | None]:
        """Embed texts for a namespace; no vectors but a degradation if there is an obstacle.

        Raises Unavailable.
        """
        vectors: Sequence[Vector | None] = ()
        obstacle = self.obstacle(info)
        if obstacle is None:
            vectors = await self.vectors(texts)
            # The first answer may have revealed a dimension that differs from the namespace's.
            obstacle = self.obstacle(info)
        return (vectors, None) if obstacle is None else ((), obstacle)

    async def query(self, info: NamespaceInfo | None, text: str) -> tuple[Vector | None, Degradation | None]:
        """Embed a search text for a namespace; on failure, return a degradation instead of the vector."""
        try:
            vectors, trouble = await self.fitting_vectors(info, [text])
        except Unavailable:
            return None, _UNAVAILABLE
        return vectors[0] if vectors else None, trouble
