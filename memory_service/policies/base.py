"""The write policy contract."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_service.data_model import UNATTRIBUTED, ItemKind, Json, Provenance, Role, SourceKind


class CannotLoadPolicy(RuntimeError):
    """A write policy cannot be loaded; the message gives the operator its location and the reason."""


class Action(enum.StrEnum):
    """What happens to a write."""

    ALLOW = "allow"
    QUARANTINE = "quarantine"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A policy's decision on a proposed write. The writer and reviewers see `reason`."""

    action: Action
    reason: str = ""


ALLOWED = Verdict(Action.ALLOW)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed write: an item, or the value of a state.

    `provenance` is what the server will keep: the authenticated writer and the trust that applies. `source`
    is where the content comes from, as stated by the writer or the content.
    """

    namespace: str
    text: str
    """Everything the content says: texts, keys and values of data, tool calls, names; for a state its key,
    value and description.
    """
    kind: ItemKind | None = None
    """None for a state."""
    role: Role | None = None
    """The speaker; None if it is not a chat message."""
    session_id: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    provenance: Provenance = UNATTRIBUTED
    source: SourceKind = SourceKind.UNSPECIFIED
    names: tuple[str, ...] = ()
    """All accompanying texts: ids, including the session's, file types, models. Ids made by the server are
    left out.
    """


class WritePolicy(ABC):
    """Decides what may be written. For no policy, use None instead of one that allows everything."""

    @abstractmethod
    async def judge(self, proposals: Sequence[Proposal]) -> Sequence[Verdict]:
        """Return a verdict on each proposal of a write, in order.

        It MUST return as many verdicts as there are proposals and MUST NOT change the proposals. A verdict
        MUST depend only on the proposals of the call: a repeated request is judged again. It MUST NOT block
        the event loop, which all other calls share: await anything slow. A reason MUST NOT quote the content,
        as reasons are logged and sent. An exception rejects the write as an internal error.
        """

    async def close(self) -> None:
        """Release its resources."""
        return
