"""Answers that are kept, each for the caller and the namespace that it was given to alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from memory_service.decisions import Usage
from memory_service.runtime.caller import Holder, Owner

_CACHED_ANSWERS_MAX = 256
# Sixteen callers with as many as each may have; a thousand tokens each are some 16 MB. Twice as many
# take twice the memory, and more callers are spared questions that they have asked before.
_CACHED_OF_ALL_MAX = 4096
_CACHED_S = 600.0


class Question(NamedTuple):
    """What makes a question the same: who asks it where, the type of the answer, a digest of its words."""

    owner: Owner
    answer_type: type[msgspec.Struct]
    digest: bytes


class Answered(msgspec.Struct, frozen=True):
    """An answer as JSON: whoever is given it makes an object of his own of it."""

    answer: bytes
    usage: Usage


class Answers:
    """Keeps the latest answers. A caller that has many loses its own oldest, and nobody else's.

    When all callers together have too many, those go whose caller has asked the least recently.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._count = 0
        self._of: OrderedDict[Holder, OrderedDict[Question, tuple[float, Answered]]] = OrderedDict()

    def find(self, question: Question) -> Answered | None:
        """Return the answer to a question, if it was given lately."""
        holder = question.owner.holder
        kept = self._of[holder].get(question) if holder in self._of else None
        if kept is None:
            return None
        answered_at, answered = kept
        if self._clock() - answered_at >= _CACHED_S:
            self._drop(holder, question)
            return None
        self._of[holder].move_to_end(question)
        self._of.move_to_end(holder)
        return answered

    def keep(self, question: Question, answered: Answered) -> None:
        """Keep an answer."""
        holder = question.owner.holder
        theirs = self._of.setdefault(holder, OrderedDict())
        self._of.move_to_end(holder)
        self._count += question not in theirs
        theirs[question] = (self._clock(), answered)
        theirs.move_to_end(question)
        if len(theirs) > _CACHED_ANSWERS_MAX:
            self._drop(holder, next(iter(theirs)))
        while self._count > _CACHED_OF_ALL_MAX:
            idle = next(iter(self._of))
            self._drop(idle, next(iter(self._of[idle])))

    def _drop(self, holder: Holder, question: Question) -> None:
        del self._of[holder][question]
        self._count -= 1
        if not self._of[holder]:
            del self._of[holder]
