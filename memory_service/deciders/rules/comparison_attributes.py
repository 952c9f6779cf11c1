"""Attributes of which a person has one at a time, such as a home: a new value ends the old one."""

from __future__ import annotations

import re

import msgspec

from memory_service.deciders.rules.comparison_reading import Reading, stem
from memory_service.deciders.rules.comparison_words import (
    EVENTS,
    MARITAL,
    MONTHS,
    NUMERIC,
    PASTIMES,
    PROFESSION_FAMILIES,
    PROFESSIONS,
    REGIONS,
    SINGLE,
    SINGLE_RELATIONS,
    SYNONYMS,
)

_SUBJECT = r"^(?P<subject>user(?:'s [\w-]+){0,3}|[\w-]+)"
_HOME = re.compile(
    _SUBJECT + r" (?:now |currently |recently |has |have )*(?:live in|moved to|relocated to) (?P<value>.+)"
)
_EMPLOYER = re.compile(_SUBJECT + r" (?:now |currently )*work at (?P<value>.+)")
_JOB = re.compile(_SUBJECT + r" (?:now |currently )*is (?:now |currently )*(?:an? )?(?P<value>[\w -]+)$")
_IS = re.compile(r"^(?P<subject>user(?:'s [\w-]+){0,2})'s (?P<key>[\w-]+(?: [\w-]+)?) is (?P<value>.+)")
_FAVOURITE = re.compile(
    _SUBJECT + r"'s (?:favou?rite|main|primary|default) (?P<key>[\w -]+?) is (?P<value>.+)"
)
_MAIN = re.compile(
    _SUBJECT
    + r" uses (?P<value>.+?) as (?:the|their|his|her|an?)? ?(?P<key>(?:main|primary|default) [\w -]+)$"
)
_NAME = re.compile(
    r"^(?P<subject>user(?:'s (?:"
    + "|".join(sorted(SINGLE_RELATIONS))
    + r"))?) is (?P<value>[\w-]+(?: [\w-]+){0,3})$"
)
_AGE = re.compile(_SUBJECT + r" is (?P<value>\d{1,3})$")
_BORN = re.compile(_SUBJECT + r" (?:was|is) born (?:on|in) (?P<value>.*\d.*)$")
_MEASURE = re.compile(
    _SUBJECT
    + r" (?P<key>weighs|earns|is) (?P<value>\d[\d.]* (?:kg|lbs?|pounds|cm|m|euros|dollars|eur|usd).*)$"
)
_HABIT = re.compile(
    _SUBJECT + r" (?:usually |always |normally )?"
    r"(?P<key>wakes up|gets up|goes to bed|goes to sleep|starts work|finishes work) "
    r"(?:at|around) (?P<value>\d[\d:]*(?: ?[ap]m)?)$"
)
_COUNT = re.compile(_SUBJECT + r" (?:has|have|owns) (?P<value>\d+) (?P<key>[\w -]+)$")

# After these words comes more about the same value; after any other word the value may hold only at times.
_TAIL = re.compile(r",? (?:since|because|recently|again|now)\b.*$")
_PLACE_TAIL = re.compile(
    r",? (?:since|for|near|with|as|in \d{4}|because|recently|again|now|last|this|in the)\b.*$"
)
_LIMIT = re.compile(
    r"\b(?:on|during|when|while|and|or|but|until|at|in|if|for|with|as|part|sometimes|to|from|than|over|not)\b|,"
)
# "may" is a month next to a day or after "in".
_UNSURE = re.compile(
    r"\b(?:was|were|had|used to|formerly|former|ex|previously|once|ago|lived|worked|"
    r"wants?|plans?|planning|hopes?|(?<!\d )(?<!in )(?<!on )(?<!of )may(?! \d)|might|could|"
    r"would|will|going to|considers?|considering|considered|thinks?|thinking|dreams?|wishes|looking|"
    r"not|if|soon|temporarily|almost|sometimes|second|both|also)\b"
)


class Attribute(msgspec.Struct, frozen=True):
    """An attribute of a person in a fact: `key` is "home", "employer", "favourite colour" and the like."""

    subject: str
    key: str
    value: str


def clash(new: Reading, known: Reading) -> tuple[Attribute, Attribute] | None:
    """Return an attribute from each fact whose values exclude each other; None if there is none."""
    if _is_unsure(new) or _is_unsure(known):
        return None
    others = {(a.subject, a.key): a for a in _attributes(known)}
    for attribute in _attributes(new):
        other = others.get((attribute.subject, attribute.key))
        if other and _exclude(attribute, other):
            return attribute, other
    return None


def _is_unsure(reading: Reading) -> bool:
    return bool(_UNSURE.search(reading.plain.replace("was born", "born")))


