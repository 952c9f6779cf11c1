"""Columns of rows as arrays, in PostgreSQL's binary format.

psycopg's own conversion of lists takes a third of the time of a write and picks the number type by size, so
that each mixture of types would need a separate prepared statement.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct(">5i").pack
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)


@dataclass(frozen=True)
class _Kind:
    """An element type: its OID, its encoder (with length), and the class of its arrays."""

    oid: int
    encode: Callable[[Any], bytes]
    array: type[bytes]


def _kind(oid: int, array_oid: int, encode: Callable[[Any], bytes]) -> _Kind:
    array = type("Array", (bytes,), {})
    dumper: type[Dumper] = type(
        "ArrayDumper",
        (Dumper,),
        {"oid": array_oid, "format": Format.BINARY, "dump": lambda _self, encoded: encoded},
    )
    psycopg.adapters.register_dumper(array, dumper)
    return _Kind(oid, encode, array)


def _number(code: str) -> Callable[[Any], bytes]:
    packed = struct.Struct(f">i{code}")
    length = packed.size - 4
    return lambda value: packed.pack(length, value)


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


_KINDS = {
    "boolean": _kind(16, 1000, _number("?")),
    "bytea": _kind(17, 1001, _bytes),
    "smallint": _kind(21, 1005, _number("h")),
    "int": _kind(23, 1007, _number("i")),
    "bigint": _kind(20, 1016, _number("q")),
    "double precision": _kind(701, 1022, _number("d")),
    "text": _kind(25, 1009, lambda value: _bytes(value.encode())),
}


def array_of(name: str, values: Collection[Any]) -> bytes:
    """Return values of a type, or None, in the form that psycopg sends as an array of that type."""
    kind = _KINDS[name]
    encode = kind.encode
    parts = [_NULL if value is None else encode(value) for value in values]
    return kind.array(b"".join((_HEAD(1, 1, kind.oid, len(parts), 1), *parts)))
