"""Asks a language model what to do with similar facts, and checks its answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.deciders.base import CONTENT_CHARS_MIN, REPHRASED_CHARS_MAX
from memory_service.deciders.llm.wording import invented
from memory_service.deciders.rules.comparison_reading import read_pair

INSTRUCTIONS = (
    "The statements are facts about one user, and similar to each other. Decide: `merge` if they say much "
    "the same, and then word one fact in the third person that says all of it, with every name, number and "
    "date; `supersede` if they contradict each other, so that only the latest can hold; `keep` if they say "
    "different things. `reason` in a sentence."
)


class GroupAnswer(msgspec.Struct):
    """The model's decision on a group."""

    action: str
    content: str = ""
    reason: str = ""


def problem(answer: GroupAnswer, sources: Sequence[str]) -> str:
    """Return what is wrong with the model's answer; empty if nothing is found."""
    if answer.action in ("keep", "supersede"):
        return ""
    if answer.action != "merge":
        return f"unknown action {answer.action[:40]!r}"
    if not CONTENT_CHARS_MIN <= len(answer.content) <= REPHRASED_CHARS_MAX:
        return f"the merged text has {len(answer.content)} characters"
    together = ". ".join(sources)
    if what := invented(answer.content, together, together):
        return f"the merged text {what}"
    if what := invented(together, answer.content, answer.content):
        return f"unlike the merged text, one of the facts {what}"
    if any(_negated(answer.content, source) != _negated(source, answer.content) for source in sources):
        return "the merged text contradicts one of them"
    return ""


def _negated(text: str, other: str) -> bool:
    return read_pair(text, other)[0].negations % 2 == 1
