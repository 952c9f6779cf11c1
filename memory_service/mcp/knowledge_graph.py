"""Tools with the names and shapes of the reference server `server-memory`: a graph of entities and relations.

An entity or relation is a data item whose content is its line in that server's `memory.jsonl`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memory_service.mcp import graph_items
from memory_service.mcp.bounds import fitting
from memory_service.mcp.graph_items import Entity, Relation
from memory_service.mcp.tools import Answer, Arguments, Call, NoArguments, tool


class _Text(Answer):
    def _indented(self, value: object) -> str:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()

    def as_text(self) -> str:
        """Return indented JSON, as the reference server does."""
        return self._indented(self)


class EntitiesArguments(Arguments):
    """The arguments of `create_entities`."""

    entities: list[Entity]


class EntitiesCreated(_Text):
    """The entities that are new."""

    entities: list[Entity]

    def as_text(self) -> str:
        """Return the entities alone."""
        return self._indented(self.entities)


@tool("Create Entities")
async def create_entities(call: Call, arguments: EntitiesArguments) -> EntitiesCreated:
    """Create multiple new entities in the knowledge graph.

    Entities whose name exists are left unchanged and not returned; use add_observations for them.
    """
    created = await graph_items.create(call.memory, arguments.entities)
    return EntitiesCreated(entities=fitting(created, call.characters_max)[0])


class RelationsArguments(Arguments):
    """The arguments of `create_relations` and `delete_relations`."""

    relations: list[Relation]


class RelationsCreated(_Text):
    """The relations that are new."""

    relations: list[Relation]

    def as_text(self) -> str:
        """Return the relations alone."""
        return self._indented(self.relations)


@tool("Create Relations")
async def create_relations(call: Call, arguments: RelationsArguments) -> RelationsCreated:
    """Create multiple new relations between entities in the knowledge graph. Use the active voice.

    Relations that exist are not returned.
    """
    created = await graph_items.create(call.memory, arguments.relations)
    return RelationsCreated(relations=fitting(created, call.characters_max)[0])


class Observations(msgspec.Struct, rename="camel", kw_only=True):
    """Observations to add to an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[str], Meta(description="An array of observation contents to add")]


class AddArguments(Arguments):
    """The arguments of `add_observations`."""

    observations: list[Observations]


class Added(msgspec.Struct, rename="camel", kw_only=True):
    """Observations that were added to an entity."""

    entity_name: str
    added_observations: list[str]


class ObservationsAdded(_Text):
    """The observations that are new."""

    results: list[Added]

    def as_text(self) -> str:
        """Return the results alone."""
        return self._indented(self.results)


@tool("Add Observations")
async def add_observations(call: Call, arguments: AddArguments) -> ObservationsAdded:
    """Add new observations to existing entities in the knowledge graph.

    If one of the entities does not exist, nothing is added.
    """
    pairs = [(each.entity_name, each.contents) for each in arguments.observations]
    added = await graph_items.add_observations(call.memory, pairs)
    results = [Added(entity_name=name, added_observations=new) for name, new in added]
    return ObservationsAdded(results=fitting(results, call.characters_max)[0])


class Done(_Text):
    """The outcome of a deletion."""

    success: bool
    message: str

    def as_text(self) -> str:
        """Return the message alone."""
        return self.message


class NamesToDelete(Arguments, rename="camel"):
    """The arguments of `delete_entities`."""

    entity_names: Annotated[list[str], Meta(description="An array of entity names to delete")]


@tool("Delete Entities", destructive=True, idempotent=True)
async def delete_entities(call: Call, arguments: NamesToDelete) -> Done:
    """Delete multiple entities and their associated relations from the knowledge graph."""
    await graph_items.delete_entities(call.memory, arguments.entity_names)
    return Done(success=True, message="Entities deleted successfully")


class Deletion(msgspec.Struct, rename="camel", kw_only=True):
    """Observations to delete from an entity."""

    entity_name: Annotated[str, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[list[str], Meta(description="An array of observations to delete")]


class DeletionsArguments(Arguments):
    """The arguments of `delete_observations`."""

    deletions: list[Deletion]


@tool("Delete Observations", destructive=True, idempotent=True)
async def delete_observations(call: Call, arguments: DeletionsArguments) -> Done:
    """Delete specific observations from entities in the knowledge graph."""
    pairs = [(each.entity_name, each.observations) for each in arguments.deletions]
    await graph_items.delete_observations(call.memory, pairs)
    return Done(success=True, message="Observations deleted successfully")


@tool("Delete Relations", destructive=True, idempotent=True)
async def delete_relations(call: Call, arguments: RelationsArguments) -> Done:
    """Delete multiple relations from the knowledge graph."""
    await graph_items.delete_relations(call.memory, arguments.relations)
    return Done(success=True, message="Relations deleted successfully")


class Graph(_Text):
    """Entities and relations."""

    entities: list[Entity]
    relations: list[Relation]
    omitted: Annotated[
        int, Meta(description="Entities and relations that did not fit: use search_nodes or open_nodes")
    ] = 0


@tool("Read Graph", read_only=True)
async def read_graph(call: Call, arguments: NoArguments) -> Graph:
    """Read the entire knowledge graph, as far as it fits."""
    return _graph(call, await graph_items.everything(call.memory))


class QueryArguments(Arguments):
    """The arguments of `search_nodes`."""

    query: Annotated[
        str,
        Meta(description="The search query to match against entity names, types, and observation content"),
    ]


@tool("Search Nodes", read_only=True)
async def search_nodes(call: Call, arguments: QueryArguments) -> Graph:
    """Search for nodes in the knowledge graph based on a query.

    Entities that contain the query are returned, or if none does those closest to it in words and meaning,
    with all relations from or to them.
    """
    return _graph(call, await graph_items.search(call.memory, arguments.query))


class NamesArguments(Arguments):
    """The arguments of `open_nodes`."""

    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


@tool("Open Nodes", read_only=True)
async def open_nodes(call: Call, arguments: NamesArguments) -> Graph:
    """Open specific nodes in the knowledge graph by their names, with all relations from or to them."""
    return _graph(call, await graph_items.named(call.memory, arguments.names))


def _graph(call: Call, found: graph_items.Found) -> Graph:
    shown = graph_items.bounded(found, call.characters_max)
    return Graph(entities=shown.entities, relations=shown.relations, omitted=shown.omitted)
