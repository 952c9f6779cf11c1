"""The local embedder embeds simultaneous requests together, with the same results as separately."""

from __future__ import annotations

import asyncio
import random
from itertools import chain

import numpy as np
import pytest

from faults.scale import SEED
from memory_service.embedders.local import LocalEmbedder
from memory_service.embedders.token_sums import unit_sum


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


async def test_each_caller_gets_the_vectors_of_its_own_texts(embedder: LocalEmbedder) -> None:
    asked = [["Ada likes tea", "Bob is late"], ["Ada likes tea"], [], ["", "Bob is late", "Ada likes tea"]]
    alone = [await embedder.embed(texts) for texts in asked]
    together = await asyncio.gather(*(embedder.embed(texts) for texts in asked))
    assert [[v is None for v in vectors] for vectors in together] == [
        [False, False], [False], [], [True, False, False],
    ]  # fmt: skip
    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))  # type: ignore[arg-type]


async def test_a_caller_that_goes_away_takes_nobody_with_it(embedder: LocalEmbedder) -> None:
    tasks = [asyncio.create_task(embedder.embed([f"text {number}"])) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    first, gone, last = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert np.array_equal(first[0], (await embedder.embed(["text 0"]))[0])  # type: ignore[index]
    assert np.array_equal(last[0], (await embedder.embed(["text 2"]))[0])  # type: ignore[index]


async def test_long_texts_of_many_callers_leave_their_turn_to_others(embedder: LocalEmbedder) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    texts = [f"word{number} " * 2000 for number in range(8)]
    vectors = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    counting.cancel()
    assert all(found[0] is not None for found in vectors)
    # At least one turn for every two texts: all eight at once would take one or two turns.
    assert turns >= 4


def test_the_words_of_a_text_have_the_tokens_of_the_whole(embedder: LocalEmbedder) -> None:
    rng = random.Random(SEED)
    letters = [*"ab<s>/.,\n\t", " ", " ", " ", " ", "the", "unk", "\u2581", "\u65e5", "\U0001f600", "\u00e9"]
    texts = ["".join(rng.choices(letters, k=rng.randrange(30))) for _ in range(5000)]
    texts += [" ", "", "  ", " a", "a ", "a  b", "<s> a </s>", "word " * 100 + "word", "x" * 1000 + " y"]
    for text in texts:
        whole = embedder._tokenizer.encode(text, add_special_tokens=False).ids
        assert [*chain(*embedder._tokens(text))] == whole, (SEED, text)


def test_more_words_than_are_kept_change_nothing(
    embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.embedders.local._KNOWN_WORDS_MAX", 3)
    text = "one two three four five six one two three"
    for _ in range(2):
        whole = embedder._tokenizer.encode(text, add_special_tokens=False).ids
        assert [*chain(*embedder._tokens(text))] == whole
        assert len(embedder._known) <= 3


@pytest.mark.parametrize("width", [1, 5, 256])
def test_the_sum_of_token_vectors_is_that_of_numpy(width: int) -> None:
    rng = np.random.default_rng(width)
    vectors = rng.normal(size=(50, width)).astype(np.float32)
    for count in (1, 2, 7, 300):
        words = [rng.integers(0, 50, rng.integers(0, 6)).tolist() for _ in range(count)] + [[3]]
        total = vectors[[*chain(*words)]].astype(np.float64).sum(axis=0)
        found = unit_sum(vectors, words)
        assert found is not None
        assert np.allclose(found, total / np.linalg.norm(total), atol=1e-5)
    opposite = np.array([[1, -2], [-1, 2]], np.float32)
    assert unit_sum(vectors, []) is None
    assert unit_sum(opposite, [[0], [], [1]]) is None
