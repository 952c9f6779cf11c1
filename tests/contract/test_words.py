"""Words: which items a text finds, and with which statistics."""

from __future__ import annotations

import pytest

from contract.builders import NOW, NS, PLENTY, axis_vector, build_write, search_hits, word_scores, words_found
from memory_service.data_model import OnDuplicate
from memory_service.store import Store

FRUIT = ["kiwi plum", "kiwi kiwi", "plum fig fig", "kiwi plum fig mango", "mango"]

# Texts that some query language would parse as more than words.
NOT_A_LANGUAGE = [
    '"kiwi', "kiwi OR", "NOT kiwi", "kiwi*", "kiwi NEAR plum", "(kiwi", "text:kiwi", "-kiwi", "kiwi^2",
    "'; DROP TABLE items;-- kiwi", "kiwi%", "{kiwi}", "\\kiwi", "kiwi\x00", "/kiwi/", "+kiwi",
]  # fmt: skip


async def _add_fruit(store: Store, namespace: str = NS) -> None:
    await store.add_items(namespace, [build_write(f"i{n}", text) for n, text in enumerate(FRUIT)])


async def test_only_items_with_a_word_of_the_query_are_found(store: Store) -> None:
    await _add_fruit(store)
    assert await words_found(store, "kiwi") == {"i0", "i1", "i3"}
    assert await words_found(store, "fig mango") == {"i2", "i3", "i4"}
    assert await words_found(store, "cherry") == set()


async def test_a_verb_is_found_by_each_of_its_forms(store: Store) -> None:
    texts = {"a": "she went there", "b": "they go", "c": "gone for good", "d": "a kiwi", "e": "I bought it"}
    await store.add_items(NS, [build_write(name, text) for name, text in texts.items()])
    for form in ("go", "goes", "going", "went", "Gone"):
        assert await words_found(store, form) == {"a", "b", "c"}
    assert await words_found(store, "buying") == {"e"}
    # A word in two forms counts twice.
    await store.add_items(NS, [build_write("both", "went and gone x"), build_write("one", "went and x x")])
    scores = await word_scores(store, "go")
    assert scores["both"] > scores["one"]


async def test_a_word_that_every_item_has_finds_every_item(store: Store) -> None:
    # The classic idf of such a word is negative, so no item would score above 0.
    await store.add_items(NS, [build_write(f"i{n}", "kiwi") for n in range(5)])
    assert len(await words_found(store, "kiwi")) == 5


@pytest.mark.parametrize("text", ["", " ", "!?", "\n", "\U0001f600"])
async def test_a_text_without_words_finds_nothing(store: Store, text: str) -> None:
    await _add_fruit(store)
    await store.add_items(NS, [build_write("odd", text)])
    assert await words_found(store, text) == set()


@pytest.mark.parametrize("text", NOT_A_LANGUAGE)
async def test_a_query_is_words_and_no_language(store: Store, text: str) -> None:
    await _add_fruit(store)
    assert {"i0", "i1", "i3"} <= await words_found(store, text)


async def test_scores_rank_as_bm25_does(store: Store) -> None:
    await store.add_items(
        NS,
        [
            build_write("twice", "kiwi kiwi fig fig"),
            build_write("once", "kiwi fig fig fig"),
            build_write("once in a long one", "kiwi " + "fig " * 40),
            build_write("rare", "plum fig fig fig"),
            build_write("both", "plum kiwi fig fig"),
        ],
    )
    kiwi = await word_scores(store, "kiwi")
    assert kiwi["twice"] > kiwi["once"] > kiwi["once in a long one"] > 0
    mixed = await word_scores(store, "plum kiwi")
    assert mixed["both"] > mixed["rare"] > mixed["once"]
    assert mixed["once"] == pytest.approx(kiwi["once"])


async def test_the_best_candidates_are_taken(store: Store) -> None:
    texts = [f"{'kiwi ' * (n % 11 + 1)}{'fig ' * (n % 13)}" for n in range(100)]
    await store.add_items(NS, [build_write(f"i{n}", text) for n, text in enumerate(texts)])
    scores = await word_scores(store, "kiwi")
    best = sorted(scores.values(), reverse=True)
    for candidates in (1, 7, 50, 99):
        hits = await search_hits(store, text="kiwi", candidates=candidates)
        found = sorted((hit.lexical_score or 0 for hit in hits.values()), reverse=True)
        assert found == pytest.approx(best[:candidates])


