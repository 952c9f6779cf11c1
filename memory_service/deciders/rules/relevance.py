"""Decides by words and vectors which saved state a goal needs.

Parts of a key count as words: "kudos_givers_2025" and "kudosGivers" contain "kudos" and "givers". Words are
stemmed. A word of the goal has most weight in a key, less in a description, least in a value; words that many
keys have get little weight, as do words that name no subject, such as "list", unless the key has no others.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import Stemmer

from memory_service.data_model import Contribution, StateEntry, Vector
from memory_service.deciders.base import VALUE_BYTES_SEARCHED, Candidate, KeySearch, Relevance
from memory_service.runtime.yielding import each

LEXICAL_WEIGHT = 0.7
VECTOR_WEIGHT = 0.3

# The weight of one word of the goal in each field.
_IN_KEY = 0.8
_IN_DESCRIPTION = 0.65
_IN_VALUE = 0.5
# If all keys have a word, it does not distinguish them, and yet the goal may need them all.
_RARITY_MIN = 0.6
# The share of that weight for a word that names no subject.
_GENERAL_SHARE = 0.3
# Its share in a key without a subject, such as "plan", if the goal has one. Doubled, or at 1, such a key is
# found beside the key of that subject; halved, it is not found by "show me the settings of the app".
_GENERAL_KEY_SHARE = 0.7
_WORDS_TOLD_MAX = 5
_WORD_CHARS_TOLD_MAX = 60
_CACHED_STEMS_MAX = 50_000

# Scores are at most 1; from here on a key is relevant. Measured by `python -m benchmarks.relevance`.
RELEVANT_FROM = 0.36
# The goal's best score is the measure for the others.
_NEAR_THE_BEST = 0.6
_CLEARLY_BEHIND = 0.8
# A key that shares no word with the goal is relevant from this cosine on.
_RELEVANT_VECTOR_FROM = 0.45

# Removed from values: escapes of JSON, and short numbers, which match by chance.
_NOISE = re.compile(r"\\.|\b\d{1,3}\b")
CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|[^\W_\u3040-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+"
)

# Words of goals that do not say what the goal is about.
_STOP_WORDS = frozenset(
    """
    a about according again all also am an and another any anybody are as at be because been before
    being but by can could did do does doing done down each eight else everybody everyone few five
    for four from get give given go had has have having he her here hers him his how i if in into is
    it its just keep let like likes ll m me mine more most much must my myself need needs next nine
    no nor not now of off on once one only or other our ours out over own please re recent recently
    right s same seven she should show so some soon still such t tell ten than that the their theirs
    them then there these they this those three through to today tomorrow tonight too two under
    until up us use using ve very want wants was way we were what when where whether which while who
    whom whose why will with within would yesterday yet you your yours
    """.split()  # noqa: SIM905 - so many quoted words read no better
)
# Words for a kind of thing without a subject: "list" is in "shopping_list" and in "reading_list".
_GENERAL_WORDS = frozenset(
    """
    add answer book config current data date dates day days detail details entry fetch file find
    history id info information item items key last latest list lists make many month monthly name names
    new note notes number numbers old plan plans prefer preference preferences record records result
    results save saved set setting settings state store stored time times user users value values week
    weekly year write
    """.split()  # noqa: SIM905
)
# Words that people use for the same thing in goals and in names of keys. The first stands for all.
_SAME_THING = (
    "address addresses location",
    "appointment appointments calendar meeting meetings event events",
    "author authors writer writers",
    "buy buying groceries grocery shop shopping supermarket purchase",
    "colour color colours colors theme",
    "company companies organisation organization employer firm",
    "contact contacts phone telephone",
    "cost costs price prices pricing expense expenses",
    "customer customers client clients",
    "diet diets dietary eat eats food foods vegetarian vegan allergy allergies allergic",
    "favourite favorite favourites favorites favour favor",
    "film films movie movies cinema",
    "flight flights airline airlines fly flyer airport",
    "gift gifts presents",
    "injury injuries injured pain hurt hurts",
    "job jobs profession occupation workplace",
    "password passwords passphrase",
    "credential credentials login token tokens",
    "language languages translate",
    "learn learning study studying studies",
    "lecture lectures course courses class classes",
    "meal meals dinner dinners lunch menu recipe recipes cook cooking",
    "medicine medicines medication medications drug drugs prescription",
    "money budget budgets spend spending finance finances",
    "music song songs playlist playlists",
    "people person members member team colleague colleagues teammates",
    "preference preferences prefer prefers preferred like likes liked",
    "route routes trail trails",
    "run runs running jog jogging",
    "task tasks todo todos",
    "travel travels travelling traveling trip trips journey vacation holiday holidays",
)
_SYNONYM_SHARE = 0.7


class Words:
    """Turns texts into stemmed words. Not safe for concurrent use by several threads."""

    def __init__(self) -> None:
        self._stem_word = Stemmer.Stemmer("english").stemWord
        self._stems: dict[str, str] = {}
        self.general = frozenset(map(self.stem, _GENERAL_WORDS))
        self.thing: dict[str, str] = {}
        """Maps each synonym to the word that stands for all of them."""
        for group in _SAME_THING:
            first, *others = (self.stem(word) for word in group.split())
            self.thing.update(dict.fromkeys((first, *others), first))

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case."""
        found = self._stems.get(word)
        if found is None:
            if len(self._stems) >= _CACHED_STEMS_MAX:
                self._stems.clear()
            found = self._stems[word] = str(self._stem_word(word))
        return found

    def name_no_subject(self, stems: set[str]) -> bool:
        """Return whether words are only general ones, such as "plan", and numbers."""
        return all(stem in self.general or stem.isdigit() for stem in stems)

    def of(self, text: str) -> set[str]:
        """Return the stems of a text; names in camelCase or snake_case are several words."""
        return {self.stem(word) for word in telling_words(text)}


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; parts of names count as words."""
    # Most texts have no capitals: this takes a third of the time.
    if text.islower():
        return _WORD.findall(text)
    return [word.lower() for word in _WORD.findall(CAMEL_BOUNDARY.sub(" ", text))]


def telling_words(text: str) -> set[str]:
    """Return the words of a text that say what it is about."""
    return set(split_words(text)) - _STOP_WORDS


def joined_words(text: str) -> set[str]:
    """Return every two adjacent words of a text joined into one: "on call" as "oncall"."""
    return {one + other for one, other in itertools.pairwise(split_words(text))}


class WordSearch(KeySearch):
    """A search for the keys that match a goal by stemmed words and by vectors."""

    def __init__(self, goal: str, words: Words) -> None:
        self._words = words
        self._candidates: list[Candidate] = []
        said = sorted(telling_words(goal)) + sorted(joined_words(goal))
        self._wanted = {words.stem(word): word for word in reversed(said)}
        """Words of the goal as written there, by their stems."""
        things = words.thing
        self._things = {things[stem]: stem for stem in self._wanted if stem in things}
        self._share_in_general_key = 1.0 if words.name_no_subject(words.of(goal)) else _GENERAL_KEY_SHARE
        self._keys_with: Counter[str] = Counter()

    def add(self, entry: StateEntry) -> None:
        found = self._found(entry)
        self._keys_with.update(found.keys())
        self._candidates.append(
            Candidate(entry.key, entry.description, entry.preview, entry.update_us, found)
        )

    def _found(self, entry: StateEntry) -> dict[str, float]:
        found: dict[str, float] = {}
        in_key = self._words.of(entry.key)
        general = self._share_in_general_key if self._words.name_no_subject(in_key) else _GENERAL_SHARE
        value = _NOISE.sub(" ", entry.value_json[:VALUE_BYTES_SEARCHED].decode("utf-8", "ignore"))
        for stems, strength, general_share in (
            (self._words.of(value), _IN_VALUE, _GENERAL_SHARE),
            (self._words.of(entry.description), _IN_DESCRIPTION, _GENERAL_SHARE),
            (in_key, _IN_KEY, general),
        ):
            for stem in stems:
                wanted, share = self._match(stem, general_share)
                if wanted:
                    found[wanted] = max(strength * share, found.get(wanted, 0.0))
        for stem in map(self._words.stem, joined_words(entry.key)):
            if stem in self._wanted:
                found[stem] = _IN_KEY
        return found

    def _match(self, stem: str, general_share: float) -> tuple[str, float]:
        """Return the word of the goal that a stem matches, and the weight of the match; "" for none."""
        if stem in self._wanted:
            return stem, general_share if stem in self._words.general else 1.0
        return self._things.get(self._words.thing.get(stem, ""), ""), _SYNONYM_SHARE

    async def best(self, limit: int) -> list[Candidate]:
        await each(self._weigh, self._candidates)
        self._candidates.sort(key=lambda candidate: (-candidate.lexical, -candidate.update_us, candidate.key))
        return self._candidates[:limit]

    def text(self, candidate: Candidate) -> str:
        return f"{' '.join(split_words(candidate.key))}: {candidate.description} {candidate.preview}"

    def rank(
        self,
        candidates: Sequence[Candidate],
        goal: Vector | None = None,
        vectors: Sequence[Vector | None] = (),
    ) -> list[Candidate]:
        for at, candidate in enumerate(candidates):
            candidate.vector = max(_cosine(goal, vectors[at]), 0.0) if goal is not None else 0.0
            candidate.shares = _shares(candidate, goal is not None)
        return sorted(candidates, key=lambda c: (-c.score, -c.update_us, c.key))

    def _weigh(self, candidate: Candidate) -> None:
        """Set the score by words once all keys are known; words are combined like independent
        probabilities.
        """
        rest = 1.0
        told = []
        for stem, strength in candidate.found.items():
            rarity = max(1 - (self._keys_with[stem] - 1) / len(self._candidates), _RARITY_MIN)
            rest *= 1 - strength * rarity
            told.append((strength * rarity, self._wanted[stem]))
        candidate.lexical = 1 - rest
        candidate.words = tuple(word for _, word in sorted(told, reverse=True))


def relevant(ranked: Sequence[Candidate]) -> Relevance:
    """Return the ranked candidates that the goal needs, and the others.

    A key clearly behind another, without a word of the goal that the other lacks, is left out: the goal means
    the other.
    """
    chosen: list[Candidate] = []
    for candidate in ranked:
        near = candidate.score >= max(RELEVANT_FROM, _NEAR_THE_BEST * ranked[0].score)
        means_the_same = not candidate.found and candidate.vector >= _RELEVANT_VECTOR_FROM
        if means_the_same or (near and not any(_better(other, candidate) for other in chosen)):
            chosen.append(candidate)
    keys = {candidate.key for candidate in chosen}
    return Relevance(
        [(candidate, _why_needed(candidate)) for candidate in chosen],
        [(candidate, _why_not(candidate)) for candidate in ranked if candidate.key not in keys],
        f"{len(chosen)} of {len(ranked)} keys share enough words or meaning with the goal",
    )


def _why_needed(candidate: Candidate) -> str:
    told = _told(candidate)
    return f"it has {told} of the goal" if told else "its meaning is close to the goal's"


def _why_not(candidate: Candidate) -> str:
    told = _told(candidate)
    if not told:
        return "it has no word of the goal, and its meaning is not close"
    return f"it has {told} of the goal, which is too little, or less than other keys have"


def _told(candidate: Candidate) -> str:
    return ", ".join(f'"{word[:_WORD_CHARS_TOLD_MAX]}"' for word in candidate.words[:_WORDS_TOLD_MAX])


def _better(one: Candidate, other: Candidate) -> bool:
    return other.score < _CLEARLY_BEHIND * one.score and other.found.keys() <= one.found.keys()


def _cosine(one: Vector, other: Vector | None) -> float:
    if other is None:
        return 0.0
    norms = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(np.dot(one, other)) / norms if norms else 0.0


def _shares(candidate: Candidate, with_vectors: bool) -> tuple[Contribution, ...]:
    if not with_vectors:
        return (Contribution("lexical", candidate.lexical, 1.0, 1.0),)
    return (
        Contribution("lexical", candidate.lexical, LEXICAL_WEIGHT, 1.0),
        Contribution("vector", candidate.vector, VECTOR_WEIGHT, 1.0),
    )
