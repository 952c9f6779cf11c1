"""Segments of a word index are merged, also in another thread, while documents are added."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from memory_service.indexes import lexical
from memory_service.indexes.analysis import pack_terms
from memory_service.indexes.lexical import LexicalIndex

Postings = Counter[tuple[int, int, int]]


def documents(count: int, seed: int) -> list[dict[int, int]]:
    """Return documents with words of a small vocabulary."""
    rng = np.random.default_rng(seed)
    return [
        {int(term): int(rng.integers(1, 5)) for term in rng.choice(5000, 20, replace=False)}
        for _ in range(count)
    ]


def given(batches: list[list[dict[int, int]]]) -> Postings:
    """Return all postings of documents in these batches."""
    every = [document for batch in batches for document in batch]
    return Counter((term, doc, n) for doc, terms in enumerate(every) for term, n in terms.items())


def held(index: LexicalIndex) -> Postings:
    """Return all postings of an index."""
    return Counter(
        (int(term), int(doc), int(count))
        for segment in index.words().segments
        for at, term in enumerate(segment.terms)
        for doc, count in zip(
            segment.docs[segment.starts[at] : segment.starts[at + 1]],
            segment.counts[segment.starts[at] : segment.starts[at + 1]],
            strict=True,
        )
    )


# Each makes a segment.
BATCHES = [documents(250, seed) for seed in range(24)]


def segments(index: LexicalIndex) -> int:
    return len(index.words().segments)


def test_few_postings_are_merged_at_once() -> None:
    index = LexicalIndex()
    for batch in BATCHES:
        index.add_all([pack_terms(document) for document in batch])
        index.merge_few()
    assert segments(index) < 10
    assert index.plan() is None
    assert held(index) == given(BATCHES)


def test_many_are_merged_in_another_thread_while_more_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_MERGE_AT_ONCE_MAX", 0)
    index = LexicalIndex()
    for batch in BATCHES[:10]:
        index.add_all([pack_terms(document) for document in batch])
        index.merge_few()
    assert segments(index) == 10
    job = index.plan()
    assert job is not None
    assert index.plan() is None
    merged = job.work()
    # These are merged with each other, not into the merge in progress.
    monkeypatch.undo()
    for batch in BATCHES[10:]:
        index.add_all([pack_terms(document) for document in batch])
        index.merge_few()
    assert 10 < segments(index) < 24
    job.finish(merged)
    assert segments(index) < 10
    assert held(index) == given(BATCHES)


def test_a_merge_that_failed_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_MERGE_AT_ONCE_MAX", 0)
    index = LexicalIndex()
    for batch in BATCHES[:10]:
        index.add_all([pack_terms(document) for document in batch])
    job = index.plan()
    assert job is not None
    job.fail()
    again = index.plan()
    assert again is not None
    again.finish(again.work())
    assert segments(index) == 1
    assert held(index) == given(BATCHES[:10])
