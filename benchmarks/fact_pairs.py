"""How well two facts are compared: `python -m benchmarks.fact_pairs`.

Prints, by kind of pair, how many were judged right with the local embedder and without one, how the threshold
of the local embedder was found, and which pairs were judged wrong. For language models it prints what the
rules make of a perfect and of a careless one; `--llm MODEL` asks a real one, at OPENAI_BASE_URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from memory_service.deciders.base import Known, Relation, Undecided
from memory_service.deciders.llm.comparing import guarded
from memory_service.deciders.llm.decider import LlmDecider
from memory_service.deciders.rules.comparison import compare
from memory_service.deciders.rules.decider import RulesDecider
from memory_service.deciders.rules.relevance import Words
from memory_service.embedders.local import LocalEmbedder
from memory_service.llms.openai import LlmSettings, OpenAILlm
from memory_service.runtime.caller import Owner

PAIRS_FILE = Path(__file__).parent.parent / "tests" / "data" / "fact_pairs.json"
WORDS_THRESHOLD = 0.9
"""The share of common words that is required where there are no vectors."""
_THRESHOLDS = (0.0, 0.5, 0.55, 0.6, 0.63, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_KINDS = ("same_words", "paraphrase", "negated", "other_value", "unrelated")


class Pair(msgspec.Struct, frozen=True):
    """Two facts and their relation. Rules are not tuned on held-out pairs."""

    new: str
    known: str
    kind: str
    relation: Relation
    held_out: bool


class Judged(msgspec.Struct, frozen=True):
    """A pair and its verdict."""

    pair: Pair
    relation: Relation
    reason: str
    similarity: float | None = None

    @property
    def right(self) -> bool:
        """Whether the verdict is right."""
        return self.relation is self.pair.relation


def read_pairs() -> list[Pair]:
    """Return the pairs of facts that were written for this."""
    return msgspec.json.decode(PAIRS_FILE.read_bytes(), type=list[Pair])


async def similarities(pairs: Iterable[Pair], embedder: LocalEmbedder) -> list[float]:
    """Return the cosine of each pair's vectors."""
    found = []
    for pair in pairs:
        one, other = await embedder.embed([pair.new, pair.known])
        found.append(0.0 if one is None or other is None else float(one @ other))
    return found


def judge(pairs: Sequence[Pair], nearness: Sequence[float | None], threshold: float) -> list[Judged]:
    """Compare each pair by rules."""
    judged = []
    for pair, similarity in zip(pairs, nearness, strict=True):
        verdict = compare(pair.new, pair.known, similarity, threshold)
        judged.append(Judged(pair, verdict.relation, verdict.reason, similarity))
    return judged


def precision(judged: Iterable[Judged], relation: Relation) -> float:
    """Return the share of correct verdicts among the pairs that got one."""
    said = [each.right for each in judged if each.relation is relation]
    return sum(said) / len(said) if said else 1.0


def recall(judged: Iterable[Judged], relation: Relation, kind: str = "") -> float:
    """Return the share of the pairs that deserve a verdict and got it; of one kind, if one is named."""
    due = [each.right for each in judged if each.pair.relation is relation and kind in ("", each.pair.kind)]
    return sum(due) / len(due) if due else 1.0


def judge_by_answers(pairs: Iterable[Pair], relation: Relation | None = None) -> list[Judged]:
    """Judge with a model that gives one answer to everything; None: the right answer each time.

    The first shows what errors of a bad model the rules prevent, the second what they allow a perfect one to
    do.
    """
    judged = []
    for pair in pairs:
        verdict = guarded(relation or pair.relation, "the model says so", pair.new, pair.known)
        judged.append(Judged(pair, verdict.relation, verdict.reason))
    return judged


async def judge_by_model(pairs: Sequence[Pair], model: str) -> list[Judged]:
    """Ask a language model about each pair. Pairs without an answer are left out."""
    llm, words = OpenAILlm(LlmSettings(model=model)), Words()
    judged = []
    try:
        for pair in pairs:
            decider = LlmDecider(llm, Owner("", b""), RulesDecider(words), insist=False)
            with contextlib.suppress(Undecided):
                (verdict,) = await decider.compare(pair.new, [Known("known-1", pair.known)], 1.0)
                judged.append(Judged(pair, verdict.relation, verdict.reason))
    finally:
        await llm.close()
    return judged


