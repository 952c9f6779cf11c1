"""A cache of answers, separate for each caller and namespace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from memory_service.decisions import Usage
from memory_service.runtime.caller import Holder, Owner

_CACHED_ANSWERS_MAX = 256
# The full share of 16 callers; with a thousand tokens each, about 16 MB. Doubled, it takes twice the memory
# and saves more callers from repeated questions.
_CACHED_OF_ALL_MAX = 4096
_CACHED_S = 600.0


class Question(NamedTuple):
    """The key of a question: caller and namespace, type of the answer, digest of the words."""

    owner: Owner
    answer_type: type[msgspec.Struct]
    digest: bytes


class Answered(msgspec.Struct, frozen=True):
    """An answer as JSON, from which each caller decodes its own object."""

    answer: bytes
    usage: Usage


class Answers:
    """Keeps the latest answers. A caller with too many loses its own oldest.

    If all callers together have too many, the least recent caller loses answers.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._count = 0
        self._of: OrderedDict[Holder, OrderedDict[Question, tuple[float, Answered]]] = OrderedDict()

    def find(self, question: Question) -> Answered | None:
        """Return the answer to a question, if there is a recent one."""
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
        """Store an answer."""
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
