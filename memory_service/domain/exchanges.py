"""Tool calls and their results, which providers of models accept only together."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import ChatMessage, Item, ItemFilter, ToolCallPart, ToolCallResult
from memory_service.reading import Reading

_ITEMS_AT_ENDS = 64
"""Items read at each end of a window to find incomplete exchanges. Doubled, twice as long exchanges are
recognized, and twice as many items are read.
"""

Key = tuple[str, str]
"""The session and the id of a tool call."""


async def incomplete(reading: Reading, window: ItemFilter) -> set[int]:
    """Return the positions in a window of results without their call, and of calls without all results.

    Exchanges are cut at the ends of a window, so only these are read.
    """
    first = await reading.scan(window, _ITEMS_AT_ENDS, newest=False)
    last = await reading.scan(window, _ITEMS_AT_ENDS, newest=True)
    wanted = sorted({*first, *last})
    loaded = dict(zip(wanted, await reading.load_items(wanted), strict=True))
    begin = [item for position in first if (item := loaded[position]) is not None]
    end = [item for position in last if (item := loaded[position]) is not None]
    dropped: set[int] = set()
    while new := (_orphans(begin) | _unanswered(end)):
        dropped |= new
        # A result may be left without its call, or a call without one of its results.
        gone = {key for item in end if item.position in new for key in _calls(item)}
        dropped |= {item.position for item in end if gone.intersection(_results(item))}
        begin = [item for item in begin if item.position not in dropped]
        end = [item for item in end if item.position not in dropped]
    return dropped


def _orphans(items: Sequence[Item]) -> set[int]:
    """Return the positions of results whose call does not come before them."""
    called: set[Key] = set()
    orphans = set()
    for item in items:
        if not called.issuperset(_results(item)):
            orphans.add(item.position)
        called.update(_calls(item))
    return orphans


def _unanswered(items: Sequence[Item]) -> set[int]:
    """Return the positions of calls whose results do not all come after them."""
    answered: set[Key] = set()
    unanswered = set()
    for item in reversed(items):
        if not answered.issuperset(_calls(item)):
            unanswered.add(item.position)
        answered.update(_results(item))
    return unanswered


def _calls(item: Item) -> list[Key]:
    parts = item.content.parts if isinstance(item.content, ChatMessage) else ()
    return [(item.session_id, part.tool_call_id) for part in parts if isinstance(part, ToolCallPart)]


def _results(item: Item) -> list[Key]:
    content = item.content
    parts = content.parts if isinstance(content, ChatMessage) else (content,)
    return [(item.session_id, part.tool_call_id) for part in parts if isinstance(part, ToolCallResult)]
