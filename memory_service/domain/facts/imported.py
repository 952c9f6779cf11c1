"""Validates an imported fact: anything that saving, finding or merging facts could have written."""

from __future__ import annotations

from typing import Annotated

import msgspec

from memory_service.deciders.base import CONTENT_CHARS_MAX, REASONING_CHARS_MAX, Adjustment, Importance
from memory_service.domain.facts.user_memory import Fact, Source
from memory_service.limits import Limits

MEMORY_CHARS_MAX = 4 * CONTENT_CHARS_MAX
"""Rules that put a fact into the third person never lengthen it by more than this."""
_SUPERSEDES_MAX = 1000
_ADJUSTMENTS_MAX = 16
_ADJUSTMENT_CHARS_MAX = 4096
"""A reason may repeat words of the fact or of its quotation."""
VERSION_MAX = 1 << 31
"""Later versions count on from the imported one, and must stay readable."""

_Id = Annotated[str, msgspec.Meta(max_length=Limits.id_bytes_max)]
_Ids = Annotated[list[_Id], msgspec.Meta(max_length=Limits.source_ids_max)]
_Memory = Annotated[str, msgspec.Meta(max_length=MEMORY_CHARS_MAX)]
_Words = Annotated[str, msgspec.Meta(max_length=_ADJUSTMENT_CHARS_MAX)]


class _Adjustment(Adjustment, frozen=True, kw_only=True):
    name: _Words
    reason: _Words = ""


_Adjustments = Annotated[tuple[_Adjustment, ...], msgspec.Meta(max_length=_ADJUSTMENTS_MAX)]


class _Importance(Importance, frozen=True, kw_only=True):
    boosts: _Adjustments
    reductions: _Adjustments
    score: Annotated[float, msgspec.Meta(ge=0)]


class _Source(Source, kw_only=True):
    item_ids: _Ids = []
    quote: Annotated[str, msgspec.Meta(max_length=Limits.quote_bytes_max)] = ""
    actor: Annotated[str, msgspec.Meta(max_length=Limits.session_id_bytes_max)] = ""
    memory_ids: _Ids = []
    model: Annotated[str, msgspec.Meta(max_length=Limits.name_bytes_max)] = ""

    def __post_init__(self) -> None:
        if len(self.quote.encode()) > Limits.quote_bytes_max:
            raise ValueError(f"has more than {Limits.quote_bytes_max} bytes")


class ImportedFact(Fact, kw_only=True):
    """The imported data of a memory besides its content."""

    reasoning: Annotated[str, msgspec.Meta(max_length=REASONING_CHARS_MAX)]
    importance: _Importance
    version: Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)] = 1
    superseded_by: _Id = ""
    supersedes: Annotated[list[_Id], msgspec.Meta(max_length=_SUPERSEDES_MAX)] = []
    original_content: _Memory = ""
    source: _Source = msgspec.field(default_factory=_Source)
