"""Whether a history of concurrent operations is linearizable.

The algorithm is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with Lowe's
memoization ("Testing for linearizability", 2017), as in Porcupine: each step takes one of the operations that
no remaining one has to precede; if the object could not have answered so, another is tried. Objects are
independent of each other, so each key is checked alone (Lowe's P-compositionality).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

NEVER = math.inf


class Versioned(NamedTuple):
    """A register with versions: its value, that value's version, and the highest version it ever had.

    A write whose response was lost leaves an unknown version (None) until a later response shows it.
    """

    value: str | None = None
    version: int | None = 0
    highest: int = 0


EMPTY = Versioned()


@dataclass(frozen=True)
class Operation:
    """One call: the request, its outcome, and the times. `returned` is NEVER if there was no response.

    `kind` is "read", "put" (unconditional), "create" (only if there is nothing), "replace" (only if there is
    something) or "delete". `expected` is the version that a conditional one demanded, 0 for none. `result` is
    "ok", "absent" (nothing there), "present" (something there), "conflict" or "unknown".
    """

    kind: str
    called: float
    returned: float = NEVER
    value: str | None = None
    expected: int | None = None
    result: str = "unknown"
    version: int | None = None
    """The version in the response: the one read or written, or the one that a conflict found instead."""


def step(state: Versioned, operation: Operation) -> Versioned | None:
    """Return the register after an operation, or None if it could not have answered so."""
    if operation.result == "absent":
        return state if state.value is None and operation.kind != "create" else None
    if operation.result == "present":
        return state if state.value is not None and operation.kind == "create" else None
    if operation.result == "conflict":
        return _after_conflict(state, operation)
    if operation.kind == "read":
        return _at_version(state, operation.version) if operation.value == state.value else None
    known = _matching(state, operation)
    return None if known is None else _after_write(known, operation)


def _at_version(state: Versioned, version: int | None) -> Versioned | None:
    """Return the register, if its value may have this version."""
    if state.value is None or version is None:
        return None
    if state.version is None:
        return Versioned(state.value, version, version) if version > state.highest else None
    return state if state.version == version else None


def _after_conflict(state: Versioned, operation: Operation) -> Versioned | None:
    """Return the register, if a write with this condition was rightly refused."""
    if operation.version == operation.expected:
        return None
    if operation.version == 0:
        return state if state.value is None else None
    return _at_version(state, operation.version)


def _matching(state: Versioned, operation: Operation) -> Versioned | None:
    """Return the register, if an operation that was applied found what it demanded."""
    if operation.kind == "create" or operation.expected == 0:
        return state if state.value is None else None
    if operation.kind in ("replace", "delete") and state.value is None:
        return None
    return state if operation.expected is None else _at_version(state, operation.expected)


def _after_write(state: Versioned, operation: Operation) -> Versioned | None:
    if operation.kind == "delete":
        return Versioned(None, 0, state.highest)
    if operation.version is None:
        return Versioned(operation.value, None, state.highest)
    if operation.version <= state.highest:
        return None
    return Versioned(operation.value, operation.version, operation.version)


class _Entry:
    """The call or the return of an operation, in a list ordered by time."""

    __slots__ = ("after", "before", "match", "number")

    def __init__(self, number: int, match: _Entry | None) -> None:
        self.number = number
        self.match = match
        """The return, for a call; None: this is a return."""
        self.before: _Entry | None = None
        self.after: _Entry | None = None

    def lift(self) -> None:
        """Take a call and its return out of the list."""
        assert self.match is not None
        for entry in (self, self.match):
            assert entry.before is not None
            entry.before.after = entry.after
            if entry.after is not None:
                entry.after.before = entry.before

    def unlift(self) -> None:
        """Put them back."""
        assert self.match is not None
        for entry in (self.match, self):
            assert entry.before is not None
            entry.before.after = entry
            if entry.after is not None:
                entry.after.before = entry


def _listed(operations: Sequence[Operation]) -> _Entry:
    """Return the head of the list of calls and returns."""
    events: list[tuple[float, int, _Entry]] = []
    for number, operation in enumerate(operations):
        ended = _Entry(number, None)
        events.append((operation.called, 0, _Entry(number, ended)))
        events.append((operation.returned, 1, ended))
    head = last = _Entry(-1, None)
    for _, _, entry in sorted(events, key=lambda event: event[:2]):
        last.after, entry.before = entry, last
        last = entry
    return head


def linearizable(
    operations: Sequence[Operation],
    begin: Hashable = EMPTY,
    step: Callable[[Any, Operation], Hashable | None] = step,
) -> bool:
    """Return whether some order of the operations of one object explains every response.

    That order keeps an operation after all those that had ended when it began. One without a response may
    have happened at any time after it began, or not at all.
    """
    # Reads without a response carry no information.
    operations = [o for o in operations if o.kind != "read" or o.result != "unknown"]
    head = _listed(operations)
    known = sum(1 << n for n, operation in enumerate(operations) if operation.result != "unknown")
    done, state = 0, begin
    tried: set[tuple[int, Hashable]] = set()
    taken: list[tuple[_Entry, Hashable]] = []
    entry = head.after
    while done & known != known:
        assert entry is not None
        if entry.match is not None:
            after = step(state, operations[entry.number])
            mark = (done | 1 << entry.number, after)
            if after is not None and mark not in tried:
                tried.add(mark)
                taken.append((entry, state))
                done, state = mark
                entry.lift()
                entry = head.after
            else:
                entry = entry.after
            continue
        if not taken:
            return False
        # Its operation had to be taken by now: take back the last one, and try the ones after it.
        last, state = taken.pop()
        done &= ~(1 << last.number)
        last.unlift()
        entry = last.after
    return True
