"""Choose the ranking constants on LoCoMo conversations by leave-one-out cross-validation.

Run as `python -m benchmarks.retrieval_tuning LOCOMO_FILE`. For each conversation, the constants are chosen on
the others and scored on it. That shows how well a choice generalizes to unseen conversations; the best figure
over all of them does not.

Everything runs in this process: the domain's retrieval over the store in memory, with the local embedder.
Starting from the constants in the code, one is varied at a time, in the order of GRID, until nothing changes.
The score is the mean of recall@5 and recall@10 over the questions.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import uvloop

from benchmarks import locomo
from benchmarks.bench import progress
from benchmarks.evidence import ALL, Ranking, evidence_recall, groups
from benchmarks.locomo import CATEGORIES, Conversation
from memory_service.domain import ranking
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.items import Items
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.quarantine import Quarantine
from memory_service.domain.ranking import ScoreWeights
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import RetrieveOptions, Selection
from memory_service.domain.screening import Screening
from memory_service.embedders.local import LocalEmbedder
from memory_service.indexes import lexical, turns
from memory_service.limits import Limits
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.server.items import item_bytes, to_draft

_DEPTHS = (5, 10)
_BATCH = 200


class Constants(NamedTuple):
    """The constants to choose; the defaults are those in the code."""

    before: tuple[float, ...] = turns.BEFORE
    after: tuple[float, ...] = turns.AFTER
    k1: float = lexical.K1
    b: float = lexical.B
    vector: float = ranking.VECTOR_WEIGHT
    boost: float = ranking.BOOST

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._asdict().items())


GRID: dict[str, tuple[Any, ...]] = {
    "before": ((0.5, 0.25, 0.125), (0.5, 0.25), (0.5, 0.5), (0.4, 0.2, 0.1), (0.7, 0.35, 0.15)),
    "after": ((0.25, 0.125), (0.5, 0.25), (0.25,), (0.4, 0.2)),
    "k1": (0.3, 0.45, 0.7, 1.2),
    "b": (0.5, 0.75, 0.9),
    "vector": (0.15, 0.25, 0.35, 0.5),
    "boost": (0.0, 0.05, 0.1, 0.2),
}

Found = dict[str, list[Ranking]]
"""By conversation: the results for each question."""


@contextmanager
def _in_force(constants: Constants) -> Iterator[None]:
    """Replace the code's constants."""
    weights = np.array(constants.before), np.array(constants.after)
    replaced: list[tuple[Any, str, Any]] = [
        (turns, "BEFORE", constants.before),
        (turns, "AFTER", constants.after),
        (turns, "WEIGHTS", weights),
        (lexical, "K1", constants.k1),
        (lexical, "B", constants.b),
        (ranking, "LEXICAL_WEIGHT", 1 - constants.vector),
        (ranking, "VECTOR_WEIGHT", constants.vector),
        (ranking, "BOOST", constants.boost),
    ]
    with ExitStack() as stack:
        for module, name, value in replaced:
            stack.enter_context(patch.object(module, name, value))
        yield


