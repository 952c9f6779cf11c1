"""The contract of a write policy."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_service.data_model import UNATTRIBUTED, ItemKind, Json, Provenance, Role, SourceKind


class CannotLoadPolicy(RuntimeError):
    """A write policy cannot be loaded; tells where it stands and why, for who runs the server."""


class Action(enum.StrEnum):
    """What becomes of a write."""

    ALLOW = "allow"
    QUARANTINE = "quarantine"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of something to be written. `reason` is told to the writer and to reviewers."""

    action: Action
    reason: str = ""


ALLOWED = Verdict(Action.ALLOW)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that is to be written: an item, or the value of a state.

    `provenance` is what the server will keep: its writer is who was authenticated, its trust what applies.
    `source` is where the content comes from, as the writer or the content tells.
    """

    namespace: str
    text: str
    """All that the content says: texts, keys and values of data, calls of tools, names; of a state its
    key, value and description."""
    kind: ItemKind | None = None
    """None: a state."""
    role: Role | None = None
    """Who speaks; None: it is no chat message."""
    session_id: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    provenance: Provenance = UNATTRIBUTED
    source: SourceKind = SourceKind.UNSPECIFIED
    names: tuple[str, ...] = ()
    """All other texts that come with it: ids, the session's too, types of files, models. Not ids that the
    server has made."""


class WritePolicy(ABC):
    """Says what may be written. No policy at all is None, not one that allows everything."""

    @abstractmethod
    async def judge(self, proposals: Sequence[Proposal]) -> Sequence[Verdict]:
        """Return a verdict on each proposal of a write, in order.

        It MUST return as many verdicts as there are proposals, and MUST NOT change the proposals. A verdict
        MUST depend on nothing of a call but its proposals: a repeated request is judged again. It MUST NOT
        hold up the event loop, where all other calls wait, too: what takes long is awaited. A reason MUST NOT
        quote what is written, as it is logged and sent. What raises refuses the write, as an internal error.
        """

    async def close(self) -> None:
        """Release what it holds."""
        return
