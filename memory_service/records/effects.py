"""What a commit changes in the view of its namespace."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_service.data_model import Vector
from memory_service.indexes.view import Entry, NamespaceView


@dataclass(slots=True)
class Effect:
    """What a commit did to items. They are named by their positions.

    `revision` is the namespace's after it; None: what it did can be put into a view of any revision, once
    more, too. `vector_epoch` and `dimension` are those of the namespace after it.
    """

    added: list[Entry] = field(default_factory=list)
    replaced: list[tuple[Entry, bool]] = field(default_factory=list)
    """And whether it keeps the vector that it has."""
    removed: list[int] = field(default_factory=list)
    filled: list[tuple[int, Vector | None, int]] = field(default_factory=list)
    """Items that waited for a vector; the vector, None: it gets none; its key."""
    moved: bool = False
    """All vectors were given up, those of the namespace of `uid`."""
    uid: int = 0
    use_counts: dict[int, int] = field(default_factory=dict)
    revision: int | None = None
    vector_epoch: int = 0
    dimension: int = 0

    def apply(self, view: NamespaceView) -> bool:
        """Put it into a view, unless that was read after the commit; return whether it was put."""
        if self.revision is not None:
            # They raise no revision: a view of this one may lack them. To have them twice does no harm.
            maybe = self.moved or bool(self.filled)
            if self.revision < view.revision or (self.revision == view.revision and not maybe):
                return False
        self._put(view)
        if self.revision is not None:
            view.revision = self.revision
        return True

    def _put(self, view: NamespaceView) -> None:
        if self.moved:
            view.give_up_vectors(self.vector_epoch, self.dimension)
        for position, vector, key in self.filled:
            if vector is not None and view.vector_epoch == self.vector_epoch:
                view.fill_vector(position, vector, key)
        view.remove(self.removed)
        # Before others are added, which would have to be indexed for it, all in one piece.
        added = {entry.position for entry in self.added} if self.replaced else set()
        for entry, keep_vector in self.replaced:
            if entry.position not in added:
                view.replace(entry, keep_vector=keep_vector)
        view.add(self.added)
        for entry, keep_vector in self.replaced:
            if entry.position in added:
                view.replace(entry, keep_vector=keep_vector)
        if self.use_counts:
            view.record_uses(self.use_counts)
