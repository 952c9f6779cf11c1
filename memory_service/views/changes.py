"""What a commit changes in the view of its namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory_service.data_model import Vector
from memory_service.indexes.view import Entry, NamespaceView


@dataclass(slots=True)
class Change:
    """What a commit did to items. They are named by their positions.

    `revision` is the namespace's after it; None: what it did can be put into a view of any revision, once
    more, too. `vector_epoch` and `dimension` are those of the namespace after it.
    """

    revision: int | None
    added: Sequence[Entry] = ()
    replaced: Sequence[tuple[Entry, bool]] = ()
    """And whether it keeps the vector that it has."""
    removed: Sequence[int] = ()
    filled: Sequence[tuple[int, Vector, int]] = ()
    """Items that waited for a vector, the vector, and its key."""
    moved: bool = False
    """All vectors were given up."""
    vector_epoch: int = 0
    dimension: int = 0
    use_counts: Mapping[int, int] = field(default_factory=dict)

    def apply(self, view: NamespaceView) -> bool:
        """Put it into a view, unless that was read after the commit; return whether it was put."""
        if self.revision is not None:
            # These raise no revision, which so does not tell whether a view has them. It may have them twice.
            repeatable = self.moved or bool(self.filled)
            if self.revision < view.revision or (self.revision == view.revision and not repeatable):
                return False
        self._put(view)
        if self.revision is not None:
            view.revision = self.revision
        return True

    def _put(self, view: NamespaceView) -> None:
        if self.moved:
            view.give_up_vectors(self.vector_epoch, self.dimension)
        if view.vector_epoch == self.vector_epoch:
            for position, vector, key in self.filled:
                view.fill_vector(position, vector, key)
        view.remove(self.removed)
        # Before others are added, which would have to be indexed for it, all in one piece.
        added = {entry.position for entry in self.added} if self.replaced else set()
        late = []
        for entry, keep_vector in self.replaced:
            if entry.position in added:
                late.append((entry, keep_vector))
            else:
                view.replace(entry, keep_vector=keep_vector)
        view.add(self.added)
        for entry, keep_vector in late:
            view.replace(entry, keep_vector=keep_vector)
        if self.use_counts:
            view.record_uses(self.use_counts)
