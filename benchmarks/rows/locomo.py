"""Row `locomo`: how many of the turns that answer a question are among the first results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks import locomo
from benchmarks.bench import Bench, progress
from benchmarks.bm25 import Bm25
from benchmarks.client import Client
from benchmarks.locomo import CATEGORIES, Conversation, Question
from benchmarks.processes import memory_server
from benchmarks.table import Measurement
from memory_service.v1 import memory_pb2

_DEPTHS = (5, 10, 20)
_DEFAULT, _VECTOR, _LEXICAL, _BM25 = "default", "VECTOR", "LEXICAL", "plain BM25"
_MODES = {
    _DEFAULT: memory_pb2.RETRIEVE_MODE_UNSPECIFIED,
    _VECTOR: memory_pb2.RETRIEVE_MODE_VECTOR,
    _LEXICAL: memory_pb2.RETRIEVE_MODE_LEXICAL,
}

Ranking = tuple[Question, Sequence[str]]
"""A question and the ids of the turns that were found for it, best first."""


async def run(bench: Bench) -> list[Measurement]:
    """Overall at three depths, then by category at the middle one."""
    assert bench.locomo is not None, "the caller leaves the row out without a path"
    rankings = await _ask(bench, bench.locomo)
    rankings[_BM25] = [
        ranking for conversation in locomo.read(bench.locomo) for ranking in _plain_bm25(conversation)
    ]
    lines = [_line(f"@{depth}, all", depth, rankings) for depth in _DEPTHS]
    for category, name in CATEGORIES.items():
        chosen = {how: [one for one in all_ if one[0].category == category] for how, all_ in rankings.items()}
        if chosen[_DEFAULT]:
            lines.append(_line(f"@{_DEPTHS[1]}, {name}", _DEPTHS[1], chosen))
    return lines


async def _ask(bench: Bench, path: Path) -> dict[str, list[Ranking]]:
    """Every question in every mode, through a server."""
    rankings: dict[str, list[Ranking]] = {how: [] for how in _MODES}
    with memory_server(bench.new_folder()) as server:
        async with Client(server.address) as client:
            for conversation in locomo.read(path):
                progress(f"locomo: {conversation.name}, {len(conversation.turns)} turns")
                await locomo.write(client, conversation)
                questions = conversation.questions
                for how, mode in _MODES.items():
                    answers = await locomo.ask(client, conversation, questions, limit=_DEPTHS[-1], mode=mode)
                    rankings[how] += zip(questions, map(_ids, answers), strict=True)
    return rankings


def _ids(answer: memory_pb2.RetrieveResponse) -> list[str]:
    return [result.item.id for result in answer.results]


def _plain_bm25(conversation: Conversation) -> list[Ranking]:
    """The reference: speaker and text of every turn on its own, ranked without the server."""
    index = Bm25([f"{turn.speaker}: {turn.text}" for turn in conversation.turns])
    return [
        (question, [conversation.turns[number].id for number in index.best(question.text, _DEPTHS[-1])])
        for question in conversation.questions
    ]


def _evidence_recall(rankings: Sequence[Ranking], depth: int) -> float:
    """The share of a question's gold turns among the first results, averaged over the questions."""
    return fmean(
        len(question.gold.intersection(found[:depth])) / len(question.gold) for question, found in rankings
    )


def _line(what: str, depth: int, rankings: dict[str, list[Ranking]]) -> Measurement:
    reached = {how: _evidence_recall(all_, depth) for how, all_ in rankings.items()}
    references = {how: value for how, value in reached.items() if how != _DEFAULT}
    best = max(references, key=lambda how: references[how])
    return Measurement(
        row="locomo",
        what=f"evidence recall{what}",
        measured=reached[_DEFAULT],
        unit="",
        reference=references[best],
        reference_name=f"{best}, the best reference",
        details={**references, "questions": float(len(rankings[_DEFAULT]))},
    )
