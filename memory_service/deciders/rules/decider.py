"""Rules as a decider."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import combinations

from memory_service.deciders.base import (
    Action,
    Candidate,
    Category,
    Decider,
    FoundFact,
    Importance,
    Keeping,
    KeySearch,
    Known,
    Line,
    Relation,
    Relevance,
    Settlement,
    ToolOutput,
    Verdict,
)
from memory_service.deciders.rules.commands import recognised
from memory_service.deciders.rules.comparison import compare
from memory_service.deciders.rules.comparison_reading import Reader
from memory_service.deciders.rules.extraction import extract
from memory_service.deciders.rules.importance import importance
from memory_service.deciders.rules.relevance import Words, WordSearch, relevant
from memory_service.deciders.rules.rephrasing import third_person
from memory_service.deciders.rules.storage import evaluate
from memory_service.runtime.yielding import aside, each

# The share of common words that replaces the cosine if there are no vectors.
_COMMON_WORDS_MIN = 0.8
# Some milliseconds at most for a tool's result, or for a message with the maximum of commands. Doubled, twice
# that.
_INLINE_BYTES_MAX = 20_000
_INLINE_CHARS_MAX = 4000


class RulesDecider(Decider):
    """Answers every question. Reads each fact only once, however many it is compared with."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words
        self._reader = Reader()

    async def word(self, statement: str) -> str:
        return third_person(statement).strip()

    async def rate(self, content: str, category: Category, said: str, explicit: bool) -> Importance:
        return importance(content, category, said, explicit)

    async def compare(self, new: str, known: Sequence[Known], threshold: float) -> list[Verdict]:
        return await each(lambda one: self._compared(new, one.content, one.similarity, threshold), known)

    def _compared(self, new: str, known: str, similarity: float | None, threshold: float) -> Verdict:
        least = _COMMON_WORDS_MIN if similarity is None else threshold
        return compare(new, known, similarity, least, self._reader)

    async def find(
        self, lines: Sequence[Line], first: int, categories: Sequence[Category], most: int
    ) -> list[FoundFact]:
        # Patterns take long on a long text, so not on the event loop.
        return await aside(asyncio.to_thread(_found, lines, first, categories, most))

    async def settle(self, facts: Sequence[Known], threshold: float) -> Settlement:
        pairs = list(combinations(facts, 2))
        verdicts = await each(
            lambda pair: self._compared(pair[0].content, pair[1].content, pair[1].similarity, threshold),
            pairs,
        )
        contrary = [at for at, verdict in enumerate(verdicts) if verdict.relation is Relation.CONTRADICTION]
        if contrary:
            ids = frozenset(frozenset(fact.id for fact in pairs[at]) for at in contrary)
            return Settlement(Action.SUPERSEDE, verdicts[contrary[0]].reason, contrary=ids)
        different = next((verdict for verdict in verdicts if verdict.relation is Relation.DIFFERENT), None)
        if different is not None:
            return Settlement(Action.KEEP, different.reason)
        return Settlement(Action.MERGE, "they say the same", max((fact.content for fact in facts), key=len))

    async def keep(self, output: ToolOutput) -> Keeping:
        asked = output.tool_name, output.result, output.goal
        if len(output.encoded) <= _INLINE_BYTES_MAX:
            return evaluate(*asked)
        # Not on the event loop, as the result is large.
        return await aside(asyncio.to_thread(evaluate, *asked))

    async def search(self, goal: str) -> KeySearch:
        return WordSearch(goal, self._words)

    async def relevant(self, goal: str, ranked: Sequence[Candidate]) -> Relevance:
        return relevant(ranked)

    async def command(self, text: str, commands: Sequence[str]) -> str:
        if len(text) <= _INLINE_CHARS_MAX:
            return recognised(text, commands)
        return await aside(asyncio.to_thread(recognised, text, commands))


def _found(lines: Sequence[Line], first: int, categories: Sequence[Category], most: int) -> list[FoundFact]:
    found: list[FoundFact] = []
    for at in range(first, len(lines)):
        if not lines[at].speaks:
            continue
        for fact in extract(lines[at].text, at):
            if not categories or fact.category in categories:
                found.append(fact)
            if len(found) > most:
                return found
    return found
