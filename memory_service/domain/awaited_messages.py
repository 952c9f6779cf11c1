"""Responses that are stored before their messages, and the messages that they are then linked to.

Such a response says in its tags what it waits for. Reads link it to the first message that fits and was
stored after it, so that writing a message costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_service.data_model import Item, ItemFilter, ItemKind
from memory_service.domain.interaction_items import CONTENT_TAG, PARTY_TAG, digest, link_of
from memory_service.predicates import Predicate
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us

_WAITING = ("awaited", "message")
_CONTENT_TAG = "awaited_content"
_SENDER_TAG = "awaited_sender"
"""The sender; empty: any."""
_TIME_TAG = "awaited_time"
"""The time in microseconds; empty: any."""
# A time of the year 9999 has 18 digits.
_TIME_CHARS_MAX = 18
_MESSAGES = frozenset({ItemKind.MESSAGE})
_RESPONSES = frozenset({ItemKind.RESPONSE})


@dataclass(slots=True, frozen=True)
class Original:
    """A message, identified by its content; sender "" and create_us None: any."""

    content: str
    sender: str = ""
    create_us: int | None = None


@dataclass(slots=True, frozen=True)
class _Awaited:
    """What a response waits for."""

    digest: str
    sender: str = ""
    time: str = ""

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a response."""
        return {_CONTENT_TAG: self.digest, _SENDER_TAG: self.sender, _TIME_TAG: self.time}

    def messages(self, first: int, last: int | None = None) -> ItemFilter:
        """Return the filter of the messages that fit, at these positions."""
        tags = [(CONTENT_TAG, self.digest)]
        if self.sender:
            tags.append((PARTY_TAG, self.sender))
        time = int(self.time) if self.time else None
        return ItemFilter(
            now_us(),
            start_us=time,
            end_us=None if time is None else time + 1,
            min_position=first,
            max_position=last,
            kinds=_MESSAGES,
            tags=tuple(tags),
        )


def tags_of(original: Original) -> dict[str, str]:
    """Return the tags of a response that waits for a message."""
    time = "" if original.create_us is None else str(original.create_us)
    tags = _Awaited(digest(original.content), original.sender, time).tags
    if original.sender:
        tags[PARTY_TAG] = original.sender
    return {_WAITING[0]: _WAITING[1], **tags}


async def any_waits(reading: Reading) -> bool:
    """Return whether a response was stored before its message: in most namespaces none was."""
    wanted = ItemFilter(now_us(), kinds=_RESPONSES, tags=(_WAITING,))
    return bool(await reading.scan(wanted, 1, newest=False))


async def responses_to(reading: Reading, message: Item, predicate: Predicate | None) -> list[int]:
    """Return the positions of the responses that match a predicate and waited for this message."""
    found: list[int] = []
    for awaited in _awaited_by(message):
        tags = tuple(awaited.tags.items())
        wanted = ItemFilter(
            now_us(), kinds=_RESPONSES, tags=tags, predicate=predicate, max_position=message.position
        )
        waiting = await reading.scan(wanted, -1, newest=False)
        if waiting:
            # Those before an earlier message that fits are responses to that one.
            before = await reading.scan(awaited.messages(0, message.position - 1), 1, newest=True)
            found += [position for position in waiting if not before or position > before[0]]
    return found


def _awaited_by(message: Item) -> Iterator[_Awaited]:
    """Yield everything for which this message fits."""
    tags = message.facet.tags if message.facet else {}
    if content := tags.get(CONTENT_TAG):
        for sender in sorted({"", tags.get(PARTY_TAG, "")}):
            for time in ("", str(message.create_us)):
                yield _Awaited(content, sender, time)


async def message_of(reading: Reading, response: Item) -> Item | None:
    """Return the message for which a response waited; None: it waited for none, or for one that does not
    exist.
    """
    awaited = _awaited(response)
    if awaited is None:
        return None
    positions = await reading.scan(awaited.messages(response.position + 1), 1, newest=False)
    (message,) = await reading.load_items(positions) if positions else (None,)
    return message


def waiting(items: Sequence[Item]) -> list[Item]:
    """Return the responses that waited for a message."""
    return [item for item in items if _awaited(item) is not None]


def _awaited(item: Item) -> _Awaited | None:
    if item.kind is not ItemKind.RESPONSE or item.facet is None or link_of(item):
        return None
    tags = item.facet.tags
    if _CONTENT_TAG not in tags:
        return None
    time = tags.get(_TIME_TAG, "")
    # An import may bring anything.
    return _Awaited(tags[_CONTENT_TAG], tags.get(_SENDER_TAG, ""), time if _is_time(time) else "")


def _is_time(text: str) -> bool:
    return len(text) <= _TIME_CHARS_MAX and text.isascii() and text.removeprefix("-").isdigit()
