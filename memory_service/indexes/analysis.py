"""Converts text to terms, in the same way for stored items and queries.

A term is the 32-bit xxHash of a stemmed word. Hashes need no dictionary per namespace; among 100,000
different words of one namespace, the chance that a given word shares its hash is 2 in 100,000, and then it
only ranks a little worse.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import cast

import numpy as np
import Stemmer
import xxhash
from numpy.typing import NDArray

from memory_service.data_model import CONVERSATION_KINDS, ItemWrite
from memory_service.indexes.irregular_verbs import BASES

# Scripts written without spaces are indexed by the character; everything else by runs of letters and digits.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|[^\W_\u3040-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+"
)
_COMBINING = re.compile(r"[\u0300-\u036f]")

# Words in nearly every English text: they cost much and mean little.
STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing don down during each few for from further had
    has have having he her here hers herself him himself his how i if in into is it its itself just
    ll me more most my myself no nor not now of off on once only or other our ours ourselves out
    over own re s same she should so some such t than that the their theirs them themselves then
    there these they this those through to too under until up ve very was we were what when where
    which while who whom why will with would you your yours yourself yourselves
    """.split()  # noqa: SIM905 - 130 quoted words read no better
)

_CACHED_WORDS_MAX = 200_000
_CACHED_DAYS_MAX = 4096
_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
COUNT_MAX = 65_535
_TERM_BYTES = 6
_STOP = -1


class Analyzer:
    """Turns text into terms. Not safe for concurrent use by several threads."""

    def __init__(self) -> None:
        self._stem = Stemmer.Stemmer("english").stemWord
        self._terms: dict[str, int] = dict.fromkeys(STOP_WORDS, _STOP)
        self._days: dict[int, dict[int, int]] = {}

    def terms(self, text: str) -> dict[int, int]:
        """Return the number of occurrences of each term in the text, in the order of first occurrence."""
        counts: dict[int, int] = {}
        for word in words_of(text):
            term = self._terms.get(word)
            if term is None:
                term = self._learn(word)
            counts[term] = counts.get(term, 0) + 1
        counts.pop(_STOP, None)
        return counts

    def item_terms(self, write: ItemWrite) -> bytes:
        """Return the packed terms of a stored item: its words, its day in words, and its speaker. None if
        its index is empty.

        As `pack_terms` packs them: a mapping takes twenty times as much, and a batch may have a million.
        """
        if write.item.index == "":
            return b""
        terms = self.terms(write.search_text)
        if write.item.kind in CONVERSATION_KINDS:
            for term in (*self._day_terms(write.item.create_us), *map(_mark, words_of(write.speaker))):
                terms[term] = terms.get(term, 0) + 1
        return pack_terms(terms)

    def query_terms(self, text: str) -> tuple[list[int], list[int]]:
        """Return the distinct terms of a query, and those of speakers that it may name."""
        words = list(dict.fromkeys(words_of(text)))
        terms = dict.fromkeys(map(self._terms.get, words))
        if None in terms:
            terms = dict.fromkeys([self._terms.get(word) or self._learn(word) for word in words])
        terms.pop(_STOP, None)
        return cast("list[int]", list(terms)), [_mark(word) for word in words if word not in STOP_WORDS]

    def _day_terms(self, time_us: int) -> dict[int, int]:
        day = time_us // _DAY_US
        terms = self._days.get(day)
        if terms is None:
            if len(self._days) > _CACHED_DAYS_MAX:
                self._days.clear()
            at = _EPOCH + timedelta(days=day)
            terms = self._days[day] = self.terms(f"{at.day} {_MONTHS[at.month - 1]} {at.year}")
        return terms

    def _learn(self, word: str) -> int:
        if len(self._terms) > _CACHED_WORDS_MAX:
            self._terms = dict.fromkeys(STOP_WORDS, _STOP)
        if word in STOP_WORDS:
            return _STOP
        term = xxhash.xxh32_intdigest(self._stem(BASES.get(word, word)).encode())
        self._terms[word] = term
        return term

    def renamed_terms(self) -> dict[int, int]:
        """Map the terms of irregular verbs that earlier releases stored, without a base form, to the current
        ones.
        """
        return {xxhash.xxh32_intdigest(self._stem(form).encode()): self._learn(form) for form in BASES}


def words_of(text: str) -> list[str]:
    """Return the words of a text before stemming, including stop words."""
    return _TOKEN.findall(fold(text))


@lru_cache(maxsize=_CACHED_DAYS_MAX)
def _mark(word: str) -> int:
    """Return the term for speakers of this name. No word of a text has it."""
    return xxhash.xxh32_intdigest(b"\0speaker\0" + word.encode())


def fold(text: str) -> str:
    """Return a text in the form in which letters are compared: without case and accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _COMBINING.sub("", unicodedata.normalize("NFKD", text))).casefold()


def pack_terms(terms: dict[int, int]) -> bytes:
    """Return terms as bytes, to be stored with a record: all terms, then all counts."""
    counts: Iterable[int] = terms.values()
    if max(counts, default=0) > COUNT_MAX:
        counts = [min(count, COUNT_MAX) for count in counts]
    return array("I", terms).tobytes() + array("H", counts).tobytes()


def unpack_terms(packed: Sequence[bytes]) -> tuple[NDArray[np.uint32], NDArray[np.uint16], NDArray[np.int64]]:
    """Return terms, counts and the number of terms of each document, as packed by `pack_terms`."""
    sizes = np.fromiter(map(len, packed), np.int64, len(packed)) // _TERM_BYTES
    if len(packed) == 1:
        # A single item, the usual case, needs no splitting.
        (only,), count = packed, int(sizes[0])
        return np.frombuffer(only, "<u4", count), np.frombuffer(only, "<u2", count, 4 * count), sizes
    # In units of two bytes: a document with n terms has 2n for its terms, then n for its counts.
    halves = np.frombuffer(b"".join(packed), "<u2")
    is_count = np.repeat(np.tile([False, True], len(sizes)), np.ravel([2 * sizes, sizes], "F"))
    return halves[~is_count].view("<u4"), halves[is_count], sizes
