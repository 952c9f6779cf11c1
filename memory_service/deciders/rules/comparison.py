"""Decides by rules whether two facts say the same, exclude each other, or neither.

Vectors measure how near two texts are, but miss what changes a meaning: "not", a number, a name, the roles in
an action. So a near text is a duplicate only if its words can be matched one by one. In doubt two facts are
different: a wrong duplicate loses a fact, and a wrong contradiction ends one, while two texts that say the
same do little harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memory_service.deciders.base import REASON_CHARS_MAX, Relation, Verdict
from memory_service.deciders.rules.comparison_attributes import clash
from memory_service.deciders.rules.comparison_reading import (
    SYNONYMS_BY_STEM,
    Reader,
    Reading,
    read_pair,
    stem,
)
from memory_service.deciders.rules.comparison_words import DATES, IRREGULAR, NEGATION, OPPOSITES
from memory_service.deciders.rules.kinship import is_relation

_SHOWN_WORDS_MAX = 6
# A few times the length of a memory. Doubled, comparing takes twice as long.
_COMPARED_CHARS_MAX = 2000
_TOO_LONG = f"one of them has more than {_COMPARED_CHARS_MAX} characters"


def compare(
    new: str, known: str, similarity: float | None, threshold: float, reader: Reader | None = None
) -> Verdict:
    """Compare two facts in the third person.

    `similarity` is the cosine of their vectors; a duplicate must be above `threshold`. None: there are no
    vectors, and the share of common words is used instead. The same words are a duplicate in any case, which
    matters to some embedders only. A text far longer than a memory, as an import may bring it, is only
    compared as a whole. `reader` may have read some of the facts before.
    """
    if max(len(new), len(known)) > _COMPARED_CHARS_MAX:
        same = new == known
        return Verdict(*((Relation.DUPLICATE, "the same words") if same else (Relation.DIFFERENT, _TOO_LONG)))
    one, other = (reader or Reader()).pair(new, known)
    if new == known or _same_words(one, other):
        return _verdict(Relation.DUPLICATE, "the same words")
    if reason := _contradiction(one, other):
        return _verdict(Relation.CONTRADICTION, reason)
    if reason := _difference(one, other):
        return _verdict(Relation.DIFFERENT, reason)
    nearness = _common_share(one, other) if similarity is None else similarity
    measured = f"{'share of common words' if similarity is None else 'similarity'} {nearness:.3f}"
    bound = f"above the threshold {threshold:.3f}"
    if not nearness > threshold:
        return _verdict(Relation.DIFFERENT, f"the {measured} is not {bound}")
    return _verdict(Relation.DUPLICATE, f"they say the same in other words: the {measured} is {bound}")


def hard_difference(new: str, known: str) -> str:
    """Return a difference for which no decider may take two facts for the same; empty if there is none.

    Such a difference is a negation, number, date, name or relative that only one of them has, opposite words,
    or the same words in other roles.
    """
    one, other = read_pair(new, known)
    if _same_words(one, other):
        return ""
    if reason := _hard(one, other) or _other_relative(one, other) or _opposite_words(one, other):
        return reason
    return _other_roles(one, other) if Counter(one.tokens) == Counter(other.tokens) else ""


def _same_words(one: Reading, other: Reading) -> bool:
    return bool(one.folded) and one.folded == other.folded


def _hard(one: Reading, other: Reading) -> str:
    if one.negations % 2 != other.negations % 2:
        return "only one of them is negated"
    if one.numbers != other.numbers:
        return f"other numbers: {_shown(one.numbers)} and {_shown(other.numbers)}"
    if dates := (one.words ^ other.words) & DATES:
        return f"only one of them says {_shown(sorted(dates))}"
    unmatched = {name for name in one.names if name not in other.tokens}
    unmatched |= {name for name in other.names if name not in one.tokens}
    if unmatched:
        return f"only one of them names {_shown(sorted(unmatched))}"
    if _other_spouse(one, other):
        return "one is about a wife, the other about a husband"
    return ""


def _other_spouse(one: Reading, other: Reading) -> bool:
    """Return whether one is about a wife and the other about a husband. Either may be called a spouse."""
    spouses, other_spouses = _spouses(one), _spouses(other)
    return bool(spouses and other_spouses) and spouses != other_spouses


def _other_relative(one: Reading, other: Reading) -> str:
    here, there = _relatives(one), _relatives(other)
    if here and there and not here & there:
        return f"one is about {_shown(sorted(here))}, the other about {_shown(sorted(there))}"
    return ""


def _relatives(reading: Reading) -> set[str]:
    """Return the relatives, friends and animals in a fact, with one word for each group of synonyms."""
    stems = (stem(IRREGULAR.get(word, word)) for word in reading.words if is_relation(word))
    return {SYNONYMS_BY_STEM.get(each, each) for each in stems}


def _opposite_words(one: Reading, other: Reading) -> str:
    here, there = (frozenset(map(stem, reading.words)) for reading in (one, other))
    for pair in _OPPOSITE_STEMS:
        mine, theirs = pair & (here - there), pair & (there - here)
        if mine and theirs and len(pair & here) == len(pair & there) == 1:
            return f"opposite words: {_shown((*mine, *theirs))}"
    return ""


def _spouses(reading: Reading) -> frozenset[str]:
    return reading.words & {"wife", "husband"}


def _difference(one: Reading, other: Reading) -> str:
    """Return a difference for which rules do not take two facts for the same; empty if there is none."""
    if not one.tokens or not other.tokens:
        return "there is nothing to compare"
    if reason := _hard(one, other):
        return reason
    words, other_words = Counter(one.tokens), Counter(other.tokens)
    if words != other_words:
        here, there = words - other_words, other_words - words
        return f"other words: {_shown(here.elements())} and {_shown(there.elements())}"
    return _other_roles(one, other)


def _other_roles(one: Reading, other: Reading) -> str:
    """Return the different roles of the same words; empty if there are none."""
    if one.past != other.past:
        return f"another time: {_shown(one.past ^ other.past)}"
    if one.ended != other.ended:
        return "only one of them reports an end"
    if one.links != other.links:
        return f"other roles: {_shown(one.links)} and {_shown(other.links)}"
    if not _same_order(one, other):
        return "the same words in another order, so that the roles may differ"
    return ""


def _same_order(one: Reading, other: Reading) -> bool:
    """Return whether the words are in the same order, except for parts that moved as a whole."""
    if one.parts and one.parts == other.parts:
        return True
    doubled, count = other.tokens * 2, len(one.tokens)
    turns = count if count > 2 else 1
    return any(doubled[turn : turn + count] == one.tokens for turn in range(turns))


def _contradiction(one: Reading, other: Reading) -> str:
    """Return why two facts cannot both hold; empty if they can."""
    if reason := _opposite_polarity(one, other):
        return reason
    if reason := _opposite_values(one, other):
        return reason
    if _other_spouse(one, other):
        return ""
    if both := clash(one, other):
        here, there = both
        return (
            f"different values of {here.key}, of which there is only one: {_shown((here.value, there.value))}"
        )
    return ""


def _opposite_polarity(one: Reading, other: Reading) -> str:
    if one.negations % 2 == other.negations % 2 or one.negations + other.negations > 1:
        return ""
    negated, affirmed = (one, other) if one.negations else (other, one)
    if negated.scoped and not affirmed.scoped:
        return ""
    bare, plain = _without(negated, NEGATION, "alway"), _without(affirmed, "alway")
    if bare != plain or one.past != other.past or one.links != other.links or _other_spouse(one, other):
        return ""
    return "one says the opposite of the other"


def _without(reading: Reading, *tokens: str) -> list[str]:
    return [token for token in reading.tokens if token not in tokens]


def _opposite_values(one: Reading, other: Reading) -> str:
    preferred = {"prefer", "prefers", "wants"} & one.words & other.words
    if not preferred or one.negations or other.negations or one.past != other.past:
        return ""
    if len(one.tokens) != len(other.tokens) or one.tokens[0] != "user":
        return ""
    changed = [(a, b) for a, b in zip(one.tokens, other.tokens, strict=True) if a != b]
    if len(changed) == 2 and changed[0] == changed[1][::-1] and {"over", "than"} & set(one.tokens):
        return f"in reverse: {_shown(changed[0])}"
    if len(changed) == 1 and frozenset(changed[0]) in _OPPOSITE_STEMS:
        return f"opposite values: {_shown(changed[0])}"
    return ""


def _common_share(one: Reading, other: Reading) -> float:
    words, other_words = Counter(one.tokens), Counter(other.tokens)
    total = len(one.tokens) + len(other.tokens)
    return 2 * (words & other_words).total() / total if total else 0.0


def _shown(words: Iterable[str]) -> str:
    shown = list(words)
    more = ", …" if len(shown) > _SHOWN_WORDS_MAX else ""
    return ", ".join(f'"{word[:40]}"' for word in shown[:_SHOWN_WORDS_MAX]) + more or "nothing"


def _verdict(relation: Relation, reason: str) -> Verdict:
    return Verdict(relation, reason[:REASON_CHARS_MAX])


_OPPOSITE_STEMS = frozenset(frozenset(map(stem, pair)) for pair in OPPOSITES)
