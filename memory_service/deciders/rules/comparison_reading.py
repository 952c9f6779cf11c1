"""Converts facts to the form in which rules compare them."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from memory_service.deciders.rules.comparison_words import (
    CLAUSES,
    DATED,
    ENDED,
    FILLERS,
    IRREGULAR,
    JOINTS,
    LINKS,
    LISTED,
    NEGATION,
    NUMBERS,
    ORDINALS,
    PAST_FORMS,
    PHRASES,
    ROLES,
    SCOPES,
    STRONG,
    SYNONYMS,
)
from memory_service.deciders.rules.sentences import follows_mark

_QUOTES = str.maketrans({"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": " - "})
# An address, a version, a time or a name such as "next.js" is one word. Signs other than punctuation count: a
# currency, an emoji, a vowel sign of Hindi, a minus.
_WORD = re.compile(
    r"(?:(?<!\w)-(?=\d))?[^\W_]+(?:[.:@/+&_-][^\W_]+|[+#]+(?!\w))*|,|[^\w\s.;:!?'\"()\[\]{}…-]"
)
_RAW_WORD = re.compile(r"[^\W\d_][\w.+#@-]*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_UNIT = re.compile(
    r"\b(\d+(?:[.,]\d+)?)(?=(?:km|kg|cm|mm|mi|lbs?|gb|mb|tb|eur|usd|min|hrs?|h|am|pm|k|m|g|l)\b)"
)
_CUT = " | "
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_VERSION = re.compile(r"v\d[\d.]*")
_COMPOUND = re.compile(r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](\w+)\b")
_POSSESSIVE = re.compile(r"(\w)'s\b|(\ws)'(?=\s)")
# Some 20 KB each at most. Doubled, they take twice the memory, and are less often read again.
_READ_MAX = 500
_VOWEL = re.compile(r"[aeiouy]")


class Reading(msgspec.Struct, frozen=True):
    """One fact, read together with the one that it is compared with."""

    folded: str
    """The words without case and punctuation, otherwise unchanged."""
    plain: str
    """The text in lower case with normalized phrases, for patterns."""
    tokens: tuple[str, ...]
    """The words that count, in order and normalized; includes NEGATION."""
    parts: tuple[tuple[str, ...], ...]
    """The tokens with all prepositions, split before each preposition and sorted; empty if there may be
    clauses.
    """
    links: tuple[str, ...]
    """Prepositions that are not among the tokens, sorted."""
    words: frozenset[str]
    """The original words in lower case."""
    past: frozenset[str]
    """The stems of the words in a past form."""
    ended: bool
    """Whether it says that something came to an end."""
    names: frozenset[str]
    """The capitalized words that do not begin a sentence, in lower case."""

    @property
    def negations(self) -> int:
        """The number of negations."""
        return self.tokens.count(NEGATION)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers in it, sorted."""
        return tuple(sorted(token for token in self.tokens if any(map(str.isdigit, token))))

    @property
    def works_as(self) -> bool:
        """Whether it says that a profession is the person's work."""
        return bool(self.words & {"works", "working", "job", "profession", "occupation", "employed"})

    @property
    def scoped(self) -> bool:
        """Whether a negation may apply to "all" or "always" instead of the statement."""
        return bool(self.words & SCOPES)


class _Text(msgspec.Struct, frozen=True):
    """The parts of a reading that depend on one text only."""

    folded: str
    plain: str
    words: tuple[str, ...]
    links: tuple[str, ...]
    lower: frozenset[str]
    ended: bool
    names: frozenset[str]


class Reader:
    """Reads facts in pairs, but each fact only once, however many it is compared with."""

    def __init__(self) -> None:
        self._texts: dict[str, _Text] = {}

    def pair(self, first: str, second: str) -> tuple[Reading, Reading]:
        """Read two facts. A word that is a name in one of them is the same word in the other."""
        one, other = self._text(first), self._text(second)
        either = one.names | other.names
        return _reading(one, either), _reading(other, either)

    def _text(self, text: str) -> _Text:
        found = self._texts.get(text)
        if found is None:
            if len(self._texts) >= _READ_MAX:
                self._texts.clear()
            found = self._texts[text] = _read(text)
        return found


def read_pair(first: str, second: str) -> tuple[Reading, Reading]:
    """Read two facts; see `Reader.pair`."""
    return Reader().pair(first, second)


