"""A fact to save, and the outcome."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from memory_service.data_model import Json
from memory_service.deciders.base import Category, Deciding
from memory_service.decisions import DecidedBy
from memory_service.domain.embedding import Degradation
from memory_service.domain.facts.user_memory import Source, UserMemory


class OnContradiction(enum.IntEnum):
    """What to do with a fact that contradicts a known one; the numbers equal the proto's."""

    SUPERSEDE = 1
    KEEP_BOTH = 2
    REFUSE = 3


class Outcome(enum.IntEnum):
    """The outcome for a fact; the numbers equal the proto's."""

    SAVED = 1
    DUPLICATE = 2
    SUPERSEDED = 3
    CONTRADICTION = 4
    RECALLED = 5
    REJECTED = 6


class FactDraft(msgspec.Struct):
    """A fact to save, as the caller sent it."""

    content: str
    category: Category
    reasoning: str
    source: Source = msgspec.field(default_factory=Source)
    session_id: str = ""
    explicit_request: bool = False
    on_contradiction: OnContradiction = OnContradiction.SUPERSEDE
    valid_from_us: int | None = None
    ttl_us: int | None = None
    labels: dict[str, str] = {}
    metadata: dict[str, Json] | None = None
    keep_wording: bool = False


class Saved(msgspec.Struct):
    """The outcome for a fact, and who decided."""

    outcome: Outcome
    reason: str
    memory: UserMemory | None = None
    existing: UserMemory | None = None
    superseded: list[UserMemory] = []
    similarity: float | None = None
    decided_by: DecidedBy = DecidedBy.RULES
    rephrased_by: DecidedBy = DecidedBy.UNSPECIFIED
    degraded: Sequence[Degradation] = ()
    revision: int = 0
    deciding: Deciding | None = None


class Planned(msgspec.Struct):
    """A fact that was judged, and what to write for it, if anything."""

    saved: Saved
    ended: list[UserMemory] = []
    """The previous versions of the known memories in `saved.superseded`."""
