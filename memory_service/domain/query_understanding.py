"""Finds the times that a query names, and the phrases that it quotes.

Times are parsed by date-wrangler into spans. The library takes long to load and some 0.3 ms for a question,
so texts without a word of time never reach it, and results are cached.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, tzinfo

import msgspec

from memory_service.domain.time_zones import local_day, zone_of
from memory_service.indexes.analysis import fold, words_of
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.log_causes import cause_of
from memory_service.runtime.yielding import aside

Span = tuple[int, int]
"""From one time in microseconds to before another."""

_log = EventLog(__name__)

# How much of a text is read: times and quotations stand in questions, which are short.
_TIME_CHARS_MAX = 400
_QUOTE_CHARS_MAX = 4096
_SPANS_MAX = 8
_PHRASES_MAX = 8
_KEPT_QUERIES_MAX = 1024
_CONFIDENCE_MIN = 0.6

_ALWAYS_US = 1 << 62
_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)

# Beginnings of words of time. A look at the first letter spares most of the search.
_TIME = re.compile(
    r"\b(?=[adfjmnoqstwy\d])(?:\d|a(?:pr|ug)|d(?:ays?\b|ec)|feb|fri|j(?:an|u[nl])|ma(?:r|y\b)|mon(?:day|ths?\b)"
    r"|nov|oct|quarter|s(?:at|ep|un)|t(?:hu|oday|omorrow|onight|ue)|we(?:d|ek)|y(?:ear|esterday))"
)
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”')


class Understanding(msgspec.Struct, frozen=True):
    """The times and phrases in a text. A phrase is its words as the index has them, separated by single
    spaces.
    """

    spans: tuple[Span, ...] = ()
    phrases: tuple[str, ...] = ()


NOTHING = Understanding()


class QueryReader:
    """Reads queries, and caches the results. For use by one event loop."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], tuple[Span, ...]] = OrderedDict()

    async def read(self, text: str, now_us: int, time_zone: str = "") -> Understanding:
        """Return the times and phrases in a text.

        Times like "yesterday" are relative to `now_us` in the time zone of this name, UTC if it is empty.
        """
        quotes = '"' in text or "“" in text
        times = _TIME.search(text[:_TIME_CHARS_MAX].lower()) is not None
        if not quotes and not times:
            return NOTHING
        spans = await self._spans(text[:_TIME_CHARS_MAX], now_us, time_zone) if times else ()
        return Understanding(spans, phrases_in(text) if quotes else ())

    async def _spans(self, text: str, now_us: int, time_zone: str) -> tuple[Span, ...]:
        zone = zone_of(time_zone)
        day = now_us // _DAY_US if zone is None else local_day(now_us, zone)
        key = text, day, time_zone
        if (spans := self._kept.get(key)) is None:
            if not self._kept:
                # Loading the library takes a second, so not on the loop.
                await aside(asyncio.to_thread(_load))
            spans = self._kept[key] = spans_in(text, day, zone or UTC)
            if len(self._kept) > _KEPT_QUERIES_MAX:
                self._kept.popitem(last=False)
        return spans


def phrases_in(text: str) -> tuple[str, ...]:
    """Return the phrases that a text quotes."""
    found = (" ".join(words_of(one or other)) for one, other in _QUOTED.findall(text[:_QUOTE_CHARS_MAX]))
    return tuple(dict.fromkeys(filter(None, found)))[:_PHRASES_MAX]


def has_phrase(text: str, phrases: tuple[str, ...]) -> bool:
    """Return whether a text contains one of the phrases, as whole words."""
    folded = fold(text)
    if not any(all(word in folded for word in phrase.split()) for phrase in phrases):
        return False  # Quick exit for most texts: looking for letters costs far less than finding words.
    said = f" {' '.join(words_of(text))} "
    return any(f" {phrase} " in said for phrase in phrases)


def spans_in(text: str, day: int, zone: tzinfo = UTC) -> tuple[Span, ...]:
    """Return the times that a text names as spans; `day` is today there, counted from the epoch."""
    from date_wrangler import parse

    try:
        found = parse(text, today=_EPOCH + timedelta(days=day))
    except Exception as error:
        # For example a date beyond the year 9999. A boost is not worth a failed query.
        _log.debug("times_not_read", cause=cause_of(error))
        return ()
    sure = [match.range for match in found if match.confidence >= _CONFIDENCE_MIN]
    return tuple((_us(r.start, -_ALWAYS_US, zone), _us(r.end, _ALWAYS_US, zone)) for r in sure[:_SPANS_MAX])


def _us(at: date | None, otherwise: int, zone: tzinfo) -> int:
    if at is None:
        return otherwise
    return int(datetime(at.year, at.month, at.day, tzinfo=zone).timestamp()) * 1_000_000


def _load() -> None:
    import date_wrangler  # noqa: F401