async def test_candidates_are_taken_among_what_matches_the_filter(store: Store) -> None:
    await store.add_items(NS, [build_write(f"best{n}", "kiwi") for n in range(30)])
    await store.add_items(NS, [build_write(f"mine{n}", "kiwi fig fig fig", session_id="s") for n in range(3)])
    assert set(await search_hits(store, text="kiwi", candidates=2, session_id="s")) < {
        "mine0",
        "mine1",
        "mine2",
    }
    assert len(await search_hits(store, text="kiwi", candidates=3, session_id="s")) == 3


async def test_other_namespaces_change_no_score(store: Store) -> None:
    await _add_fruit(store)
    before = await word_scores(store, "kiwi plum fig")
    for name in ("other", NS + "/more", NS[:-1]):
        await store.add_items(name, [build_write(f"i{n}", "kiwi " * 9 + "fig") for n in range(60)])
        assert await word_scores(store, "kiwi plum fig") == before
    await store.reset("other")
    await store.delete_namespace(NS + "/more")
    assert await word_scores(store, "kiwi plum fig") == before


async def test_writes_of_the_same_namespace_do_change_scores(store: Store) -> None:
    await _add_fruit(store)
    before = await word_scores(store, "kiwi")
    await store.add_items(NS, [build_write(f"more{n}", "cherry") for n in range(20)])
    after = await word_scores(store, "kiwi")
    assert all(after[name] > before[name] for name in before)


async def test_statistics_are_of_what_is_there_now(store: Store) -> None:
    """Deleted and replaced items leave no trace: scores are those of a namespace without a past."""
    await store.add_items(
        NS, [build_write(f"old{n}", "kiwi cherry " * 5, axis_vector(n % 4)) for n in range(40)]
    )
    await store.add_items(NS, [build_write(f"i{n}", "kiwi " * 20) for n in range(len(FRUIT))])
    await store.flush()
    replacing = [build_write(f"i{n}", text) for n, text in enumerate(FRUIT)]
    await store.add_items(NS, replacing, on_duplicate=OnDuplicate.REPLACE)
    for n in range(40):
        await store.delete_item(NS, f"old{n}", now_us=NOW)
    await _add_fruit(store, "fresh")
    for query in ("kiwi", "plum fig", "mango", "cherry"):
        assert await word_scores(store, query) == pytest.approx(await word_scores(store, query, "fresh"))


async def test_deleted_and_replaced_words_are_gone_at_once(store: Store) -> None:
    for n in range(60):
        await store.add_items(NS, [build_write(f"i{n}", f"kiwi first{n}")])
    await store.flush()
    for n in range(0, 60, 6):
        await store.delete_item(NS, f"i{n}", now_us=NOW)
        assert await words_found(store, f"first{n}") == set()
        await store.replace_item(NS, build_write(f"i{n + 1}", f"second{n}"))
        assert await words_found(store, f"first{n + 1} second{n}") == {f"i{n + 1}"}
    assert len(await words_found(store, "kiwi")) == 40


async def test_search_text_is_what_is_searched(store: Store) -> None:
    write = build_write("a", "kiwi")
    write.search_text = "plum"
    await store.add_items(NS, [write])
    assert await words_found(store, "kiwi") == set()
    assert await words_found(store, "plum") == {"a"}


async def test_many_words_are_all_kept(store: Store) -> None:
    # More postings than fit in one part of an index that consists of parts.
    texts = [" ".join(f"w{(n * 37 + k * 11) % 997}" for k in range(60)) for n in range(600)]
    for start in range(0, 600, 100):
        writes = [build_write(f"i{n}", texts[n]) for n in range(start, start + 100)]
        await store.add_items(NS, writes)
    for n in range(0, 600, 5):
        await store.delete_item(NS, f"i{n}", now_us=NOW)
    for word in ("w0", "w500", "w996"):
        expected = {f"i{n}" for n, text in enumerate(texts) if n % 5 and word in text.split()}
        assert await words_found(store, word) == expected
    assert len(await search_hits(store, text="w0 w500", candidates=PLENTY)) == len(
        [text for n, text in enumerate(texts) if n % 5 and {"w0", "w500"} & set(text.split())]
    )


async def test_words_of_any_language_are_found(store: Store) -> None:
    texts = {
        "de": "Gr\u00f6\u00dfe",
        "ru": "\u043f\u0430\u043c\u044f\u0442\u044c",
        "ja": "\u8a18\u61b6",
        "el": "\u03bc\u03bd\u03ae\u03bc\u03b7",
    }
    await store.add_items(NS, [build_write(name, text) for name, text in texts.items()])
    for name, text in texts.items():
        assert name in await words_found(store, text)
