"""Documents and their fragments, as frozen dataclasses. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.models import Contribution, Degradation, MemoryItem, Provenance


class HandleMessageOutcome(StrEnum):
    """The outcome of `handle_message`."""

    NOT_A_COMMAND = "not_a_command"
    """The message is not a command. Nothing was written, and there is no feedback."""
    SAVED = "saved"
    """The chosen message was saved."""
    ALREADY_SAVED = "already_saved"
    """The chosen message had already been saved, as `document`."""
    NO_MESSAGE = "no_message"
    """The agent has no message with text among the last ones. Nothing was written."""
    INVALID_STATE = "invalid_state"
    """The chosen message is itself a command to save. Nothing was written."""
    UNSPECIFIED = "unspecified"
    """An outcome that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of a document's text. Neighbours may overlap."""

    id: str
    """Unique in its namespace. A new version of the document has new fragments."""
    document_id: str
    document_version: int
    index: int
    """Its index in the document, from 0."""
    text: str
    """Exactly the document's text from start_offset to end_offset."""
    start_offset: int
    """In Unicode code points, from 0: `text == document.text[start_offset:end_offset]`."""
    end_offset: int
    """The first code point after it."""
    start_byte: int
    """In bytes of UTF-8, from 0."""
    end_byte: int
    """The first byte after it."""
    create_time: datetime | None
    """When it was made."""
    provenance: Provenance | None = None
    """Its writer and trust. None: written without a credential, and so fully trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is kept whole and searched by its fragments."""

    id: str
    """Unique in its namespace."""
    text: str
    """Empty in lists, in search results and after a write."""
    title: str
    """Empty: none."""
    source: str
    """Where the text comes from, such as a URL or a file name. Empty: not given."""
    source_item_id: str
    """The message that was saved as this document. Empty: it was added by `add_document`."""
    session_id: str
    """The conversation that it belongs to. Empty: none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    create_time: datetime | None
    """When the text was created."""
    update_time: datetime | None
    """When this version was written."""
    expire_time: datetime | None
    """When it expires, with its fragments. None: never."""
    version: int
    """Number of its writes, from 1."""
    fragment_count: int
    size_bytes: int
    """Size of the text in UTF-8."""
    preview: str
    """The beginning of the text. Only in lists and search results."""
    revision: int
    """Revision of the namespace at which this version was written."""
    provenance: Provenance | None = None
    """Its writer, sources and trust. None: written without a credential, and so fully trusted."""
    fragments: tuple[Fragment, ...] = ()
    """In order. Empty unless requested, or if `handle_message` made the document."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote it, such as embedding its fragments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledMessage:
    """The outcome of `handle_message`."""

    outcome: HandleMessageOutcome
    feedback: str
    """A message for the user. Empty: the message is not a command."""
    command: str
    """The recognised command. Empty: none."""
    message: MemoryItem | None
    """The chosen message. None: there is none."""
    document: Document | None
    """The document that the message is saved as, with text and fragments. None: it is not saved."""
    revision: int
    degraded: tuple[Degradation, ...]


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    """The result of deleting a document."""

    fragment_count: int
    revision: int
    """Revision of the namespace afterwards."""
    derived_count: int = 0
    """Number of further items that were removed because they were made only from these."""


@dataclass(frozen=True, slots=True)
class FragmentResult:
    """One fragment found."""

    fragment: Fragment
    document: Document
    """The document that it belongs to, without its text."""
    score: float
    """Higher is better."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty without `explain`."""