def _attributes(reading: Reading) -> list[Attribute]:
    text = reading.plain
    found = []
    for key, pattern in (("home", _HOME), ("employer", _EMPLOYER), ("birthday", _BORN), ("age", _AGE)):
        if match := pattern.match(text):
            found.append((match["subject"], key, match["value"]))
    for pattern, prefix in (
        (_FAVOURITE, "favourite "),
        (_MAIN, ""),
        (_MEASURE, ""),
        (_HABIT, ""),
        (_COUNT, "count "),
    ):
        if match := pattern.match(text):
            found.append((match["subject"], prefix + match["key"], match["value"]))
    found += _said_by_is(reading)
    found = [(s, key, value) for s, key, value in found if not _is_past_move(key, text, value)]
    tails = {"home": _PLACE_TAIL, "employer": _PLACE_TAIL}
    cut = [(s, key, tails.get(key, _TAIL).sub("", value).strip(" .")) for s, key, value in found]
    return [Attribute(_subject(s), k, v) for s, k, v in cut if v and _is_single(k, v)]


def _is_past_move(key: str, text: str, value: str) -> bool:
    """Return whether it reports a move in the past, which stays true after the next one."""
    return key == "home" and "live in" not in text and bool(_PLACE_TAIL.search(value))


def _said_by_is(reading: Reading) -> list[tuple[str, str, str]]:
    text = reading.plain
    found = []
    if (match := _IS.match(text)) and _SINGLE_STEMS.intersection(map(stem, match["key"].split())):
        value = re.sub(r"^(?:on|in|at) ", "", match["value"])
        found.append((match["subject"], match["key"], value))
    if (match := _NAME.match(text)) and reading.names.issuperset(match["value"].split()):
        found.append((match["subject"], "name", match["value"]))
    if match := _JOB.match(text):
        words = match["value"].split()
        if words[-1] in PROFESSIONS and (words[-1] not in PASTIMES or reading.works_as):
            found.append((match["subject"], "job", match["value"]))
        elif len(words) == 1 and words[0] in MARITAL:
            found.append((match["subject"], "marital status", words[0]))
    return found


def _subject(subject: str) -> str:
    """Return the person in one form: "user's boss" is "user's manager"."""
    return re.sub(r"[\w-]+", lambda word: SYNONYMS.get(word[0], word[0]), subject)


def _is_single(key: str, value: str) -> bool:
    """Return whether the value is whole and holds at all times."""
    if _LIMIT.search(value):
        return False
    if key in ("home", "employer"):
        # "lives in a flat", "works at a hospital": not a name, so it is compatible with others.
        return value.split()[0] not in ("a", "an", "the", "his", "her", "their", "home", "night", "least")
    if key.startswith("count "):
        return _EVENT_STEMS.isdisjoint(map(stem, key.split()))
    if _NUMERIC_STEMS.intersection(map(stem, key.split())):
        return any(map(str.isdigit, value))
    return "@" in value if "email" in key else True


def _exclude(new: Attribute, known: Attribute) -> bool:
    new_words, known_words = (set(re.findall(r"\w+", attribute.value)) for attribute in (new, known))
    if new_words <= known_words or known_words <= new_words:
        return False
    match new.key:
        case "home":
            return bool(new_words & REGIONS) == bool(known_words & REGIONS)
        case "name":
            # A short form of a name is the same name.
            first, second = new.value.split()[0], known.value.split()[0]
            return not (first.startswith(second[:3]) or second.startswith(first[:3]))
        case "birthday":
            # A day does not contradict a year, and dates in figures have many forms.
            if all(words & _MONTHS for words in (new_words, known_words)):
                return True
            return all(_YEAR.fullmatch(attribute.value) for attribute in (new, known))
        case "job":
            heads = {new.value.split()[-1], known.value.split()[-1]}
            return len(heads) == 2 and not any(heads <= family for family in PROFESSION_FAMILIES)
    return _other_number(new.value, known.value)


def _other_number(new: str, known: str) -> bool:
    """Return whether two values have no number at all, or different ones of the same unit."""
    digits, known_digits = ("".join(filter(str.isdigit, value)) for value in (new, known))
    if not digits and not known_digits:
        return True
    # A phone number may have a prefix or not, an amount may be in euros or thousands.
    units, known_units = (set(re.findall(r"[^\W\d]+", value)) for value in (new, known))
    same = digits[-_DIGITS_TOLD:] == known_digits[-_DIGITS_TOLD:]
    return bool(digits and known_digits) and not same and (units == known_units or "@" in new)


_MONTHS = frozenset(MONTHS)
_DIGITS_TOLD = 6
_YEAR = re.compile(r"\d{4}")
_EVENT_STEMS = frozenset(map(stem, EVENTS))
_NUMERIC_STEMS = frozenset(map(stem, NUMERIC))
_SINGLE_STEMS = frozenset(map(stem, SINGLE))
