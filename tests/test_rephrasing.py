"""Rules that put users' statements into the third person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rephrasing import SHARE_MIN, cases, share_right
from memory_service.deciders.base import Category
from memory_service.deciders.rules.extraction import extract
from memory_service.deciders.rules.importance import importance
from memory_service.deciders.rules.rephrasing import third_person
from memory_service.deciders.rules.requests import without_request
from memory_service.deciders.rules.sentences import sentences


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I am a software engineer", "User is a software engineer"),
        ("My wife is Jane", "User's wife is named Jane"),
        ("I prefer TypeScript", "User prefers TypeScript"),
        ("I'm based in London", "User is based in London"),
        ("Remember that I prefer dark mode", "User prefers dark mode"),
        ("Remember that I like TypeScript", "User likes TypeScript"),
        ("My name is John", "User's name is John"),
        ("I work with Sarah on the backend", "User works with Sarah on the backend"),
        ("Save this: I'm building a SaaS product", "User is building a SaaS product"),
    ],
)
def test_the_examples_of_the_requirements_come_out_exactly(said: str, expected: str) -> None:
    assert third_person(said) == expected


def test_enough_of_the_sentences_come_out_right() -> None:
    everything = cases()
    held_out = [case for case in everything if case.held_out]
    assert len(everything) - len(held_out) >= 60
    assert len(held_out) >= 20
    assert share_right(everything) >= SHARE_MIN
    assert share_right(held_out) >= SHARE_MIN


def test_what_is_right_stays_so_when_it_is_said_again() -> None:
    for case in cases():
        if case.right:
            assert third_person(case.got) == case.got


@pytest.mark.parametrize(
    "said",
    [
        "User prefers dark mode",
        "User's wife is named Jane",
        "Jane likes tea",
        "Despicable Me is a film",
        "Mine Craft is a game",
        "Part I is about Henry I.",
        "The I/O of us-east-1 is slow",
        'The sign reads "I love my dog"',
        "He wrote `my_list = [i for i in us]` and left",
        "Me gusta el café con leche",
        "I ragazzi della mia squadra sono di Milano",
        "Jag bor i Stockholm",
        "我住在北京",
        "",
        " ",
        "?!",
    ],
)
def test_what_is_not_in_the_first_person_stays_as_it_is(said: str) -> None:
    assert third_person(said) == said


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        ("go", "goes"), ("do", "does"), ("have", "has"), ("study", "studies"), ("watch", "watches"),
        ("play", "plays"), ("fix", "fixes"), ("miss", "misses"), ("wash", "washes"), ("veto", "vetoes"),
        ("can", "can"), ("must", "must"), ("worked", "worked"), ("went", "went"), ("need", "needs"),
        ("was", "was"), ("don't", "doesn't"), ("don’t", "doesn’t"), ("haven't", "hasn't"), ("am", "is"),
    ],
)  # fmt: skip
def test_a_verb_gets_the_form_of_the_third_person(verb: str, form: str) -> None:
    assert third_person(f"I {verb} it") == f"User {form} it"


@pytest.mark.parametrize(
    ("said", "without"),
    [
        ("Remember that tea is hot", "Tea is hot"),
        ("please remember: tea is hot", "Tea is hot"),
        ("Could you please keep in mind that tea is hot?", "Tea is hot"),
        ("Tea is hot, please remember that.", "Tea is hot"),
        ("FYI, tea is hot", "Tea is hot"),
        ("Note to self: tea is hot", "Tea is hot"),
        ("Hey, don't forget: tea is hot", "Tea is hot"),
    ],
)
def test_a_request_to_remember_is_taken_off(said: str, without: str) -> None:
    assert without_request(said) == (without, True)


@pytest.mark.parametrize(
    "said",
    [
        "Remember to buy milk",
        "I remember that day",
        "I can't remember that",
        "Remember that day in Rome?",
        "Notes are useful",
        "Remember that?",
        "Save the whales",
        "Save my work every hour",
        "Save that for later",
        "Important meetings are on Mondays",
        "It's important that I sleep well",
        "So you know Python",
    ],
)
def test_what_only_looks_like_a_request_stays(said: str) -> None:
    assert without_request(said) == (said, False)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "I am Dr. Lee. I live in St. Gallen!  And you?",
            ["I am Dr. Lee. ", "I live in St. Gallen!  ", "And you?"],
        ),
        ('He said "No. Never." Then he left.', ['He said "No. Never." ', "Then he left."]),
        ("i like tea. i hate milk", ["i like tea. ", "i hate milk"]),
        ("one\n\ntwo", ["one\n\n", "two"]),
        ("Version 3.5 is e.g. fine", ["Version 3.5 is e.g. fine"]),
    ],
)
def test_sentences_end_where_they_do(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


_PIECES = [
    "I",
    "i'm",
    "I’d",
    "my",
    "we",
    "us",
    "and",
    "wife",
    "is",
    "Jane",
    "don't",
    "like",
    "to",
    "but",
    '"',
    "'",
    "`",
    "remember",
    "that",
    "?",
    ".",
    ",",
    ":",
    "I/O",
    "Part",
    "never",
    "been",
    "«",
    "й",
    "mine",
    "ourselves",
    "i",
    "im",
    "User's",
    "her",
    "(I)",
    "1.",
    "-",
    "save",
    "this",
] + ["\n", "\u2003"]


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(_PIECES), max_size=25).map(" ".join)))
def test_any_text_can_be_rephrased_searched_and_rated(text: str) -> None:
    assert "".join(sentences(text)) == text
    third_person(text)
    list(extract(text))
    importance(text, Category.CONTEXT, text)
