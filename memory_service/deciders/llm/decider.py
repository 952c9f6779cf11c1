"""A language model as a decider."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from memory_service.deciders.base import (
    REASON_CHARS_MAX,
    Action,
    Candidate,
    Category,
    Decider,
    FoundFact,
    Keeping,
    Known,
    Line,
    Relation,
    Relevance,
    Settlement,
    ToolOutput,
    Undecided,
    Verdict,
)
from memory_service.deciders.llm import comparing, finding, keeping, relevance, settling, wording
from memory_service.deciders.rules.comparison import compare
from memory_service.decisions import Failure, FailureReason
from memory_service.errors import Unavailable
from memory_service.llms.base import Llm, LlmFailed
from memory_service.runtime.caller import Owner
from memory_service.runtime.yielding import aside

T = TypeVar("T", bound=msgspec.Struct)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class LlmDecider(Decider):
    """Asks a model for `owner`, and accepts the answers that pass the checks by `rules`."""

    def __init__(self, llm: Llm, owner: Owner, rules: Decider, *, insist: bool) -> None:
        """`insist`: a failing model raises LLM_UNAVAILABLE."""
        super().__init__()
        self.model = llm.name
        self._llm = llm
        self._owner = owner
        self._rules = rules
        self._insist = insist

    async def _ask(
        self, instructions: str, data: Mapping[str, str], answer_type: type[T], output_tokens_max: int = 1000
    ) -> T:
        """Return the model's answer, see `Llm.ask`. Raises Undecided, Unavailable."""
        try:
            answer, usage = await self._llm.ask(
                instructions, data, answer_type, output_tokens_max=output_tokens_max, owner=self._owner
            )
        except LlmFailed as failed:
            self.usage.add(failed.usage)
            if self._insist:
                raise Unavailable.llm(failed.failure.message) from failed
            self.failures.append(failed.failure)
            raise Undecided from failed
        self.usage.add(usage)
        return answer

    def _flawed(self, problem: str, key: str = "") -> Undecided:
        """Record that an answer is unusable. Not an error even with `insist`: the model did answer."""
        self.failures.append(Failure(FailureReason.INVALID_VALUE, problem, key))
        return Undecided()

    async def word(self, statement: str) -> str:
        by_rules = await self._rules.word(statement)
        if by_rules == statement:
            raise Undecided
        answer = await self._ask(wording.INSTRUCTIONS, {"statement": statement}, wording.Rephrased, 300)
        worded = " ".join(answer.content.split())
        if problem := wording.problem(statement, worded, by_rules):
            raise self._flawed(f"the model's wording {problem}")
        return worded

    async def compare(self, new: str, known: Sequence[Known], threshold: float) -> list[Verdict]:
        """Ask the model about the first KNOWN_MAX facts, and let rules decide on the others.

        The model is not asked if any known fact has the same words.
        """
        # Without vectors, and requiring all words in common, only the same words are a duplicate.
        same_words = (compare(new, one.content, None, 1.0).relation is Relation.DUPLICATE for one in known)
        if not known or any(same_words):
            raise Undecided
        asked = {one.id: one.content for one in known[: comparing.KNOWN_MAX]}
        answer = await self._ask(
            comparing.INSTRUCTIONS,
            {"new_fact": new, "known_facts": msgspec.json.encode(asked).decode()},
            comparing.FactComparison,
            100 + comparing.TOKENS_PER_FACT * len(asked),
        )
        verdicts, failures = comparing.checked(answer, new, asked)
        self.failures += [failure for failure in failures if failure not in self.failures]
        if not verdicts:
            raise Undecided
        left = [one for one in known if one.id not in verdicts]
        by_rules = iter(await self._rules.compare(new, left, threshold))
        return [verdicts[one.id] if one.id in verdicts else next(by_rules) for one in known]

    async def find(
        self, lines: Sequence[Line], first: int, categories: Sequence[Category], most: int
    ) -> list[FoundFact]:
        if not any(line.speaks for line in lines[first:]):
            return []
        numbered = (f"[{at}] {lines[at].role.value}: {lines[at].text}" for at in range(first, len(lines)))
        data = {"conversation": "\n".join(numbered)}
        answer = await self._ask(
            finding.INSTRUCTIONS, data, finding.ExtractedFacts, finding.ANSWER_TOKENS_MAX
        )
        # The answer is compared with the whole conversation, so not on the event loop.
        found, failures = await aside(asyncio.to_thread(finding.checked, answer, lines, first))
        self.failures += failures
        return found

    async def settle(self, facts: Sequence[Known], threshold: float) -> Settlement:
        data = {fact.id: fact.content for fact in facts}
        answer = await self._ask(settling.INSTRUCTIONS, data, settling.GroupAnswer, 500)
        answer.action, answer.content = answer.action.strip().lower(), " ".join(answer.content.split())
        problem = settling.problem(answer, [fact.content for fact in facts])
        contrary = frozenset({frozenset(data)})
        if not problem and answer.action == "supersede" and len(facts) > 2:
            contrary = (await self._rules.settle(facts, threshold)).contrary
            problem = "" if contrary else "does not say which of them contradict each other"
        if problem:
            raise self._flawed(problem, facts[0].id)
        return Settlement(Action[answer.action.upper()], answer.reason, answer.content, contrary)

    async def keep(self, output: ToolOutput) -> Keeping:
        answer = await self._ask(keeping.INSTRUCTIONS, keeping.shown(output), keeping.StorageAnswer)
        verb = "should" if answer.save else "should not"
        reason = _told(answer.reason, f"the language model says that it {verb} be saved")
        if not answer.save:
            return Keeping(False, reason)
        parts = {"key": output.key or answer.key.strip(), "description": " ".join(answer.description.split())}
        for name, text in parts.items():
            if problem := output.problem(name, text):
                if self._insist:
                    raise Unavailable.llm(problem)
                message = f"the language model's answer is invalid: {problem}"
                self.failures.append(Failure(FailureReason.INVALID_VALUE, message, answer.key))
            if problem or not text:
                parts[name] = getattr(await self._rules.keep(output), name)
        return Keeping(True, reason, **parts)

    async def relevant(self, goal: str, ranked: Sequence[Candidate]) -> Relevance:
        shown, listing = relevance.listing_of(ranked)
        data = {"goal": goal, "saved state": listing}
        answer = await self._ask(relevance.INSTRUCTIONS, data, relevance.RelevantKeys)
        needed, unknown = relevance.named(answer, shown)
        message = "the language model named a key that it was not shown"
        self.failures += [Failure(FailureReason.UNKNOWN_KEY, message, key) for key in unknown]
        reason = _told(answer.reason, f"the language model named {len(needed)} of {len(shown)} keys")
        others = [candidate for candidate in shown if candidate.key not in needed]
        return Relevance(
            [(candidate, reason) for candidate in needed.values()],
            [(candidate, "the language model did not name it") for candidate in others],
            reason,
        )


def _told(reason: str, otherwise: str) -> str:
    """Return a model's reason as one line of at most 500 characters, or `otherwise`."""
    return _CONTROL.sub(" ", reason).strip()[:REASON_CHARS_MAX] or otherwise
