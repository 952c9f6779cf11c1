"""Who spoke in a session."""

from __future__ import annotations

from memory_service.data_model import CONVERSATION_KINDS, Item, ItemFilter, ItemKind
from memory_service.domain.interaction_items import sender_of
from memory_service.domain.search_text import speaker
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part

# Doubled: a read of a session takes twice as long; halved: who spoke only before is missing sooner.
_ITEMS_MAX = 1000
_NAMES_MAX = 100
# Doubled: the event loop is blocked twice as long by large items; halved: twice as many reads.
_LOADED_AT_ONCE = 50
_INTERACTIONS = frozenset({ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.REFLECTION})


async def participants_of(reading: Reading, session_id: str) -> list[str]:
    """Return the names of the speakers of a session's newest items, in the order of their first of these."""
    wanted = ItemFilter(now_us(), session_id, kinds=CONVERSATION_KINDS)
    positions = await reading.scan(wanted, _ITEMS_MAX, newest=True)
    names, part = dict[str, None](), Part()
    for start in range(0, len(positions), _LOADED_AT_ONCE):
        for item in await reading.load_items(positions[start : start + _LOADED_AT_ONCE]):
            if item is not None and (name := _speaker_of(item)):
                names[name] = None
            if len(names) == _NAMES_MAX:
                return list(names)
        await part.give_way_if_long()
    return list(names)


def _speaker_of(item: Item) -> str:
    return sender_of(item) if item.kind in _INTERACTIONS else speaker(item.content)
