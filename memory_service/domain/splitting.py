"""Splits a text into fragments at the best places: paragraphs, sentences, words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from semantic_text_splitter import TextSplitter

from memory_service.errors import InvalidArgument, LimitExceeded
from memory_service.runtime.yielding import aside

CHARACTERS_MIN = 100
CHARACTERS_MAX = 8000
_WINDOW_FRAGMENTS = 16
_INLINE_CHARS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Split:
    """How to split a text, in code points.

    A fragment has at most `max_characters`, and repeats at most `overlap_characters` of the one before.
    """

    max_characters: int = 1000
    overlap_characters: int = 100

    def changed(self, max_characters: int | None, overlap_characters: int | None, field: str) -> Split:
        """Return the split with a caller's changes, None for no change. Raises InvalidArgument."""
        most = self.max_characters if max_characters is None else max_characters
        if not CHARACTERS_MIN <= most <= CHARACTERS_MAX:
            raise InvalidArgument(
                f"{field}.max_characters", f"must be {CHARACTERS_MIN} to {CHARACTERS_MAX}, not {most}"
            )
        if overlap_characters is None:
            # Shorter fragments than the server's allow less overlap.
            return Split(most, min(self.overlap_characters, most // 2))
        if not 0 <= overlap_characters <= most // 2:
            raise InvalidArgument(
                f"{field}.overlap_characters", f"must be 0 to {most // 2}, half of max_characters"
            )
        return Split(most, overlap_characters)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text: text[start:end] in code points, and the same place in bytes of UTF-8."""

    text: str
    start: int
    end: int
    start_byte: int
    end_byte: int


async def split_text(text: str, split: Split, pieces_max: int, field: str) -> list[Piece]:
    """Return the pieces of a text in order, without white space at their ends.

    White space alone has no pieces. Raises LimitExceeded, of `field`, if there are more than `pieces_max`.
    """
    if len(text) <= _INLINE_CHARS_MAX:
        pieces = _pieces(text, split, pieces_max)
    else:
        # Long texts would block the event loop.
        pieces = await aside(asyncio.to_thread(_pieces, text, split, pieces_max))
    if len(pieces) > pieces_max:
        raise LimitExceeded(field, "document_fragments_max", pieces_max, len(pieces))
    return pieces


def _pieces(text: str, split: Split, pieces_max: int) -> list[Piece]:
    return _with_bytes(text, _places(text, split, pieces_max))


def _places(text: str, split: Split, pieces_max: int) -> list[tuple[int, int]]:
    """Return start and end of each piece; not many more than `pieces_max`.

    The library looks at the whole rest of the text for each piece, which takes minutes for a long word of 1
    MiB. So it gets the text in windows. As the end of a window may have cut its last piece, the next window
    begins with that piece.
    """
    splitter = TextSplitter(split.max_characters, overlap=split.overlap_characters)
    window = _WINDOW_FRAGMENTS * split.max_characters
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(text) and len(places) <= pieces_max:
        found = [
            (at + start, at + start + len(piece))
            for start, piece in splitter.chunk_indices(text[at : at + window])
        ]
        is_last = at + window >= len(text)
        if is_last or not found or found[-1][0] == at:
            places += found
            at += window
        else:
            places += found[:-1]
            at = found[-1][0]
    return places


def _with_bytes(text: str, places: list[tuple[int, int]]) -> list[Piece]:
    """Return the pieces with their places in bytes, each computed from the start of the one before."""
    pieces: list[Piece] = []
    at, at_byte = 0, 0
    for start, end in places:
        at_byte += len(text[at:start].encode())
        at = start
        piece = text[start:end]
        pieces.append(Piece(piece, start, end, at_byte, at_byte + len(piece.encode())))
    return pieces
