"""Asks a language model which saved state a goal needs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from memory_service.deciders.base import Candidate
from memory_service.tokens import estimate_tokens

_LISTING_TOKENS_MAX = 4000
_UNKNOWN_KEYS_TOLD_MAX = 20
# Characters of previews and descriptions to show: the longest pair for which there is room.
_SHOWN_CHARS = ((100, 300), (40, 100), (0, 40))

INSTRUCTIONS = """\
You decide which saved state an agent needs for its goal. "saved state" lists what there is, one JSON
object a line: the key, what its value is for, and the beginning of the value. Name in relevant_keys the
keys whose values the agent needs to reach the goal, spelt exactly as they are listed, the most relevant
first. Name none if none is needed; a goal that has nothing to do with any key needs none. Say why in
reason, in one short sentence."""


class RelevantKeys(msgspec.Struct):
    """The keys whose values the goal needs."""

    relevant_keys: list[str]
    reason: str = ""


def listing_of(ranked: Sequence[Candidate]) -> tuple[list[Candidate], str]:
    """Return the candidates to show to the model, all if there is room, and the text that lists them."""
    shown: list[Candidate] = []
    lines: list[str] = []
    for preview_chars, description_chars in _SHOWN_CHARS:
        shown, lines, tokens = [], [], 0
        for candidate in ranked:
            line = _line(candidate, preview_chars, description_chars)
            tokens += estimate_tokens(line) + 1
            if tokens > _LISTING_TOKENS_MAX:
                break
            shown.append(candidate)
            lines.append(line)
        if len(shown) == len(ranked):
            break
    return shown, "\n".join(lines)


def _line(candidate: Candidate, preview_chars: int, description_chars: int) -> str:
    shown = {"key": candidate.key, "for": candidate.description[:description_chars]}
    if preview_chars:
        shown["value begins"] = candidate.preview[:preview_chars]
    return json.dumps({name: text for name, text in shown.items() if text}, ensure_ascii=False)


def named(answer: RelevantKeys, shown: Sequence[Candidate]) -> tuple[dict[str, Candidate], list[str]]:
    """Return the candidates that the model names, by key, and the names that it was not shown."""
    by_key = {candidate.key: candidate for candidate in shown}
    needed: dict[str, Candidate] = {}
    unknown: dict[str, None] = {}
    for key in answer.relevant_keys:
        known = key if key in by_key else key.strip()
        if known in by_key:
            needed[known] = by_key[known]
        else:
            unknown[key] = None
    return needed, list(unknown)[:_UNKNOWN_KEYS_TOLD_MAX]
