"""The LoCoMo conversations: read from a file, written to a server and queried.

The data is not part of this repository (its licence is CC BY-NC); the caller has to provide the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks.client import Client, ask_all
from memory_service.v1 import memory_pb2

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_BATCH = 200
_IN_FLIGHT = 8


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    id: str
    session: str
    time: datetime
    speaker: str
    text: str
    """The text, and a caption of the image if there was one."""


@dataclass(frozen=True)
class Question:
    """A question with the ids of the turns that answer it."""

    text: str
    category: int
    gold: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A conversation of two people over many sessions, and questions about it."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def namespace(self) -> str:
        """The namespace that the conversation is written to."""
        return f"locomo/{self.name}"


def read(path: Path) -> list[Conversation]:
    """Read the conversations of a LoCoMo file; questions without evidence are left out."""
    return [_conversation(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(entry: dict[str, Any]) -> Conversation:
    turns = tuple(_turns(entry["conversation"]))
    known = frozenset(turn.id for turn in turns)
    questions = []
    for asked in entry["qa"]:
        # Some ids in the file are joined ("D8:6; D9:17"), padded ("D30:05") or misspelt ("D:11:26").
        found = _EVIDENCE.findall(" ".join(asked.get("evidence", [])))
        gold = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found) & known
        if gold:
            questions.append(Question(asked["question"], asked["category"], gold))
    return Conversation(entry["sample_id"], turns, tuple(questions))


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    number = 1
    while f"session_{number}" in conversation or f"session_{number}_date_time" in conversation:
        session = f"session_{number}"
        for said in conversation.get(session, []):
            time = datetime.strptime(conversation[f"{session}_date_time"], "%I:%M %p on %d %B, %Y")
            caption = said.get("blip_caption")
            yield Turn(
                id=said["dia_id"],
                session=session,
                time=time.replace(tzinfo=UTC),
                speaker=said["speaker"],
                text=f"{said['text']} [image: {caption}]" if caption else said["text"],
            )
        number += 1


def item(turn: Turn) -> memory_pb2.MemoryItem:
    """Return the chat message for a turn."""
    created = Timestamp()
    created.FromDatetime(turn.time)
    return memory_pb2.MemoryItem(
        id=turn.id,
        session_id=turn.session,
        create_time=created,
        chat_message=memory_pb2.ChatMessage(
            role=memory_pb2.ROLE_USER, name=turn.speaker, parts=[memory_pb2.Part(text=turn.text)]
        ),
    )


async def write(client: Client, conversation: Conversation) -> memory_pb2.ImportResponse:
    """Import a conversation into its namespace; existing turns stay unchanged."""
    turns = conversation.turns
    return await client.import_all(
        memory_pb2.ImportRequest(
            namespace=conversation.namespace,
            items=map(item, turns[start : start + _BATCH]),
            on_duplicate=memory_pb2.ON_DUPLICATE_SKIP,
        ).SerializeToString()
        for start in range(0, len(turns), _BATCH)
    )


async def ask(
    client: Client,
    conversation: Conversation,
    questions: Sequence[Question],
    *,
    limit: int,
    mode: memory_pb2.RetrieveMode = memory_pb2.RETRIEVE_MODE_UNSPECIFIED,
) -> list[memory_pb2.RetrieveResponse]:
    """Ask the questions by their text; the responses come in the same order."""
    requests = [
        memory_pb2.RetrieveRequest(
            namespace=conversation.namespace,
            options=memory_pb2.RetrieveOptions(limit=limit, query_text=question.text, mode=mode),
        ).SerializeToString()
        for question in questions
    ]
    answers = await ask_all(client.retrieve, requests, _IN_FLIGHT)
    return [memory_pb2.RetrieveResponse.FromString(answer) for answer in answers]
