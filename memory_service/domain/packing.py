"""Packs texts into a prompt's budget by rank; texts that do not fit are skipped."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from memory_service.data_model import Item
from memory_service.domain.search_text import search_text
from memory_service.tokens import estimate_tokens

MISSES_MAX = 32
"""Stop after this many results that do not fit: further ones rarely do."""


class Budget:
    """A token budget and its use; None: no limit, tokens are only counted.

    A text is counted once, by its key. It costs at least 1: a line in a prompt.
    """

    def __init__(self, tokens_max: int | None, used: int = 0, counted: Iterable[Hashable] = ()) -> None:
        self._tokens_max = tokens_max
        self._counted = set(counted)
        self.used = used

    def fits(self, texts: Iterable[tuple[Hashable, str]]) -> bool:
        """Return whether there is room for texts that belong together."""
        return self._tokens_max is None or self.used + self._cost(texts) <= self._tokens_max

    def take(self, texts: Sequence[tuple[Hashable, str]]) -> None:
        """Count texts as used."""
        self.used += self._cost(texts)
        self._counted.update(key for key, _ in texts)

    def _cost(self, texts: Iterable[tuple[Hashable, str]]) -> int:
        new = {key: text for key, text in texts if key not in self._counted}
        return sum(max(estimate_tokens(text), 1) for text in new.values())


def texts_of(items: Iterable[Item]) -> list[tuple[Hashable, str]]:
    """Return the texts of items by position, as a prompt would contain them."""
    return [(item.position, search_text(item.content)) for item in items]