def _names(text: str) -> frozenset[str]:
    if text.isupper():
        return frozenset()
    found = set()
    first = len(text) - len(text.lstrip(' "'))
    for match in _RAW_WORD.finditer(text):
        word = match[0].rstrip(".-")
        begins = match.start() <= first or follows_mark(text, match.start(), ".!?")
        if not begins and any(map(str.isupper, word)) and word.lower() not in ("user", "i"):
            found.add(word.lower().removesuffix("'s"))
    return frozenset(found)


def _read(text: str) -> _Text:
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    lower = _THOUSANDS.sub("", text.lower())
    folded = " ".join(word for word in _WORD.findall(lower.replace("'", "")) if word != ",")
    plain = _phrases(lower)
    words = tuple(_WORD.findall(_POSSESSIVE.sub(r"\1\2 ", DATED.sub(_CUT, plain))))
    return _Text(
        folded, " ".join(plain.split()), words, tuple(sorted(LINKS.intersection(words))),
        frozenset(_WORD.findall(lower)), bool(ENDED.search(lower)), _names(text),
    )  # fmt: skip


def _reading(text: _Text, either: frozenset[str]) -> Reading:
    tokens: list[str] = []
    parts: list[list[str]] = [[]]
    past = set()
    negated = "not" in text.words
    for word in text.words:
        if word in either:
            token = word
        elif word in JOINTS or word in LINKS or word in ROLES or word in (",", "|"):
            parts.append([word])
            if word in ROLES:
                tokens.append(word)
            continue
        else:
            token = _token(word, negated)
            if _is_past(word):
                past.add(token or word)
        if token:
            tokens.append(token)
            parts[-1].append(token)
    return Reading(
        text.folded, text.plain, tuple(tokens), _movable(parts), text.links, text.lower, frozenset(past),
        text.ended, text.names,
    )  # fmt: skip


def _movable(parts: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    if any(part and (part[0] in CLAUSES or part[0] == ",") for part in parts):
        return ()
    return tuple(sorted(tuple(word for word in part if word != "|") for part in parts))


def _phrases(lower: str) -> str:
    text = lower.strip(" .!?;")
    text = _COMPOUND.sub(lambda m: _compound(m[1], m[2]) or m[0], text)
    text = _UNIT.sub(r"\1 ", text)
    text = re.sub(r"\b[a-z]+\b", lambda m: NUMBERS.get(m[0]) or ORDINALS.get(m[0], m[0]), text)
    for pattern, replacement in PHRASES:
        text = pattern.sub(replacement, text)
    return LISTED.sub(_sorted, text)


def _sorted(listed: re.Match[str]) -> str:
    *words, last = sorted([*listed["list"].split(", "), listed["last"]])
    return f"{listed['verb']} {', '.join(words)} and {last}"


def _compound(tens: str, unit: str) -> str | None:
    if unit in NUMBERS and len(NUMBERS[unit]) == 1:
        return str(int(NUMBERS[tens]) + int(NUMBERS[unit]))
    if unit in ORDINALS and len(ORDINALS[unit]) == 3:
        return f"{int(NUMBERS[tens]) + int(ORDINALS[unit][0])}th"
    return None


def _token(word: str, negated: bool) -> str:
    """Return the form in which a word is compared; empty if it has no meaning by itself."""
    if word == "not":
        return NEGATION
    if word in FILLERS or (word in ("was", "were", "did")):
        return ""
    if _ORDINAL.fullmatch(word):
        return word[:-2] + "th"
    if _VERSION.fullmatch(word):
        return word[1:]
    if word[0].isdigit():
        return word
    base = IRREGULAR.get(word) or PAST_FORMS.get(word, word)
    return SYNONYMS_BY_STEM.get(stem(base), stem(base)) if not (negated and _strong(base)) else stem(base)


def _strong(word: str) -> bool:
    return stem(word) in _STRONG_STEMS


def _is_past(word: str) -> bool:
    return word in PAST_FORMS or (word.endswith("ed") and len(word) > 4 and word not in SYNONYMS)


def stem(word: str) -> str:
    """Return a word without the endings of plural, person and tense. "lives" and "living" are one."""
    if not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "zes", "ches", "shes", "oes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    for ending in ("ing", "ied", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and _VOWEL.search(root):
            word = root + "y" if ending == "ied" else _undoubled(root)
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _undoubled(root: str) -> str:
    return root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root


SYNONYMS_BY_STEM = {stem(word): stem(first) for word, first in SYNONYMS.items()}
_STRONG_STEMS = frozenset(map(stem, STRONG))
