"""The contract of deciders: what can be asked, what an answer must be, and who is asked first.

A `Decider` answers for one call of the API. What is asked and answered are plain values; no decider reads or
writes anything.
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
"""Characters of a fact as it is asked for or found."""
REPHRASED_CHARS_MAX = 700
REASONING_CHARS_MIN, REASONING_CHARS_MAX = 10, 200
REASON_CHARS_MAX = 500
VALUE_BYTES_SEARCHED = 2048
"""The beginning of a value that is searched for words of a goal: a value may have a million bytes."""
EXPLICIT_REQUEST = "explicit_request"
"""The name of the boost of what a user asked to be remembered."""

_OUT_OF_REACH = (FailureReason.LLM_UNAVAILABLE, FailureReason.LLM_TIMEOUT, FailureReason.LLM_PAUSED)


class Undecided(Exception):
    """A decider has no answer; if something went wrong, its `failures` tell what."""


class Category(enum.IntEnum):
    """What a fact is about; the numbers equal the proto's."""

    IDENTITY = 1
    PREFERENCE = 2
    RELATIONSHIP = 3
    PROJECT = 4
    CONTEXT = 5


class Adjustment(msgspec.Struct, frozen=True):
    """One boost (`amount` above 0) or reduction (below 0); `reason` has the words that it was found by."""

    name: str
    amount: float
    reason: str = ""


class Importance(msgspec.Struct, frozen=True):
    """A score and how it came about."""

    base: float
    boosts: tuple[Adjustment, ...]
    reductions: tuple[Adjustment, ...]
    score: float
    """The sum of the rest, and not below 0."""


class Relation(enum.Enum):
    """How a new fact stands to a known one."""

    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"


class Verdict(msgspec.Struct, frozen=True):
    """A relation and why, for a human; at most 500 characters."""

    relation: Relation
    reason: str


class Known(msgspec.Struct, frozen=True):
    """A fact in the third person. `similarity` is the cosine of its vector and that of the other, -1 to 1;
    None: it cannot be told."""

    id: str
    content: str
    similarity: float | None = None


class Line(msgspec.Struct):
    """One message of a conversation."""

    role: Role
    text: str

    @property
    def speaks(self) -> bool:
        """Whether the user says something in it."""
        return self.role is Role.USER and bool(self.text.strip())


class FoundFact(msgspec.Struct, frozen=True):
    """A fact that was found in a line. `quote` is what the user said there, at most 500 characters.

    `explicit`: the user asked for it to be remembered. `rejected` tells why it is not worth remembering.
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
    """What is to be done to similar facts; the numbers equal the proto's."""

    MERGE = 1
    SUPERSEDE = 2
    KEEP = 3


class Settlement(msgspec.Struct, frozen=True):
    """What is to be done to similar facts, and why. `content` says all of them, where they are merged.

    `contrary` are the pairs of ids of facts that contradict each other, which is what SUPERSEDE is about.
    """

    action: Action
    reason: str
    content: str = ""
    contrary: frozenset[frozenset[str]] = frozenset()


