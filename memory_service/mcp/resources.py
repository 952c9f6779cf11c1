"""Resources: what hosts may show or add to a prompt, by URI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote, unquote

import mcp_types as types

from memory_client import AsyncMemoryClient, Change, ChangeType, ItemKind
from memory_service.mcp import graph_items
from memory_service.mcp.bounds import first, fitting, fitting_text, shortened

MEMORIES = "memory://memories"
RECENT = "memory://recent"
GRAPH = "memory://knowledge-graph"
_FILES = "memory://files"
_STATE = "memory://state/"
_LISTED_MAX = 200
_EVERYTHING = frozenset({ChangeType.RESET, ChangeType.STATE_CLEARED})
_KINDS_OF = {MEMORIES: {ItemKind.USER_MEMORY}, _FILES: {ItemKind.FILE}}


class UnknownResource(Exception):
    """There is no resource with this URI."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a toolset."""

    fixed: tuple[types.Resource, ...]
    templates: tuple[types.ResourceTemplate, ...] = ()
    files: bool = False
    """Whether files are listed, too."""

    async def listed(self, memory: AsyncMemoryClient) -> list[types.Resource]:
        """Return the fixed resources and up to 200 files."""
        if not self.files:
            return list(self.fixed)
        entries = await first(memory.list_files(page_size=_LISTED_MAX), _LISTED_MAX)
        return [
            *self.fixed,
            *(
                types.Resource(
                    uri=_FILES + quote(entry.path),
                    name=entry.path,
                    mime_type="text/plain",
                    size=entry.size_bytes,
                )
                for entry in entries
                if not entry.is_folder
            ),
        ]

    async def read(
        self, memory: AsyncMemoryClient, uri: str, characters_max: int
    ) -> types.TextResourceContents:
        """Return a resource, cut to this many characters.

        Raises:
            UnknownResource: There is none with this URI.
            NotFound: The file or state does not exist.
        """
        if not self.has(uri):
            raise UnknownResource(uri)
        mime_type = "application/json" if uri == GRAPH or uri.startswith(_STATE) else "text/plain"
        text = await _text(memory, uri, characters_max)
        return types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)

    def has(self, uri: str) -> bool:
        """Return whether this URI can be read."""
        by_template = bool(self.templates) and uri.startswith((_FILES + "/", _STATE))
        return by_template or uri in {resource.uri for resource in self.fixed}


async def _text(memory: AsyncMemoryClient, uri: str, characters_max: int) -> str:
    if uri == MEMORIES:
        return (await memory.get_preloaded_memories(max_tokens=characters_max // 4)).text
    if uri == RECENT:
        found = await memory.retrieve(limit=50)
        lines = [f"{result.item.speaker or 'note'}: {shortened(result.text)}" for result in reversed(found)]
        return "\n".join(reversed(fitting(lines, characters_max)[0]))
    if uri == GRAPH:
        graph = graph_items.bounded(await graph_items.everything(memory), characters_max)
        return graph_items.json_of(graph)
    if uri.startswith(_STATE):
        entry = await memory.load_state(unquote(uri.removeprefix(_STATE)))
        return shortened(json.dumps(entry.value, ensure_ascii=False), characters_max)
    content = (await memory.read_file(unquote(uri.removeprefix(_FILES)))).content
    return fitting_text(content, characters_max)


def may_change(uri: str, change: Change) -> bool:
    """Return whether a change of the namespace may concern a resource.

    A change lacks the kind of a removed item and the path of a written file; then the answer is yes.
    """
    if change.type in _EVERYTHING:
        return True
    if uri.startswith(_STATE):
        return change.state_key == unquote(uri.removeprefix(_STATE))
    if not change.item_id:
        return False
    if change.item is None:
        return True
    if uri == GRAPH:
        return graph_items.belongs(change.item)
    kinds = _KINDS_OF.get(_FILES if uri.startswith(_FILES) else uri)
    if kinds is None:
        kinds = {ItemKind.PLAIN, ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.REFLECTION}
    return change.item.kind in kinds


MEMORY_RESOURCES = Resources(
    fixed=(
        types.Resource(
            uri=MEMORIES,
            name="memories",
            title="Facts about the user",
            description="The most important facts, as a block for a system prompt.",
            mime_type="text/plain",
        ),
        types.Resource(
            uri=RECENT,
            name="recent",
            title="Recent messages",
            description="The newest messages and notes, the oldest of them first.",
            mime_type="text/plain",
        ),
    ),
    templates=(
        types.ResourceTemplate(
            uri_template=_FILES + "{+path}",
            name="file",
            title="A file",
            description="A file by its path, such as memory://files/notes/trip.md.",
            mime_type="text/plain",
        ),
        types.ResourceTemplate(
            uri_template=_STATE + "{key}",
            name="state",
            title="A state",
            description="The JSON value saved under a key.",
            mime_type="application/json",
        ),
    ),
    files=True,
)

GRAPH_RESOURCES = Resources(
    fixed=(
        types.Resource(
            uri=GRAPH,
            name="knowledge-graph",
            title="Knowledge Graph",
            description="The full knowledge graph with all entities and relations",
            mime_type="application/json",
        ),
    )
)
