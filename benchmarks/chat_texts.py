"""Any number of conversation turns, and questions about them, with the word statistics of real chat.

The cost of a lexical search depends on how often each word is used. So the turns repeat those of the LoCoMo
conversations, with some words exchanged, if their file is there; otherwise their words are drawn with
Zipf-distributed frequencies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks import locomo
from benchmarks.settings import IMPORT_BATCH, LIMIT
from memory_service.v1 import memory_pb2

_EXCHANGED = 0.15
"""The share of a turn's words that are exchanged when the turn is repeated."""
_FIRST_SECOND = 1_700_000_000
_TURNS_PER_SESSION = 22
_SPEAKERS = ("Ada", "Ben", "Chloe", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas")
_QUESTIONS = 300
# Most frequent first, as in spoken English.
_COMMON = (
    "i you the to a it and that of in is my was for have on so with me be what just this do are like we but "
    "at not your how about had from they it's really an can as up there been he she when out if them some "
    "would more one all their by her his which did who where will has or because our time good great new"
)
_SYLLABLES = ("ba", "con", "der", "fi", "gar", "ju", "ka", "lo", "mer", "nor", "pa", "que", "sta", "vel")
_VOCABULARY = 8_000
_OPENINGS = ("What did {who} say about", "When did {who} go to", "How does {who} like", "Why has {who} a")


@dataclass(frozen=True)
class Said:
    """One turn."""

    session: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Chat:
    """Turns in order, questions about them, and the source of both."""

    turns: Sequence[Said]
    questions: Sequence[str]
    source: str


def make_chat(turns: int, path: Path | None) -> Chat:
    """Make that many turns; the same arguments give the same turns."""
    rng = random.Random(turns)
    return _generated(turns, rng) if path is None else _repeated(turns, locomo.read(path), rng)


def _repeated(count: int, conversations: Sequence[locomo.Conversation], rng: random.Random) -> Chat:
    words = [word for one in conversations for turn in one.turns for word in turn.text.split()]
    turns: list[Said] = []
    again = 0
    while len(turns) < count:
        for one in conversations:
            for turn in one.turns:
                text = _exchanged(turn.text, words, rng) if again else turn.text
                turns.append(Said(f"{one.name}-{again}-{turn.session}", turn.speaker, text))
        again += 1
    asked = [question.text for one in conversations for question in one.questions]
    return Chat(turns[:count], rng.sample(asked, min(len(asked), _QUESTIONS)), "LoCoMo turns")


def _exchanged(text: str, words: Sequence[str], rng: random.Random) -> str:
    # Drawn from all the text, so common words stay common.
    return " ".join(rng.choice(words) if rng.random() < _EXCHANGED else word for word in text.split())


def _generated(count: int, rng: random.Random) -> Chat:
    words = list(dict.fromkeys((*_COMMON.split(), *_made_up(rng))))[:_VOCABULARY]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    turns = [
        Said(
            f"session-{number // _TURNS_PER_SESSION}",
            _SPEAKERS[number // _TURNS_PER_SESSION % 5 * 2 + number % 2],
            " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(6, 40))),
        )
        for number in range(count)
    ]
    return Chat(turns, [_question(rng.choice(turns), rng) for _ in range(_QUESTIONS)], "Zipf words")


def _made_up(rng: random.Random) -> Iterator[str]:
    for _ in range(2 * _VOCABULARY):
        yield "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))


def _question(turn: Said, rng: random.Random) -> str:
    told = turn.text.split()
    opening = rng.choice(_OPENINGS).format(who=turn.speaker)
    return f"{opening} {' '.join(rng.sample(told, min(len(told), 4)))}?"


def import_messages(namespace: str, turns: Sequence[Said]) -> Iterator[bytes]:
    """Return the messages of an Import of these turns, ready to send; the server embeds."""
    for start in range(0, len(turns), IMPORT_BATCH):
        items = [
            memory_pb2.MemoryItem(
                session_id=turn.session,
                create_time=Timestamp(seconds=_FIRST_SECOND + 60 * number),
                chat_message=memory_pb2.ChatMessage(
                    role=memory_pb2.ROLE_USER, name=turn.speaker, parts=[memory_pb2.Part(text=turn.text)]
                ),
            )
            for number, turn in enumerate(turns[start : start + IMPORT_BATCH], start)
        ]
        yield memory_pb2.ImportRequest(namespace=namespace, items=items).SerializeToString()


def retrieve_requests(namespace: str, questions: Sequence[str], mode: memory_pb2.RetrieveMode) -> list[bytes]:
    """Return one Retrieve by text per question, ready to send."""
    return [
        memory_pb2.RetrieveRequest(
            namespace=namespace,
            options=memory_pb2.RetrieveOptions(limit=LIMIT, query_text=question, mode=mode),
        ).SerializeToString()
        for question in questions
    ]
