"""Tools: functions with typed arguments and answers, from which their schemas are made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import mcp_types as types
import msgspec

from memory_client import AsyncMemoryClient
from memory_service.mcp.bounds import ANSWER_CHARACTERS_MAX
from memory_service.mcp.failures import ToolFailure

A = TypeVar("A", bound="Arguments")
R = TypeVar("R", bound="Answer")


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the arguments of a tool."""


class Answer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of the structured output of a tool."""

    def as_text(self) -> str:
        """Return the output as text, for hosts that do not read structured output."""
        return msgspec.json.encode(self).decode()


class NoArguments(Arguments):
    """The arguments of a tool that takes none."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool works with, beside its arguments."""

    memory: AsyncMemoryClient
    """The client, bound to the namespace of the call."""
    actor: str = ""
    """Name of the MCP client, such as "claude-code". Empty: not given."""
    characters_max: int = ANSWER_CHARACTERS_MAX
    """Bound of the answer as JSON."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    description: str
    arguments: type[Arguments]
    answer: type[Answer]
    annotations: types.ToolAnnotations
    run: Callable[[Call, Any], Awaitable[Answer]]

    def definition(self, more_arguments: Mapping[str, Any]) -> types.Tool:
        """Return the definition for `tools/list`; `more_arguments` are further properties of the input."""
        input_schema = schema_of(self.arguments)
        input_schema["properties"] = {**input_schema.get("properties", {}), **more_arguments}
        return types.Tool(
            name=self.name,
            title=self.annotations.title,
            description=self.description,
            input_schema=input_schema,
            output_schema=schema_of(self.answer),
            annotations=self.annotations,
        )

    def convert(self, given: Mapping[str, Any]) -> Arguments:
        """Return the arguments of a call.

        Raises:
            ToolFailure: An argument is missing, unknown or malformed.
        """
        try:
            # Not strict: models send "5" for 5.
            return msgspec.convert(dict(given), self.arguments, strict=False)
        except (msgspec.ValidationError, OverflowError) as error:
            known = ", ".join(self.arguments.__struct_encode_fields__) or "none"
            message = _plain(str(error))
            raise ToolFailure(
                f"Invalid arguments: {message}. Correct them and call {self.name} again;"
                f" its arguments: {known}."
            ) from None


def tool(
    title: str, *, read_only: bool = False, destructive: bool = False, idempotent: bool = False
) -> Callable[[Callable[[Call, A], Awaitable[R]]], Tool]:
    """Make a tool of a function; its docstring is the description that models read."""

    def make(function: Callable[[Call, A], Awaitable[R]]) -> Tool:
        hints = get_type_hints(function)
        return Tool(
            name=function.__name__,
            description=_unwrapped(inspect.cleandoc(function.__doc__ or "")),
            arguments=hints["arguments"],
            answer=hints["return"],
            annotations=types.ToolAnnotations(
                title=title,
                read_only_hint=read_only,
                destructive_hint=destructive,
                idempotent_hint=idempotent or read_only,
                open_world_hint=False,
            ),
            run=function,
        )

    return make


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _plain(message: str) -> str:
    """Return an error of msgspec in words for a model."""
    return (
        message.replace("Object missing", "missing")
        .replace("Object contains", "there is an")
        .replace("`$.", "`")
    )


def schema_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a struct, without references, which some hosts do not resolve."""
    _, components = msgspec.json.schema_components([struct], ref_template="{name}")
    resolved = _resolved(components[struct.__name__], components)
    assert isinstance(resolved, dict)
    return resolved


def _resolved(schema: Any, components: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    merged = {**components[schema["$ref"]], **schema} if "$ref" in schema else schema
    kept = {
        key: value
        for key, value in merged.items()
        if key != "$ref" and not (key == "title" and value in components)
    }
    if kept.get("type") == "object":
        # The docstring of a base class says nothing to a model.
        kept.pop("description", None)
    return {
        key: {name: _resolved(each, components) for name, each in value.items()}
        if key == "properties"
        else _resolved(value, components)
        for key, value in kept.items()
    }
