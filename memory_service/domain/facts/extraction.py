"""Find facts about the user in what they said, by patterns of English.

Few wrong facts matter more than many facts: what asks, supposes or tells of the moment is left out.
"""

from __future__ import annotations

import re

import msgspec

from memory_service.domain.facts import verbs
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.extraction_patterns import RULES
from memory_service.domain.facts.importance import temporary_words, vague_words
from memory_service.domain.facts.requests import without_request
from memory_service.domain.facts.sentences import KEPT, sentences
from memory_service.domain.facts.word_lists import phrases

CONTENT_CHARS_MIN = 10
CONTENT_CHARS_MAX = 500
_REASONING_CHARS_MAX = 200


class Candidate(msgspec.Struct, frozen=True):
    """A sentence that says something about the user."""

    content: str
    """The sentence as it was said."""
    category: Category
    reasoning: str
    """Why it is worth remembering, in 10 to 200 characters."""
    explicit: bool = False
    """The user asked for it to be remembered."""


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


def extract(text: str) -> list[Candidate]:
    """Return what a user said about themselves in one message, in the order in which it was said."""
    said = [part.strip().lstrip("-*•> \t") for part in sentences(_without_code(text))]
    asked_for = _asked_for(said)
    candidates = [_candidate(sentence, at in asked_for) for at, sentence in enumerate(said)]
    return [candidate for candidate in candidates if candidate is not None]


def _without_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)


def _asked_for(said: list[str]) -> set[int]:
    """Return the places of sentences that a neighbour, such as "Remember that.", asks to remember."""
    places = set()
    for at, sentence in enumerate(said):
        request = _BARE_REQUEST.match(sentence)
        if request is None:
            continue
        following = at + 1 < len(said) and (at == 0 or request["what"].lower() == "this")
        places.add(at + 1 if following else at - 1)
    return places


def _candidate(sentence: str, asked_for: bool) -> Candidate | None:
    if len(sentence) > CONTENT_CHARS_MAX or _BARE_REQUEST.match(sentence):
        return None
    said, requested = without_request(sentence)
    explicit = requested or asked_for
    if len(said) < CONTENT_CHARS_MIN or _ASKED.search(said):
        return None
    plain = KEPT.sub(lambda match: "…" * len(match.group()), said)
    if not explicit and (_SUPPOSED.search(plain) or vague_words(said) or temporary_words(said)):
        return None
    category, reasoning = _category(plain)
    if category is None and not explicit:
        return None
    if category is None:
        category, reasoning = Category.CONTEXT, "The user asked for this to be remembered"
    elif explicit:
        reasoning = f"The user asked for this to be remembered. {reasoning}"
    return Candidate(sentence, category, reasoning[:_REASONING_CHARS_MAX], explicit)


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
    """Tell whether "I never …" speaks of what happened, not of a habit."""
    verb = found.groupdict().get("verb")
    return verb is not None and (verbs.is_past(verb.lower()) or verb.lower() in ("said", "knew", "mind"))
