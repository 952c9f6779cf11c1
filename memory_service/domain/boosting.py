"""Finds which hits match a query's times and quoted phrases."""

from __future__ import annotations

from memory_service.data_model import Hits
from memory_service.domain.query_understanding import Understanding, has_phrase
from memory_service.domain.ranking import Scoring, rank, within
from memory_service.domain.search_text import indexed_text
from memory_service.reading import SearchReading
from memory_service.runtime.yielding import give_way

# The best hits, read to look for a phrase, and how many to read at once.
_READ_ITEMS_MAX = 256
_READ_AT_ONCE = 32


async def boosted(
    reading: SearchReading, hits: Hits, scoring: Scoring, asked: Understanding
) -> dict[str, set[int]]:
    """Return the positions of the items that each boost applies to.

    `time`: items from a time that the query names. `phrase`: items with a phrase that it quotes.
    """
    boosts = {}
    if asked.spans:
        boosts["time"] = within(hits, asked.spans)
    if asked.phrases:
        best = [position for _, position in rank(hits, scoring, None, _READ_ITEMS_MAX, explain=False).order]
        boosts["phrase"] = await _having(reading, best, asked.phrases)
    return boosts


async def _having(reading: SearchReading, positions: list[int], phrases: tuple[str, ...]) -> set[int]:
    """Return the positions of the items whose text contains one of the phrases."""
    having = set()
    for at in range(0, len(positions), _READ_AT_ONCE):
        for item in await reading.load_items(positions[at : at + _READ_AT_ONCE]):
            if item is not None and has_phrase(indexed_text(item), phrases):
                having.add(item.position)
        # Long texts take a while: let others run in between.
        await give_way()
    return having
