"""Versions of files: listed and redacted."""

from __future__ import annotations

from memory_service.data_model import Item
from memory_service.domain.checks import Checks
from memory_service.domain.file_items import File
from memory_service.domain.file_lookup import missing, tree_of
from memory_service.domain.file_paths import check_path
from memory_service.domain.versions import VersionPage, Versions
from memory_service.errors import FailedPrecondition, InvalidArgument, NotFound
from memory_service.store import Store


class FileVersions:
    """Versions of the file at a path, which keeps them when it is renamed."""

    def __init__(self, store: Store, versions: Versions, checks: Checks) -> None:
        self._store = store
        self._versions = versions
        self._checks = checks

    async def list_versions(
        self, namespace: str, path: str, page_size: int, page_token: str
    ) -> VersionPage[Item]:
        """Return a page of the versions of a file, newest first. Raises NotFound."""
        file = await self._file(namespace, path)
        return await self._versions.list_items(namespace, file.item.id, page_size, page_token)

    async def redact(self, namespace: str, path: str, version: int) -> int:
        """Remove the content of a version; return the namespace's revision.

        Raises NotFound, and FailedPrecondition if it is the current version.
        """
        if version <= 0:
            raise InvalidArgument("version", "must be positive")
        file = await self._file(namespace, path)
        try:
            return await self._versions.redact_item(namespace, file.item.id, version)
        except NotFound as error:
            if error.reason == "VERSION_NOT_FOUND":
                raise NotFound.file_version(namespace, path, version) from None
            raise NotFound.file(namespace, path) from None  # deleted meanwhile
        except FailedPrecondition:
            raise FailedPrecondition.current_file_version(path, version) from None

    async def _file(self, namespace: str, path: str) -> File:
        self._checks.namespace(namespace)
        check_path(self._checks, "path", path)
        tree = await tree_of(self._store, namespace)
        file = await tree.file(path)
        if file is None:
            raise await missing(tree, path)
        return file
