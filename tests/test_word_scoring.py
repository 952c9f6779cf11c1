"""The compiled scoring of words against the formula, over an index with several segments."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from functools import cache

import numpy as np
import pytest

from memory_service.indexes.analysis import pack_terms
from memory_service.indexes.inner_products import inner_products, unit_rows
from memory_service.indexes.lexical import K1, B, LexicalIndex
from memory_service.indexes.turns import AFTER, BEFORE, WEIGHTS, Turns
from memory_service.indexes.word_scoring import Lookup, Tables

_COMMON, _RARE, _NAME, _ABSENT = 1, 2, 7_000_000, 9_999
_EVERYTHING = 1 << 30, 1 << 30, 1 << 30, 1
_BY_TELLING_WORDS = 1 << 30, 1 << 30, 500, 1000
_NO_ROWS = np.empty(0, np.int32)


class _Index:
    """Documents in conversations, one per row; some of them are removed."""

    def __init__(self, seed: int, count: int = 2800) -> None:
        rng = random.Random(seed)
        self.words, self.turns = LexicalIndex(), Turns()
        self.documents: list[dict[int, int]] = []
        self.conversations: list[int] = []
        for number in range(count):
            document = Counter(rng.choices(range(10, 400), k=rng.randrange(1, 12)))
            document.update([_COMMON] if rng.random() < 0.7 else [])
            document.update([_RARE, _RARE] if number % 500 == 3 else [])
            document.update([_NAME] if number % 3 == 0 else [])
            self.documents.append(document)
            self.conversations.append(rng.choice([0, 1, 2, 3]))
            if (rng.random() < 0.1 and number < count - 60) or number == count - 1:
                start = len(self.words)
                self.words.add_all([pack_terms(document) for document in self.documents[start:]])
                self.turns.extend(self.conversations[start:])
        self.live = np.ones(count, np.bool_)
        for number in rng.sample(range(count), count // 10):
            self.live[number] = False
            self.words.remove(number)
            self.turns.remove(number, self.conversations[number])

    def tables(self) -> Tables:
        rows = np.arange(len(self.documents), dtype=np.int32)
        links = self.turns.links
        mean = self.turns.mean_window(int(self.live.sum()))
        return self.words.tables((rows, rows, *links, mean), WEIGHTS)

    @cache  # noqa: B019 - an index lives as long as the tests
    def _turns_of(self, conversation: int) -> list[int]:
        return [r for r, c in enumerate(self.conversations) if c == conversation and self.live[r]]

    def window(self, row: int) -> list[tuple[int, float]]:
        """Return a row and its neighbours with their weights, as described in turns.py."""
        conversation = self.conversations[row]
        if not conversation:
            return [(row, 1.0)]
        turns = self._turns_of(conversation)
        at = bisect_left(turns, row)
        before = zip(reversed(turns[:at]), BEFORE, strict=False)
        after = zip(turns[at + 1 :], AFTER, strict=False)
        return [(row, 1.0), *before, *after]

    def scores(self, terms: list[int]) -> dict[int, float]:
        """Return the positive BM25 scores of live rows, by the formula."""
        live = np.flatnonzero(self.live).tolist()
        lengths = [sum(document.values()) for document in self.documents]
        windows = {row: self.window(row) for row in live}
        mean = sum(lengths[r] for r in live) / len(live)
        mean *= sum(sum(w for _, w in window) for window in windows.values()) / len(live)
        idf = {}
        for term in terms:
            having = sum(term in self.documents[row] for row in live)
            idf[term] = math.log(1 + (len(live) - having + 0.5) / (having + 0.5))
        found = {}
        for row, window in windows.items():
            norm = K1 * (1 - B + B * sum(w * lengths[r] for r, w in window) / mean)
            score = 0.0
            for term in terms:
                frequency = sum(w * self.documents[r].get(term, 0) for r, w in window)
                score += idf[term] * (K1 + 1) * frequency / (frequency + norm)
            if score:
                found[row] = score
        return found


@pytest.fixture(scope="module")
def index() -> _Index:
    return _Index(seed=5)


def test_the_index_has_segments_and_postings_in_none(index: _Index) -> None:
    assert len(index.words._segments) > 1
    assert len(index.words._open_terms) > 100


@pytest.mark.parametrize(
    "terms", [[_RARE], [_COMMON], [11, 12, 13], [_COMMON, _RARE, 11], [_ABSENT, 14], [_ABSENT], []]
)
def test_scores_are_those_of_the_formula(index: _Index, terms: list[int]) -> None:
    rows, scores, _ = Lookup(index.tables(), terms, []).search(None, _NO_ROWS, 1 << 30, _BY_TELLING_WORDS)
    expected = index.scores(terms)
    if _COMMON in terms and len(terms) > 1:
        # A very common word need not add rows to those of another word.
        assert set(rows.tolist()) < expected.keys()
        assert set(rows.tolist()) == index.scores([term for term in terms if term != _COMMON]).keys()
    else:
        assert set(rows.tolist()) == expected.keys()
    assert scores.tolist() == pytest.approx([expected[row] for row in rows.tolist()], rel=1e-6)


def test_the_best_are_kept_and_those_that_are_near(index: _Index) -> None:
    terms = [11, 12, 13]
    expected = index.scores(terms)
    best = sorted(expected, key=lambda row: (expected[row], row), reverse=True)
    silent = [row for row in np.flatnonzero(index.live).tolist() if row not in expected][:3]
    near = np.array([*silent, best[1]], np.int32)
    rows, scores, _ = Lookup(index.tables(), terms, []).search(None, near, 20, _EVERYTHING)
    assert rows.tolist() == sorted({*best[:20], *silent})
    assert [score for row, score in zip(rows.tolist(), scores, strict=True) if row in silent] == [0, 0, 0]


@pytest.mark.parametrize("count", [1, 19, 31, 32, 33, 44, 255, 890, 1035, 2400])
@pytest.mark.parametrize("terms", [[_COMMON], [11, 12, 13], [_RARE, 11]])
def test_of_any_number_the_best_are_kept_the_newer_of_equal_ones(
    index: _Index, terms: list[int], count: int
) -> None:
    rows, scores, _ = Lookup(index.tables(), terms, []).search(None, _NO_ROWS, 1 << 30, _EVERYTHING)
    best = sorted(zip(scores.tolist(), rows.tolist(), strict=True), reverse=True)[:count]
    kept, its_scores, _ = Lookup(index.tables(), terms, []).search(None, _NO_ROWS, count, _EVERYTHING)
    assert dict(zip(kept.tolist(), its_scores.tolist(), strict=True)) == {row: score for score, row in best}
    assert kept.tolist() == sorted(kept.tolist())


def test_only_rows_that_are_allowed_are_found_and_their_scores_stay(index: _Index) -> None:
    terms = [_COMMON, 11, 12]
    allowed = np.zeros(len(index.documents), np.uint8)
    allowed[::7] = 1
    rows, scores, _ = Lookup(index.tables(), terms, []).search(allowed, _NO_ROWS, 1 << 30, _BY_TELLING_WORDS)
    expected = {row: score for row, score in index.scores(terms).items() if row % 7 == 0}
    assert set(rows.tolist()) == expected.keys()
    assert scores.tolist() == pytest.approx([expected[row] for row in rows.tolist()], rel=1e-6)


def test_a_text_of_very_many_words_is_long_without_a_look_and_found_alike(index: _Index) -> None:
    present, widths = [11, _RARE, 390], (128, 96, 1024, 16)
    # Terms of no document, below and above the existing ones.
    terms = [0, *present, *range(10_000_000, 10_150_000)]
    lookup = Lookup(index.tables(), terms, [_NAME])
    postings = Lookup(index.tables(), present, [_NAME]).posting_count(True, widths)
    assert lookup.posting_count(True, widths) > 1000 * postings
    rows, scores, _ = lookup.search(None, _NO_ROWS, 50, widths)
    few = Lookup(index.tables(), present, [_NAME])
    expected_rows, expected, _ = few.search(None, _NO_ROWS, 50, widths)
    assert rows.tolist() == expected_rows.tolist()
    assert scores.tolist() == pytest.approx(expected.tolist(), rel=1e-9)
    assert lookup.named_in(rows) == few.named_in(rows)


def test_speakers_are_told_by_their_names(index: _Index) -> None:
    rows = np.flatnonzero(index.live).astype(np.int32)
    named = Lookup(index.tables(), [11], [_ABSENT, _NAME]).named_in(rows)
    assert named == [row % 3 == 0 for row in rows.tolist()]
    assert Lookup(index.tables(), [11], [_ABSENT]).named_in(rows) is None


def test_one_query_leaves_nothing_behind_for_the_next(index: _Index) -> None:
    terms = [11, 12, 13]
    tables = index.tables()
    first = Lookup(tables, terms, []).search(None, _NO_ROWS, 50, (128, 96, 1024, 16))
    Lookup(tables, [_COMMON, _RARE], []).search(None, _NO_ROWS, 50, (128, 96, 1024, 16))
    second = Lookup(tables, terms, []).search(None, _NO_ROWS, 50, (128, 96, 1024, 16))
    assert first[0].tolist() == second[0].tolist()
    assert first[1].tolist() == second[1].tolist()


@pytest.mark.parametrize("size", [1, 1e-30, 1e-42, 1e30, 1e38])
@pytest.mark.parametrize("dimension", [1, 3, 33, 256, 4096])
def test_rows_get_the_length_1_whatever_they_had(dimension: int, size: float) -> None:
    rng = np.random.default_rng(dimension)
    vectors = (np.clip(rng.standard_normal((20, dimension)), -3, 3) * size).astype(np.float32)
    vectors[:, 0] = np.float32(size)
    vectors[1::2] = rng.standard_normal((10, dimension))
    exact = vectors.astype(np.float64)
    exact /= np.abs(exact).max(axis=1, keepdims=True)
    units = unit_rows(vectors)
    assert units == pytest.approx(exact / np.linalg.norm(exact, axis=1, keepdims=True), abs=1e-6)
    # Other rows change nothing.
    assert all(units[at].tobytes() == unit_rows(vectors[at : at + 1]).tobytes() for at in range(20))


@pytest.mark.parametrize("dimension", [1, 3, 15, 16, 17, 256])
def test_inner_products_are_those_of_numpy(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    matrix = rng.standard_normal((40, dimension), np.float32)
    query = rng.standard_normal(dimension, np.float32)
    rows = np.array([39, 0, 7, 7], np.int32)
    assert inner_products(matrix, rows, query) == pytest.approx(matrix[rows] @ query, abs=1e-4)
    assert inner_products(matrix, rows[:0], query).shape == (0,)
