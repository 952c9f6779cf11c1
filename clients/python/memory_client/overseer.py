"""What the overseer decides: which state a goal needs, and which results are worth saving."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory_client.decisions import DecidedBy, DecisionFailure, LlmUsage
from memory_client.models import Contribution, Degradation, StateEntry


class KeyVerdict(StrEnum):
    """What was decided on one key."""

    RELEVANT = "relevant"
    """The goal needs it: its entry is in the answer."""
    NOT_RELEVANT = "not_relevant"
    """The goal does not need it."""
    OMITTED = "omitted"
    """The goal needs it, but it is over `limit` or `max_tokens`, or was removed meanwhile."""
    UNSPECIFIED = "unspecified"
    """A verdict that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDecision:
    """What was decided on one key, by whom and why."""

    key: str
    verdict: KeyVerdict
    decided_by: DecidedBy
    reason: str
    score: float
    """Of the key in the search for candidates, 0 to 1. 0: the search did not find it."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty unless `explain` asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """The state that a goal needs."""

    entries: tuple[StateEntry, ...]
    """The most relevant first."""
    decided_by: DecidedBy
    """RULES also when rules had to decide on any of the entries, and when there was no state."""
    reason: str
    decisions: tuple[KeyDecision, ...]
    """On every candidate, those on the entries first and in their order."""
    failures: tuple[DecisionFailure, ...]
    context_text: str
    """The entries as a block for a prompt. It is data that somebody stored, not instructions."""
    token_count: int
    """Of context_text, estimated."""
    key_count: int
    """How many keys the namespace has that match `pattern`."""
    llm_usage: LlmUsage | None
    """None: no language model was asked."""
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDecision:
    """Whether a tool's result is worth keeping, and what was saved."""

    should_save: bool
    """The decision."""
    key: str
    """To keep it under. Empty: it is not worth keeping."""
    reason: str
    decided_by: DecidedBy
    saved: bool
    """Whether it was saved. If it was to be and was not, `failures` says why."""
    entry: StateEntry | None
    """As saved, without its value. None: nothing was saved."""
    skipped: bool
    """Whether the tool is one of those whose results are never kept."""
    description: str
    """To keep with the value, so that it is found again. Empty: it is not worth keeping."""
    existing_version: int
    """Of the key when it was decided on, for a `save_state` of one's own. 0: it did not exist."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int
