"""Puts together what a server's settings ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.config import BadConfig, Config
from memory_service.credentials.key_file import BadKeyFile, KeyFile
from memory_service.data_key import read_key
from memory_service.server.access.access import Access
from memory_service.server.access.authenticator import Authenticator
from memory_service.server.access.keys import Keys, ToldOfKeys

# PyJWT and httpx are loaded by those who ask for them: `_tokens` imports what needs them.
if TYPE_CHECKING:
    from memory_service.server.access.tokens import Tokens


def open_access(config: Config, told_of_keys: ToldOfKeys | None = None) -> Access | None:
    """Return what lets calls in; None: everybody may do everything. Raises BadConfig.

    `told_of_keys` is told which API keys there are, and what becomes of them.
    """
    authenticators: list[Authenticator] = []
    if {"keys", "mtls"} & set(config.auth):
        authenticators.append(_keys(config, told_of_keys))
    if "jwt" in config.auth:
        authenticators.append(_tokens(config))
    return Access(authenticators, with_certificates="mtls" in config.auth) if config.auth else None


def _keys(config: Config, told: ToldOfKeys | None) -> Keys:
    file = KeyFile(config.api_keys_file, read_key(config.encryption_key_file))
    try:
        return Keys(file, tokens="keys" in config.auth, certificates="mtls" in config.auth, told=told)
    except BadKeyFile as error:
        raise BadConfig(f"api_keys: {error}; `memory-service keys create` makes the first key") from error


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
