"""The share of the turns that answer LoCoMo's questions that a server finds, next to plain search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks import locomo
from benchmarks.bench import progress
from benchmarks.bm25 import Bm25
from benchmarks.client import Client
from benchmarks.locomo import CATEGORIES, Conversation, Question, Turn
from benchmarks.models import Model
from benchmarks.processes import memory_server, stop
from memory_service.v1 import memory_pb2

DEPTHS = (5, 10, 20)
SERVER = "server, default"
LEXICAL, VECTOR = "server, LEXICAL", "server, VECTOR"
DENSE, BM25 = "dense alone", "BM25 alone"
ALL, ANSWERABLE = "all", "1-4"

_MODES = {
    SERVER: memory_pb2.RETRIEVE_MODE_UNSPECIFIED,
    LEXICAL: memory_pb2.RETRIEVE_MODE_LEXICAL,
    VECTOR: memory_pb2.RETRIEVE_MODE_VECTOR,
}


class Ranking(NamedTuple):
    """A question and the ids of the turns that were found for it, best first."""

    conversation: Conversation
    question: Question
    found: Sequence[str]

    def recall(self, depth: int) -> float:
        """Return the share of the question's gold turns among the first results."""
        gold = self.question.gold
        return len(gold.intersection(self.found[:depth])) / len(gold)


Rankings = dict[str, list[Ranking]]
"""By system: the same questions in the same order."""


async def measure(model: Model, conversations: Sequence[Conversation], data_dir: Path) -> Rankings:
    """Ask the server every question in each mode, and run both plain searches."""
    dense = [ranking for one in conversations for ranking in await _dense(model, one)]
    rankings = await _ask(model, conversations, data_dir)
    rankings[DENSE] = dense
    rankings[BM25] = [ranking for one in conversations for ranking in _bm25(one)]
    return rankings


async def _ask(model: Model, conversations: Sequence[Conversation], data_dir: Path) -> Rankings:
    """Ask a server every question in every mode."""
    rankings: Rankings = {system: [] for system in _MODES}
    with memory_server(data_dir, flags=model.flags, env=model.env) as server:
        async with Client(server.address) as client:
            for one in conversations:
                progress(f"{one.name}: {len(one.turns)} turns, {len(one.questions)} questions")
                await locomo.write(client, one)
                for system, mode in _MODES.items():
                    answers = await locomo.ask(client, one, one.questions, limit=DEPTHS[-1], mode=mode)
                    rankings[system] += [
                        Ranking(one, question, _ids(answer))
                        for question, answer in zip(one.questions, answers, strict=True)
                    ]
        stop(server)
    return rankings


def _ids(answer: memory_pb2.RetrieveResponse) -> list[str]:
    if answer.degraded:
        raise RuntimeError(f"the server left something out: {answer.degraded[0].message}")
    return [result.item.id for result in answer.results]


def _plain(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


async def _dense(model: Model, conversation: Conversation) -> list[Ranking]:
    """Rank as most products do: speaker and text of each turn, by exact cosine similarity."""
    progress(f"{conversation.name}: dense alone")
    stored = await model.vectors([_plain(turn) for turn in conversation.turns])
    asked = await model.vectors([question.text for question in conversation.questions])
    orders = np.argsort(-(asked @ stored.T), axis=1, kind="stable")[:, : DEPTHS[-1]]
    return _as_rankings(conversation, orders.tolist())


def _bm25(conversation: Conversation) -> list[Ranking]:
    """Rank by day, speaker and text of each single turn, without stop words, stemmed."""
    index = Bm25([f"{turn.time:%d %B %Y} {_plain(turn)}" for turn in conversation.turns])
    return _as_rankings(
        conversation, [index.best(question.text, DEPTHS[-1]) for question in conversation.questions]
    )


def _as_rankings(conversation: Conversation, orders: Sequence[Sequence[int]]) -> list[Ranking]:
    turns = conversation.turns
    return [
        Ranking(conversation, question, [turns[number].id for number in order])
        for question, order in zip(conversation.questions, orders, strict=True)
    ]


def groups(rankings: Sequence[Ranking]) -> dict[str, list[Ranking]]:
    """Return the rankings by category, those of the answerable questions, and all; no group is empty."""
    found = {ALL: list(rankings), ANSWERABLE: [one for one in rankings if one.question.category != 5]}
    for category, name in CATEGORIES.items():
        found[name] = [one for one in rankings if one.question.category == category]
    return {name: group for name, group in found.items() if group}


def evidence_recall(rankings: Sequence[Ranking], depth: int) -> float:
    """Return the mean recall over the questions."""
    return fmean(ranking.recall(depth) for ranking in rankings)
