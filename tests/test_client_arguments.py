"""Every argument of every method of the Python clients: invalid values raise InvalidArgument with its name.

No server is needed, except for imports: a value that is not refused by the client raises Unavailable.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union

import pytest

from memory_client import AsyncMemoryClient, InvalidArgument, MemoryClient, OriginalMessage, StateEntry
from memory_client.models import Array

NOWHERE = "127.0.0.1:1"
LONE = "caf\ud800"
NOT_SWEPT = {"close", "namespace"}


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, method in inspect.getmembers(MemoryClient, inspect.isfunction):
        if not name.startswith("_") and name not in NOT_SWEPT:
            yield name, method


def options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, UnionType) else (hint,)


def valid(hint: Any) -> Any:
    """Return a value that fits an annotation."""
    (hint, *_) = options(hint)
    kind = typing.get_origin(hint) or hint
    if kind is Any or kind is str:
        return "x"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if kind is datetime:
        return datetime.now(UTC)
    if kind in (int, float, bool):
        return kind(1)
    if is_dataclass(kind):
        return built(kind, {})
    return {} if "Mapping" in str(kind) else []


def built(kind: Any, changed: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    required = {
        field.name: valid(hints[field.name])
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    return kind(**{**required, **changed})


def invalid_values(hint: Any, depth: int = 0) -> Iterator[Any]:
    """Yield values that an annotation forbids, or that fit it and cannot be sent."""
    if depth > 3:
        return
    kinds = [typing.get_origin(option) or option for option in options(hint)]
    yield object()
    if not {str, bytes, Any, Array} & set(kinds):
        yield "abc"
    for option, kind in zip(options(hint), kinds, strict=True):
        yield from _invalid_of(option, kind, depth, str in kinds and has_enum(kinds))


def has_enum(kinds: list[Any]) -> bool:
    return any(isinstance(kind, type) and issubclass(kind, Enum) for kind in kinds)


def _invalid_of(option: Any, kind: Any, depth: int, is_name: bool) -> Iterator[Any]:
    arguments = typing.get_args(option)
    if kind is str:
        yield "no such value" if is_name else LONE
    elif kind is Any:
        yield from (LONE, {"a": [LONE]}, {LONE: 1}, {"a": {1: 2}}, [object()], 2**60)
    elif kind is int:
        yield from (2**70, -(2**70), 1.5)
    elif kind is datetime:
        yield from (datetime(2026, 1, 1), "2026-01-01")
    elif kind is timedelta:
        yield from (math.nan, math.inf)
    elif is_dataclass(kind):
        for field in fields(kind):
            for value in invalid_values(typing.get_type_hints(kind)[field.name], depth + 1):
                if field.name not in SET_BY_SERVER | SET_BY_SERVER_IN.get(kind, set()):
                    yield built(kind, {field.name: value})
    elif "Mapping" in str(kind):
        yield from ({"k": value} for value in invalid_values(arguments[1], depth + 1))
        yield from ({1: valid(arguments[1])}, {LONE: valid(arguments[1])})
    elif arguments and kind not in (Literal,) and "Callable" not in str(kind):
        yield from ([valid(arguments[0]), value] for value in invalid_values(arguments[0], depth + 1))


SET_BY_SERVER = {
    "degraded",
    "revision",
    "update_time",
    "version",
    "size_bytes",
    "preview",
    "origin",
    "memory_ids",
    "model",
    "kind",
    "facet_json",
}
"""Fields that a caller does not send, or that are plain when one adds an item."""
SET_BY_SERVER_IN = {OriginalMessage: {"provenance"}, StateEntry: {"create_time"}}


def cases() -> Iterator[Any]:
    for name, method in methods():
        hints = typing.get_type_hints(method)
        for parameter in list(inspect.signature(method).parameters)[1:]:
            yield pytest.param(name, parameter, hints, id=f"{name}-{parameter}")


def arguments_of(name: str, hints: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(getattr(MemoryClient, name)).parameters.values()
    required = [each.name for each in parameters if each.default is each.empty and each.name != "self"]
    return {each: valid(hints[each]) for each in required}


async def outcome(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer
    elif isinstance(answer, AsyncIterator):
        await anext(answer)


def call(address: str, kind: str, name: str, arguments: dict[str, Any]) -> None:
    if kind == "sync":
        with MemoryClient(address, max_attempts=1) as client:
            answer = getattr(client, name)(**arguments)
            if isinstance(answer, Iterator):
                next(answer)
        return

    async def run() -> None:
        async with AsyncMemoryClient(address, max_attempts=1) as client:
            await outcome(getattr(client, name)(**arguments))

    asyncio.run(run())


@pytest.mark.parametrize(("name", "parameter", "hints"), list(cases()))
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_invalid_argument_is_named(
    request: pytest.FixtureRequest, kind: str, name: str, parameter: str, hints: dict[str, Any]
) -> None:
    tried = 0
    # The records of an import are converted once a server takes them.
    address = request.getfixturevalue("server").address if name == "import_items" else NOWHERE
    for value in invalid_values(hints[parameter]):
        tried += 1
        with pytest.raises(InvalidArgument) as caught:
            call(address, kind, name, {**arguments_of(name, hints), parameter: value})
            pytest.fail(f"{value!r} was not refused")
        error = caught.value
        assert error.field.partition(".")[0].partition("[")[0] == parameter, value
        assert str(error).startswith(error.field[:100]), value
        assert error.code == "INVALID_ARGUMENT"
    assert tried >= 1