class ToolOutput(msgspec.Struct, frozen=True):
    """A result of a tool, also as compact JSON, and what it was asked for.

    `key` is one that the caller chose, `before` the value it has, as JSON. `problem` returns what forbids a
    text as "key" or "description"; empty: nothing.
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
    """Whether to keep a result, and why; if so, under which key and with which description."""

    keep: bool
    reason: str
    key: str = ""
    description: str = ""


@dataclass(slots=True)
class Candidate:
    """A key that may be relevant, with all that is shown of it and found in it."""

    key: str
    description: str
    preview: str
    update_us: int
    found: dict[str, float]
    """What each stem of the goal that was found tells, 0 to 1, before rarity counts."""
    lexical: float = 0.0
    vector: float = 0.0
    shares: tuple[Contribution, ...] = ()
    words: tuple[str, ...] = ()
    """The words of the goal that were found, the one that tells most first."""

    @property
    def score(self) -> float:
        """How well the key fits the goal, 0 to 1."""
        return min(sum(share.value for share in self.shares), 1.0)


class KeySearch(ABC):
    """A search for the keys that may fit a goal: `add` every key, ask for the best, `rank` them."""

    @abstractmethod
    def add(self, entry: StateEntry) -> None:
        """Take a key in; of its value the first VALUE_BYTES_SEARCHED count."""

    @abstractmethod
    async def best(self, limit: int) -> list[Candidate]:
        """Return at most so many, the best by words first; where no word is found, the newest first."""

    @abstractmethod
    def text(self, candidate: Candidate) -> str:
        """Return what is to be embedded for a key."""

    @abstractmethod
    def rank(
        self,
        candidates: Sequence[Candidate],
        goal: Vector | None = None,
        vectors: Sequence[Vector | None] = (),
    ) -> list[Candidate]:
        """Return candidates by score, the best first. `vectors` are theirs; no goal: words count alone."""


class Relevance(msgspec.Struct, frozen=True):
    """The keys that a goal needs, the most relevant first, and the others; each with why."""

    needed: list[tuple[Candidate, str]]
    others: list[tuple[Candidate, str]]
    reason: str


class Decider:
    """Answers the questions of one call. Each raises Undecided where this decider cannot answer it.

    A language model that fails raises Unavailable (LLM_UNAVAILABLE) in place of Undecided where the caller
    insists on it. Rules answer every question, and raise neither.
    """

    model = ""
    """The name of the language model that answers; empty: none."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        """What went wrong on the way to its answers and was got over."""
        self.usage = Usage()

    async def word(self, statement: str) -> str:
        """Return a statement as a fact about "User" in the third person.

        Every name, number, date and negation MUST stay; others MUST NOT be added. What is worded so already
        MUST come back as it is.
        """
        raise Undecided

    async def rate(self, content: str, category: Category, said: str, explicit: bool) -> Importance:
        """Return how important a fact is: 0 or more, most between 5 and 12.

        A request to remember MUST count also where only `said` has it, the user's own words, or nothing but
        `explicit`.
        """
        raise Undecided

    async def compare(self, new: str, known: Sequence[Known], threshold: float) -> list[Verdict]:
        """Return how a new fact stands to each known one, in their order.

        `threshold` is the cosine that duplicates are above. Another number, date or name, or a negation,
        MUST make no duplicate. The same words MUST be one.
        """
        raise Undecided

    async def find(
        self, lines: Sequence[Line], first: int, categories: Sequence[Category], most: int
    ) -> list[FoundFact]:
        """Return the facts about the user in the lines from `first` on, in the order they were said in.

        Lines of others than the user MUST have none; quotes MUST be the user's words, and a name or a number
        that nobody said MUST be in no fact. `categories` are those that are wanted, none: all; others may be
        found, too. It may end after more than `most`.
        """
        raise Undecided

    async def settle(self, facts: Sequence[Known], threshold: float) -> Settlement:
        """Return what is to be done to similar facts: they say the same, contradict each other, or neither.

        A merged fact MUST have every name and number of all of them, and no other.
        """
        raise Undecided

    async def keep(self, output: ToolOutput) -> Keeping:
        """Return whether a result is useful beyond the session.

        One that is kept MUST have a key and a description that `output.problem` allows, or else those of
        rules: a key in snake_case of 1 to 64 characters, a description of 1 to 300. Where the caller insists
        on a model, one whose key or description is not allowed raises Unavailable.
        """
        raise Undecided

    async def search(self, goal: str) -> KeySearch:
        """Return a search for the keys that may fit a goal."""
        raise Undecided

    async def relevant(self, goal: str, ranked: Sequence[Candidate]) -> Relevance:
        """Return which keys a goal needs, of candidates by score; none that is not among them.

        A key MUST NOT be in the answer twice. One that the decider did not look at MAY be missing.
        """
        raise Undecided

    async def command(self, text: str, commands: Sequence[str]) -> str:
        """Return the first of the commands that a text is, or holds; empty when there is none.

        A command with a space may stand anywhere in the text, in any case. One without MUST be the whole
        text, in any case, or stand in it in capitals. It MUST NOT be a part of a longer word.
        """
        raise Undecided


class Deciding:
    """Who decides on one call: the model if there is one and it can, else rules; and what that took."""

    def __init__(self, rules: Decider, model: Decider | None = None) -> None:
        self.rules = rules
        self._model = model
        asked_first = model or rules
        self.failures, self.usage, self.model = asked_first.failures, asked_first.usage, asked_first.model

    async def ask(self, question: Callable[[Decider], Awaitable[A]]) -> tuple[A, DecidedBy]:
        """Return the answer, and who gave it. Raises LLM_UNAVAILABLE where a model is insisted on and fails.

        A model that did not answer in time is not asked again: a call waits for it once.
        """
        if self._model is not None and not any(f.reason in _OUT_OF_REACH for f in self.failures):
            with contextlib.suppress(Undecided):
                return await question(self._model), DecidedBy.LLM
        return await question(self.rules), DecidedBy.RULES


Begin = Callable[[DecidedBy, str], Deciding]
"""Begins to decide on a call: by whom the caller wants it, and about which namespace.

Raises FailedPrecondition (LLM_REQUIRED) where the caller insists on a model and there is none."""
