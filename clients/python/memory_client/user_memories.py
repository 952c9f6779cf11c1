"""Facts about a user, as frozen dataclasses. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_client.decisions import DecidedBy, DecisionFailure, LlmUsage
from memory_client.models import Contribution, Degradation, Provenance


class MemoryCategory(StrEnum):
    """The subject of a memory."""

    IDENTITY = "identity"
    """Who the user is: name, role, location. Base importance 10; preloaded."""
    PREFERENCE = "preference"
    """Likes, dislikes and settings of the user. Base importance 9; preloaded."""
    RELATIONSHIP = "relationship"
    """People the user knows. Base importance 8; preloaded."""
    PROJECT = "project"
    """What the user works on. Base importance 7; found by search."""
    CONTEXT = "context"
    """The situation and the topics discussed. Base importance 5; found by search."""
    UNSPECIFIED = "unspecified"
    """A category that this client does not know."""


class MemoryStatus(StrEnum):
    """Whether a memory still holds."""

    ACTIVE = "active"
    """It holds."""
    SUPERSEDED = "superseded"
    """It held until `valid_until_time`; reads as of an earlier time return it."""
    MERGED = "merged"
    """It was merged into another one. Only reads with `include_history` return it."""
    UNSPECIFIED = "unspecified"
    """A status that this client does not know."""


class MemoryOrigin(StrEnum):
    """How a memory came about."""

    SAVED = "saved"
    """By `save_memory`."""
    EXTRACTED = "extracted"
    """By `extract_memories`, from messages."""
    CONSOLIDATED = "consolidated"
    """By `consolidate_memories`, from others."""
    UNSPECIFIED = "unspecified"
    """Not reported, or in a way that this client does not know."""


class MemoryOutcome(StrEnum):
    """The outcome for a fact."""

    SAVED = "saved"
    """It was saved, and no other memory changed."""
    DUPLICATE = "duplicate"
    """It is already known, as `existing`. Nothing was written."""
    SUPERSEDED = "superseded"
    """It was saved, and ended the memories in `superseded`, which it contradicts."""
    CONTRADICTION = "contradiction"
    """It contradicts `existing`, and was not to be saved in that case. Nothing was written."""
    RECALLED = "recalled"
    """It repeats a memory recalled into the conversation. Nothing was written. Only in extraction."""
    REJECTED = "rejected"
    """It is not worth remembering. Nothing was written. Only in extraction."""
    UNSPECIFIED = "unspecified"
    """An outcome that this client does not know."""


class OnContradiction(StrEnum):
    """What to do with a fact that contradicts a known one."""

    SUPERSEDE = "supersede"
    """Save the new fact, and end the known one where the new one begins."""
    KEEP_BOTH = "keep_both"
    """Save the new fact, and let the known one hold as well."""
    REFUSE = "refuse"
    """Do not save the new fact."""


class ConsolidationAction(StrEnum):
    """The action on a group of similar memories."""

    MERGE = "merge"
    """They say much the same: one memory with everything they say replaces them."""
    SUPERSEDE = "supersede"
    """They contradict each other: only the one that began last still holds."""
    KEEP = "keep"
    """They say different things: they are left unchanged."""
    UNSPECIFIED = "unspecified"
    """An action that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Where a memory came from."""

    session_id: str = ""
    """The conversation that it came from. Empty: not given."""
    item_ids: tuple[str, ...] = ()
    """Items that it came from, or messages that were passed in without being stored. At most 100."""
    quote: str = ""
    """The user's exact words. Empty: not given."""
    actor: str = ""
    """The actor that saved it, such as an agent's name. Empty: not given."""
    origin: MemoryOrigin = MemoryOrigin.UNSPECIFIED
    """How it came about. Set by the server."""
    memory_ids: tuple[str, ...] = ()
    """Memories that it was derived from. Set by the server."""
    model: str = ""
    """Model that worded it, as "provider:model". Empty: none. Set by the server."""


