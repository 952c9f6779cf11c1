"""Asks a language model for the facts in a conversation, and selects the usable ones."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.data_model import Role
from memory_service.deciders.base import (
    REASONING_CHARS_MAX,
    REASONING_CHARS_MIN,
    Category,
    FoundFact,
    Line,
    Relation,
)
from memory_service.deciders.llm.wording import invented
from memory_service.deciders.rules.comparison import compare
from memory_service.deciders.rules.comparison_reading import Reader
from memory_service.deciders.rules.importance import temporary_words, vague_words
from memory_service.deciders.rules.rephrasing import third_person
from memory_service.deciders.rules.requests import without_request
from memory_service.decisions import Failure, FailureReason

ANSWER_TOKENS_MAX = 2000
_QUOTE_CHARS_MAX = 500
INSTRUCTIONS = (
    "Find lasting facts about the user in the conversation: who they are, what they prefer, whom they know, "
    "what they work on, and what they ask to be remembered. Take only what the user says of themselves and "
    "means; the other lines help to understand it. Leave out questions, requests, guesses, plans that are "
    'not sure, passing states, and general knowledge. Word each fact in the third person, as in "User '
    'prefers TypeScript", in 10 to 500 characters, with every name, number and date that was said. `message` '
    "is the number of the line, `quote` the words of the user from that line, to the letter. `category` is "
    "identity, preference, relationship, project or context. `reasoning` tells in a sentence why it matters "
    "later. `confidence` is 0 to 1. No facts: an empty list."
)


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


def checked(
    answer: ExtractedFacts, lines: Sequence[Line], first: int
) -> tuple[list[FoundFact], list[Failure]]:
    """Return the model's facts in the lines from `first` on, and the unusable ones as failures."""
    found: list[tuple[int, int, FoundFact]] = []
    failures: list[Failure] = []
    reader, plain = Reader(), [_plain(line.text) if line.speaks else "" for line in lines]
    for fact in answer.facts:
        fact.content = " ".join(fact.content.split())
        problem, category = _problem(fact, lines, first, plain, reader)
        if problem or category is None:
            failures.append(Failure(FailureReason.INVALID_VALUE, problem, fact.content[:100]))
            continue
        place = plain[fact.message].find(_plain(fact.quote))
        taken = FoundFact(
            fact.message,
            fact.content,
            category,
            _fitting(fact.reasoning),
            fact.quote[:_QUOTE_CHARS_MAX],
            _share(fact.confidence),
            rejected=_rejected(fact),
        )
        found.append((fact.message, place, taken))
    found.sort(key=lambda each: each[:2])
    return [fact for _, _, fact in found], failures


def _fitting(reasoning: str) -> str:
    """Return a reasoning, cut to the allowed length."""
    reasoning = " ".join(reasoning.split())[:REASONING_CHARS_MAX]
    return reasoning if len(reasoning) >= REASONING_CHARS_MIN else "Found in what the user said"


def _problem(
    fact: ExtractedFact, lines: Sequence[Line], first: int, plain: Sequence[str], reader: Reader
) -> tuple[str, Category | None]:
    """Return what is wrong with a fact of the model, and its category.

    The model was shown the lines from `first` on. `plain` are their texts in the form compared with quotes.
    """
    try:
        category = Category[fact.category.strip().upper()]
    except KeyError:
        return f"unknown category {fact.category[:40]!r}", None
    at = fact.message
    if not first <= at < len(lines) or lines[at].role is not Role.USER:
        return "names a message that is not the user's", None
    if not fact.quote.strip() or _plain(fact.quote) not in plain[at]:
        return "has a quote that is not from the user", None
    before = "\n".join(line.text for line in lines[first : at + 1])
    near = "\n".join(line.text for line in lines[max(at - 1, first) : at + 1])
    if problem := invented(fact.content, before, near, reader):
        return problem, None
    if compare(fact.content, third_person(fact.quote), None, 1.0).relation is Relation.CONTRADICTION:
        return "contradicts the user's words", None
    return "", category


def _rejected(fact: ExtractedFact) -> str:
    """Return why a fact is not worth remembering; empty if it is."""
    said, requested = without_request(fact.quote)
    if requested:
        return ""
    for name, words in (("vague", vague_words(said)), ("temporary", temporary_words(said))):
        if words:
            return f'{name}: "{words}"'
    return ""


def _share(confidence: float | None) -> float | None:
    """Return a confidence from 0 to 1; None if the model gave no valid one."""
    return confidence if confidence is not None and 0 <= confidence <= 1 else None


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
