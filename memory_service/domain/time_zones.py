"""Time zones by their names in the time zone database of the machine."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from memory_service.errors import InvalidArgument

_NAME_CHARS_MAX = 64
_KEPT_ZONES_MAX = 64
_EPOCH = date(1970, 1, 1)


@lru_cache(maxsize=_KEPT_ZONES_MAX)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if len(name) <= _NAME_CHARS_MAX else None
    except (ValueError, OSError, LookupError):
        return None


def zone_of(name: str, field: str = "options.time_zone") -> ZoneInfo | None:
    """Return the time zone of an IANA name; None, for UTC, if it is empty. Raises InvalidArgument."""
    if not name:
        return None
    zone = _zone(name)
    if zone is None:
        raise InvalidArgument(
            field, f"is not the name of a time zone, such as Europe/Berlin: {name[:_NAME_CHARS_MAX]!r}"
        )
    return zone


def local_day(time_us: int, zone: ZoneInfo) -> int:
    """Return the day of a time in a zone, counted from the epoch; in UTC at the ends of the calendar."""
    time = datetime.fromtimestamp(time_us // 1_000_000, UTC)
    with suppress(OverflowError):
        time = time.astimezone(zone)
    return (time.date() - _EPOCH).days
