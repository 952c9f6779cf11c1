"""Reads files of chat messages, conversations, records and operations as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, TypeAlias

from memory_client import MemoryItem, StateEntry, WriteOperation
from memory_client.protojson import operation_from_json
from memory_service.importing.items import record_of
from memory_service.importing.openai_messages import MessageReader

Record: TypeAlias = MemoryItem | StateEntry

_EXACT_MAX = 2**53
"""Up to this value, a double (the number type of the protos) represents every integer exactly."""


class Format(StrEnum):
    """Format of the documents in a file."""

    AUTO = "auto"
    """Detected for each document."""
    OPENAI = "openai"
    """Messages and conversations in OpenAI's format."""
    ITEMS = "items"
    """Items and state entries, as `memory-service export` writes them."""


class BadRecord(ValueError):
    """A record is invalid; the text begins with file and line."""


@dataclass(frozen=True, slots=True)
class _Document:
    """One JSON value of a file."""

    value: Any
    place: str
    """File and line, for errors."""
    number: int
    """Number of the document in the file, from 1."""
    is_only: bool
    """Whether the file has no other."""


def read_records(
    lines: Iterable[bytes],
    *,
    name: str,
    format: Format | str = Format.AUTO,
    session_id: str = "",
    omit_large_files: bool = False,
) -> Iterator[Record]:
    """Yield the records of a file, line by line; a file that is one JSON value is read whole.

    Args:
        lines: The file, open for reading bytes, or its lines.
        name: The file's name, for errors.
        format: Format of the documents.
        session_id: Session of messages and items without one. In a file with several conversations without
            an id, each gets this with its number appended, as in "chat-3". If empty, messages get the name
            of the file without its extension, and items no session.
        omit_large_files: Omit the content of files over 1 MiB, which are rejected otherwise.

    Raises:
        BadRecord: A record is invalid. All records before it have been yielded, and no part of it.
    """
    placed = read_placed(
        lines, name=name, format=format, session_id=session_id, omit_large_files=omit_large_files
    )
    return (record for _, record in placed)


def read_placed(
    lines: Iterable[bytes],
    *,
    name: str,
    format: Format | str = Format.AUTO,
    session_id: str = "",
    omit_large_files: bool = False,
) -> Iterator[tuple[str, Record]]:
    """Yield the records of a file as `read_records` does, each after its place in the file, for errors."""
    readers = _Readers(
        Format(format),
        session_id,
        MessageReader(session_id or PurePath(name).stem, omit_large_files=omit_large_files),
    )
    for document in _documents(lines, name):
        try:
            yield from _records(document, readers)
        except BadRecord:
            raise
        except RecursionError:
            raise BadRecord(f"{document.place}: nested too deeply") from None
        except ValueError as error:
            raise BadRecord(f"{document.place}: {error}") from None


