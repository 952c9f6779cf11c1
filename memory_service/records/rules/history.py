"""Kept versions of replaced items and states, and records of deletions."""

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
    """The facts of an item's or state's version that decide an undo; times in microseconds.

    `number` is the revision of an item's version, or the version of a state. `content` is only compared.
    """

    number: int
    update_us: int
    expire_us: int | None
    provenance: Provenance | None
    content: object = None
    redacted: bool = False
    revision: int = 0
    """Of a state's version; where it is needed."""
    kind: ItemKind = ItemKind.PLAIN

    @property
    def origin(self) -> int:
        """The number of the version, or of the version it is a copy of."""
        return (self.provenance or UNATTRIBUTED).copy_of or self.number

    def of(self, by: WritesBy) -> bool:
        """Return whether the version belongs to this writer."""
        return by.has(self.provenance, self.update_us)


def copied(provenance: Provenance | None, number: int) -> Provenance:
    """Return the provenance of a copy of the version that has this number and provenance."""
    original = provenance or UNATTRIBUTED
    return msgspec.structs.replace(original, copy_of=original.copy_of or number)


@dataclass(frozen=True, slots=True)
class Removal:
    """Who deleted something or let it expire, and when, in microseconds."""

    time_us: int
    writer: str
    credential_id: str

    def of(self, by: WritesBy) -> bool:
        """Return whether it belongs to this writer."""
        return by.has(Provenance(self.writer, self.credential_id), self.time_us)


def deleted(by: Caller, at_us: int, *, keeps_history: bool) -> Removal | None:
    """Return the record of a deletion; None if no history is kept."""
    return Removal(at_us, by.name, by.credential_id) if keeps_history else None


class Ended(Found, Protocol):
    """A version of an expired item or state. The provenance is needed for few of them."""

    @property
    def update_us(self) -> int: ...
    @property
    def provenance(self) -> Provenance | None: ...


def cut_short(versions: Iterable[Ended]) -> Removal | None:
    """Return who cut short the newest of these versions, which are newest first; None if no writer did.

    That is the writer of the first of the versions that lead up to the newest and share its expiry, if the
    version before would have lasted longer. A later write that only keeps the expiry did not set it.
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
    # The time as `WritesBy.has` takes it.
    written_us = time_us if known.write_us is None else min(known.write_us, time_us)
    return Removal(written_us, known.writer, known.credential_id)
