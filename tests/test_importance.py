"""The importance of facts: base scores, boosts, reductions and decay."""

from __future__ import annotations

import pytest

from memory_service.deciders.base import Category, Importance
from memory_service.deciders.rules.importance import importance
from memory_service.domain.facts.reading import decay_factor


def amounts(rated: Importance) -> dict[str, float]:
    return {adjustment.name: adjustment.amount for adjustment in (*rated.boosts, *rated.reductions)}


def names_found(content: str, quote: str = "", explicit: bool = False) -> set[str]:
    return set(amounts(importance(content, Category.PROJECT, quote, explicit)))


@pytest.mark.parametrize(
    ("category", "base"),
    [
        (Category.IDENTITY, 10),
        (Category.PREFERENCE, 9),
        (Category.RELATIONSHIP, 8),
        (Category.PROJECT, 7),
        (Category.CONTEXT, 5),
    ],
)
def test_a_plain_fact_has_the_base_score_of_its_category(category: Category, base: float) -> None:
    assert importance("User likes tea", category) == Importance(base, (), (), base)


@pytest.mark.parametrize(
    ("content", "name", "amount"),
    [
        ("Remember this: User is vegan", "explicit_request", 2),
        ("User's wife is named Jane", "specific_details", 1),
        ("User wants to become a pilot", "long_term_goal", 1),
        ("User might try fishing", "vague", -2),
        ("User is tired today", "temporary", -2),
    ],
)
def test_each_adjustment_has_its_amount_and_the_words_it_was_found_by(
    content: str, name: str, amount: float
) -> None:
    rated = importance(content, Category.CONTEXT)
    [adjustment] = (*rated.boosts, *rated.reductions)
    assert (adjustment.name, adjustment.amount) == (name, amount)
    assert adjustment.reason in content
    assert rated.score == 5 + amount


def test_adjustments_add_up() -> None:
    rated = importance("User might move to Rome this week", Category.IDENTITY, "Don't forget that!")
    assert amounts(rated) == {"explicit_request": 2, "specific_details": 1, "vague": -2, "temporary": -2}
    assert [adjustment.amount > 0 for adjustment in rated.boosts] == [True, True]
    assert (rated.base, rated.score) == (10, 9)


def test_a_marker_counts_once_however_often_it_is_there() -> None:
    assert importance("Maybe User might perhaps cook someday", Category.CONTEXT).score == 3


@pytest.mark.parametrize(
    "quote",
    [
        "Remember this, I'm vegan", "This is important", "It's really important!", "don't forget I'm vegan",
        "Keep in mind that I'm vegan", "Don’t forget", "Important: I'm vegan", "please save that",
        "REMEMBER THAT I'm vegan",
    ],
)  # fmt: skip
def test_a_request_in_the_quote_counts(quote: str) -> None:
    assert names_found("User is vegan", quote) == {"explicit_request"}


def test_a_request_that_the_caller_knows_of_counts() -> None:
    assert names_found("User is vegan", explicit=True) == {"explicit_request"}


@pytest.mark.parametrize(
    "quote", ["I remember the war", "Family matters", 'The film "Remember This" bored me', "an important job"]
)
def test_what_is_no_request_does_not_count(quote: str) -> None:
    assert names_found("User is vegan", quote) == set()


@pytest.mark.parametrize(
    "content",
    [
        "User likes tea. Tea is good", "User's cat is old", "User likes the UI", "Tea is what User drinks",
        "I like tea and I'm old", "Likes: Tea", "USER LIKES GREEN TEA",
    ],
)  # fmt: skip
def test_user_and_the_first_word_of_a_sentence_are_not_names(content: str) -> None:
    assert names_found(content) == set()


@pytest.mark.parametrize(
    "content",
    [
        "User lives in Rome", "TypeScript is what User uses", "User runs 5 km", "User has three cats",
        "User was born on 1988-05-03", "User plays chess on Mondays", "User uses Next.js",
    ],
)  # fmt: skip
def test_names_numbers_and_dates_are_details(content: str) -> None:
    assert names_found(content) == {"specific_details"}


@pytest.mark.parametrize(
    "content",
    ["User likes this kind of tea", "User is a kind of hermit", 'User likes the song "Maybe Tonight"'],
)
def test_words_that_only_look_vague_or_temporary_do_not_count(content: str) -> None:
    assert names_found(content) <= {"specific_details"}


def test_months_and_titles_are_names_and_not_markers() -> None:
    assert names_found("User was born in May") == {"specific_details"}
    assert names_found("User reads USA Today") == {"specific_details"}


@pytest.mark.parametrize(
    ("age_days", "half_life_days", "factor"),
    [
        (0, 30, 1),
        (30, 30, 0.5),
        (60, 30, 0.25),
        (15, 30, 0.5**0.5),
        (-5, 30, 1),
        (1000, None, 1),
        (1e9, 1, 0),
    ],
)
def test_decay_halves_with_each_half_life(
    age_days: float, half_life_days: float | None, factor: float
) -> None:
    assert decay_factor(age_days, half_life_days) == pytest.approx(factor)