def read_operations(lines: Iterable[bytes], *, name: str) -> Iterator[WriteOperation]:
    """Yield the operations of a file for `batch_write`, each in the protobuf JSON of WriteOperation.

    Raises:
        BadRecord: A line is not an operation.
    """
    for document in _documents(lines, name):
        try:
            if not isinstance(document.value, dict):
                raise ValueError(f"expected an object, not {json.dumps(document.value)[:40]}")
            yield operation_from_json(document.value)
        except RecursionError:
            raise BadRecord(f"{document.place}: nested too deeply") from None
        except ValueError as error:
            raise BadRecord(f"{document.place}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Readers:
    """Converts the documents of one file to records."""

    format: Format
    session_id: str
    """Session of items without one."""
    messages: MessageReader

    def read(self, value: dict[str, Any], number: int, *, is_only: bool) -> list[Record]:
        """Return all records of one object, or raise an error."""
        looks_like_openai = "messages" in value or "role" in value
        if self.format is Format.ITEMS or (self.format is Format.AUTO and not looks_like_openai):
            return [record_of(value, self.session_id, number)]
        if "messages" in value:
            return list(self.messages.conversation(value, number, is_only=is_only))
        return [self.messages.message(value, number)]


def _records(document: _Document, readers: _Readers) -> Iterator[tuple[str, Record]]:
    """Yield the records of a document, an object or a list of objects, each after its place."""
    value = document.value
    if isinstance(value, dict):
        for record in readers.read(value, document.number, is_only=document.is_only):
            yield document.place, record
        return
    if not isinstance(value, list):
        raise ValueError(f"expected an object or a list of objects, not {json.dumps(value)[:40]}")
    if not document.is_only and readers.format is not Format.ITEMS:
        # A line with a list of messages is a conversation.
        for record in readers.read({"messages": value}, document.number, is_only=False):
            yield document.place, record
        return
    for index, element in enumerate(value):
        try:
            if not isinstance(element, dict):
                raise ValueError(f"expected an object, not {json.dumps(element)[:40]}")
            records = readers.read(element, index + 1, is_only=len(value) == 1)
        except ValueError as error:
            raise BadRecord(f"{document.place}: element {index}: {error}") from None
        for record in records:
            yield f"{document.place}: element {index}", record


def _documents(lines: Iterable[bytes], name: str) -> Iterator[_Document]:
    """Yield the JSON values of a file, and whether each is the only one."""
    held: _Document | None = None
    number = 0
    for value, line in _values(lines, name):
        if held is not None:
            yield held
        number += 1
        held = _Document(value, f"{name}:{line}", number, is_only=False)
    if held is not None:
        yield _Document(held.value, held.place, number, is_only=number == 1)


def _values(lines: Iterable[bytes], name: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values of a file and the lines where they begin.

    If the first line is not a complete JSON value, the file is one value over several lines.
    """
    numbered = enumerate(lines, 1)
    for line, raw in numbered:
        text = _decoded(raw, f"{name}:{line}", is_first=line == 1)
        if not text.strip():
            continue
        try:
            value = _parsed(text, f"{name}:{line}")
        except json.JSONDecodeError:
            rest = [_decoded(more, f"{name}:{number}") for number, more in numbered]
            yield _whole("".join([text, *rest]), name, line), line
            return
        yield value, line
        break
    for line, raw in numbered:
        text = _decoded(raw, f"{name}:{line}")
        if text.strip():
            try:
                yield _parsed(text, f"{name}:{line}"), line
            except json.JSONDecodeError as error:
                raise BadRecord(f"{name}:{line}: not JSON: {error.msg} at column {error.colno}") from None


def _whole(text: str, name: str, first_line: int) -> Any:
    try:
        return _parsed(text, f"{name}:{first_line}")
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BadRecord(f"{name}:{line}: not JSON: {error.msg} at column {error.colno}") from None


def _decoded(raw: bytes, place: str, *, is_first: bool = False) -> str:
    try:
        return raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"{place}: not UTF-8 at byte {error.start} of the line") from None


def _parsed(text: str, place: str) -> Any:
    """Parse JSON. Integers that a double cannot represent become strings.

    Raises:
        JSONDecodeError: It is not JSON.
        BadRecord: It is JSON, but cannot be stored.
    """
    try:
        value = json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
        if "\\ud" in text or "\\uD" in text:
            # JSON allows half of a surrogate pair, but it is not a character.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{place}: a \\u escape that is half of a surrogate pair") from None
    except RecursionError:
        raise BadRecord(f"{place}: nested too deeply") from None
    except _NotFinite as error:
        raise BadRecord(f"{place}: {error} is not a JSON number") from None
    return value


class _NotFinite(Exception):
    """NaN or an infinity, which Python's parser accepts by default."""


def _refuse_constant(text: str) -> Any:
    raise _NotFinite(text)


def _integer(digits: str) -> int | str:
    is_exact = len(digits) <= len(str(-_EXACT_MAX)) and abs(int(digits)) <= _EXACT_MAX
    return int(digits) if is_exact else digits
