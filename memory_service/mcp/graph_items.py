"""The knowledge graph as items: entities and relations, by ids made from their names.

An id is a digest, so that a name exists once, whoever creates it. Labels find the relations of an entity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from memory_client import (
    AsyncMemoryClient,
    Conflict,
    DeleteOperation,
    DeleteWhereOperation,
    MemoryItem,
    OnDuplicate,
    UpdateOperation,
)
from memory_service.mcp.bounds import first, fitting, size
from memory_service.mcp.failures import ToolFailure

_LABEL = "knowledge_graph"
_NAMES_PER_FILTER = 30
"""Names in one filter, each twice: a filter may have 64 comparisons."""
_PARTS_MAX = 5000
"""Entities or relations to read for one answer, more than fit into any."""
_ATTEMPTS = 5
_PATTERN_BYTES_MAX = 4000
"""A filter may have 4 KiB."""
_SUBSTRING_BYTES_MAX = 16_000
"""Longer values of metadata match no comparison."""


class Entity(msgspec.Struct, rename="camel", kw_only=True):
    """An entity."""

    name: Annotated[str, Meta(description="The name of the entity")]
    entity_type: Annotated[str, Meta(description="The type of the entity")]
    observations: Annotated[
        list[str], Meta(description="An array of observation contents associated with the entity")
    ]


class Relation(msgspec.Struct, rename={"from_": "from", "relation_type": "relationType"}, kw_only=True):
    """A relation between two entities."""

    from_: Annotated[str, Meta(description="The name of the entity where the relation starts")]
    to: Annotated[str, Meta(description="The name of the entity where the relation ends")]
    relation_type: Annotated[str, Meta(description="The type of the relation")]


P = TypeVar("P", Entity, Relation)


@dataclass(frozen=True, slots=True)
class Found:
    """A part of the graph."""

    entities: list[Entity]
    relations: list[Relation]
    omitted: int = 0
    """Number of parts left out, or known to be left out."""


def bounded(found: Found, characters_max: int) -> Found:
    """Return the first entities and relations that fit as indented JSON."""
    # Indentation adds up to half as much again.
    characters_max = characters_max * 2 // 3
    entities, omitted = fitting(found.entities, characters_max)
    left = characters_max - sum(size(entity) + 1 for entity in entities)
    relations, more = fitting(found.relations, left)
    return Found(entities, relations, found.omitted + omitted + more)


def json_of(found: Found) -> str:
    """Return the graph as indented JSON."""
    graph = {"entities": found.entities, "relations": found.relations}
    return msgspec.json.format(msgspec.json.encode(graph), indent=2).decode()


def belongs(item: MemoryItem) -> bool:
    """Return whether an item is a part of the graph."""
    return _LABEL in item.labels


async def create(memory: AsyncMemoryClient, parts: Sequence[P]) -> list[P]:
    """Write the parts that are new, all or none; return them."""
    by_id = {_id(part): part for part in reversed(parts)}
    items = [_item(by_id[id]) for id in reversed(by_id)]
    if not items:
        return []
    written = await memory.batch_add(items, on_duplicate=OnDuplicate.SKIP)
    return [by_id[item.id] for item in written]


async def add_observations(
    memory: AsyncMemoryClient, pairs: Sequence[tuple[str, list[str]]]
) -> list[tuple[str, list[str]]]:
    """Add the observations that are new, all or none; return them.

    Raises:
        ToolFailure: An entity does not exist.
    """
    added: list[tuple[str, list[str]]] = []

    def change(entities: dict[str, Entity]) -> None:
        added.clear()
        for name, contents in pairs:
            if name not in entities:
                raise ToolFailure(f"Entity with name {name} not found. Create it with create_entities.")
            known = entities[name].observations
            new = [each for each in contents if each not in known]
            known.extend(new)
            added.append((name, new))

    await _update(memory, [name for name, _ in pairs], change)
    return added


async def delete_observations(memory: AsyncMemoryClient, pairs: Sequence[tuple[str, list[str]]]) -> None:
    """Remove observations, all or none. Entities and observations that do not exist are ignored."""

    def change(entities: dict[str, Entity]) -> None:
        for name, unwanted in pairs:
            if name in entities:
                kept = [each for each in entities[name].observations if each not in unwanted]
                entities[name].observations = kept

    await _update(memory, [name for name, _ in pairs], change)


async def _update(
    memory: AsyncMemoryClient, names: Iterable[str], change: Callable[[dict[str, Entity]], None]
) -> None:
    """Read entities, change them and write them in one batch; again if one was written meanwhile."""
    unique = list(dict.fromkeys(names))
    for attempt in range(1, _ATTEMPTS + 1):
        items = await _items_named(memory, unique)
        entities = {entity.name: entity for entity in map(_entity, items)}
        change(entities)
        operations = [_update_of(item, entity) for item, entity in zip(items, entities.values(), strict=True)]
        try:
            if operations:
                await memory.batch_write(operations)
            return
        except Conflict:
            if attempt == _ATTEMPTS:
                raise


async def delete_entities(memory: AsyncMemoryClient, names: Sequence[str]) -> None:
    """Remove entities with their relations; those of up to 30 names at a time all or none."""
    for some in _groups(dict.fromkeys(names)):
        await memory.batch_write(
            [
                *(DeleteOperation(_digest("entity", name), allow_missing=True) for name in some),
                DeleteWhereOperation(filter=_touching(some)),
            ]
        )


async def delete_relations(memory: AsyncMemoryClient, relations: Sequence[Relation]) -> None:
    """Remove relations, all or none. Those that do not exist are ignored."""
    ids = dict.fromkeys(map(_id, relations))
    if ids:
        await memory.batch_write([DeleteOperation(id, allow_missing=True) for id in ids])


async def everything(memory: AsyncMemoryClient) -> Found:
    """Return the graph in the order of creation."""
    entities = await _read(memory, labels={_LABEL: "entity"})
    relations = await _read(memory, labels={_LABEL: "relation"})
    unread = len(entities) == _PARTS_MAX or len(relations) == _PARTS_MAX
    return Found(list(map(_entity, entities)), list(map(_relation, relations)), int(unread))


async def search(memory: AsyncMemoryClient, query: str) -> Found:
    """Return the entities that contain the text in any case, or if none does those closest to it."""
    if not query.strip():
        return await everything(memory)
    pattern = json.dumps(query.lower(), ensure_ascii=False)[1:-1].replace("*", "\\*")
    found: list[MemoryItem] = []
    if len(pattern.encode()) <= _PATTERN_BYTES_MAX:
        filter = f'metadata.search = "*{pattern}*"'
        found = await _read(memory, labels={_LABEL: "entity"}, filter=filter)
    if not found:
        closest = await memory.retrieve(query, labels={_LABEL: "entity"}, limit=20, min_relevance=0.2)
        found = [result.item for result in closest]
    return await _with_relations(memory, list(map(_entity, found)))


async def named(memory: AsyncMemoryClient, names: Sequence[str]) -> Found:
    """Return the entities with these names."""
    items = await _items_named(memory, list(dict.fromkeys(names)))
    return await _with_relations(memory, list(map(_entity, items)))


async def _with_relations(memory: AsyncMemoryClient, entities: list[Entity]) -> Found:
    found: dict[str, MemoryItem] = {}
    for some in _groups(entity.name for entity in entities):
        found |= {item.id: item for item in await _read(memory, filter=_touching(some))}
    return Found(entities, list(map(_relation, found.values())))


async def _items_named(memory: AsyncMemoryClient, names: Sequence[str]) -> list[MemoryItem]:
    found: list[MemoryItem] = []
    for some in _groups(names):
        ids = ", ".join(f'"{_digest("entity", name)}"' for name in some)
        found += await _read(memory, filter=f"id IN ({ids})")
    return found


async def _read(memory: AsyncMemoryClient, **conditions: Any) -> list[MemoryItem]:
    return await first(memory.list_items(page_size=1000, **conditions), _PARTS_MAX)


def _groups(names: Iterable[str]) -> Iterator[list[str]]:
    every = list(names)
    for start in range(0, len(every), _NAMES_PER_FILTER):
        yield every[start : start + _NAMES_PER_FILTER]


def _touching(names: Iterable[str]) -> str:
    ids = ", ".join(f'"{_digest("entity", name)}"' for name in names)
    return f"labels.{_LABEL}_from IN ({ids}) OR labels.{_LABEL}_to IN ({ids})"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def _id(part: Entity | Relation) -> str:
    if isinstance(part, Entity):
        return _digest("entity", part.name)
    return _digest("relation", part.from_, part.to, part.relation_type)


def _item(part: Entity | Relation) -> MemoryItem:
    content = {"type": type(part).__name__.lower(), **msgspec.to_builtins(part)}
    if isinstance(part, Entity):
        labels = {_LABEL: "entity"}
        return MemoryItem(content=content, id=_id(part), labels=labels, **_searchable(part))
    labels = {
        _LABEL: "relation",
        f"{_LABEL}_from": _digest("entity", part.from_),
        f"{_LABEL}_to": _digest("entity", part.to),
    }
    text = f"{part.from_} {part.relation_type.replace('_', ' ')} {part.to}"
    return MemoryItem(content=content, id=_id(part), labels=labels, index=text)


def _searchable(entity: Entity) -> dict[str, Any]:
    text = "\n".join((entity.name, entity.entity_type, *entity.observations))
    start = text.lower().encode()[:_SUBSTRING_BYTES_MAX].decode(errors="ignore")
    return {"index": text, "metadata": {"search": start}}


def _update_of(item: MemoryItem, entity: Entity) -> UpdateOperation:
    content = {"type": "entity", **msgspec.to_builtins(entity)}
    return UpdateOperation(
        id=item.id, content=content, expected_revision=item.revision, **_searchable(entity)
    )


def _entity(item: MemoryItem) -> Entity:
    return msgspec.convert(item.content, Entity)


def _relation(item: MemoryItem) -> Relation:
    return msgspec.convert(item.content, Relation)
