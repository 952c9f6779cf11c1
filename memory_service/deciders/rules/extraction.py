"""Finds facts about users in their messages, by patterns of English.

Avoiding wrong facts matters more than finding many: questions, suppositions and statements about the moment
are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_service.deciders.base import (
    CONTENT_CHARS_MAX,
    CONTENT_CHARS_MIN,
    REASONING_CHARS_MAX,
    Category,
    FoundFact,
)
from memory_service.deciders.rules import verbs
from memory_service.deciders.rules.extraction_patterns import RULES
from memory_service.deciders.rules.importance import temporary_words, vague_words
from memory_service.deciders.rules.rephrasing import third_person
from memory_service.deciders.rules.requests import without_request
from memory_service.deciders.rules.sentences import KEPT, sentences
from memory_service.deciders.rules.word_lists import phrases

_OF_THE_SPEAKER = phrases(r"\b(?:I|I?m|my|we|our|me)\b")
_WORD_END = re.compile(r"[\w'’-]*")
_BARE_REQUEST = phrases(
    r"""
    ^\W*(?:please |can you |could you |and )*(?:remember|save|note|memori[sz]e|keep|don['’]?t forget)
    \s+(?P<what>this|that|it)(?: (?:in mind|please|for me|for later))*\W*$
    """
)
_SUPPOSED = phrases(
    r"""
    \b(?:if|unless) (?:I|we|my|it|you|there)\b|\b(?:what|as) if\b|\bif only\b|\btrying to decide\b
    |\b(?:suppose|imagine|pretend|assume|hypothetically|let['’]?s say|say I|I wish|would be)\b
    |\b(?:could|would|should) have\b|\bI(?:['’]d| would) (?:like|love|be)\b|^\W*you are\b|\bact as\b
    """
)
_ASKED = phrases(
    r"""
    \?\W*$|[,;–—-]\s*(?:can|could|would|will) you\b
    |^\W*(?:can|could|would|will|do|does|did|is|are|should|may) (?:you|I|we)\b
    |^\W*(?:please|tell|show|give|write|help|explain|translate|make|create|summari[sz]e|find|generate|list
    |draft)\b(?! (?:remember|note|call))
    """
)


# Words before a statement that are not part of it.
_INTERJECTIONS = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|ok|okay|sure|well|oh|hi|hello|hey|thanks|thank you|so|and|but|also|btw"
    r"|by the way|actually)\b[,.!:;]*\s+)+(?=(?:I|my|we|our)\b)",
    re.IGNORECASE,
)


def extract(text: str, line: int = 0) -> Iterator[FoundFact]:
    """Yield the facts about the user in one message, in order."""
    said = [part.strip().lstrip("-*•> \t") for part in sentences(_without_code(text))]
    asked_for = _asked_for(said)
    for at, sentence in enumerate(said):
        category, reasoning, explicit = _judged(sentence, at in asked_for)
        if category is not None:
            content = third_person(_INTERJECTIONS.sub("", sentence)).strip().rstrip(".! ")
            yield FoundFact(
                line, content, category, reasoning[:REASONING_CHARS_MAX], sentence, explicit=explicit
            )


def _without_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)


def _asked_for(said: list[str]) -> set[int]:
    """Return the indexes of sentences that a neighbour, such as "Remember that.", asks to remember."""
    places = set()
    for at, sentence in enumerate(said):
        request = _BARE_REQUEST.match(sentence)
        if request is None:
            continue
        following = at + 1 < len(said) and (at == 0 or request["what"].lower() == "this")
        places.add(at + 1 if following else at - 1)
    return places


def _judged(sentence: str, asked_for: bool) -> tuple[Category | None, str, bool]:
    """Return the category of a sentence about the user, and why it is worth remembering; None if it is not.

    The last value is whether the user asked to remember it.
    """
    if len(sentence) > CONTENT_CHARS_MAX or _BARE_REQUEST.match(sentence):
        return None, "", False
    said, requested = without_request(sentence)
    explicit = requested or asked_for
    if len(said) < CONTENT_CHARS_MIN or _ASKED.search(said):
        return None, "", explicit
    plain = KEPT.sub(lambda match: "…" * len(match.group()), said)
    if not explicit and (_SUPPOSED.search(plain) or vague_words(said) or temporary_words(said)):
        return None, "", explicit
    category, reasoning = _category(plain)
    if not explicit:
        return category, reasoning, explicit
    asked = "The user asked for this to be remembered"
    return (category, f"{asked}. {reasoning}", True) if category else (Category.CONTEXT, asked, True)


def _category(plain: str) -> tuple[Category | None, str]:
    if not _OF_THE_SPEAKER.search(plain):
        return None, ""
    for category, label, rule in RULES:
        found = rule.search(plain)
        if found is None or _tells_the_past(found):
            continue
        end = _WORD_END.match(plain, found.end())
        words = " ".join(plain[found.start() : end.end() if end else None].strip(" ,;:-–—()").split())
        return category, f'{label}: "{words}"'
    return None, ""


def _tells_the_past(found: re.Match[str]) -> bool:
    """Return whether "I never …" is about the past, not about a habit."""
    verb = found.groupdict().get("verb")
    return verb is not None and (verbs.is_past(verb.lower()) or verb.lower() in ("said", "knew", "mind"))
