"""Facts about a user, as small frozen values. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.decisions import DecidedBy, DecisionFailure, LlmUsage
from memory_client.models import Contribution, Degradation, Provenance


class MemoryCategory(StrEnum):
    """What a memory is about."""

    IDENTITY = "identity"
    """Who the user is: name, role, location. Base importance 10; preloaded."""
    PREFERENCE = "preference"
    """What the user likes, dislikes and has set. Base importance 9; preloaded."""
    RELATIONSHIP = "relationship"
    """Whom the user knows. Base importance 8; preloaded."""
    PROJECT = "project"
    """What the user works on. Base importance 7; found by search."""
    CONTEXT = "context"
    """The situation and what was discussed. Base importance 5; found by search."""
    UNSPECIFIED = "unspecified"
    """A category that this client does not know."""


class MemoryStatus(StrEnum):
    """Whether a memory still holds."""

    ACTIVE = "active"
    """It holds."""
    SUPERSEDED = "superseded"
    """It held until `valid_until_time`; reads as of an earlier time show it."""
    MERGED = "merged"
    """It was merged into another one. Only reads with `include_history` show it."""
    UNSPECIFIED = "unspecified"
    """A status that this client does not know."""


class MemoryOrigin(StrEnum):
    """How a memory came about."""

    SAVED = "saved"
    """By `save_memory`."""
    EXTRACTED = "extracted"
    """By `extract_memories`, out of messages."""
    CONSOLIDATED = "consolidated"
    """By `consolidate_memories`, out of others."""
    UNSPECIFIED = "unspecified"
    """Not told, or in a way that this client does not know."""


class MemoryOutcome(StrEnum):
    """What became of a fact."""

    SAVED = "saved"
    """It was saved, and no other memory changed."""
    DUPLICATE = "duplicate"
    """It is known already: `existing` says it. Nothing was written."""
    SUPERSEDED = "superseded"
    """It was saved, and ended the memories that it contradicts: they are in `superseded`."""
    CONTRADICTION = "contradiction"
    """It contradicts `existing`, and was not to be saved then. Nothing was written."""
    RECALLED = "recalled"
    """It repeats what was recalled into the conversation. Nothing was written. Only in extraction."""
    REJECTED = "rejected"
    """It is not worth remembering. Nothing was written. Only in extraction."""
    UNSPECIFIED = "unspecified"
    """An outcome that this client does not know."""


class OnContradiction(StrEnum):
    """What becomes of a fact that contradicts a known one."""

    SUPERSEDE = "supersede"
    """The new fact is saved, and the known one ends where the new one begins."""
    KEEP_BOTH = "keep_both"
    """The new fact is saved, and the known one goes on holding."""
    REFUSE = "refuse"
    """The new fact is not saved."""


class ConsolidationAction(StrEnum):
    """What is done to a group of similar memories."""

    MERGE = "merge"
    """They say much the same: one memory that says it all takes their place."""
    SUPERSEDE = "supersede"
    """They contradict each other: the one that began last goes on holding."""
    KEEP = "keep"
    """They say different things: they stay as they are."""
    UNSPECIFIED = "unspecified"
    """An action that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Where a memory came from."""

    session_id: str = ""
    """The conversation that it came from. Empty: not given."""
    item_ids: tuple[str, ...] = ()
    """Items that it came from, or messages that were handed over without being stored. At most 100."""
    quote: str = ""
    """What the user said, word for word. Empty: not given."""
    actor: str = ""
    """Who saved it, such as an agent's name. Empty: not given."""
    origin: MemoryOrigin = MemoryOrigin.UNSPECIFIED
    """How it came about. Set by the server."""
    memory_ids: tuple[str, ...] = ()
    """Memories that it was made out of. Set by the server."""
    model: str = ""
    """Model that worded it, as "provider:model". Empty: none did. Set by the server."""


