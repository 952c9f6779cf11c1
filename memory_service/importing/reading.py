"""Files of chat messages, conversations and records: their shapes, told apart and read as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, TypeAlias

from memory_client import MemoryItem, StateEntry
from memory_service.importing.items import record_of
from memory_service.importing.openai_messages import MessageReader

Record: TypeAlias = MemoryItem | StateEntry

_EXACT_MAX = 2**53
"""Up to here a double, the number of the protos, holds every integer."""


class Format(StrEnum):
    """What the documents of a file are."""

    AUTO = "auto"
    """Each as it looks."""
    OPENAI = "openai"
    """Messages and conversations in OpenAI's format."""
    ITEMS = "items"
    """Items and state entries, as `memory-service export` writes them."""


class BadRecord(ValueError):
    """A record that cannot be read; the text begins with file and line."""


@dataclass(frozen=True, slots=True)
class _Document:
    """One JSON value of a file."""

    value: Any
    place: str
    """File and line, for errors."""
    number: int
    """Counts the documents of the file, from 1."""
    is_only: bool
    """The file has no other."""


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
        format: What the documents are.
        session_id: Session of messages and items that name none. Where a file holds many conversations
            that have no id, each gets this and its number in the file, as in "chat-3". Empty: messages
            get the file's name without its ending, items none.
        omit_large_files: Leave out the content of files over 1 MiB, which are refused otherwise.

    Raises:
        BadRecord: A record cannot be read. The records before it have been yielded, nothing of it.
    """
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


@dataclass(frozen=True, slots=True)
class _Readers:
    """What turns the documents of one file into records."""

    format: Format
    session_id: str
    """Session of items that name none."""
    messages: MessageReader

    def read(self, value: dict[str, Any], number: int, *, is_only: bool) -> list[Record]:
        """Return the records of one object; all of them, or an error for all."""
        looks_like_openai = "messages" in value or "role" in value
        if self.format is Format.ITEMS or (self.format is Format.AUTO and not looks_like_openai):
            return [record_of(value, self.session_id, number)]
        if "messages" in value:
            return list(self.messages.conversation(value, number, is_only=is_only))
        return [self.messages.message(value, number)]


def _records(document: _Document, readers: _Readers) -> Iterator[Record]:
    """Yield the records of a document: one object, or a list of such."""
    value = document.value
    if isinstance(value, dict):
        yield from readers.read(value, document.number, is_only=document.is_only)
        return
    if not isinstance(value, list):
        raise ValueError(f"expected an object or a list of objects, not {json.dumps(value)[:40]}")
    if not document.is_only and readers.format is not Format.ITEMS:
        # A line that is a list of messages is a conversation.
        yield from readers.read({"messages": value}, document.number, is_only=False)
        return
    for index, element in enumerate(value):
        try:
            if not isinstance(element, dict):
                raise ValueError(f"expected an object, not {json.dumps(element)[:40]}")
            records = readers.read(element, index + 1, is_only=len(value) == 1)
        except ValueError as error:
            raise BadRecord(f"{document.place}: element {index}: {error}") from None
        yield from records


def _documents(lines: Iterable[bytes], name: str) -> Iterator[_Document]:
    """Yield the JSON values of a file, each with the knowledge whether it is the only one."""
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
    """Yield the JSON values of a file and the lines they begin at.

    A file whose first line is not a JSON value by itself is taken as one value over many lines.
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
    """Parse JSON. Integers that a double would alter are kept as strings.

    Raises:
        JSONDecodeError: It is not JSON.
        BadRecord: It is, but not such that it could be kept.
    """
    try:
        value = json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
        if "\\ud" in text or "\\uD" in text:
            # Half of a surrogate pair is allowed in JSON, but is no character.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{place}: a \\u escape that is half of a surrogate pair") from None
    except RecursionError:
        raise BadRecord(f"{place}: nested too deeply") from None
    except _NotFinite as error:
        raise BadRecord(f"{place}: {error} is not a JSON number") from None
    return value


class _NotFinite(Exception):
    """NaN or an infinity, which Python's parser would take."""


def _refuse_constant(text: str) -> Any:
    raise _NotFinite(text)


def _integer(digits: str) -> int | str:
    is_exact = len(digits) <= len(str(-_EXACT_MAX)) and abs(int(digits)) <= _EXACT_MAX
    return int(digits) if is_exact else digits
