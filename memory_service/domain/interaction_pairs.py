"""Messages with the responses to them."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.data_model import Item, ItemFilter, ItemKind
from memory_service.domain.awaited_messages import responses_to
from memory_service.domain.interaction_items import LINK_TAG
from memory_service.predicates import Predicate
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us

_RESPONSES_MAX = 20
_RESPONSES = frozenset({ItemKind.RESPONSE})


@dataclass(slots=True)
class Pair:
    """A message with its first responses, and their total number."""

    message: Item
    responses: list[Item]
    response_count: int


async def pair_of(reading: Reading, message: Item, predicate: Predicate | None, *, late: bool) -> Pair:
    """Return a message with its responses; `late`: look also for those that were stored before it."""
    tags = ((LINK_TAG, message.id),)
    wanted = ItemFilter(now_us(), kinds=_RESPONSES, tags=tags, predicate=predicate)
    positions = await reading.scan(wanted, -1, newest=False)
    if late and (before := await responses_to(reading, message, predicate)):
        positions = sorted([*before, *positions])
    loaded = await reading.load_items(positions[:_RESPONSES_MAX]) if positions else []
    return Pair(message, [item for item in loaded if item is not None], len(positions))