@dataclass(frozen=True, slots=True)
class ImportanceAdjustment:
    """One boost or reduction of an importance."""

    name: str
    """In snake_case, such as "explicit_request"; "manual": somebody set the score."""
    amount: float
    """Above 0 for a boost, below 0 for a reduction."""
    reason: str = ""
    """Such as the words that it was found by. Empty: none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """How important a memory is, and why."""

    base: float
    """Of the category, 5 to 10."""
    boosts: tuple[ImportanceAdjustment, ...] = ()
    reductions: tuple[ImportanceAdjustment, ...] = ()
    score: float
    """The sum of base, boosts and reductions, and not below 0."""
    decay_factor: float = 1.0
    """What age has brought the score down to, 0 to 1. 1: no decay."""
    current_score: float
    """score times decay_factor. Reads go by it."""
    decided_by: DecidedBy = DecidedBy.UNSPECIFIED
    """Who found the boosts and reductions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMemory:
    """One fact about the user."""

    id: str
    """Names it inside its namespace. Empty: it is not saved."""
    content: str
    """The fact in the third person, as in "User prefers dark mode"."""
    category: MemoryCategory
    reasoning: str
    """Why it is worth remembering."""
    importance: Importance
    version: int
    """Counts its writes: 1 for the first. 0: it is not saved."""
    status: MemoryStatus
    valid_from_time: datetime | None
    """When it began to hold."""
    valid_until_time: datetime | None
    """When it ceased to hold: the first moment that it does not. None: it still holds."""
    superseded_by: str
    """The memory that took its place or that it was merged into. Empty: none, or it was deleted."""
    supersedes: tuple[str, ...]
    """The memories whose place it took."""
    original_content: str
    """The fact as it was given. Empty: just like content."""
    source: MemorySource
    create_time: datetime | None
    """When it was saved."""
    update_time: datetime | None
    """When this version was written."""
    expire_time: datetime | None
    """When it ceases to exist, history included. None: never."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Revision of the namespace at which this version was written."""
    provenance: Provenance | None = None
    """Who wrote it, out of what, and how far it is trusted. None: nobody with a name wrote it, so that it is
    trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedMemory:
    """What became of a fact that was to be saved."""

    outcome: MemoryOutcome
    memory: UserMemory | None
    """As saved. None: nothing was saved."""
    existing: UserMemory | None
    """The known memory that decided the outcome, as it was before. None: the fact is like no other."""
    superseded: tuple[UserMemory, ...]
    """The memories that ended with this one, as they now stand."""
    message: str
    """For the user or the model, such as "Similar memory already exists"."""
    similarity: float | None
    """To the most similar memory known, a cosine from -1 to 1. None: none is known, or not measured."""
    duplicate_threshold: float
    """What the similarity must be above for a duplicate. 0: there is no embedder."""
    decided_by: DecidedBy
    reason: str
    """For the outcome, for a human."""
    rephrased_by: DecidedBy
    """Who put the content into the third person. UNSPECIFIED: it was left as it is."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    """None: no language model was asked."""
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedMemory:
    """What became of a correction."""

    outcome: MemoryOutcome
    """SAVED, or DUPLICATE when another memory says the new content already: nothing was written then."""
    memory: UserMemory
    """As it now stands."""
    existing: UserMemory | None
    """The other memory that says the new content already."""
    decided_by: DecidedBy
    rephrased_by: DecidedBy
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class RemovedMemories:
    """What a deletion removed."""

    count: int
    revision: int
    """Revision of the namespace afterwards."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """One memory found."""

    memory: UserMemory
    score: float
    """Higher is better."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty unless `explain` asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMemories:
    """What belongs into every system prompt."""

    memories: tuple[UserMemory, ...]
    """Those in `text`, the most important first."""
    text: str
    """A block for a system prompt. It is data that somebody stored, not instructions."""
    token_count: int
    """Of the text, estimated."""
    omitted_count: int
    """How many memories were left out for `max_tokens` or `limit`."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """One fact that was found in messages, and what became of it."""

    outcome: MemoryOutcome
    """In a dry run the outcome that it would have."""
    memory: UserMemory
    """As saved; where nothing was written what it would be, without id and version."""
    existing: UserMemory | None
    superseded: tuple[UserMemory, ...]
    similarity: float | None
    decided_by: DecidedBy
    """Who extracted it."""
    reason: str
    confidence: float | None
    """Of the one who extracted it, 0 to 1. None: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What was found in messages, and saved."""

    results: tuple[ExtractedMemory, ...]
    """One for each fact, in the order in which they were said."""
    decided_by: DecidedBy
    """Who extracted. RULES also when rules had to for some of the messages."""
    reason: str
    examined_count: int
    """How many messages or items were looked through."""
    examined_revision: int
    """Up to which the session was looked through: the next `after_revision`. 0: it was messages."""
    more: bool
    """Whether the session holds later items."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """A group of similar memories, and what is done to it."""

    action: ConsolidationAction
    sources: tuple[UserMemory, ...]
    """The memories of the group, as they were before."""
    memory: UserMemory | None
    """What takes their place or goes on holding. None: they stay as they are."""
    applied: bool
    """Whether it was done."""
    similarity: float
    """Of the two most similar ones."""
    decided_by: DecidedBy
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidations:
    """What a consolidation did, or in a dry run would do."""

    consolidations: tuple[Consolidation, ...]
    """One for each group of similar memories, the most similar first."""
    decided_by: DecidedBy
    reason: str
    examined_count: int
    """How many memories were looked at."""
    more: bool
    """Whether there are more groups than `limit`: call again."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int
