"""Documents and their fragments, as small frozen values. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.models import Contribution, Degradation, MemoryItem, Provenance


class HandleMessageOutcome(StrEnum):
    """What became of a message that might be a command to save."""

    NOT_A_COMMAND = "not_a_command"
    """It is none. Nothing was written, and there is no feedback."""
    SAVED = "saved"
    """The chosen message was saved."""
    ALREADY_SAVED = "already_saved"
    """The chosen message had been saved before: `document` is that one."""
    NO_MESSAGE = "no_message"
    """Among the last messages there is none of the agent with a text. Nothing was written."""
    INVALID_STATE = "invalid_state"
    """The chosen message is a command to save itself. Nothing was written."""
    UNSPECIFIED = "unspecified"
    """An outcome that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of a document's text. Neighbours may overlap."""

    id: str
    """Names it inside its namespace. A new version of the document has new fragments."""
    document_id: str
    document_version: int
    index: int
    """Its place in the document, from 0."""
    text: str
    """That of the document from start_offset to end_offset, to the letter."""
    start_offset: int
    """In Unicode code points, from 0: `text == document.text[start_offset:end_offset]`."""
    end_offset: int
    """The first code point that is not in it."""
    start_byte: int
    """In bytes of UTF-8, from 0."""
    end_byte: int
    """The first byte that is not in it."""
    create_time: datetime | None
    """When it was made."""
    provenance: Provenance | None = None
    """Who wrote it, and how far it is trusted. None: nobody with a name wrote it, so that it is trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is kept whole and searched by its fragments."""

    id: str
    """Names it inside its namespace."""
    text: str
    """Empty in lists, in search results and after a write."""
    title: str
    """Empty: none."""
    source: str
    """What the text comes from, such as a URL or a file's name. Empty: not given."""
    source_item_id: str
    """The message that was saved. Empty: the document was added as one."""
    session_id: str
    """The conversation that it belongs to. Empty: none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    create_time: datetime | None
    """When the text came about."""
    update_time: datetime | None
    """When this version was written."""
    expire_time: datetime | None
    """When it ceases to exist, with its fragments. None: never."""
    version: int
    """Counts its writes: 1 for the first."""
    fragment_count: int
    size_bytes: int
    """Size of the text in UTF-8."""
    preview: str
    """The beginning of the text. Only in lists and search results."""
    revision: int
    """Revision of the namespace at which this version was written."""
    provenance: Provenance | None = None
    """Who wrote it, out of what, and how far it is trusted. None: nobody with a name wrote it, so that it is
    trusted."""
    fragments: tuple[Fragment, ...] = ()
    """In their order. Empty unless they were asked for, or the document was made by `handle_message`."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote it, such as embedding its fragments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledMessage:
    """What became of a message that might be a command to save."""

    outcome: HandleMessageOutcome
    feedback: str
    """What to tell the user. Empty: the message is no command."""
    command: str
    """The command that was recognised. Empty: none."""
    message: MemoryItem | None
    """The message that was chosen. None: none was."""
    document: Document | None
    """What the message is saved as, with text and fragments. None: it is not saved."""
    revision: int
    degraded: tuple[Degradation, ...]


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    """What the deletion of a document removed with it."""

    fragment_count: int
    revision: int
    """Revision of the namespace afterwards."""


@dataclass(frozen=True, slots=True)
class FragmentResult:
    """One fragment found."""

    fragment: Fragment
    document: Document
    """What it is a piece of, without its text."""
    score: float
    """Higher is better."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty unless `explain` asked for it."""
