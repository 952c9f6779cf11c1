"""What was said to an agent, what it answered and what it thinks of that. All times are in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.found import Found
from memory_client.models import Contribution, Degradation, Provenance


class InteractionKind(StrEnum):
    """What an interaction is."""

    MESSAGE = "message"
    """A message to the agent."""
    RESPONSE = "response"
    """A response of the agent."""
    REFLECTION = "reflection"
    """A thought of the agent about its own doing."""
    UNSPECIFIED = "unspecified"
    """A kind that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalMessage:
    """Which message a response answers, by what it said."""

    content: str
    """To the letter."""
    sender: str = ""
    """Empty in requests: any."""
    create_time: datetime | None = None
    """None in requests: any."""
    provenance: Provenance | None = None
    """Who wrote the message, and how far it is trusted. From the server; it is not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A message, a response or a reflection, as stored."""

    id: str
    """Names the item inside its namespace."""
    kind: InteractionKind
    content: str
    sender: str
    """Of a message; the agent's name for a response or a reflection."""
    session_id: str
    """The conversation that it belongs to. Empty: none."""
    in_response_to: str
    """The message that a response answers. Empty: no response, or linked to no message."""
    original_message: OriginalMessage | None
    """That message as it is stored now. None: not linked, deleted, or left out in a pair."""
    interaction_ids: tuple[str, ...]
    """What a reflection is about."""
    create_time: datetime | None
    """When it was said."""
    update_time: datetime | None
    """When it was last written."""
    expire_time: datetime | None
    """When it ceases to exist. None: never."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Revision of the namespace at which it was last written."""
    provenance: Provenance | None = None
    """Who wrote it, out of what, and how far it is trusted. None: nobody with a name wrote it, so that it is
    trusted."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote it, such as embedding its text."""


@dataclass(frozen=True, slots=True)
class ContextResult:
    """One message, response or reflection found."""

    interaction: Interaction
    """Its `kind` marks reflections."""
    text: str
    """For a prompt: the content, and before that of a reflection "SYSTEM REFLECTION: "."""
    score: float
    """Higher is better. Do not compare those of reflections with the others."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty unless `explain` asked for it."""


class RelevantContext(Found[ContextResult]):
    """What fits a text: messages and responses, the best first, then reflections, the best first."""

    token_count: int
    """Of the results' texts, estimated."""

    def __init__(
        self,
        results: Iterable[ContextResult] = (),
        *,
        token_count: int = 0,
        degraded: tuple[Degradation, ...] = (),
        revision: int = 0,
    ) -> None:
        super().__init__(results, degraded=degraded, revision=revision)
        self.token_count = token_count


@dataclass(frozen=True, slots=True)
class InteractionPair:
    """A message with the responses to it."""

    message: Interaction
    responses: tuple[Interaction, ...] = ()
    """In the order in which they were written, at most the first 20."""
    response_count: int = 0
    """How many it has in all."""
