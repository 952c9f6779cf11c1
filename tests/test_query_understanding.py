"""Times and quoted phrases in a query: detected, limited, and free for a query without them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_service.domain.query_understanding import (
    NOTHING,
    QueryReader,
    Span,
    has_phrase,
    phrases_in,
    spans_in,
)

# A Tuesday
NOW = datetime(2023, 8, 15, 12, tzinfo=UTC)
ALWAYS = 1 << 62
_TIME_WORDS = (
    "last", "next", "two", "week", "weeks", "ago", "May", "8", "2023", "between", "and", "before", "99",
    "31/2", "q1", "fy",
)  # fmt: skip


def us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000


def days(text: str) -> tuple[date, date]:
    """Parse two ISO dates: the first day, and the day after the last."""
    first, last = text.split(" ")
    return date.fromisoformat(first), date.fromisoformat(last)


async def spans(text: str, now: datetime = NOW) -> tuple[Span, ...]:
    return (await QueryReader().read(text, int(now.timestamp() * 1e6))).spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Ada say yesterday?", "2023-08-14 2023-08-15"),
        ("what is on today", "2023-08-15 2023-08-16"),
        ("Who called on 8 May 2023?", "2023-05-08 2023-05-09"),
        ("Who called on May 8th, 2023?", "2023-05-08 2023-05-09"),
        ("the trip of 2023-05-08", "2023-05-08 2023-05-09"),
        ("Where did we go in May 2023?", "2023-05-01 2023-06-01"),
        ("Where did we go last May?", "2023-05-01 2023-06-01"),
        ("WHERE DID WE GO LAST MAY?", "2023-05-01 2023-06-01"),
        ("What did she paint in July?", "2023-07-01 2023-08-01"),
        ("How often was she at the beach in 2022?", "2022-01-01 2023-01-01"),
        ("the concert two weeks ago", "2023-07-31 2023-08-07"),
        ("the concert 3 days ago", "2023-08-12 2023-08-13"),
        ("What did we plan for next month?", "2023-09-01 2023-10-01"),
        ("the walk last weekend", "2023-08-12 2023-08-14"),
        ("the meeting last Tuesday", "2023-08-08 2023-08-09"),
        ("what happened this week", "2023-08-14 2023-08-21"),
        ("the camping trip last year", "2022-01-01 2023-01-01"),
        ("between March and June 2022", "2022-03-01 2022-07-01"),
    ],
)
async def test_a_time_in_a_question_is_a_span(text: str, expected: str) -> None:
    first, end = days(expected)
    assert await spans(text) == ((us(first), us(end)),)


async def test_several_times_are_several_spans_and_one_may_be_open() -> None:
    assert await spans("Was it in May 2023 or in June 2023?") == (
        (us(date(2023, 5, 1)), us(date(2023, 6, 1))),
        (us(date(2023, 6, 1)), us(date(2023, 7, 1))),
    )
    assert await spans("everything since 3 March 2023") == ((us(date(2023, 3, 3)), ALWAYS),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What does Ada drink with her breakfast?",
        "May I ask who called?",
        "Did Bill march in the parade, and may Ada join?",
        "call 555-1234 about the 3 dogs",
        "her second cat, Monty",
        "What is a decent daydream?",
        "\x00\ud7ff\u202e 漢字 \U0001f600",
    ],
)
async def test_what_is_no_time_is_no_span(text: str) -> None:
    assert await spans(text) == ()


async def test_what_was_read_is_kept_for_its_day_alone() -> None:
    reader = QueryReader()
    read = [
        (await reader.read("what was said yesterday?", int(at.timestamp() * 1e6))).spans
        for at in (NOW, NOW.replace(hour=23), NOW.replace(day=16), NOW)
    ]
    assert read[0] == read[1] == read[3] == ((us(date(2023, 8, 14)), us(date(2023, 8, 15))),)
    assert read[2] == ((us(date(2023, 8, 15)), us(date(2023, 8, 16))),)


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)], ids=str)
@pytest.mark.parametrize("text", ["yesterday", "tomorrow", "next year", "two thousand years ago", "last May"])
async def test_times_at_the_ends_of_the_calendar_do_no_harm(text: str, now: datetime) -> None:
    for start, end in await spans(text, now):
        assert start < end


@settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "last",
                    "next",
                    "two",
                    "week",
                    "weeks",
                    "ago",
                    "May",
                    "8",
                    "2023",
                    "between",
                    "and",
                    "before",
                    "99",
                    "31/2",
                    "q1",
                    "fy",
                ]
            ),
            st.text(max_size=12),
        ),
        max_size=40,
    ).map(" ".join)
)
def test_any_text_can_be_read(text: str) -> None:
    found = spans_in(text[:400], 19_584)
    assert len(found) <= 8
    assert all(start <= end for start, end in found)
    assert len(phrases_in(text)) <= 8


async def test_of_a_long_text_only_the_beginning_is_looked_at() -> None:
    assert len(await spans("May 2023 " + "x " * 32_000)) == 1
    assert await spans("x " * 32_000 + "May 2023") == ()
    assert len(await spans("on 8 May 2023 and on 9 May 2023, " * 2000)) <= 8
    assert phrases_in("x" * 60_000 + ' "green tea"') == ()


def test_the_library_is_loaded_by_the_first_time_that_is_named() -> None:
    code = """
import asyncio, sys
from memory_service.domain.query_understanding import QueryReader
reader = QueryReader()
asyncio.run(reader.read('What does Ada drink, and who says "tea"?', 0))
assert "date_wrangler" not in sys.modules
asyncio.run(reader.read("What did Ada drink yesterday?", 0))
assert "date_wrangler" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Phrases


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Who said "green tea"?', ("green tea",)),
        ("Who said “Green  Tea, please!”?", ("green tea please",)),
        ('"one" or "two" or "one"', ("one", "two")),
        ('"Café-au-lait"', ("cafe au lait",)),
        ('"to be or not to be"', ("to be or not to be",)),
        ('an open "quote', ()),
        ('"" “” "  " "?!"', ()),
        ("it's 5 o'clock", ()),
    ],
)
def test_what_is_between_quotes_is_a_phrase(text: str, expected: tuple[str, ...]) -> None:
    assert phrases_in(text) == expected


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("I like GREEN tea.", True),
        ("green-tea", True),
        ("Green\n\ttea", True),
        ("gre\u0301en tea", True),
        ("evergreen tea", False),
        ("green teapot", False),
        ("tea green", False),
        ("green and tea", False),
        ("", False),
    ],
)
def test_a_phrase_is_found_as_whole_words_side_by_side(text: str, has: bool) -> None:
    assert has_phrase(text, ("green tea",)) is has
    assert has_phrase(text, ("nowhere", "green tea")) is has


async def test_a_query_may_say_both_or_nothing() -> None:
    reader, now = QueryReader(), int(NOW.timestamp() * 1e6)
    both = await reader.read('Who said "green tea" in May 2023?', now)
    assert (len(both.spans), both.phrases) == (1, ("green tea",))
    assert await reader.read("Who likes tea?", now) is NOTHING


@pytest.mark.parametrize(
    ("second", "zone"), [(253_402_300_799, "Europe/Berlin"), (-62_135_596_800, "Pacific/Niue")]
)
async def test_the_ends_of_the_calendar_have_a_day_in_every_zone(second: int, zone: str) -> None:
    await QueryReader().read("tea yesterday", second * 1_000_000, zone)
