"""Puts together what a server's settings ask for."""

from __future__ import annotations

from memory_service.config import BadConfig, Config
from memory_service.credentials.key_file import BadKeyFile, KeyFile
from memory_service.server.access.access import Access
from memory_service.server.access.authenticator import Authenticator
from memory_service.server.access.keys import Keys


def open_access(config: Config) -> Access | None:
    """Return what lets calls in; None: everybody may do everything. Raises BadConfig."""
    authenticators: list[Authenticator] = []
    if {"keys", "mtls"} & set(config.auth):
        authenticators.append(_keys(config))
    return Access(authenticators, with_certificates="mtls" in config.auth) if config.auth else None


def _keys(config: Config) -> Keys:
    file = KeyFile(config.api_keys_file)
    try:
        return Keys(file, tokens="keys" in config.auth, certificates="mtls" in config.auth)
    except BadKeyFile as error:
        raise BadConfig(f"api_keys: {error}; `memory-service keys create` makes the first key") from error
