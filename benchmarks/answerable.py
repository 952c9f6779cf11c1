"""Whether relevance separates questions that a LoCoMo conversation answers from others.

Run as `python -m benchmarks.answerable LOCOMO_FILE`. Each conversation is asked a share of 200 answerable
questions, of 200 nonsense queries, and its adversarial questions, whose premise it contradicts. The figure is
the area under the ROC curve of the first result's relevance: 1 if each answerable question gets more than
each other query, 0.5 by chance. Two harder kinds are questions about other conversations, as they are and
with the names of this one's speakers.

Then multi-hop questions are asked as they are, and with `queries`: the question split by a fixed rule.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import uvloop

from benchmarks import locomo
from benchmarks.client import Client, ask_all
from benchmarks.locomo import Conversation
from benchmarks.processes import memory_server, stop
from memory_service.v1 import memory_pb2

_EACH = 200
_IN_FLIGHT = 8
_SYLLABLES = "ba ke lo mi nu ra so ti vu xa ze qui fro plo gri dur".split()  # noqa: SIM905
_FOREIGN = """
    turbine lagoon carburetor quorum isotope ledger falcon parsec gasket tariff monsoon sextant abacus cobalt
    dividend glacier larynx mortgage nebula oxide piston quartz rivet sonnet trench uranium vector walrus yoke
    """.split()  # noqa: SIM905
_ASKED = (
    "What is the boiling point of",
    "How do I install",
    "Which treaty governs",
    "Who invented",
    "When was",
)
_SUBJECTS = (
    "liquid nitrogen", "PostgreSQL replication", "deep sea mining", "the cathode ray tube",
    "a sperm whale", "the planet Uranus", "quantum chromodynamics", "imported steel",
    "Kubernetes ingress", "the Antarctic shelf",
)  # fmt: skip
_MULTI_HOP, _ADVERSARIAL = 1, 5
# Two words joined by a conjunction: each part of the question keeps one of them.
_JOINED = re.compile(r"(\w+)(?:,\s*(?:and|or)?\s*|\s+(?:and|or)\s+)(\w+)", re.IGNORECASE)

Scores = dict[str, list[float]]


def nonsense() -> list[str]:
    """Return queries that no conversation answers: invented words, loose words, other subjects."""
    chance = random.Random(7)

    def invented() -> str:
        return "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4)))

    found = [" ".join(invented() for _ in range(chance.randint(2, 6))) for _ in range(75)]
    found += [" ".join(chance.sample(_FOREIGN, chance.randint(3, 6))) for _ in range(75)]
    found += [f"{asked} {subject}?" for asked in _ASKED for subject in _SUBJECTS]
    return found[:_EACH]


def parts_of(question: str) -> list[str]:
    """Return a question about two things as two questions; empty if no conjunction joins two words."""
    found = _JOINED.search(question)
    if found is None:
        return []
    before, after = question[: found.start()], question[found.end() :]
    return [before + found[1] + after, before + found[2] + after]


def area(answerable: Sequence[float], others: Sequence[float]) -> float:
    """Return the area under the ROC curve; equal values count half."""
    pairs = np.subtract.outer(np.array(answerable), np.array(others))
    return float(np.mean((pairs > 0) + 0.5 * (pairs == 0)))


def _renamed(text: str, strangers: set[str], names: Sequence[str]) -> str:
    for number, stranger in enumerate(sorted(strangers)):
        text = text.replace(stranger, names[number % len(names)])
    return text


def _queries(one: Conversation, conversations: Sequence[Conversation]) -> dict[str, list[str]]:
    """Return what to ask a conversation, by kind: its share of each."""
    share, chance = _EACH // len(conversations), random.Random(one.name)
    answerable = [question.text for question in one.questions if question.category != _ADVERSARIAL]
    adversarial = [question.text for question in one.questions if question.category == _ADVERSARIAL]
    others = [question.text for other in conversations if other is not one for question in other.questions]
    names = sorted({turn.speaker for turn in one.turns})
    strangers = {turn.speaker for other in conversations for turn in other.turns}.difference(names)
    elsewhere = chance.sample(others, share)
    first = [other.name for other in conversations].index(one.name) * share
    return {
        "answerable": chance.sample(answerable, share),
        "nonsense": nonsense()[first : first + share],
        "adversarial": adversarial,
        "of other conversations": elsewhere,
        "the same, renamed": [_renamed(text, strangers, names) for text in elsewhere],
    }


async def _asked(
    client: Client, one: Conversation, options: Sequence[memory_pb2.RetrieveOptions]
) -> list[memory_pb2.RetrieveResponse]:
    requests = [
        memory_pb2.RetrieveRequest(namespace=one.namespace, options=its).SerializeToString()
        for its in options
    ]
    answers = await ask_all(client.retrieve, requests, _IN_FLIGHT)
    return [memory_pb2.RetrieveResponse.FromString(answer) for answer in answers]


async def _relevances(client: Client, one: Conversation, texts: Sequence[str]) -> list[float]:
    options = [memory_pb2.RetrieveOptions(query_text=text, limit=1) for text in texts]
    return [
        answer.results[0].relevance if answer.results else 0.0
        for answer in await _asked(client, one, options)
    ]


async def _recalls(client: Client, one: Conversation) -> list[tuple[bool, float, float]]:
    """Return whether each multi-hop question can be split, and its recall@10 without and with parts."""
    questions = [question for question in one.questions if question.category == _MULTI_HOP]
    plain = [memory_pb2.RetrieveOptions(query_text=question.text, limit=10) for question in questions]
    parted = [
        memory_pb2.RetrieveOptions(query_text=question.text, queries=parts_of(question.text), limit=10)
        for question in questions
    ]
    found = zip(
        questions, await _asked(client, one, plain), parted, await _asked(client, one, parted), strict=True
    )
    rows = []
    for question, without, options, with_parts in found:
        shares = [
            len(question.gold.intersection(result.item.id for result in answer.results)) / len(question.gold)
            for answer in (without, with_parts)
        ]
        rows.append((bool(options.queries), shares[0], shares[1]))
    return rows


async def _measured(conversations: Sequence[Conversation], folder: Path) -> None:
    scores: Scores = {}
    rows: list[tuple[bool, float, float]] = []
    with memory_server(folder) as server:
        async with Client(server.address) as client:
            for one in conversations:
                await locomo.write(client, one)
                for kind, texts in _queries(one, conversations).items():
                    scores.setdefault(kind, []).extend(await _relevances(client, one, texts))
                rows += await _recalls(client, one)
        stop(server)
    for kind, values in scores.items():
        low, middle, high = np.percentile(values, [5, 50, 95])
        curve = "" if kind == "answerable" else f"  area {area(scores['answerable'], values):.3f}"
        print(f"{kind:24} {len(values):4} queries, relevance {low:.2f} {middle:.2f} {high:.2f}{curve}")
    for name, its in (("multi-hop", rows), ("of these, split", [row for row in rows if row[0]])):
        without, with_parts = fmean(row[1] for row in its), fmean(row[2] for row in its)
        print(f"{name:24} {len(its):4} questions, recall@10 {without:.3f}, with queries {with_parts:.3f}")


def main() -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo_file", nargs="?", default=os.environ.get("LOCOMO_DATA") or None)
    args = parser.parse_args()
    if args.locomo_file is None:
        parser.error("give the LoCoMo JSON, or set LOCOMO_DATA")
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        uvloop.run(_measured(locomo.read(Path(args.locomo_file)), Path(folder)))


if __name__ == "__main__":
    main()
