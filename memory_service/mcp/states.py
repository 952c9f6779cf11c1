"""Tools for state: save_state, load_state."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memory_client import NotFound
from memory_service.mcp.bounds import first, fitting, fitting_text, shortened, size
from memory_service.mcp.failures import ToolFailure
from memory_service.mcp.tools import Answer, Arguments, Call, tool

_KEYS_MAX = 100


class SaveArguments(Arguments):
    """The arguments of `save_state`."""

    key: Annotated[str, Meta(description='Name, such as "trip/plan".', min_length=1)]
    value: Annotated[Any, Meta(description="Any JSON value; it replaces the value under this key.")]
    description: Annotated[str, Meta(description="What it is for, in one sentence.")] = ""
    expected_version: Annotated[
        int | None, Meta(description="Save only if this is the version now; 0: only if the key is new.")
    ] = None


class Saved(Answer):
    """A state that was saved."""

    key: str
    version: int


@tool("Save state", destructive=True, idempotent=True)
async def save_state(call: Call, arguments: SaveArguments) -> Saved:
    """Save a JSON value under a key, to continue a task later: a plan, a checklist, progress, settings.

    It replaces the value that is there. To change it safely, load it first and give its version as
    expected_version.
    """
    entry = await call.memory.save_state(
        arguments.key,
        arguments.value,
        description=arguments.description or None,
        expected_version=arguments.expected_version,
    )
    return Saved(key=entry.key, version=entry.version)


class LoadArguments(Arguments):
    """The arguments of `load_state`."""

    key: Annotated[str, Meta(description="The key to load; empty: list the keys.")] = ""
    prefix: Annotated[str, Meta(description="Without a key: list only keys that begin with it.")] = ""


class Key(Answer):
    """A key in a list."""

    key: str
    version: int
    description: str = ""
    preview: str = ""


class Loaded(Answer):
    """A value, or keys."""

    key: str = ""
    value: Annotated[Any, Meta(description="The value; if truncated, the beginning of its JSON")] = (
        msgspec.UNSET
    )
    version: int = 0
    description: str = ""
    truncated: bool = False
    keys: list[Key] = []
    omitted: Annotated[int, Meta(description="Keys left out; list them by a longer prefix")] = 0


@tool("Load state", read_only=True)
async def load_state(call: Call, arguments: LoadArguments) -> Loaded:
    """Return the JSON value saved under a key, with its version; without a key, list the keys.

    Use it at the start of a task that may have begun in an earlier conversation.
    """
    if not arguments.key:
        return await _keys(call, arguments.prefix)
    try:
        entry = await call.memory.load_state(arguments.key)
    except NotFound:
        known = (await _keys(call, "")).keys[:20]
        names = ", ".join(shortened(each.key, 100) for each in known) or "there are none yet"
        raise ToolFailure(f"There is no state {arguments.key!r}. Keys: {names}.") from None
    found = Loaded(
        key=entry.key,
        value=entry.value,
        version=entry.version,
        description=shortened(entry.description, 500),
    )
    if size(found) > call.characters_max:
        found.value = fitting_text(msgspec.json.encode(entry.value).decode(), call.characters_max - 1000)
        found.truncated = True
    return found


async def _keys(call: Call, prefix: str) -> Loaded:
    entries = await first(call.memory.list_state_keys(prefix=prefix, include_preview=True), _KEYS_MAX + 1)
    keys = [
        Key(
            key=entry.key,
            version=entry.version,
            description=shortened(entry.description, 200),
            preview=shortened(entry.preview, 100),
        )
        for entry in entries
    ]
    kept, _ = fitting(keys[:_KEYS_MAX], call.characters_max)
    return Loaded(keys=kept, omitted=len(keys) - len(kept))
