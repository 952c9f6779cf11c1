"""Row `locomo`: the share of the turns answering a question that are among the first results."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import locomo
from benchmarks.bench import Bench
from benchmarks.evidence import ALL, BM25, DEPTHS, SERVER, Rankings, evidence_recall, groups, measure
from benchmarks.locomo import CATEGORIES
from benchmarks.models import Local
from benchmarks.table import Bar, Measurement

_BARS: Mapping[int, Bar] = {
    5: Bar(0.70, "higher", of="measured"),
    10: Bar(0.79, "higher", of="measured"),
}
_ADVERSARIAL = CATEGORIES[5]
_NOT_BELOW = Bar(1.0, "higher")


async def run(bench: Bench) -> list[Measurement]:
    """Measure at three depths over all questions, then by category at the middle depth."""
    assert bench.locomo is not None, "the caller leaves the row out without a path"
    folder = bench.new_folder()
    rankings = await measure(Local(), locomo.read(bench.locomo), folder)
    bench.discard(folder)
    middle = DEPTHS[1]
    lines = [_line(ALL, depth, rankings, _BARS.get(depth)) for depth in DEPTHS]
    for name in groups(rankings[SERVER]):
        if name == _ADVERSARIAL:
            lines.append(_line(name, middle, rankings, _NOT_BELOW, reference=BM25))
        elif name != ALL:
            lines.append(_line(name, middle, rankings))
    return lines


def _line(
    group: str, depth: int, rankings: Rankings, bar: Bar | None = None, reference: str = ""
) -> Measurement:
    reached = {system: evidence_recall(groups(all_)[group], depth) for system, all_ in rankings.items()}
    others = {system: value for system, value in reached.items() if system != SERVER}
    against = reference or max(others, key=lambda system: others[system])
    return Measurement(
        row="locomo",
        what=f"evidence recall@{depth}, {group}",
        measured=reached[SERVER],
        unit="",
        reference=others[against],
        reference_name=against if reference else f"{against}, the best of the others",
        bar=bar,
        details={**others, "questions": float(len(groups(rankings[SERVER])[group]))},
    )
