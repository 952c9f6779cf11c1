"""Asks a language model whether facts say the same, exclude each other, or neither.

A model knows more words than rules do, and overlooks a "not" or a number now and then. So a duplicate found
by the model counts only if the rules find no difference in meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memory_service.deciders.base import REASON_CHARS_MAX, Relation, Verdict
from memory_service.deciders.rules.comparison import compare, hard_difference
from memory_service.decisions import Failure, FailureReason

KNOWN_MAX = 8
"""Known facts per question."""

INSTRUCTIONS = """\
You compare a new fact about a user with facts that are already known. The data "new_fact" is the new \
fact. The data "known_facts" is a JSON object with the known facts by id.

For each known fact say how the new one stands to it:
- "duplicate": both say the same, only in other words. Nothing is lost if the new one is thrown away.
- "contradiction": both are about the same subject and attribute, and cannot both hold now. The new one \
takes the place of the known one. Examples: another city to live in, another employer, another age, the \
same statement negated.
- "different": anything else. Things that one can have several of do not contradict each other: \
languages, hobbies, siblings, projects, likes.

Another number, date, name or person is never a duplicate, and neither is a negation. A fact that says \
more or less than the other is different. When in doubt, answer "different".

Answer once for each id, with the ids as they are given, and with a reason of one short sentence."""

TOKENS_PER_FACT = 90
_KEY_CHARS_MAX = 256


class ComparedFact(msgspec.Struct):
    """What the model says of one known fact."""

    id: str
    relation: Relation
    reason: str


class FactComparison(msgspec.Struct):
    """What the model answers."""

    facts: list[ComparedFact]


def checked(
    answer: FactComparison, new: str, known: Mapping[str, str]
) -> tuple[dict[str, Verdict], list[Failure]]:
    """Return the verdicts by id, without those for other ids, and the unusable parts as failures."""
    verdicts: dict[str, Verdict] = {}
    failures: list[Failure] = []
    for fact in answer.facts:
        if fact.id not in known:
            message = "the language model compared with a fact that it was not given"
            failures.append(Failure(FailureReason.UNKNOWN_KEY, message, fact.id[:_KEY_CHARS_MAX]))
            continue
        verdict = guarded(fact.relation, fact.reason, new, known[fact.id])
        if verdicts.setdefault(fact.id, verdict).relation is not verdict.relation:
            verdicts[fact.id] = Verdict(Relation.DIFFERENT, "the language model gave two answers")
    return verdicts, failures


def guarded(relation: Relation, reason: str, new: str, known: str) -> Verdict:
    """Return the model's verdict, or that of rules if they see a difference that the model overlooked."""
    if relation is Relation.DUPLICATE:
        # No vectors are needed: with such a difference rules never find a duplicate.
        by_rules = compare(new, known, None, 1.0)
        contradicts = by_rules.relation is Relation.CONTRADICTION
        if difference := hard_difference(new, known) or (by_rules.reason if contradicts else ""):
            reason = f"the language model took it for a duplicate, but {difference}"
            return Verdict(by_rules.relation, reason[:REASON_CHARS_MAX])
    return Verdict(relation, reason[:REASON_CHARS_MAX])
