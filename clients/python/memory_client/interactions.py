"""Messages to an agent, its responses and its reflections. All times are in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.found import Found
from memory_client.models import Contribution, Degradation, Provenance


class InteractionKind(StrEnum):
    """The kind of an interaction."""

    MESSAGE = "message"
    """A message to the agent."""
    RESPONSE = "response"
    """A response of the agent."""
    REFLECTION = "reflection"
    """A thought of the agent about its own actions."""
    UNSPECIFIED = "unspecified"
    """A kind that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalMessage:
    """Identifies the message that a response answers by its contents."""

    content: str
    """The exact content."""
    sender: str = ""
    """Empty in requests: any."""
    create_time: datetime | None = None
    """None in requests: any."""
    provenance: Provenance | None = None
    """The message's writer and trust. From the server; not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A message, a response or a reflection, as stored."""

    id: str
    """Unique among the items of its namespace."""
    kind: InteractionKind
    content: str
    sender: str
    """The sender of a message, or the agent's name for a response or a reflection."""
    session_id: str
    """The conversation that it belongs to. Empty: none."""
    in_response_to: str
    """The message that a response answers. Empty: not a response, or not linked to a message."""
    original_message: OriginalMessage | None
    """That message as it is stored now. None: not linked, deleted, or omitted in a pair."""
    interaction_ids: tuple[str, ...]
    """The interactions that a reflection is about."""
    create_time: datetime | None
    """When it was said."""
    update_time: datetime | None
    """When it was last written."""
    expire_time: datetime | None
    """When it expires. None: never."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Revision of the namespace at which it was last written."""
    provenance: Provenance | None = None
    """Its writer, sources and trust. None: written without a credential, and so fully trusted."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote it, such as embedding its text."""


@dataclass(frozen=True, slots=True)
class ContextResult:
    """One message, response or reflection found."""

    interaction: Interaction
    """Its `kind` marks reflections."""
    text: str
    """For a prompt: the content, after "SYSTEM REFLECTION: " for a reflection."""
    score: float
    """Higher is better. Do not compare scores of reflections with other scores."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty without `explain`."""


class RelevantContext(Found[ContextResult]):
    """Interactions that match a text: messages and responses, then reflections, each best first."""

    token_count: int
    """Estimated tokens of the results' texts."""

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
    """Number of all its responses."""