@dataclass(frozen=True, slots=True)
class ImportanceAdjustment:
    """One boost or reduction of an importance."""

    name: str
    """In snake_case, such as "explicit_request"; "manual": a client set the score."""
    amount: float
    """Above 0 for a boost, below 0 for a reduction."""
    reason: str = ""
    """The reason, such as the words that led to it. Empty: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """How important a memory is, and why."""

    base: float
    """Base importance of the category, 5 to 10."""
    boosts: tuple[ImportanceAdjustment, ...] = ()
    reductions: tuple[ImportanceAdjustment, ...] = ()
    score: float
    """The sum of base, boosts and reductions, at least 0."""
    decay_factor: float = 1.0
    """Factor by which age lowers the score, 0 to 1. 1: no decay."""
    current_score: float
    """score times decay_factor, which reads use."""
    decided_by: DecidedBy = DecidedBy.UNSPECIFIED
    """The decider that found the boosts and reductions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMemory:
    """One fact about the user."""

    id: str
    """Unique in its namespace. Empty: not saved."""
    content: str
    """The fact in the third person, as in "User prefers dark mode"."""
    category: MemoryCategory
    reasoning: str
    """Why it is worth remembering."""
    importance: Importance
    version: int
    """Number of its writes, from 1. 0: not saved."""
    status: MemoryStatus
    valid_from_time: datetime | None
    """When it began to hold."""
    valid_until_time: datetime | None
    """The first moment at which it no longer holds. None: it still holds."""
    superseded_by: str
    """The memory that replaced it or that it was merged into. Empty: none, or that one was deleted."""
    supersedes: tuple[str, ...]
    """The memories that it replaced."""
    original_content: str
    """The fact as given. Empty: the same as `content`."""
    source: MemorySource
    create_time: datetime | None
    """When it was saved."""
    update_time: datetime | None
    """When this version was written."""
    expire_time: datetime | None
    """When it expires, with its history. None: never."""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Revision of the namespace at which this version was written."""
    provenance: Provenance | None = None
    """Its writer, sources and trust. None: written without a credential, and so fully trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedMemory:
    """The result of saving a fact."""

    outcome: MemoryOutcome
    memory: UserMemory | None
    """As saved. None: nothing was saved."""
    existing: UserMemory | None
    """The known memory that decided the outcome, as it was before. None: no known memory is similar."""
    superseded: tuple[UserMemory, ...]
    """The memories that this one ended, as they are now."""
    message: str
    """For the user or the model, such as "Similar memory already exists"."""
    similarity: float | None
    """Cosine similarity to the most similar memory, -1 to 1. None: there is none, or it was not measured."""
    duplicate_threshold: float
    """Similarity above which a fact is a duplicate. 0: there is no embedder."""
    decided_by: DecidedBy
    reason: str
    """Reason for the outcome, for humans."""
    rephrased_by: DecidedBy
    """The decider that put the content into the third person. UNSPECIFIED: it was left unchanged."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    """None: no language model was called."""
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedMemory:
    """The result of a correction."""

    outcome: MemoryOutcome
    """SAVED, or DUPLICATE if another memory already says the new content: then nothing was written."""
    memory: UserMemory
    """The memory as it is now."""
    existing: UserMemory | None
    """The other memory that already says the new content."""
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
    derived_count: int = 0
    """Number of further items that were removed because they were made only from these."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """One memory found."""

    memory: UserMemory
    score: float
    """Higher is better."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty without `explain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMemories:
    """The memories that belong in every system prompt."""

    memories: tuple[UserMemory, ...]
    """The memories in `text`, the most important first."""
    text: str
    """A block for a system prompt, in the order of saving. It is stored data, not instructions."""
    token_count: int
    """Estimated tokens of the text, also if it is unchanged."""
    omitted_count: int
    """Number of memories omitted because of `max_tokens` or `limit`."""
    revision: int
    unchanged: bool = False
    """The text is that at `if_not_revision`; text and memories are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """One fact found in messages, and its outcome."""

    outcome: MemoryOutcome
    """In a dry run, the outcome that it would have."""
    memory: UserMemory
    """As saved, or if nothing was written as it would be saved, without id and version."""
    existing: UserMemory | None
    superseded: tuple[UserMemory, ...]
    similarity: float | None
    decided_by: DecidedBy
    """The decider that extracted it."""
    reason: str
    confidence: float | None
    """Confidence of the decider that extracted it, 0 to 1. None: not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The facts found in messages, and those saved."""

    results: tuple[ExtractedMemory, ...]
    """One for each fact, in the order of the messages."""
    decided_by: DecidedBy
    """The decider. RULES also if rules extracted from only some of the messages."""
    reason: str
    examined_count: int
    """Number of messages or items examined."""
    examined_revision: int
    """The session was examined up to this revision: the next `after_revision`. 0: messages were given."""
    more: bool
    """Whether the session has later items."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """A group of similar memories, and the action on it."""

    action: ConsolidationAction
    sources: tuple[UserMemory, ...]
    """The memories of the group, as they were before."""
    memory: UserMemory | None
    """The memory that replaces them or still holds. None: they are unchanged."""
    applied: bool
    """Whether the action was carried out."""
    similarity: float
    """Similarity of the two most similar ones."""
    decided_by: DecidedBy
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidations:
    """The result of a consolidation, or in a dry run what it would do."""

    consolidations: tuple[Consolidation, ...]
    """One for each group of similar memories, the most similar first."""
    decided_by: DecidedBy
    reason: str
    examined_count: int
    """Number of memories examined."""
    more: bool
    """Whether there are more groups than `limit`: call again."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int
