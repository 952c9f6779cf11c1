"""The contract of a store of API keys, and their encoding as one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import msgspec

from memory_service.credentials.api_keys import ApiKey, KeyRing
from memory_service.credentials.grants import BadGrant

_FORMAT = 1

Change = Callable[[list[ApiKey], bytes], list[ApiKey]]
"""Returns the new keys, given the current ones and the pepper."""


class BadKeys(ValueError):
    """The keys cannot be read. The message says why and quotes nothing from them."""


class KeyStore(Protocol):
    """A file, or a database that servers share. Thread-safe."""

    @property
    def place(self) -> str:
        """The location of the keys, for messages."""

    def stamp(self) -> Hashable:
        """Return a value that differs after every change. Raises Unavailable while the database is down."""

    def read(self) -> KeyRing:
        """Return the keys. Raises BadKeys and Unavailable."""

    def entries(self) -> Sequence[ApiKey]:
        """Return all keys, including revoked ones, in order of creation. Raises as `read`."""

    def change(self, change: Change) -> None:
        """Replace the keys by the result of `change`. The first change gets no keys and a new pepper.

        Waits for concurrent changes. Raises BadKeys, Unavailable and what `change` raises, and then changes
        nothing.
        """

    def close(self) -> None:
        """Close what is open."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    keys: list[ApiKey]


def encode_keys(keys: list[ApiKey]) -> bytes:
    """Return keys as a document. Raises BadGrant if a key is invalid."""
    for key in keys:
        key.verify()
    return msgspec.json.format(msgspec.json.encode(_Document(_FORMAT, keys)), indent=2) + b"\n"


def decode_keys(raw: bytes, place: str) -> list[ApiKey]:
    """Return the keys of a document. Raises BadKeys; the message names `place`."""
    try:
        document = msgspec.json.decode(raw, type=_Document)
        for key in document.keys:
            key.verify()
    except msgspec.MsgspecError as error:
        raise BadKeys(f"{place} is damaged: {error}") from None
    except (BadGrant, UnicodeDecodeError, RecursionError) as error:
        raise BadKeys(f"{place} is damaged: {error}") from None
    if document.format != _FORMAT:
        raise BadKeys(f"{place} has format {document.format}, not {_FORMAT}")
    if len({key.id for key in document.keys}) != len(document.keys):
        raise BadKeys(f"{place} is damaged: duplicate id")
    return document.keys
