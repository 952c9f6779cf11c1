"""Finds facts in a conversation, some lines at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from memory_service.deciders.base import Category, Deciding, FoundFact, Line
from memory_service.decisions import DecidedBy
from memory_service.domain.facts.outcomes import FactDraft, OnContradiction
from memory_service.domain.facts.prompt_block import without_recalled
from memory_service.domain.facts.user_memory import Origin, Source
from memory_service.tokens import estimate_tokens

FACTS_MAX = 200
"""Facts per call. Doubled, comparing them with known memories takes twice as long, and other calls that save
facts in the namespace wait as long.
"""
_TOKENS_AT_ONCE = 6000


class Said(Line):
    """One message of a conversation; `id` is that of its item, or the message's own.

    `time_us` is when it was said, if known. `position` is that of the item, or 0. `cut`: the text was
    shortened.
    """

    id: str = ""
    time_us: int | None = None
    position: int = 0
    cut: bool = False


class Extraction(msgspec.Struct):
    """The options of an extraction."""

    said: Sequence[Said] = ()
    session_id: str = ""
    after_revision: int = 0
    limit: int | None = None
    recalled_ids: Sequence[str] = ()
    categories: Sequence[Category] = ()
    dry_run: bool = False
    on_contradiction: OnContradiction = OnContradiction.SUPERSEDE
    actor: str = ""
    labels: dict[str, str] = {}


class Found(msgspec.Struct):
    """A fact that was found, not yet compared with known memories.

    `rejected` is the reason why it is not worth remembering, or empty.
    """

    draft: FactDraft
    content: str
    confidence: float | None = None
    decided_by: DecidedBy = DecidedBy.RULES
    rejected: str = ""


class Search(msgspec.Struct):
    """The facts found in a conversation, and the number of lines examined.

    `left_out`: the last of these lines has more facts than were taken.
    """

    found: list[Found] = []
    line_count: int = 0
    left_out: bool = False
    by_model: bool = False


async def find_facts(said: Sequence[Said], asked: Extraction, deciding: Deciding) -> Search:
    """Return the facts in a conversation, from its beginning up to FACTS_MAX, and from one line at least.

    A model is given only as many lines at once as it reads well. Recalled memories are skipped.
    """
    lines = [msgspec.structs.replace(line, text=without_recalled(line.text)) for line in said]
    search = Search(by_model=bool(deciding.model) and any(line.speaks for line in lines))
    for first, end in _stretches(lines):
        part, by = await _part(lines[:end], first, FACTS_MAX - len(search.found), asked, deciding)
        search.by_model = search.by_model and by is DecidedBy.LLM
        if not _take(search, part, end, asked):
            return search
    return search


async def _part(
    lines: Sequence[Said], first: int, room: int, asked: Extraction, deciding: Deciding
) -> tuple[list[tuple[int, Found]], DecidedBy]:
    """Return the facts in the lines from `first` on, each with its line's index, and who found them."""
    facts, by = await deciding.ask(lambda decider: decider.find(lines, first, asked.categories, room))
    model = deciding.model if by is DecidedBy.LLM else ""
    return [(fact.line, _found(asked, lines[fact.line], fact, by, model)) for fact in facts], by


def _take(search: Search, part: Sequence[tuple[int, Found]], end: int, asked: Extraction) -> bool:
    """Take the facts of some lines, each with its line's index; return whether there is room for more."""
    wanted = [(at, f) for at, f in part if not asked.categories or f.draft.category in asked.categories]
    room = FACTS_MAX - len(search.found)
    if len(wanted) <= room:
        search.found += [found for _, found in wanted]
        search.line_count = end
        return True
    over = wanted[room][0]
    if whole := [found for at, found in wanted[:room] if at < over]:
        search.found += whole
        search.line_count = over
    elif search.found:
        search.line_count = over
    else:
        # The first line with any facts has too many by itself.
        search.found += [found for _, found in wanted[:room]]
        search.line_count, search.left_out = over + 1, True
    return False


def _stretches(lines: Sequence[Said]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each group of lines to show the model."""
    first, tokens = 0, 0
    for at, line in enumerate(lines):
        cost = estimate_tokens(line.text)
        if at > first and tokens + cost > _TOKENS_AT_ONCE:
            yield first, at
            first, tokens = at, 0
        tokens += cost
    if first < len(lines):
        yield first, len(lines)


def _found(asked: Extraction, line: Said, fact: FoundFact, by: DecidedBy, model: str) -> Found:
    ids = [line.id] if line.id else []
    draft = FactDraft(
        fact.content if model else fact.quote,
        fact.category,
        fact.reasoning,
        Source(Origin.EXTRACTED, ids, fact.quote, asked.actor, model=model),
        asked.session_id,
        fact.explicit,
        on_contradiction=asked.on_contradiction,
        valid_from_us=line.time_us,
        labels=asked.labels,
    )
    return Found(draft, fact.content, fact.confidence, by, fact.rejected)
