"""Where API keys are kept: what each such place does, and the keys as one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import msgspec

from memory_service.credentials.api_keys import ApiKey, KeyRing
from memory_service.credentials.grants import BadGrant

_FORMAT = 1

Change = Callable[[list[ApiKey], bytes], list[ApiKey]]
"""Makes other keys of those that there are and of the pepper."""


class BadKeys(ValueError):
    """The keys cannot be read; tells why, without what is in them."""


class KeyStore(Protocol):
    """A file, or a database that servers share. For threads."""

    @property
    def place(self) -> str:
        """Where the keys are, for people."""

    def stamp(self) -> Hashable:
        """Return what differs once anything was changed. Raises Unavailable while nobody can be asked."""

    def read(self) -> KeyRing:
        """Return the keys. Raises BadKeys and Unavailable."""

    def entries(self) -> Sequence[ApiKey]:
        """Return all keys, revoked ones too, in the order in which they were made. Raises as `read`."""

    def change(self, change: Change) -> None:
        """Replace the keys by what `change` makes of them, the first time of none and of a new pepper.

        Raises BadKeys, Unavailable, and what `change` raises: then nothing is changed. Waits for others who
        change them.
        """

    def close(self) -> None:
        """Let go of what is open."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    keys: list[ApiKey]


def encode_keys(keys: list[ApiKey]) -> bytes:
    """Return keys as a document. Raises BadGrant where one cannot be."""
    for key in keys:
        key.verify()
    return msgspec.json.format(msgspec.json.encode(_Document(_FORMAT, keys)), indent=2) + b"\n"


def decode_keys(raw: bytes, place: str) -> list[ApiKey]:
    """Return the keys of a document. Raises BadKeys, which names its place."""
    try:
        document = msgspec.json.decode(raw, type=_Document)
        for key in document.keys:
            key.verify()
    except msgspec.MsgspecError as error:
        raise BadKeys(f"{place} is damaged: {error}") from None
    except (BadGrant, UnicodeDecodeError, RecursionError) as error:
        raise BadKeys(f"{place} is damaged: {error}") from None
    if document.format != _FORMAT:
        raise BadKeys(f"{place} is of format {document.format}, not {_FORMAT}")
    if len({key.id for key in document.keys}) != len(document.keys):
        raise BadKeys(f"{place} is damaged: an id comes twice")
    return document.keys
