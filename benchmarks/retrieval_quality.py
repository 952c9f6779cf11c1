"""Turn-level evidence recall on LoCoMo conversations, through the gRPC API.

Run as `python -m benchmarks.retrieval_quality LOCOMO_FILE`. Each question searches its own conversation; its
recall is the share of the turns that answer it (its evidence) among the first results. For each embedding
model the server is queried in its default mode, by words only and by vectors only, and compared with an exact
dense search and BM25, both over single turns and without the server.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import locomo
from benchmarks.evidence import DEPTHS, SERVER, Ranking, Rankings, evidence_recall, groups, measure
from benchmarks.locomo import CATEGORIES, Conversation
from benchmarks.models import MODELS
from benchmarks.table import environment

_MISSED_BELOW = 10
"""A gold turn beyond this many results counts as missed."""


def recalls(rankings: Rankings) -> dict[str, dict[str, dict[str, float]]]:
    """Return the recalls by system, group of questions and depth."""
    return {
        system: {
            name: {str(depth): evidence_recall(group, depth) for depth in DEPTHS}
            for name, group in groups(all_).items()
        }
        for system, all_ in rankings.items()
    }


def render(name: str, rankings: Rankings) -> str:
    """Return a table for each depth: systems as rows, groups of questions as columns."""
    asked = groups(rankings[SERVER])
    out = [f"embedding model: {name}"]
    found = recalls(rankings)
    wide = max(map(len, found))
    for depth in DEPTHS:
        out.append("")
        out.append(f"  {f'recall@{depth}':{wide}}" + "".join(f"  {group:>11}" for group in asked))
        for system, by_group in found.items():
            cells = "".join(f"  {by_group[group][str(depth)]:>11.3f}" for group in asked)
            out.append(f"  {system:{wide}}{cells}")
    out.append("")
    out.append(f"  {'questions':{wide}}" + "".join(f"  {len(group):>11}" for group in asked.values()))
    return "\n".join(out)


def misses(model: str, rankings: Rankings) -> Iterator[dict[str, Any]]:
    """Return the questions of which the default mode of the server missed a turn, and its results."""
    for number, ranking in enumerate(rankings[SERVER]):
        if ranking.recall(_MISSED_BELOW) < 1:
            yield {
                "model": model,
                "conversation": ranking.conversation.name,
                "category": CATEGORIES.get(ranking.question.category, ""),
                "question": ranking.question.text,
                "gold": _told(ranking, sorted(ranking.question.gold)),
                "ranks": {system: _ranks(all_[number]) for system, all_ in rankings.items()},
                "found": _told(ranking, ranking.found[:_MISSED_BELOW]),
            }


def _told(ranking: Ranking, ids: Sequence[str]) -> dict[str, str]:
    turns = {turn.id: f"{turn.speaker}: {turn.text}" for turn in ranking.conversation.turns}
    return {identifier: turns[identifier] for identifier in ids}


def _ranks(ranking: Ranking) -> dict[str, int | None]:
    """Return the rank of each gold turn, from 1; None: it is not among the results."""
    found = list(ranking.found)
    return {
        identifier: found.index(identifier) + 1 if identifier in found else None
        for identifier in sorted(ranking.question.gold)
    }


async def _measured(model: str, conversations: Sequence[Conversation]) -> tuple[str, Rankings]:
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder, MODELS[model]() as made:
        return made.name, await measure(made, conversations, Path(folder))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "locomo_file",
        type=Path,
        nargs="?",
        default=os.environ.get("LOCOMO_DATA") or None,
        help="the LoCoMo JSON (default: the environment's LOCOMO_DATA)",
    )
    parser.add_argument(
        "--models", default=",".join(MODELS), metavar="NAME[,NAME]", help="default: %(default)s"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    parser.add_argument(
        "--misses",
        type=Path,
        metavar="FILE",
        help="write each question of which a turn was missed to this file, a JSON object a line",
    )
    args = parser.parse_args()
    args.models = [name.strip() for name in args.models.split(",")]
    if unknown := [name for name in args.models if name not in MODELS]:
        parser.error(f"unknown model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if args.locomo_file is None:
        parser.error("give the LoCoMo JSON, or set LOCOMO_DATA")
    args.locomo_file = Path(args.locomo_file)
    if not args.locomo_file.is_file():
        parser.error(f"no such file: {args.locomo_file}")
    return args


def main() -> None:
    """Measure, print and write the results."""
    args = _arguments()
    # Stopping a run also stops the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    conversations = locomo.read(args.locomo_file)
    report: dict[str, Any] = {"environment": environment(), "conversations": len(conversations), "models": {}}
    missed: list[dict[str, Any]] = []
    for model in args.models:
        began = time.perf_counter()
        name, rankings = uvloop.run(_measured(model, conversations))
        print(render(name, rankings), f"  took {time.perf_counter() - began:.0f} s\n", sep="\n", flush=True)
        report["models"][model] = {"name": name, "recall": recalls(rankings)}
        missed += misses(model, rankings)
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if args.misses:
        lines = (json.dumps(miss, ensure_ascii=False) + "\n" for miss in missed)
        args.misses.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