def _print_table(title: str, judged: Sequence[Judged]) -> None:
    print(f"\n## {title}\n")
    print("| kind | pairs | right | taken for a duplicate | wrongly | for a contradiction | wrongly |")
    print("|---|---|---|---|---|---|---|")
    for kind in (*_KINDS, "all"):
        of_kind = [each for each in judged if kind in (each.pair.kind, "all")]
        cells = [len(of_kind), sum(each.right for each in of_kind)]
        for relation in (Relation.DUPLICATE, Relation.CONTRADICTION):
            said = [each.right for each in of_kind if each.relation is relation]
            cells += [len(said), len(said) - sum(said)]
        print(f"| {kind} | " + " | ".join(map(str, cells)) + " |")
    print(
        f"\nDuplicates: precision {precision(judged, Relation.DUPLICATE):.3f}, "
        f"recall {recall(judged, Relation.DUPLICATE):.3f}, "
        f"recall on paraphrases {recall(judged, Relation.DUPLICATE, 'paraphrase'):.3f}. "
        f"Contradictions: precision {precision(judged, Relation.CONTRADICTION):.3f}, "
        f"recall {recall(judged, Relation.CONTRADICTION):.3f}."
    )


def _print_calibration(pairs: Sequence[Pair], nearness: Sequence[float]) -> None:
    """Print the effect of each threshold on the pairs that rules may be tuned on."""
    print("\n## Thresholds, on pairs that are not held out\n")
    print("| threshold | vectors alone: precision | precision | recall on paraphrases | unrelated above |")
    print("|---|---|---|---|---|")
    tuned = [(pair, near) for pair, near in zip(pairs, nearness, strict=True) if not pair.held_out]
    for threshold in _THRESHOLDS:
        judged = judge([p for p, _ in tuned], [n for _, n in tuned], threshold)
        above = [pair for pair, near in tuned if near > threshold]
        alone = sum(pair.relation is Relation.DUPLICATE for pair in above) / len(above)
        unrelated = sum(pair.kind == "unrelated" for pair in above)
        print(
            f"| {threshold:.2f} | {alone:.3f} | {precision(judged, Relation.DUPLICATE):.3f} "
            f"| {recall(judged, Relation.DUPLICATE, 'paraphrase'):.3f} | {unrelated} |"
        )


def _print_misses(judged: Iterable[Judged]) -> None:
    print("\n## Misses\n")
    for each in judged:
        if not each.right:
            texts = json.dumps([each.pair.new, each.pair.known], ensure_ascii=False)
            print(
                f"- {texts}: {each.relation.value}, not {each.pair.relation.value}; {each.reason}"
                + (" (held out)" if each.pair.held_out else "")
            )


async def _measure(model: str) -> None:
    pairs, embedder = read_pairs(), LocalEmbedder()
    nearness = await similarities(pairs, embedder)
    judged = judge(pairs, nearness, embedder.duplicate_threshold)
    name = f"{embedder.name}, threshold {embedder.duplicate_threshold}"
    _print_table(f"Rules with {name}: all pairs", judged)
    _print_table(f"Rules with {name}: held out", [each for each in judged if each.pair.held_out])
    _print_table("Rules without an embedder: all pairs", judge(pairs, [None] * len(pairs), WORDS_THRESHOLD))
    _print_calibration(pairs, nearness)
    _print_table("A model that is always right, under the rules: all pairs", judge_by_answers(pairs))
    careless = judge_by_answers(pairs, Relation.DUPLICATE)
    _print_table("A model that calls everything a duplicate, under the rules: all pairs", careless)
    if model:
        by_model = await judge_by_model(pairs, model)
        _print_table(f"{model}: all pairs that it answered", by_model)
        judged += by_model
    _print_misses(judged)


@click.command(help="Measure how well two facts are compared.")
@click.option("--llm", "model", default="", help="Ask this language model, too.")
def main(model: str) -> None:
    """Measure and print."""
    asyncio.run(_measure(model))


if __name__ == "__main__":
    main()
