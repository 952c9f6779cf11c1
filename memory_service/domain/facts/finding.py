"""Finding facts in what a user said: by the language model, or by patterns of rules."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

import msgspec

from memory_service.decisions import DecidedBy, Failure, FailureReason
from memory_service.domain.deciding import Deciding
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.comparison import Relation, compare
from memory_service.domain.facts.comparison_reading import Reader
from memory_service.domain.facts.extraction import extract
from memory_service.domain.facts.importance import temporary_words, vague_words
from memory_service.domain.facts.judging import OUT_OF_REACH
from memory_service.domain.facts.memory import Origin, Source
from memory_service.domain.facts.outcomes import FactDraft, OnContradiction
from memory_service.domain.facts.prompt_block import without_recalled
from memory_service.domain.facts.rephrasing import third_person
from memory_service.domain.facts.requests import without_request
from memory_service.domain.facts.wording import CONTENT_CHARS_MAX, CONTENT_CHARS_MIN, invented
from memory_service.domain.tokens import estimate_tokens
from memory_service.records import Role
from memory_service.runtime.yielding import aside

FACTS_MAX = 200
"""Facts that one call takes. Twice as many take twice as long to compare with what is known, and their
namespace is locked for so long."""
_TOKENS_AT_ONCE = 6000
_ANSWER_TOKENS_MAX = 2000
_REASONING_CHARS_MIN, _REASONING_CHARS_MAX = 10, 200
_QUOTE_CHARS_MAX = 500
# What goes before a statement without being a part of it.
_INTERJECTIONS = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok|okay|sure|well|oh|hi|hello|hey|thanks|thank you|so|and|but|also|btw"
    r"|by the way|actually)\b[,.!:;]*\s+)+(?=(?:I|my|we|our)\b)",
    re.IGNORECASE,
)
_INSTRUCTIONS = (
    "Find lasting facts about the user in the conversation: who they are, what they prefer, whom they know, "
    "what they work on, and what they ask to be remembered. Take only what the user says of themselves and "
    "means; the other lines help to understand it. Leave out questions, requests, guesses, plans that are "
    'not sure, passing states, and general knowledge. Word each fact in the third person, as in "User '
    'prefers TypeScript", in 10 to 500 characters, with every name, number and date that was said. `message` '
    "is the number of the line, `quote` the words of the user from that line, to the letter. `category` is "
    "identity, preference, relationship, project or context. `reasoning` tells in a sentence why it matters "
    "later. `confidence` is 0 to 1. No facts: an empty list."
)


class Said(msgspec.Struct):
    """One message of a conversation; `id` is that of its item, or the message's own.

    `time_us` is when it was said, as far as that is known. `position` is that of an item, else 0.
    `cut`: it goes on.
    """

    role: Role
    text: str
    id: str = ""
    time_us: int | None = None
    position: int = 0
    cut: bool = False


class ExtractedFact(msgspec.Struct):
    """A fact as the model found it."""

    content: str
    category: str
    reasoning: str
    message: int
    quote: str
    confidence: float | None = None


class ExtractedFacts(msgspec.Struct):
    """All facts that the model found."""

    facts: list[ExtractedFact]


class Extraction(msgspec.Struct):
    """What is asked of an extraction."""

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
    """A fact that was found, before anybody looked whether it is known.

    `rejected` tells why it is not worth remembering; empty: it is.
    """

    draft: FactDraft
    content: str
    confidence: float | None = None
    decided_by: DecidedBy = DecidedBy.RULES
    rejected: str = ""


class Search(msgspec.Struct):
    """What was found in a conversation. `line_count`: so many of its lines were looked through.

    `left_out`: the last of them has more facts than were taken.
    """

    found: list[Found] = []
    line_count: int = 0
    left_out: bool = False
    by_model: bool = False


async def find_facts(said: Sequence[Said], asked: Extraction, deciding: Deciding) -> Search:
    """Return the facts in what was said: of as many lines as have FACTS_MAX together, of one line at least.

    Only so much is shown to the model at once as it reads well. What was recalled is passed over.
    """
    lines = [msgspec.structs.replace(line, text=without_recalled(line.text)) for line in said]
    search = Search(by_model=bool(deciding.model) and any(map(_speaks, lines)))
    for first, end in _stretches(lines):
        part = await _by_model(lines, first, end, asked, deciding)
        if part is None:
            search.by_model = False
            # Patterns take their time over a long text, and others must not wait for it.
            part = await aside(
                asyncio.to_thread(_by_rules, lines, first, end, asked, FACTS_MAX - len(search.found))
            )
        if not _take(search, part, end, asked):
            return search
    return search


def _take(search: Search, part: Sequence[tuple[int, Found]], end: int, asked: Extraction) -> bool:
    """Take the facts of a stretch of lines, each with its line; return whether there is room for more."""
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
        # The first line that says anything has more by itself.
        search.found += [found for _, found in wanted[:room]]
        search.line_count, search.left_out = over + 1, True
    return False


def _stretches(lines: Sequence[Said]) -> Iterator[tuple[int, int]]:
    """Yield from where to where the model is shown lines."""
    first, tokens = 0, 0
    for at, line in enumerate(lines):
        cost = estimate_tokens(line.text)
        if at > first and tokens + cost > _TOKENS_AT_ONCE:
            yield first, at
            first, tokens = at, 0
        tokens += cost
    if first < len(lines):
        yield first, len(lines)


async def _by_model(
    lines: Sequence[Said], first: int, end: int, asked: Extraction, deciding: Deciding
) -> list[tuple[int, Found]] | None:
    """Return what the model finds in some of the lines, each with its line; None: rules have to look."""
    if not any(map(_speaks, lines[first:end])):
        return []
    if any(failure.reason in OUT_OF_REACH for failure in deciding.failures):
        return None
    numbered = (f"[{at}] {lines[at].role.value}: {lines[at].text}" for at in range(first, end))
    answer = await deciding.ask(
        _INSTRUCTIONS,
        {"conversation": "\n".join(numbered)},
        ExtractedFacts,
        output_tokens_max=_ANSWER_TOKENS_MAX,
    )
    if answer is None:
        return None
    # The model's answer is compared with all that was said, and others must not wait for it.
    found, failures = await aside(
        asyncio.to_thread(_checked, answer, lines[:end], first, asked, deciding.model)
    )
    deciding.failures += failures
    return found


def _checked(
    answer: ExtractedFacts, lines: Sequence[Said], first: int, asked: Extraction, model: str
) -> tuple[list[tuple[int, Found]], list[Failure]]:
    """Return what the model found in the lines from `first` on, each with its line, and what is no use."""
    found: list[tuple[tuple[int, int], Found]] = []
    failures: list[Failure] = []
    reader, plain = Reader(), [_plain(line.text) if _speaks(line) else "" for line in lines]
    for fact in answer.facts:
        fact.content = " ".join(fact.content.split())
        problem, category = _problem(fact, lines, first, plain, reader)
        if problem or category is None:
            failures.append(Failure(FailureReason.INVALID_VALUE, problem, fact.content[:100]))
            continue
        draft = _draft(asked, lines[fact.message], fact.content, category, fact.reasoning, fact.quote)
        draft.source.model = model
        place = fact.message, plain[fact.message].find(_plain(fact.quote))
        rejected = _rejected(fact)
        found.append((place, Found(draft, fact.content, _share(fact.confidence), DecidedBy.LLM, rejected)))
    found.sort(key=lambda each: each[0])
    return [(at, fact) for (at, _), fact in found], failures


def _by_rules(
    lines: Sequence[Said], first: int, end: int, asked: Extraction, most: int
) -> list[tuple[int, Found]]:
    """Return the facts in some of the lines, each with its line: all, or the first ones, more than `most`."""
    found: list[tuple[int, Found]] = []
    for at in range(first, end):
        if not _speaks(lines[at]):
            continue
        for candidate in extract(lines[at].text):
            if asked.categories and candidate.category not in asked.categories:
                continue
            quote = candidate.content
            draft = _draft(asked, lines[at], quote, candidate.category, candidate.reasoning, quote)
            draft.explicit_request = candidate.explicit
            content = third_person(_INTERJECTIONS.sub("", quote))
            found.append((at, Found(draft, content.strip().rstrip(".! "))))
            if len(found) > most:
                return found
    return found


def _speaks(line: Said) -> bool:
    """Whether the user says something in a line."""
    return line.role is Role.USER and bool(line.text.strip())


def _draft(
    asked: Extraction, line: Said, content: str, category: Category, reasoning: str, quote: str
) -> FactDraft:
    ids = [line.id] if line.id else []
    return FactDraft(
        content,
        category,
        _fitting(reasoning),
        Source(Origin.EXTRACTED, ids, quote[:_QUOTE_CHARS_MAX], asked.actor),
        asked.session_id,
        on_contradiction=asked.on_contradiction,
        valid_from_us=line.time_us,
        labels=asked.labels,
    )


def _fitting(reasoning: str) -> str:
    """Return a reasoning of an allowed length."""
    reasoning = " ".join(reasoning.split())[:_REASONING_CHARS_MAX]
    return reasoning if len(reasoning) >= _REASONING_CHARS_MIN else "Found in what the user said"


# --- what the model says is checked -------------------------------------------------------------


def _problem(
    fact: ExtractedFact, lines: Sequence[Said], first: int, plain: Sequence[str], reader: Reader
) -> tuple[str, Category | None]:
    """Return what is wrong with a fact of the model, and its category.

    The model was shown the lines from `first` on. `plain` are their texts as they are compared with quotes.
    """
    try:
        category = Category[fact.category.strip().upper()]
    except KeyError:
        return f"unknown category {fact.category[:40]!r}", None
    at = fact.message
    if not first <= at < len(lines) or lines[at].role is not Role.USER:
        return "names a message that is not the user's", None
    if not fact.quote.strip() or _plain(fact.quote) not in plain[at]:
        return "quotes what the user did not say", None
    before = "\n".join(line.text for line in lines[first : at + 1])
    near = "\n".join(line.text for line in lines[max(at - 1, first) : at + 1])
    if problem := invented(fact.content, before, near, reader):
        return problem, None
    if compare(fact.content, third_person(fact.quote), None, 1.0).relation is Relation.CONTRADICTION:
        return "says the contrary of what the user said", None
    return "", category


def _rejected(fact: ExtractedFact) -> str:
    """Return why a fact is not worth remembering; empty: it is."""
    if not CONTENT_CHARS_MIN <= len(fact.content) <= CONTENT_CHARS_MAX:
        return f"has {len(fact.content)} characters"
    said, requested = without_request(fact.quote)
    if requested:
        return ""
    for name, words in (("vague", vague_words(said)), ("temporary", temporary_words(said))):
        if words:
            return f'{name}: "{words}"'
    return ""


def _share(confidence: float | None) -> float | None:
    """Return a confidence from 0 to 1; None where the model gave none that can be one."""
    return confidence if confidence is not None and 0 <= confidence <= 1 else None


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
