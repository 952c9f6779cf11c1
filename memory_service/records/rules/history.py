"""What is kept of what was replaced, and who is noted for what is gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from memory_service.data_model import UNATTRIBUTED, ItemKind, Provenance, WritesBy
from memory_service.records.rules.presence import Found
from memory_service.runtime.caller import Caller


@dataclass(frozen=True, slots=True)
class Version:
    """What tells whose a version of an item or a state is, and what becomes of it; times in microseconds.

    `number` is the revision of an item's, the version of a state's. `content` is compared, nothing else.
    """

    number: int
    update_us: int
    expire_us: int | None
    provenance: Provenance | None
    content: object = None
    kind: ItemKind = ItemKind.PLAIN

    @property
    def origin(self) -> int:
        """The number of the version, or of that which it is a copy of."""
        return (self.provenance or UNATTRIBUTED).copy_of or self.number

    def of(self, by: WritesBy) -> bool:
        """Whether it is one of somebody's."""
        return by.has(self.provenance, self.update_us)


def copied(provenance: Provenance | None, number: int) -> Provenance:
    """Return the provenance of a copy of a version, which has this number and that provenance."""
    original = provenance or UNATTRIBUTED
    return msgspec.structs.replace(original, copy_of=original.copy_of or number)


@dataclass(frozen=True, slots=True)
class Removal:
    """Who deleted something, or let it expire, and when they did that, in microseconds."""

    time_us: int
    writer: str
    credential_id: str

    def of(self, by: WritesBy) -> bool:
        """Whether it is one of somebody's."""
        return by.has(Provenance(self.writer, self.credential_id), self.time_us)


def deleted(by: Caller, at_us: int, *, keeps_history: bool) -> Removal | None:
    """Return what is noted of who deletes something; None where no history is kept."""
    return Removal(at_us, by.name, by.credential_id) if keeps_history else None


class Ended(Found, Protocol):
    """A version of what has expired. Of most of them the provenance is not asked for."""

    @property
    def update_us(self) -> int: ...
    @property
    def provenance(self) -> Provenance | None: ...


def cut_short(versions: Iterable[Ended]) -> Removal | None:
    """Return who let expire the newest of these versions, newest first; None where nobody cut it short.

    That is who wrote the first of those that lead up to the newest and have its end, where a version before
    was to last longer: what only keeps the end that another set did not set it.
    """
    newest_first = iter(versions)
    setting = next(newest_first)
    end, unbroken = setting.expire_us, True
    if end is None:
        return None
    for version in newest_first:
        if version.expire_us is None or version.expire_us > end:
            return _removal(setting)
        unbroken = unbroken and version.expire_us == end
        setting = version if unbroken else setting
    return None


def _removal(setting: Ended) -> Removal:
    known, time_us = setting.provenance or UNATTRIBUTED, setting.update_us
    # As `WritesBy.has` takes the time.
    written_us = time_us if known.write_us is None else min(known.write_us, time_us)
    return Removal(written_us, known.writer, known.credential_id)
