"""Checks of the arguments of a client's methods, by their annotations.

A check of each argument's outer type comes first, because protobuf would take a text for a list of
characters. Everything inside is checked by protobuf itself; only when it fails are the arguments searched for
the cause.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union

from memory_client.errors import InvalidArgument, MemoryServiceError, invalid

F = TypeVar("F", bound=Callable[..., Any])

_RAW = (TypeError, ValueError, OverflowError, AttributeError)
"""What protobuf and conversions raise for values that they cannot take."""
_LISTS = (Sequence, Iterable, AsyncIterable)
_TEXTS = (str, bytes, bytearray)
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
_SECONDS_MAX = 315_576_000_000
"""The longest duration of protobuf."""


def check_methods(cls: type) -> None:
    """Let every public method of a class raise InvalidArgument for arguments that cannot be sent."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, checked(method))


def check_fields(value: Any) -> None:
    """Check the fields of a dataclass.

    Raises:
        InvalidArgument: A field has a value of another type, or one that cannot be sent.
    """
    hints = typing.get_type_hints(type(value))
    for field in fields(value):
        if fault := _fault(getattr(value, field.name), hints[field.name], field.name, False):
            raise fault


def checked_namespace(name: str) -> str:
    """Return the name of a namespace if it can be sent.

    Raises:
        InvalidArgument: It cannot.
    """
    if fault := _fault(name, str, "namespace", False):
        raise fault
    return name


def checked(method: F) -> F:
    """Let a method raise InvalidArgument for arguments that cannot be sent."""
    names = tuple(inspect.signature(method).parameters)[1:]

    @functools.cache
    def hints() -> dict[str, Any]:
        return typing.get_type_hints(method)

    @functools.cache
    def kinds(name: str) -> tuple[type, ...] | None:
        return _kinds(hints().get(name, Any))

    def check(given: tuple[Any, ...], named: dict[str, Any]) -> None:
        for name, value in (*zip(names, given, strict=False), *named.items()):
            expected = kinds(name)
            if value is not None and expected is not None and not _is_a(value, expected):
                raise _fault(value, hints()[name], name, False) or invalid(name, "has an invalid type")

    def explain(given: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Exception:
        values = {**dict(zip(names, given, strict=False)), **named}
        found = (
            _fault(value, hints().get(name, Any), name, is_strict)
            for is_strict in (False, True)
            for name, value in values.items()
        )
        return next(filter(None, found), error)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaiting(self: Any, *given: Any, **named: Any) -> Any:
            check(given, named)
            try:
                return await method(self, *given, **named)
            except MemoryServiceError:
                raise
            except _RAW as error:
                raise explain(given, named, error) from None

        return awaiting  # type: ignore[return-value]

    @functools.wraps(method)
    def calling(self: Any, *given: Any, **named: Any) -> Any:
        check(given, named)
        try:
            return method(self, *given, **named)
        except MemoryServiceError:
            raise
        except _RAW as error:
            raise explain(given, named, error) from None

    return calling  # type: ignore[return-value]


@contextmanager
def converting(value: Any, hint: Any, where: str) -> Iterator[None]:
    """Name the field of a value inside which its conversion fails, as in "items[2].labels"."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}.{error}", code=error.code, field=f"{where}.{error.field}") from None
    except _RAW:
        for is_strict in (False, True):
            if found := _fault(value, hint, where, is_strict):
                raise found from None
        raise


def _is_a(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, _TEXTS):
        return any(isinstance(value, kind) for kind in kinds if kind not in _LISTS)
    return isinstance(value, kinds)


def _kinds(hint: Any) -> tuple[type, ...] | None:
    """Return the types that `isinstance` can check for an annotation. None: any."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        options = [_kinds(option) for option in typing.get_args(hint)]
        return None if None in options else tuple(kind for kinds in options if kinds for kind in kinds)
    if origin is Literal:
        return tuple({type(value) for value in typing.get_args(hint)})
    kind = origin or hint
    if kind in (float, int):
        return (Real,) if kind is float else (Integral,)
    if kind is bool:
        return (Integral,)
    if not isinstance(kind, type) or kind in (Any, object):
        return None
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return None
    return (dict, kind) if kind is Mapping else (kind,)


def _fault(value: Any, hint: Any, where: str, is_strict: bool) -> InvalidArgument | None:
    """Return the error for the first part of a value that does not fit its annotation. None: there is none.

    `is_strict`: also for numbers that not every field can hold.
    """
    kinds = _kinds(hint)
    options = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        if isinstance(option, type) and issubclass(option, Enum) and isinstance(value, str):
            names = [str(each.value) for each in option]
            return None if value in names else invalid(where, f"{value!r} is not one of {', '.join(names)}")
    if kinds is not None and not _is_a(value, kinds):
        return invalid(where, f"must be {_named(kinds)}, not {type(value).__name__}")
    fitting = [option for option in options if (known := _kinds(option)) is None or _is_a(value, known)]
    faults = [_inside(value, option, where, is_strict) for option in fitting or [Any]]
    return None if None in faults else faults[0]


def _inside(value: Any, hint: Any, where: str, is_strict: bool) -> InvalidArgument | None:
    if isinstance(value, str):
        return None if _is_sendable(value) else invalid(where, "the text contains half a surrogate pair")
    if isinstance(value, (Real, timedelta)):
        return _of_number(value, where, is_strict)
    arguments = typing.get_args(hint)
    if isinstance(value, Mapping):
        key_hint, value_hint = arguments if len(arguments) == 2 else (Any, Any)
        parts = ((key, f"{where}.{_shown(key)}", entry) for key, entry in value.items())
        return _first(
            _fault(key, key_hint, place, is_strict) or _fault(entry, value_hint, place, is_strict)
            for key, place, entry in parts
        )
    if isinstance(value, (list, tuple)):
        element = arguments[0] if arguments else Any
        places = ((f"{where}[{index}]", each) for index, each in enumerate(value))
        return _first(_fault(each, element, place, is_strict) for place, each in places)
    if is_dataclass(value) and not isinstance(value, type):
        hints = typing.get_type_hints(type(value))
        return _first(
            _fault(getattr(value, field.name), hints[field.name], f"{where}.{field.name}", is_strict)
            for field in fields(value)
        )
    return None


def _first(faults: Iterable[InvalidArgument | None]) -> InvalidArgument | None:
    return next(filter(None, faults), None)


def _of_number(value: Any, where: str, is_strict: bool) -> InvalidArgument | None:
    if isinstance(value, timedelta):
        is_large = abs(value.total_seconds()) > _SECONDS_MAX
    elif isinstance(value, Integral):
        is_large = abs(int(value)) > (_INT32_MAX if is_strict else _INT64_MAX)
    else:
        is_large = is_strict and not abs(value) <= _SECONDS_MAX
    return invalid(where, f"{value} is out of range") if is_large else None


def _is_sendable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(key: Any) -> str:
    return key.encode("utf-8", "replace").decode() if isinstance(key, str) else repr(key)


_NAMES = {
    "Real": "a number",
    "Integral": "an integer",
    "NoneType": "None",
    "str": "a text",
    "Sequence": "a list",
}


def _named(kinds: tuple[type, ...]) -> str:
    names = dict.fromkeys(_NAMES.get(kind.__name__, kind.__name__) for kind in kinds if kind is not dict)
    return " or ".join(name for name in names if name != "_Unset")
