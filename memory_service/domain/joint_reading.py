"""Several namespaces, read as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import msgspec

from memory_service.data_model import (
    Around,
    Hits,
    Item,
    NamespaceInfo,
    SearchQuery,
    Vector,
)
from memory_service.reading import Reading, SearchReading
from memory_service.store import Store

_SHIFT = 48
"""Bits of a position within its namespace; the number of the namespace stands above."""
_POSITION = (1 << _SHIFT) - 1
_COLUMNS = (
    "vector_scores", "lexical_scores", "named", "create_us", "importances", "use_counts", "word_shares",
)  # fmt: skip


class JointReading(SearchReading):
    """Namespaces of one store, read as one whose items are those of all.

    A position is that of an item in its namespace with the number of the namespace, its index in `names`;
    items are copies with such positions. `info` has the sums of all. Vectors are searched where they come
    from the same model, see `open`.
    """

    def __init__(self, names: Sequence[str], readings: Sequence[Reading], info: NamespaceInfo | None) -> None:
        self._names = names
        # Namespaces that exist, by number.
        self._readings = {at: reading for at, reading in enumerate(readings) if reading.info is not None}
        self.info = info

    @classmethod
    async def open(
        cls, store: Store, names: Sequence[str], model: str, vector: Vector | None
    ) -> JointReading:
        """Read namespaces together.

        Their vectors are searched in those of one model: that of a caller's `vector` by its dimension,
        otherwise `model` if any has it. The other namespaces are searched by words only.
        """
        readings = await asyncio.gather(*(store.read(name) for name in names))
        return JointReading(
            names, readings, _pooled([r.info for r in readings if r.info is not None], model, vector)
        )

    @property
    def has_foreign(self) -> bool:
        """Whether a namespace has vectors that cannot be searched together with those of the others."""
        return any(info.model and not self._has_model(info) for info in self._infos())

    def names_of(self, items: Sequence[Item]) -> list[str]:
        """Return the namespace of each item."""
        return [self._names[item.position >> _SHIFT] for item in items]

    def _infos(self) -> list[NamespaceInfo]:
        return [cast("NamespaceInfo", reading.info) for reading in self._readings.values()]

    def _has_model(self, info: NamespaceInfo) -> bool:
        whole = cast("NamespaceInfo", self.info)
        return info.model == whole.model and info.dimension in (0, whole.dimension)

    async def load_items(
        self, positions: Sequence[int], *, with_embedding: bool = False, with_content: bool = True
    ) -> list[Item | None]:
        found: dict[int, Item | None] = {}
        for number, its in _by_namespace(positions).items():
            items = await self._readings[number].load_items(
                its, with_embedding=with_embedding, with_content=with_content
            )
            for position, item in zip(its, items, strict=True):
                key = number << _SHIFT | position
                found[key] = (
                    None if item is None else msgspec.structs.replace(item, position=key, framed=None)
                )
        return [found[position] for position in positions]

    async def search(self, query: SearchQuery) -> Hits:
        bare = msgspec.structs.replace(query, vector=None)
        queries = {
            number: query if self._has_model(info) else bare
            for number, info in zip(self._readings, self._infos(), strict=True)
            # Without text, nothing is found where vectors are not searched.
            if query.text is not None or self._has_model(info)
        }
        if not queries:
            return Hits()
        first, *others = (self._readings[number] for number in queries)
        found = await first.search_together(others, list(queries.values()))
        return _joined(dict(zip(queries, found, strict=True)))

    async def neighbours(self, positions: Sequence[int], count: int, *, now_us: int) -> list[Around]:
        found: dict[int, Around] = {}
        for number, its in _by_namespace(positions).items():
            high = number << _SHIFT
            for position, around in zip(
                its, await self._readings[number].neighbours(its, count, now_us=now_us), strict=True
            ):
                sides = ([high | each for each in side] for side in (around.before, around.after))
                found[high | position] = Around(*sides)
        return [found[position] for position in positions]


def positions_by_name(names: Sequence[str], items: Sequence[Item]) -> dict[str, list[int]]:
    """Return the positions of items in their namespaces, which `names` has for each."""
    found: dict[str, list[int]] = {}
    for name, item in zip(names, items, strict=True):
        found.setdefault(name, []).append(item.position & _POSITION)
    return found


def _by_namespace(positions: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for position in positions:
        found.setdefault(position >> _SHIFT, []).append(position & _POSITION)
    return found


def _pooled(infos: Sequence[NamespaceInfo], model: str, vector: Vector | None) -> NamespaceInfo | None:
    """Return statistics of all together, with the model whose vectors are searched."""
    if not infos:
        return None
    modelled = [info for info in infos if info.model]
    fitting = [i for i in modelled if vector is None or i.dimension in (0, len(vector))] or modelled
    chosen = next((i for i in fitting if i.model == model), next(iter(fitting), infos[0]))
    return NamespaceInfo(
        name="", uid=0, revision=0, item_count=sum(i.item_count for i in infos),
        state_count=sum(i.state_count for i in infos), embedded_count=sum(i.embedded_count for i in infos),
        dimension=chosen.dimension, model=chosen.model, create_us=chosen.create_us,
        pending_count=sum(i.pending_count for i in infos),
    )  # fmt: skip


def _joined(found: dict[int, Hits]) -> Hits:
    """Return the hits of all namespaces, by their numbers."""
    keys = [number << _SHIFT | position for number, hits in found.items() for position in hits.positions]
    joined = Hits(keys)
    for name in _COLUMNS:
        columns = [(getattr(hits, name), len(hits.positions)) for hits in found.values()]
        if any(column is not None for column, _ in columns):
            # A namespace searched without its vectors lacks that column.
            empty = False if name == "named" else None
            whole = [v for column, n in columns for v in ([empty] * n if column is None else column)]
            setattr(joined, name, whole)
    return joined
