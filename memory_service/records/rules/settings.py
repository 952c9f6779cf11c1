"""Decides whether settings of a namespace are saved, and under which version."""

from __future__ import annotations

import msgspec

from memory_service.data_model import NamespaceSettings
from memory_service.errors import Conflict


def next_settings(
    namespace: str, settings: NamespaceSettings, expected_version: int, current: NamespaceSettings
) -> NamespaceSettings:
    """Return the settings to save over the current ones. Raises Conflict."""
    if current.version != expected_version:
        raise Conflict.settings_version(namespace, expected_version, current.version)
    return msgspec.structs.replace(settings, version=current.version + 1)
