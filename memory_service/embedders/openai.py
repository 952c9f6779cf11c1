"""Embeddings of OpenAI, or of any server with the same API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import numpy as np

from memory_service.data_model import Vector
from memory_service.embedders.base import UNKNOWN_SCALE, Embedder, TextsRefused
from memory_service.embedders.guard import BACKGROUND_TIMEOUT_S, Guard
from memory_service.errors import Unavailable
from memory_service.openai_api import ApiFailed, OpenAIApi
from memory_service.runtime.event_log import EventLog

_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
# Unrelated texts are this similar to text-embedding-ada-002.
_SCALES = {"text-embedding-ada-002": (0.75, 0.9)}
_TEXTS_PER_CALL = 256
_CHARS_PER_TEXT = 24_000
# Statuses for an invalid request, as opposed to a wrong key or model name.
_REFUSALS = (400, 413, 422)
_log = EventLog(__name__)


class OpenAIEmbedder(Embedder):
    """Uses an embeddings endpoint. OPENAI_API_KEY and OPENAI_BASE_URL mean the same as for `openai`."""

    # OpenAI's models score facts with the same meaning above this; only rules distinguish the others there.
    duplicate_threshold = 0.95

    def __init__(self, model: str, dimension: int, timeout_s: float, retries: int, pause_s: float) -> None:
        """`timeout_s` limits a caller's wait, retries included; `pause_s` as in `Guard`."""
        self.name = f"openai:{model}" + (f"-{dimension}" if dimension else "")
        self.dimension = dimension or _DIMENSIONS.get(model, 0)
        self.cosine_scale = _SCALES.get(model, UNKNOWN_SCALE)
        self._model = model
        self._asked_dimension = dimension
        self._api = OpenAIApi(max(timeout_s, BACKGROUND_TIMEOUT_S), retries)
        self._guard = Guard(timeout_s, pause_s)

    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        at = [n for n, text in enumerate(texts) if text.strip()]
        groups = [at[n : n + _TEXTS_PER_CALL] for n in range(0, len(at), _TEXTS_PER_CALL)]
        found = await asyncio.gather(
            *(
                self._guard.call(partial(self._ask, [texts[n] for n in group]), background=background)
                for group in groups
            )
        )
        vectors: list[Vector | None] = [None] * len(texts)
        for group, its_vectors in zip(groups, found, strict=True):
            for n, vector in zip(group, its_vectors, strict=True):
                vectors[n] = vector
        return vectors

    async def _ask(self, texts: list[str]) -> list[Vector]:
        cut = [text[:_CHARS_PER_TEXT] for text in texts]
        try:
            found = await self._api.embed(self._model, cut, self._asked_dimension)
            # Values beyond 32-bit floats become infinities, which `_check` rejects.
            with np.errstate(over="ignore"):
                vectors = [np.array(values, np.float32) for values in found]
        except (ApiFailed, TypeError, ValueError) as error:
            cause = error.cause if isinstance(error, ApiFailed) else type(error).__name__
            _log.warning("embedder_failed", model=self._model, cause=cause)
            if isinstance(error, ApiFailed) and error.status in _REFUSALS:
                raise TextsRefused from error
            raise Unavailable.embedder() from error
        self._check(vectors, len(texts))
        return vectors

    def _check(self, vectors: list[Vector], count: int) -> None:
        """Reject invalid responses: a wrong vector would stay in the index."""
        dimension = self.dimension or (len(vectors[0]) if vectors else 0)
        good = len(vectors) == count and all(
            v.shape == (dimension,) and np.isfinite(v).all() and v.any() for v in vectors
        )
        if not good:
            _log.warning("embedder_answered_nonsense", model=self._model)
            raise Unavailable.embedder()
        self.dimension = dimension

    async def close(self) -> None:
        await self._guard.close()
        await self._api.close()
