"""Builds the configured access control."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.config import BadConfig, Config
from memory_service.credentials.key_file import KeyFile
from memory_service.credentials.key_store import BadKeys, KeyStore
from memory_service.data_key import read_key
from memory_service.errors import Unavailable
from memory_service.server.access.access import Access
from memory_service.server.access.authenticator import Authenticator
from memory_service.server.access.keys import Keys, ToldOfKeys

# PyJWT and httpx are loaded only if configured: `_tokens` imports what needs them.
if TYPE_CHECKING:
    from memory_service.server.access.tokens import Tokens


def open_access(config: Config, told_of_keys: ToldOfKeys | None = None) -> Access | None:
    """Return the access control; None: every caller may do everything. Raises BadConfig.

    `told_of_keys` is notified of the API keys and their changes.
    """
    authenticators: list[Authenticator] = []
    if {"keys", "mtls"} & set(config.auth):
        authenticators.append(_keys(config, told_of_keys))
    if "jwt" in config.auth:
        authenticators.append(_tokens(config))
    return Access(authenticators, with_certificates="mtls" in config.auth) if config.auth else None


def _keys(config: Config, told: ToldOfKeys | None) -> Keys:
    store = _key_store(config)
    try:
        return Keys(store, tokens="keys" in config.auth, certificates="mtls" in config.auth, told=told)
    except BadKeys as error:
        raise BadConfig(f"api_keys: {error}; `memory-service keys create` creates the first key") from error
    except Unavailable as error:
        raise BadConfig(f"api_keys: {store.place} cannot be read") from error


def _key_store(config: Config) -> KeyStore:
    if not config.shares_api_keys:
        return KeyFile(config.api_keys_file, read_key(config.encryption_key_file))
    from memory_service.postgres_keys import PostgresKeys

    return PostgresKeys(config.postgres_dsn, config.postgres_schema)


def _tokens(config: Config) -> Tokens:
    from memory_service.server.access.key_sets import BadKeySet, KeysAtUrl, KeysInFile, KeySource
    from memory_service.server.access.tokens import Tokens

    keys: KeySource
    if "://" in config.jwt_keys:
        keys = KeysAtUrl(config.jwt_keys, config.jwt_algorithms)
    else:
        try:
            keys = KeysInFile(Path(config.jwt_keys), config.jwt_algorithms)
        except BadKeySet as error:
            raise BadConfig(f"jwt_keys: {config.jwt_keys} {error}") from error
    return Tokens(keys, config.jwt_issuer, config.jwt_audience, config.jwt_lifetime_s_max)
