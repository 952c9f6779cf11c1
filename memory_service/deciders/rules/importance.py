"""The importance of a fact: the base score of its category, adjusted by its wording."""

from __future__ import annotations

import re

from memory_service.deciders.base import EXPLICIT_REQUEST, Adjustment, Category, Importance
from memory_service.deciders.rules.sentences import KEPT, follows_mark, sentences
from memory_service.deciders.rules.word_lists import phrases, words

SPECIFIC_DETAILS = "specific_details"
LONG_TERM_GOAL = "long_term_goal"
VAGUE = "vague"
TEMPORARY = "temporary"

_BASES = {
    Category.IDENTITY: 10.0,
    Category.PREFERENCE: 9.0,
    Category.RELATIONSHIP: 8.0,
    Category.PROJECT: 7.0,
    Category.CONTEXT: 5.0,
}
_AMOUNTS = {EXPLICIT_REQUEST: 2.0, SPECIFIC_DETAILS: 1.0, LONG_TERM_GOAL: 1.0, VAGUE: -2.0, TEMPORARY: -2.0}

_EXPLICIT = phrases(
    r"""
    \b(?:
    (?:remember|save|note|memori[sz]e|store) (?:this|that|it|my|the following|I(?:['’]m|['’]ve)?)\b
    |(?:remember|save this|note|save)\s*[:,]
    |(?:don['’]?t|do not|never) (?:ever )?forget\b
    |(?:keep|bear) (?:(?:this|that|it) )?in mind\b
    |make a (?:mental )?note\b|take note\b|for (?:the|your) record\b|for future reference\b
    |(?:this|that|it|which)(?:['’]s| is) (?:\w+ )?important\b
    |important\s*[:,!]|important to (?:remember|know)\b
    )
    """
)
_GOAL = phrases(
    r"""
    \b(?:long[-\s]term|goals?|ambitions?|aspir(?:es?|ing|ations?)|bucket list
    |dreams? (?:of|about)|(?:life|career|main|ultimate|biggest|personal) dreams?|(?:aim|dream) (?:is|was)
    |aim(?:s|ing)? (?:to|at|for)|hop(?:es|e|ing) to (?:become|be|own|build|start|found|retire|move)
    |(?:wants?|would like|intends?|plans?|planning) to
    \s+(?:become|be an?|retire|found|start (?:an?|his|her|their|my)|own|emigrate)
    |(?:saving|saves?) (?:up )?for|work(?:s|ing)? towards?|(?:training|studying) for
    |(?:in|over|within) (?:the next )?(?:few|two|three|five|ten|\d+) years|by (?:the end of )?20\d\d)\b
    """
)
_VAGUE = phrases(
    r"""
    \b(?:might|maybe|perhaps|possibly|probably|some\s?day|some\s?time(?! (?:in|ago)\b)|sort of|sorta|kinda
    |(?<!\bthis\s)(?<!\bthat\s)(?<!\ba\s)(?<!\bany\s)(?<!\bsome\s)
    (?<!\bwhat\s)(?<!\bevery\s)(?<!\bone\s)kind of
    |(?:not|n['’]t) (?:really |quite )?(?:sure|certain)|guess(?:es)?|suppose[sd]?|or something|or whatever
    |could be|thinking (?:of|about)|considering|one of these days|at some point|may(?= [a-z]))\b
    """
)
_TEMPORARY = phrases(
    r"""
    \b(?:today|tonight|tomorrow|yesterday|right now|just now|(?:at|for) the moment|at present|for now
    |this (?:morning|afternoon|evening|week|weekend|minute|instant)|(?:next|last) (?:week|weekend|night)
    |for the time being|temporarily|in a (?:minute|moment|second|bit|few minutes)
    |until (?:later|noon|midnight)
    |(?:later|earlier) (?:today|on)|for a (?:few|couple of) (?:minutes|hours|days)|these (?:next )?few days)\b
    """
)

_NUMBER = re.compile(
    r"\b(?:\w*\d[\w.,:/%-]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|"
    r"thousand|million)\b"
)
_CAPITALISED = re.compile(r"(?<![\w'’])[^\W\d_][\w.+#-]*(?:['’]\w+)?")
_NO_NAMES = words(
    """
    ai api ceo cfo cto cv diy dr faq gui hr i i'd i'll i'm i've id it ml mr mrs ms ok pc pdf phd pr qa saas
    sms tv ui url usb user ux
    """
)
_SHOWN = 3


def importance(content: str, category: Category, quote: str = "", explicit: bool = False) -> Importance:
    """Rate a fact.

    `quote` is the user's text, which is also searched for requests to remember. `explicit`: the caller knows
    that the user asked to remember the fact.
    """
    found = {
        EXPLICIT_REQUEST: _first(_EXPLICIT, content)
        or _first(_EXPLICIT, quote)
        or ("asked for" if explicit else ""),
        SPECIFIC_DETAILS: ", ".join(specific_details(content)[:_SHOWN]),
        LONG_TERM_GOAL: _first(_GOAL, content),
        VAGUE: vague_words(content),
        TEMPORARY: temporary_words(content),
    }
    adjustments = [Adjustment(name, _AMOUNTS[name], reason) for name, reason in found.items() if reason]
    base = _BASES[category]
    score = max(0.0, base + sum(adjustment.amount for adjustment in adjustments))
    return Importance(
        base,
        tuple(adjustment for adjustment in adjustments if adjustment.amount > 0),
        tuple(adjustment for adjustment in adjustments if adjustment.amount < 0),
        score,
    )


def vague_words(text: str) -> str:
    """Return the words that make a text vague; empty if there are none. Quotations do not count."""
    return _first(_VAGUE, text)


def temporary_words(text: str) -> str:
    """Return the words that limit a text to the day; empty if there are none. Quotations do not count."""
    return _first(_TEMPORARY, text)


def specific_details(text: str) -> list[str]:
    """Return the names, numbers and dates of a text, in order.

    A word that begins a sentence is a name only when it has a capital inside, such as "TypeScript".
    """
    details: list[str] = []
    for sentence in sentences(text):
        numbers = {match.start(): match.group() for match in _NUMBER.finditer(sentence)}
        details += [word for _, word in sorted((_names(sentence) | numbers).items())]
    return list(dict.fromkeys(details))


def _names(sentence: str) -> dict[int, str]:
    if not any(letter.islower() for letter in sentence):
        # Without lower case, capitals do not show names.
        return {}
    names: dict[int, str] = {}
    first = re.search(r"\w", sentence)
    for match in _CAPITALISED.finditer(sentence):
        word = re.sub(r"['’]s$|[.+-]+$", "", match.group())
        inside = any(letter.isupper() for letter in word[1:])
        starts = first is None or match.start() <= first.start()
        starts = starts or (
            sentence[match.start() - 1].isspace() and follows_mark(sentence, match.start(), ":;")
        )
        if word.lower().replace("’", "'") in _NO_NAMES or any(letter.isdigit() for letter in word):
            continue
        if inside or (word[:1].isupper() and not starts):
            names[match.start()] = word
    return names


def _first(pattern: re.Pattern[str], text: str) -> str:
    """Return the first match of a pattern outside of quotations and names; empty if there is none."""
    plain = KEPT.sub(lambda match: "\n" * len(match.group()), text)
    for match in pattern.finditer(plain):
        begins = match.start() == 0 or follows_mark(plain, match.start(), ".!?:;\n")
        if begins or not match.group()[0].isupper() or match.group().isupper():
            return text[match.start() : match.end()]
    return ""
