"""Chooses the constants of ranking on LoCoMo conversations, leaving one out at a time.

Run as `python -m benchmarks.retrieval_tuning LOCOMO_FILE`. For each conversation the constants are chosen on
the others and scored on it: what is chosen so says how well a choice carries over to conversations
that nobody has seen, which the best figure on all of them does not.

Everything runs in this process: the domain's retrieval over the store in memory, with the local
embedder. Constants are tried one at a time, from those in the code, in the order of GRID, and again
until nothing changes; what is compared is the mean of recall@5 and recall@10 over the questions.
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
from benchmarks.evidence import Ranking
from benchmarks.locomo import Conversation
from memory_service.domain import ranking
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.memories import Memories
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.ranking import ScoreWeights
from memory_service.domain.retrieval import Retrieval, RetrieveOptions, Selection
from memory_service.embedders.local import LocalEmbedder
from memory_service.indexes import lexical, turns, view
from memory_service.limits import Limits
from memory_service.server.items import item_bytes, to_draft
from memory_service.stores.memory import InMemoryStore

_DEPTHS = (5, 10)
_BATCH = 200


class Constants(NamedTuple):
    """The constants that are chosen; the defaults are those in the code."""

    before: tuple[float, ...] = turns.BEFORE
    after: tuple[float, ...] = turns.AFTER
    k1: float = lexical.K1
    b: float = lexical.B
    vector: float = ranking.VECTOR_WEIGHT
    boost: float = ranking.SPEAKER_BOOST

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

Recalls = dict[str, list[float]]
"""By conversation: the mean of the recalls of each question."""


@contextmanager
def _in_force(constants: Constants) -> Iterator[None]:
    """Puts constants in the place of the code's."""
    weights = np.array(constants.before), np.array(constants.after)
    replaced: list[tuple[Any, str, Any]] = [
        (turns, "BEFORE", constants.before),
        (turns, "AFTER", constants.after),
        (view, "WEIGHTS", weights),
        (lexical, "K1", constants.k1),
        (lexical, "B", constants.b),
        (ranking, "LEXICAL_WEIGHT", 1 - constants.vector),
        (ranking, "VECTOR_WEIGHT", constants.vector),
        (ranking, "SPEAKER_BOOST", constants.boost),
    ]
    with ExitStack() as stack:
        for module, name, value in replaced:
            stack.enter_context(patch.object(module, name, value))
        yield


class Tuning:
    """The recalls of constants, each measured once."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._embedding = TextEmbedding(LocalEmbedder())
        self._measured: dict[Constants, Recalls] = {}

    async def recalls(self, constants: Constants) -> Recalls:
        """Writes and asks every conversation."""
        if constants not in self._measured:
            with _in_force(constants):
                self._measured[constants] = {
                    one.name: await self._asked(one, constants) for one in self._conversations
                }
            progress(f"{_mean(self._measured[constants].values()):.4f} {constants}")
        return self._measured[constants]

    async def _asked(self, conversation: Conversation, constants: Constants) -> list[float]:
        # A view keeps what it made of constants, so each has a store of its own.
        store, checks, tokens = InMemoryStore(), Checks(Limits()), PageTokens(b"key")
        retrieval = Retrieval(store, self._embedding, checks, tokens, item_bytes)
        memories = Memories(store, self._embedding, retrieval, checks, tokens)
        for start in range(0, len(conversation.turns), _BATCH):
            turns_ = conversation.turns[start : start + _BATCH]
            fields = [f"items[{number}]" for number in range(len(turns_))]
            drafts = [to_draft(field, locomo.item(turn)) for field, turn in zip(fields, turns_, strict=True)]
            await memories.add(conversation.namespace, drafts, fields=fields)
        weights = ScoreWeights(lexical=1 - constants.vector, vector=constants.vector)
        recalls = []
        for question in conversation.questions:
            options = RetrieveOptions(
                Selection(), limit=_DEPTHS[-1], query_text=question.text, weights=weights
            )
            page = await retrieval.retrieve(conversation.namespace, options)
            found = Ranking(conversation, question, [item.id for item in page.items])
            recalls.append(fmean(found.recall(depth) for depth in _DEPTHS))
        await store.close()
        return recalls

    async def choose(self, names: Sequence[str]) -> Constants:
        """The best constants for these conversations."""

        async def score(constants: Constants) -> float:
            measured = await self.recalls(constants)
            return _mean(measured[name] for name in names)

        chosen, changed = Constants(), True
        while changed:
            before = chosen
            for field, values in GRID.items():
                tried = [chosen._replace(**{field: value}) for value in values]
                scores = [await score(constants) for constants in (chosen, *tried)]
                # Of equal ones what is there already.
                chosen = (chosen, *tried)[scores.index(max(scores))]
            changed = chosen != before
        return chosen


def _mean(groups: Any) -> float:
    return fmean(recall for group in groups for recall in group)


async def tune(conversations: Sequence[Conversation]) -> None:
    """Chooses and prints."""
    tuning = Tuning(conversations)
    names = [one.name for one in conversations]
    present = await tuning.recalls(Constants())
    print(f"in the code: {Constants()}\n")
    print("mean of recall@5 and recall@10 of the conversation that was left out:")
    left_out: list[list[float]] = []
    for name in names:
        chosen = await tuning.choose([other for other in names if other != name])
        left_out.append((await tuning.recalls(chosen))[name])
        print(
            f"  {name}: {fmean(left_out[-1]):.4f}, with the code's {fmean(present[name]):.4f}; chosen on the "
            f"others: {_changes(chosen)}",
            flush=True,
        )
    on_all = await tuning.choose(names)
    print(f"\nover all questions, chosen without their conversation: {_mean(left_out):.4f}")
    print(f"with the code's: {_mean(present.values()):.4f}")
    best = _mean((await tuning.recalls(on_all)).values())
    print(f"chosen on all and scored on the same: {best:.4f}, {_changes(on_all)}")


def _changes(constants: Constants) -> str:
    """What differs from the code's."""
    pairs = zip(constants._asdict().items(), Constants(), strict=True)
    return ", ".join(f"{name} {value}" for (name, value), now in pairs if value != now) or "the code's"


def main() -> None:
    """Reads the command line, chooses and prints."""
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
