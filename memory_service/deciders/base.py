"""The contract of deciders: the questions, the valid answers, and the order in which deciders are tried.

A `Decider` serves one call of the API. Questions and answers are plain values; deciders do no I/O on records.
"""

from __future__ import annotations

import contextlib
import enum
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from memory_service.data_model import Contribution, Json, Role, StateEntry, Vector
from memory_service.decisions import DecidedBy, Failure, FailureReason, Usage

A = TypeVar("A")

CONTENT_CHARS_MIN = 10
CONTENT_CHARS_MAX = 500
"""Length of a fact in questions and answers, in characters."""
REPHRASED_CHARS_MAX = 700
REASONING_CHARS_MIN, REASONING_CHARS_MAX = 10, 200
REASON_CHARS_MAX = 500
VALUE_BYTES_SEARCHED = 2048
"""How much of a value is searched for words of a goal; a value may have a million bytes."""
EXPLICIT_REQUEST = "explicit_request"
"""The name of the boost for facts that a user asked to be remembered."""

_OUT_OF_REACH = (FailureReason.LLM_UNAVAILABLE, FailureReason.LLM_TIMEOUT, FailureReason.LLM_PAUSED)


class Undecided(Exception):
    """Raised by a decider without an answer; `failures` are the errors, if any."""


class Category(enum.IntEnum):
    """The subject of a fact; the numbers equal the proto's."""

    IDENTITY = 1
    PREFERENCE = 2
    RELATIONSHIP = 3
    PROJECT = 4
    CONTEXT = 5


class Adjustment(msgspec.Struct, frozen=True):
    """One boost (`amount` above 0) or reduction (below 0); `reason` has the words that caused it."""

    name: str
    amount: float
    reason: str = ""


class Importance(msgspec.Struct, frozen=True):
    """A score and its parts."""

    base: float
    boosts: tuple[Adjustment, ...]
    reductions: tuple[Adjustment, ...]
    score: float
    """The sum of the parts, at least 0."""


class Relation(enum.Enum):
    """The relation of a new fact to a known one."""

    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


class Verdict(msgspec.Struct, frozen=True):
    """A relation and its reason in plain text, at most 500 characters."""

    relation: Relation
    reason: str


class Known(msgspec.Struct, frozen=True):
    """A fact in the third person.

    `similarity` is the cosine of the two facts' vectors, -1 to 1; None: unknown.
    """

    id: str
    content: str
    similarity: float | None = None


class Line(msgspec.Struct):
    """One message of a conversation."""

    role: Role
    text: str

    @property
    def speaks(self) -> bool:
        """Return whether this is a non-empty message of the user."""
        return self.role is Role.USER and bool(self.text.strip())


class FoundFact(msgspec.Struct, frozen=True):
    """A fact that was found in a line. `quote` is the user's words, at most 500 characters.

    `explicit`: the user asked for it to be remembered. `rejected` says why it is not worth remembering.
    """

    line: int
    content: str
    category: Category
    reasoning: str
    quote: str
    confidence: float | None = None
    explicit: bool = False
    rejected: str = ""


class Action(enum.IntEnum):
    """What to do with similar facts; the numbers equal the proto's."""

    MERGE = 1
    SUPERSEDE = 2
    KEEP = 3


class Settlement(msgspec.Struct, frozen=True):
    """What to do with similar facts, and why. `content` is the merged fact, for a merge.

    `contrary` holds the pairs of ids of contradictory facts, which SUPERSEDE is about.
    """

    action: Action
    reason: str
    content: str = ""
    contrary: frozenset[frozenset[str]] = frozenset()


class ToolOutput(msgspec.Struct, frozen=True):
    """A tool's result, also as compact JSON, and the request that led to it.

    `key` is a key chosen by the caller, `before` its current value as JSON. `problem` returns why a text is
    not allowed as "key" or "description"; empty: it is allowed.
    """

    tool_name: str
    result: Json
    encoded: bytes
    goal: str
    arguments: dict[str, Json] | None
    key: str
    before: bytes | None
    problem: Callable[[str, str], str]


class Keeping(msgspec.Struct, frozen=True):
    """Whether to keep a result, and why; if so, its key and description."""

    keep: bool
    reason: str
    key: str = ""
    description: str = ""


@dataclass(slots=True)
class Candidate:
    """A key that may be relevant, with its shown fields and the words found in it."""

    key: str
    description: str
    preview: str
    update_us: int
    found: dict[str, float]
    """The weight of each stem of the goal that was found, 0 to 1, before rarity counts."""
    lexical: float = 0.0
    vector: float = 0.0
    shares: tuple[Contribution, ...] = ()
    words: tuple[str, ...] = ()
    """The words of the goal that were found, heaviest first."""

    @property
    def score(self) -> float:
        """How well the key matches the goal, 0 to 1."""
        return min(sum(share.value for share in self.shares), 1.0)