class Tuning:
    """Results by constants, each set tried once."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._embedding = TextEmbedding(LocalEmbedder())
        self._found: dict[Constants, Found] = {}

    async def found(self, constants: Constants) -> Found:
        """Write every conversation and ask its questions."""
        if constants not in self._found:
            with _in_force(constants):
                self._found[constants] = {
                    one.name: await self._asked(one, constants) for one in self._conversations
                }
            progress(f"{_score(_all(self._found[constants])):.4f} {constants}")
        return self._found[constants]

    async def _asked(self, conversation: Conversation, constants: Constants) -> list[Ranking]:
        # A view caches values derived from the constants, so each set has its own store.
        store, checks, tokens = InMemoryStore(), Checks(Limits()), PageTokens(b"key")
        filters = FilterLanguage(checks.limits)
        retrieval = Retrieval(store, self._embedding, checks, filters, tokens, item_bytes)
        screening = Screening(store, None, Quarantine(store, checks, tokens, days=1))
        memories = Items(store, self._embedding, retrieval, checks, tokens, screening)
        for start in range(0, len(conversation.turns), _BATCH):
            turns_ = conversation.turns[start : start + _BATCH]
            fields = [f"items[{number}]" for number in range(len(turns_))]
            drafts = [to_draft(field, locomo.item(turn)) for field, turn in zip(fields, turns_, strict=True)]
            await memories.add(conversation.namespace, drafts, fields=fields)
        weights = ScoreWeights(lexical=1 - constants.vector, vector=constants.vector)
        rankings = []
        for question in conversation.questions:
            options = RetrieveOptions(
                Selection(), limit=_DEPTHS[-1], query_text=question.text, weights=weights
            )
            page = await retrieval.retrieve(conversation.namespace, options)
            rankings.append(Ranking(conversation, question, [item.id for item in page.items]))
        await store.close()
        return rankings

    async def choose(self, names: Sequence[str]) -> Constants:
        """Return the best constants for these conversations."""

        async def score(constants: Constants) -> float:
            found = await self.found(constants)
            return _score([ranking for name in names for ranking in found[name]])

        chosen, changed = Constants(), True
        while changed:
            before = chosen
            for field, values in GRID.items():
                tried = [chosen._replace(**{field: value}) for value in values]
                scores = [await score(constants) for constants in (chosen, *tried)]
                # Among equals, keep the current one.
                chosen = (chosen, *tried)[scores.index(max(scores))]
            changed = chosen != before
        return chosen


def _all(found: Found) -> list[Ranking]:
    return [ranking for rankings in found.values() for ranking in rankings]


def _score(rankings: Sequence[Ranking]) -> float:
    """Return the score that is compared."""
    return fmean(evidence_recall(rankings, depth) for depth in _DEPTHS)


def _figures(rankings: Sequence[Ranking]) -> str:
    """Return the recalls of all questions, and of the adversarial ones alone."""
    by_group = groups(rankings)
    return "; ".join(
        f"{name} " + " ".join(f"@{depth} {evidence_recall(by_group[name], depth):.4f}" for depth in _DEPTHS)
        for name in (ALL, CATEGORIES[5])
        if name in by_group
    )


async def tune(conversations: Sequence[Conversation]) -> None:
    """Choose and print."""
    tuning = Tuning(conversations)
    names = [one.name for one in conversations]
    present = await tuning.found(Constants())
    print(f"in the code: {Constants()}\n")
    left_out: list[Ranking] = []
    for name in names:
        chosen = await tuning.choose([other for other in names if other != name])
        rankings = (await tuning.found(chosen))[name]
        left_out += rankings
        print(f"{name}, chosen on the others: {_changes(chosen)}")
        print(f"  chosen      {_figures(rankings)}")
        print(f"  the code's  {_figures(present[name])}", flush=True)
    on_all = await tuning.choose(names)
    print("\nall conversations")
    print(f"  each with what was chosen without it  {_figures(left_out)}")
    print(f"  the code's                            {_figures(_all(present))}")
    print(f"  chosen on all, scored on the same     {_figures(_all(await tuning.found(on_all)))}")
    print(f"  which is: {_changes(on_all)}")


def _changes(constants: Constants) -> str:
    """Return the differences from the code's constants."""
    pairs = zip(constants._asdict().items(), Constants(), strict=True)
    return ", ".join(f"{name} {value}" for (name, value), now in pairs if value != now) or "the code's"


def main() -> None:
    """Parse the command line, choose and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "locomo_file",
        nargs="?",
        default=os.environ.get("LOCOMO_DATA") or None,
        help="the LoCoMo JSON (default: the environment's LOCOMO_DATA)",
    )
    args = parser.parse_args()
    if args.locomo_file is None:
        parser.error("give the LoCoMo JSON, or set LOCOMO_DATA")
    began = time.perf_counter()
    uvloop.run(tune(locomo.read(Path(args.locomo_file))))
    print(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
