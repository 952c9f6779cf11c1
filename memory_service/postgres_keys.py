"""API keys in the database of the PostgreSQL store, where all servers find them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Hashable, Mapping

from memory_service.credentials.api_keys import PEPPER_BYTES, ApiKey, KeyRing
from memory_service.credentials.key_store import BadKeys, Change, decode_keys, encode_keys
from memory_service.records.postgres.database import Database
from memory_service.records.postgres.opening import prepare_database
from memory_service.records.postgres.settings import ChangingSettings

API_KEYS, _PEPPER = "API keys", "pepper of API keys"
# Each change writes a new mark before the keys, so that servers detect changes without reading every key.
_MARK_BYTES = 16


def settings_of(pepper: bytes, keys: list[ApiKey]) -> dict[str, bytes]:
    """Return keys as they are stored: settings by name."""
    return {_PEPPER: pepper, API_KEYS: secrets.token_bytes(_MARK_BYTES) + encode_keys(keys)}


def prepared_keys(dsn: str, schema: str) -> PostgresKeys:
    """Return the keys of a database, creating its tables if they are missing. Raises CannotOpen."""
    asyncio.run(prepare_database(Database(dsn, schema)))
    return PostgresKeys(dsn, schema)


class PostgresKeys:
    """The keys and their pepper, as settings of a schema. A `KeyStore`, for one thread at a time."""

    def __init__(self, dsn: str, schema: str) -> None:
        """`dsn` is a libpq connection string. The tables must exist."""
        self._settings = ChangingSettings(Database(dsn, schema))
        self.place = f"the schema {schema} of the database"

    def stamp(self) -> Hashable:
        """Return a value that changes whenever the keys do."""
        return tuple(self._settings.beginnings(_MARK_BYTES, API_KEYS).values())

    def read(self) -> KeyRing:
        """Return the keys. Raises BadKeys and Unavailable."""
        found = self._settings.read(API_KEYS, _PEPPER)
        return KeyRing(self._pepper(found), self._entries(found))

    def entries(self) -> list[ApiKey]:
        """Return all keys, including revoked ones, in the order of their creation."""
        return self._entries(self._settings.read(API_KEYS))

    def change(self, change: Change) -> None:
        """Replace the keys by what `change` returns for them, in one transaction."""

        def changed(found: dict[str, bytes]) -> Mapping[str, bytes]:
            new = not found
            pepper = secrets.token_bytes(PEPPER_BYTES) if new else self._pepper(found)
            return settings_of(pepper, change([] if new else self._entries(found), pepper))

        self._settings.change((API_KEYS, _PEPPER), changed)

    def _entries(self, found: Mapping[str, bytes]) -> list[ApiKey]:
        if API_KEYS not in found:
            raise BadKeys(f"there are no API keys in {self.place}")
        return decode_keys(found[API_KEYS][_MARK_BYTES:], f"the API key data in {self.place}")

    def _pepper(self, found: Mapping[str, bytes]) -> bytes:
        if API_KEYS not in found:
            raise BadKeys(f"there are no API keys in {self.place}")
        if len(found.get(_PEPPER, b"")) != PEPPER_BYTES:
            raise BadKeys(f"the pepper is missing in {self.place}: no API key is valid without it")
        return found[_PEPPER]

    def close(self) -> None:
        """Close the connection to the database."""
        self._settings.close()
