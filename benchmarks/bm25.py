"""Plain BM25 over a few thousand short texts: the lexical reference."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import Stemmer

_K1 = 1.2
_B = 0.75
_STEMMER = Stemmer.Stemmer("english")
_WORD = re.compile(r"\w+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a about after all am an and any are as at be because been before being but by can could did do does "
        "doing down for from had has have having he her here hers him his how i if in into is it its just me "
        "more most my no nor not now of off on once only or other our out over own s same she should so some "
        "such t than that the their them then there these they this those through to too under until up very "
        "was we were what when where which while who whom why will with would you your"
    )
)


class Bm25:
    """Ranks texts by the word stems that they share with a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        words = [_words(text) for text in texts]
        mean = sum(map(len, words)) / len(words)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, found in enumerate(words):
            for word, times in Counter(found).items():
                postings[word].append((number, times))
        self._norms = [_K1 * (1 - _B + _B * len(found) / mean) for found in words]
        self._postings = dict(postings)

    def best(self, query: str, limit: int) -> list[int]:
        """Return the numbers of the best texts, best first, of those that share a word with the query."""
        scores: dict[int, float] = defaultdict(float)
        for word in _words(query):
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (len(self._norms) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, times in postings:
                scores[number] += rarity * times * (_K1 + 1) / (times + self._norms[number])
        return sorted(scores, key=lambda number: (-scores[number], number))[:limit]


def _words(text: str) -> list[str]:
    words = [word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]
    stems: list[str] = _STEMMER.stemWords(words)
    return stems
