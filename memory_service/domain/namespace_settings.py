"""Settings of namespaces."""

from __future__ import annotations

import msgspec

from memory_service.data_model import NO_SETTINGS, NamespaceSettings
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.time_zones import zone_of
from memory_service.errors import Conflict, InvalidArgument
from memory_service.runtime.caller import present_caller
from memory_service.store import Store

FIELDS = frozenset({"time_zone", "default_ttl"})


class Settings:
    """Changes the settings of namespaces."""

    def __init__(self, store: Store, checks: Checks) -> None:
        self._store = store
        self._checks = checks

    async def update(
        self,
        namespace: str,
        fields: frozenset[str],
        *,
        time_zone: str,
        default_ttl_us: int | None,
        expected_version: int | None,
    ) -> NamespaceSettings:
        """Change the settings that `fields` names; return all. Raises Conflict."""
        self._checks.namespace(namespace)
        if not fields:
            raise InvalidArgument("update_mask", "names no field to change")
        zone_of(time_zone, "time_zone")
        if default_ttl_us is not None and default_ttl_us <= 0:
            raise InvalidArgument("default_ttl", "must be positive")
        if expected_version is not None:
            self._checks.count("expected_version", expected_version)
        for attempt in range(TRIES):
            info = await self._store.namespace(namespace)
            current = info.settings if info else NO_SETTINGS
            wanted = msgspec.structs.replace(
                current,
                time_zone=time_zone if "time_zone" in fields else current.time_zone,
                default_ttl_us=default_ttl_us if "default_ttl" in fields else current.default_ttl_us,
            )
            version = current.version if expected_version is None else expected_version
            try:
                saved = await self._store.save_settings(
                    namespace, wanted, expected_version=version, by=present_caller()
                )
                return saved.settings
            except Conflict as conflict:
                if expected_version is not None:
                    raise
                lost = conflict
            await pause_after(attempt)
        raise lost
