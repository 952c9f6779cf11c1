"""The splitter: every fragment is an exact piece of the text, and nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_service.domain.splitting import Piece, Split, split_text
from memory_service.errors import InvalidArgument, LimitExceeded

FAMILY = "👨‍👩‍👧‍👦"
WORDS = st.sampled_from(
    ["a", "word", "naïve", "n\u0303", FAMILY, "🇵🇹", "日本語", "。", ". ", "! ", " ", "  ", "\n", "\r\n",
     "\n\n", "\t", "\u3000", "\x00", "\x1c", "x" * 90, "é" * 120, "ab\u0301" * 60]
)  # fmt: skip
TEXTS = st.lists(WORDS | st.text(max_size=20), max_size=120).map("".join)
SPLITS = st.integers(100, 300).flatmap(
    lambda most: st.builds(Split, st.just(most), st.integers(0, most // 2))
)


def check_pieces(text: str, split: Split, pieces: list[Piece]) -> None:
    """Check what must hold for the pieces of every text."""
    encoded = text.encode()
    covered = [False] * len(text)
    for piece in pieces:
        assert text[piece.start : piece.end] == piece.text
        assert encoded[piece.start_byte : piece.end_byte].decode() == piece.text
        assert 0 < len(piece.text) <= split.max_characters
        covered[piece.start : piece.end] = [True] * len(piece.text)
    for before, after in pairwise(pieces):
        assert before.start < after.start
        assert before.end < after.end
        assert before.end - after.start <= split.overlap_characters
    assert [
        c for c, is_covered in zip(text, covered, strict=True) if not is_covered and not c.isspace()
    ] == []


@settings(max_examples=300, deadline=None)
@given(TEXTS, SPLITS)
@example("\r\n" * 200 + "x", Split(100, 50))
@example(FAMILY * 100, Split(100, 50))
@example("a" + "\u0301" * 500, Split(100, 10))
@example("日本語の文章です。" * 200, Split(100, 0))
@example(" " * 1599 + "word", Split(100, 0))
async def test_every_piece_is_its_place_of_the_text_and_no_character_is_lost(text: str, split: Split) -> None:
    check_pieces(text, split, await split_text(text, split, 10_000, "text"))


LONG_TEXTS = {
    "words": "word " * 40_000,
    "sentences": "The otter sleeps. The train leaves. " * 6_000,
    "lines": "one line of a text\r\n" * 10_000,
    "one word": "x" * 200_000,
    "japanese": "私は学生です。" * 20_000,
    "families": FAMILY * 5_000,
    "accents": ("a" + "\u0301" * 300) * 500,
    "gaps": ("word" + " " * 5_000) * 40,
}


@pytest.mark.parametrize("split", [Split(), Split(100, 50), Split(8000, 4000)], ids=str)
@pytest.mark.parametrize("name", LONG_TEXTS)
async def test_long_texts_are_split_like_short_ones(name: str, split: Split) -> None:
    text = LONG_TEXTS[name]
    check_pieces(text, split, await split_text(text, split, 10_000, "text"))


async def test_words_stay_whole_and_overlaps_go_on_through_a_long_text() -> None:
    text = " ".join(f"word{number}" for number in range(30_000))
    pieces = await split_text(text, Split(100, 40), 10_000, "text")
    words = set(text.split())
    assert all(word in words for piece in pieces for word in piece.text.split())
    assert all(after.start < before.end for before, after in pairwise(pieces))


async def test_paragraphs_and_sentences_are_kept_together_where_they_fit() -> None:
    paragraphs = ["First sentence. " + "a" * 60, "Second sentence. " + "b" * 70]
    pieces = await split_text("\n\n".join(paragraphs), Split(100, 0), 10, "text")
    assert [piece.text for piece in pieces] == paragraphs


@pytest.mark.parametrize("text", ["", " ", "\r\n\t\u3000", "\n" * 5000])
async def test_white_space_alone_has_no_pieces(text: str) -> None:
    assert await split_text(text, Split(), 10, "text") == []


async def test_more_pieces_than_the_limit_are_refused_also_for_one_word_of_a_mebibyte() -> None:
    with pytest.raises(LimitExceeded) as caught:
        await split_text("x" * (1 << 20), Split(100, 50), 10_000, "document.text")
    assert caught.value.field == "document.text"
    assert caught.value.metadata["limit_name"] == "document_fragments_max"
    whole = await split_text("x" * 1000, Split(100, 0), 10, "text")
    assert len(whole) == 10
    with pytest.raises(LimitExceeded):
        await split_text("x" * 1001, Split(100, 0), 10, "text")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((None, None), Split(1000, 100)),
        ((100, None), Split(100, 50)),
        ((150, None), Split(150, 75)),
        ((8000, None), Split(8000, 100)),
        ((None, 0), Split(1000, 0)),
        ((None, 500), Split(1000, 500)),
        ((101, 50), Split(101, 50)),
    ],
)
def test_what_a_caller_leaves_open_is_the_servers(
    asked: tuple[int | None, int | None], expected: Split
) -> None:
    assert Split(1000, 100).changed(*asked, "split") == expected


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ((99, None), "split.max_characters"),
        ((8001, None), "split.max_characters"),
        ((0, 0), "split.max_characters"),
        ((-1, None), "split.max_characters"),
        ((None, -1), "split.overlap_characters"),
        ((None, 501), "split.overlap_characters"),
        ((101, 51), "split.overlap_characters"),
    ],
)
def test_a_split_out_of_range_is_refused(asked: tuple[int | None, int | None], field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Split(1000, 100).changed(*asked, "split")
    assert caught.value.field == field