class KeySearch(ABC):
    """A search for keys that may match a goal: `add` every key, get the `best`, `rank` them."""

    @abstractmethod
    def add(self, entry: StateEntry) -> None:
        """Add a key; only the first VALUE_BYTES_SEARCHED of its value count."""

    @abstractmethod
    async def best(self, limit: int) -> list[Candidate]:
        """Return at most `limit` candidates, the best by words first; without matches, the newest first."""

    @abstractmethod
    def text(self, candidate: Candidate) -> str:
        """Return the text to embed for a key."""

    @abstractmethod
    def rank(
        self,
        candidates: Sequence[Candidate],
        goal: Vector | None = None,
        vectors: Sequence[Vector | None] = (),
    ) -> list[Candidate]:
        """Return candidates by score, the best first.

        `vectors` are theirs; without a goal vector, only words count.
        """


class Relevance(msgspec.Struct, frozen=True):
    """The keys that a goal needs, the most relevant first, and the other keys; each with a reason."""

    needed: list[tuple[Candidate, str]]
    others: list[tuple[Candidate, str]]
    reason: str


class Decider:
    """Answers the questions of one call. Each method raises Undecided if this decider has no answer.

    A language model that fails raises Unavailable (LLM_UNAVAILABLE) rather than Undecided if the caller
    requires it. Rules answer every question, and raise neither.
    """

    model = ""
    """The name of the language model; empty: none."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        """Failures that were handled on the way to the answers."""
        self.usage = Usage()

    async def word(self, statement: str) -> str:
        """Return a statement as a fact about "User" in the third person.

        Every name, number, date and negation MUST stay; others MUST NOT be added. A statement already in this
        form MUST come back unchanged.
        """
        raise Undecided

    async def rate(self, content: str, category: Category, said: str, explicit: bool) -> Importance:
        """Return the importance of a fact: 0 or more, mostly between 5 and 12.

        A request to remember MUST count even if only `said`, the user's own words, or only `explicit` shows
        it.
        """
        raise Undecided

    async def compare(self, new: str, known: Sequence[Known], threshold: float) -> list[Verdict]:
        """Return the relation of a new fact to each known one, in their order.

        Duplicates have a cosine above `threshold`. Facts that differ in a number, a date, a name or a
        negation MUST NOT be duplicates. Facts with the same words MUST be.
        """
        raise Undecided

    async def find(
        self, lines: Sequence[Line], first: int, categories: Sequence[Category], most: int
    ) -> list[FoundFact]:
        """Return the facts about the user in the lines from `first` on, in order.

        Lines of other speakers MUST have none. Quotes MUST be the user's words, and facts MUST NOT have names
        or numbers that do not occur in the conversation. `categories` are those wanted, none: all; others may
        also be returned. It may stop after more than `most`.
        """
        raise Undecided

    async def settle(self, facts: Sequence[Known], threshold: float) -> Settlement:
        """Return what to do with similar facts: merge, supersede or keep.

        A merged fact MUST have every name and number of all of them, and no other.
        """
        raise Undecided

    async def keep(self, output: ToolOutput) -> Keeping:
        """Return whether a result is useful beyond the session.

        A result to keep MUST have a key and a description that `output.problem` allows, or else those of
        rules: a key in snake_case of 1 to 64 characters, a description of 1 to 300. If the caller requires a
        model, a key or description that is not allowed raises Unavailable.
        """
        raise Undecided

    async def search(self, goal: str) -> KeySearch:
        """Return a search for keys that may match a goal."""
        raise Undecided

    async def relevant(self, goal: str, ranked: Sequence[Candidate]) -> Relevance:
        """Return which keys a goal needs, out of candidates by score; it adds no other keys.

        A key MUST NOT be in the answer twice. A key that the decider did not consider MAY be missing.
        """
        raise Undecided

    async def command(self, text: str, commands: Sequence[str]) -> str:
        """Return the first command that a text equals or contains; empty if there is none.

        A command with a space may stand anywhere in the text, in any case. A command without a space MUST be
        the whole text, in any case, or stand in it in capitals. It MUST NOT be part of a longer word.
        """
        raise Undecided


class Deciding:
    """Decides for one call: by the model if there is one and it can, else by rules.

    Keeps track of the cost.
    """

    def __init__(self, rules: Decider, model: Decider | None = None) -> None:
        self.rules = rules
        self._model = model
        asked_first = model or rules
        self.failures, self.usage, self.model = asked_first.failures, asked_first.usage, asked_first.model

    async def ask(self, question: Callable[[Decider], Awaitable[A]]) -> tuple[A, DecidedBy]:
        """Return the answer, and who gave it. Raises LLM_UNAVAILABLE if a required model fails.

        A model that timed out is not tried again: a call waits for it once.
        """
        if self._model is not None and not any(f.reason in _OUT_OF_REACH for f in self.failures):
            with contextlib.suppress(Undecided):
                return await question(self._model), DecidedBy.LLM
        return await question(self.rules), DecidedBy.RULES


Begin = Callable[[DecidedBy, str], Deciding]
"""Starts the decisions of a call: who should decide, and for which namespace.

Raises FailedPrecondition (LLM_REQUIRED) if the caller requires a model and there is none.
"""
