"""Runs anthropic-sdk-python's tests of its memory tool for local files with the tools over a server.

They look at the files on disk with `get_directory_snapshot`, which is swapped too.
"""

from __future__ import annotations

import os

import pytest

from memory_client import MemoryClient
from memory_client.anthropic import AsyncMemoryServiceMemoryTool, MemoryServiceMemoryTool

ADDRESS = os.environ["CONFORMANCE_SERVER"]


class Tool(MemoryServiceMemoryTool):
    """The tool, with a folder on disk for the name of its namespace."""

    def __init__(self, base_path: str) -> None:
        super().__init__(ADDRESS, namespace=base_path.strip("/"))
        self.base_path = base_path


class AsyncTool(AsyncMemoryServiceMemoryTool):
    """The same for the asynchronous tool."""

    def __init__(self, base_path: str) -> None:
        super().__init__(ADDRESS, namespace=base_path.strip("/"))
        self.base_path = base_path


def files_of(base_path: str) -> dict[str, str]:
    """Return the contents of all files by path."""
    with MemoryClient(ADDRESS, namespace=base_path.strip("/")) as client:
        paths = [entry.path for entry in client.list_files() if not entry.is_folder]
        return {path.lstrip("/"): client.read_file(path).content for path in paths}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Swap what the module of the tests has imported and defined."""
    swapped = {
        "BetaLocalFilesystemMemoryTool": Tool,
        "BetaAsyncLocalFilesystemMemoryTool": AsyncTool,
        "get_directory_snapshot": files_of,
    }
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        for name, value in swapped.items():
            assert hasattr(module, name)
            setattr(module, name, value)
