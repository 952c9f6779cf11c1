"""Turns of a conversation: the text around a turn counts for it."""

from __future__ import annotations

import math
import random

import pytest

from contract.builders import NOW, NS, PLENTY, axis_vector, build_write, search_hits, word_scores, words_found
from memory_service.data_model import Facet, ItemKind, ItemWrite, OnDuplicate
from memory_service.indexes.lexical import K1, B
from memory_service.indexes.turns import AFTER, BEFORE
from memory_service.store import Store

_DAY = 86_400_000_000
_WORDS = ["kiwi", "plum", "fig", "mango", "lime", "pear", "date", "nut"]


def said(item_id: str, text: str, session: str = "s", **fields: object) -> ItemWrite:
    return build_write(item_id, text, session_id=session, **fields)  # type: ignore[arg-type]


async def test_an_answer_is_found_by_the_words_of_its_question(store: Store) -> None:
    texts = ["kiwi", "yes", "no", "maybe", "fig", "fig"]
    await store.add_items(NS, [said(f"t{n}", text) for n, text in enumerate(texts)])
    scores = await word_scores(store, "kiwi")
    # Itself and the three after it; there is nothing before it.
    assert sorted(scores, key=scores.__getitem__, reverse=True) == ["t0", "t1", "t2", "t3"]


async def test_what_comes_later_counts_for_what_is_there(store: Store) -> None:
    await store.add_items(NS, [said("t0", "fig"), said("t1", "lime")])
    assert await words_found(store, "kiwi") == set()
    await store.add_items(NS, [said("t2", "kiwi")])
    assert await words_found(store, "kiwi") == {"t0", "t1", "t2"}


async def test_what_is_said_before_counts_more_than_what_is_said_after(store: Store) -> None:
    await store.add_items(NS, [said("before", "fig"), said("it", "kiwi"), said("after", "fig")])
    scores = await word_scores(store, "kiwi")
    assert scores["it"] > scores["after"] > scores["before"] > 0


async def test_other_sessions_and_what_is_in_none_are_no_neighbours(store: Store) -> None:
    await store.add_items(
        NS,
        [said("a", "kiwi", "one"), said("b", "fig", "two"), said("c", "fig", ""), said("d", "kiwi", "")],
    )
    assert await words_found(store, "kiwi") == {"a", "d"}


async def test_interleaved_sessions_are_told_apart(store: Store) -> None:
    await store.add_items(NS, [said("a0", "kiwi", "a"), said("b0", "plum", "b"), said("a1", "fig", "a")])
    await store.add_items(NS, [said("b1", "fig", "b")])
    assert await words_found(store, "kiwi") == {"a0", "a1"}
    assert await words_found(store, "plum") == {"b0", "b1"}


@pytest.mark.parametrize("kind", [ItemKind.USER_MEMORY, ItemKind.DOCUMENT, ItemKind.FRAGMENT])
async def test_what_is_no_turn_has_no_neighbours(store: Store, kind: ItemKind) -> None:
    facet = Facet(kind)
    await store.add_items(NS, [said("t", "kiwi"), said("fact", "fig", facet=facet), said("u", "fig")])
    assert await words_found(store, "kiwi") == {"t", "u"}


async def test_neighbours_of_a_deleted_turn_become_neighbours(store: Store) -> None:
    texts = ["kiwi", "fig", "fig", "fig", "lime"]
    await store.add_items(NS, [said(f"t{n}", text) for n, text in enumerate(texts)])
    assert "t4" not in await words_found(store, "kiwi")
    await store.delete_item(NS, "t2", now_us=NOW)
    assert await words_found(store, "kiwi") == {"t0", "t1", "t3", "t4"}
    await store.delete_item(NS, "t0", now_us=NOW)
    assert await words_found(store, "kiwi") == set()


async def test_a_turn_that_changes_its_session_changes_its_neighbours(store: Store) -> None:
    await store.add_items(NS, [said("a0", "lime", "a"), said("b0", "kiwi", "b"), said("a1", "fig", "a")])
    assert await words_found(store, "kiwi") == {"b0"}
    await store.add_items(NS, [said("b0", "kiwi", "a")], on_duplicate=OnDuplicate.REPLACE)
    assert await words_found(store, "kiwi") == {"a0", "b0", "a1"}
    await store.add_items(NS, [said("b0", "kiwi", "")], on_duplicate=OnDuplicate.REPLACE)
    assert await words_found(store, "kiwi") == {"b0"}
    await store.add_items(NS, [said("a2", "plum", "a")])
    assert await words_found(store, "plum") == {"a0", "a1", "a2"}


