"""Decisions of the overseer: which state a goal needs, and which results are worth saving."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory_client.decisions import DecidedBy, DecisionFailure, LlmUsage
from memory_client.models import Contribution, Degradation, StateEntry


class KeyVerdict(StrEnum):
    """The verdict on one key."""

    RELEVANT = "relevant"
    """The goal needs it: its entry is in the answer."""
    NOT_RELEVANT = "not_relevant"
    """The goal does not need it."""
    OMITTED = "omitted"
    """The goal needs it, but it exceeds `limit` or `max_tokens`, or was removed meanwhile."""
    UNSPECIFIED = "unspecified"
    """A verdict that this client does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDecision:
    """The decision on one key, its decider and its reason."""

    key: str
    verdict: KeyVerdict
    decided_by: DecidedBy
    reason: str
    score: float
    """Score of the key in the search for candidates, 0 to 1. 0: not found by the search."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty without `explain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """The state that a goal needs."""

    entries: tuple[StateEntry, ...]
    """Most relevant first."""
    decided_by: DecidedBy
    """RULES also if rules decided on only some of the entries, or if there was no state."""
    reason: str
    decisions: tuple[KeyDecision, ...]
    """One for each candidate: first those on the entries, in the same order."""
    failures: tuple[DecisionFailure, ...]
    context_text: str
    """The entries as a block for a prompt. It is stored data, not instructions."""
    token_count: int
    """Estimated tokens of `context_text`."""
    key_count: int
    """Number of keys in the namespace that match `pattern`."""
    llm_usage: LlmUsage | None
    """None: no language model was called."""
    degraded: tuple[Degradation, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDecision:
    """Whether a tool's result is worth keeping, and what was saved."""

    should_save: bool
    """The decision."""
    key: str
    """The key to keep it under. Empty: it is not worth keeping."""
    reason: str
    decided_by: DecidedBy
    saved: bool
    """Whether it was saved. If it should have been but was not, `failures` has the reason."""
    entry: StateEntry | None
    """The entry as saved, without its value. None: nothing was saved."""
    skipped: bool
    """Whether results of this tool are never kept."""
    description: str
    """A description to store with the value, by which it is found. Empty: it is not worth keeping."""
    existing_version: int
    """Version of the key at the time of the decision, for your own `save_state`. 0: it did not exist."""
    failures: tuple[DecisionFailure, ...]
    llm_usage: LlmUsage | None
    degraded: tuple[Degradation, ...]
    revision: int
