"""Memories that are similar to a fact: known ones, and those that the same call is about to save."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec
import numpy as np

from memory_service.data_model import Vector
from memory_service.deciders.base import Known
from memory_service.domain.facts.user_memory import UserMemory

NEIGHBOURS = 12
_WORD = re.compile(r"\w+")


class Neighbour(msgspec.Struct):
    """A known memory near a fact, and the cosine of their vectors, or None if it is unknown."""

    memory: UserMemory
    similarity: float | None

    @property
    def known(self) -> Known:
        """The memory as deciders compare it."""
        return Known(self.memory.id, self.memory.content, self.similarity)


class Pending:
    """The memories that a call is about to save. Of many, a fact is compared with the few most similar ones.

    `vectors` are those of the possible contents, as far as they are known.
    """

    def __init__(self, vectors: Mapping[str, Vector | None]) -> None:
        self._vectors = vectors
        self._memories: list[UserMemory] = []
        self._with_word: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, memory: UserMemory) -> None:
        """Add a memory."""
        for word in _words(memory.content):
            self._with_word[word].append(len(self._memories))
        self._memories.append(memory)

    def near(self, content: str) -> list[Neighbour]:
        """Return the memories most similar to a text: by vectors, or by words if there are none."""
        similarities = [self._similarity(content, memory) for memory in self._memories]
        chosen = list(range(len(self._memories)))
        if len(chosen) > NEIGHBOURS:
            measured = [(known, at) for at, known in enumerate(similarities) if known is not None]
            shared = Counter(at for word in _words(content) for at in self._with_word.get(word, ()))
            near = [at for _, at in sorted(measured, reverse=True)] or [at for at, _ in shared.most_common()]
            chosen = sorted(near[:NEIGHBOURS])
        return [Neighbour(self._memories[at], similarities[at]) for at in chosen]

    def _similarity(self, content: str, memory: UserMemory) -> float | None:
        one, other = self._vectors.get(content), self._vectors.get(memory.content)
        if one is None or other is None:
            return None
        return float(one @ other / max(float(np.sqrt((one @ one) * (other @ other))), 1e-12))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