async def test_a_filter_chooses_among_turns_and_not_among_their_words(store: Store) -> None:
    await store.add_items(
        NS, [said("t0", "kiwi"), said("t1", "fig", labels={"k": "v"}), said("t2", "lime", labels={"k": "w"})]
    )
    assert await words_found(store, "kiwi", labels=(("k", "v"),)) == {"t1"}


async def test_what_vectors_find_has_the_words_around_it(store: Store) -> None:
    await store.add_items(NS, [said("t0", "kiwi"), said("t1", "fig", vector=axis_vector(1))])
    alone = await word_scores(store, "kiwi")
    found = await search_hits(store, NS, text="kiwi", vector=axis_vector(1), candidates=1)
    assert found["t1"].lexical_score == pytest.approx(alone["t1"])


async def test_the_day_counts_as_words(store: Store) -> None:
    # 2023-11-14 and, a day later, 2023-11-15.
    await store.add_items(NS, [said("t0", "fig", ""), said("t1", "fig", "", create_us=NOW + _DAY)])
    assert await words_found(store, "on 15 November 2023") == {"t0", "t1"}
    scores = await word_scores(store, "on 15 November 2023")
    assert scores["t1"] > scores["t0"]
    assert await words_found(store, "15") == {"t1"}


async def test_whom_a_text_names_is_told(store: Store) -> None:
    await store.add_items(
        NS, [said("a", "kiwi", "", speaker="Ada Lovelace"), said("b", "kiwi ada", "", speaker="Ben")]
    )
    for text, named in (("what kiwi does ADA like", {"a"}), ("lovelace kiwi", {"a"}), ("kiwi", set())):
        found = await search_hits(store, NS, text=text, candidates=PLENTY)
        assert {id for id, hit in found.items() if hit.named} == named, text


def _expected(turns: list[tuple[str, str]], query: list[str]) -> dict[int, float]:
    """Return BM25 scores over weighted windows, for turns of (session, text), in plain Python."""
    texts = [text.split() for _, text in turns]
    sizes = [len(text) + 3 for text in texts]  # and the three words of the day
    windows = []
    for at, (session, _) in enumerate(turns):
        before = [i for i in range(at) if turns[i][0] == session][::-1]
        after = [i for i in range(at + 1, len(turns)) if turns[i][0] == session]
        pairs = [*zip(before, BEFORE, strict=False), *zip(after, AFTER, strict=False)] if session else []
        windows.append([(at, 1.0), *pairs])
    mean = sum(weight * 1.0 for window in windows for _, weight in window) / len(turns)
    mean *= sum(sizes) / len(turns)
    scores = dict.fromkeys(range(len(turns)), 0.0)
    for word in query:
        having = sum(word in text for text in texts)
        if not having:
            continue
        idf = math.log(1 + (len(turns) - having + 0.5) / (having + 0.5))
        for at, window in enumerate(windows):
            times = sum(weight * texts[i].count(word) for i, weight in window)
            length = sum(weight * sizes[i] for i, weight in window)
            scores[at] += idf * (K1 + 1) * times / (times + K1 * (1 - B + B * length / mean))
    return {at: score for at, score in scores.items() if score}


@pytest.mark.parametrize("seed", range(5))
async def test_scores_are_those_of_the_formula(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    turns = [
        (chance.choice(["", "a", "b"]), " ".join(chance.choices(_WORDS, k=chance.randint(1, 6))))
        for _ in range(60)
    ]
    for start in range(0, 60, 20):
        writes = [said(f"{n}", text, session) for n, (session, text) in enumerate(turns)][start : start + 20]
        await store.add_items(NS, writes)
        query = chance.sample(_WORDS, 2)
        expected = _expected(turns[: start + 20], query)
        scores = await word_scores(store, " ".join(query))
        assert {int(id): score for id, score in scores.items()} == pytest.approx(expected, rel=0.02)
