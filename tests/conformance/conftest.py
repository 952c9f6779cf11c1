"""A real server, and clients of a namespace that no other test uses."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from memory_client import AsyncMemoryClient, MemoryClient
from repositories import ROOT
from server_process import ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server, run by the Python that `SERVER_PYTHON` names."""
    python = os.environ.get("SERVER_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    with ServerProcess(
        tmp_path_factory.mktemp("data"),
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'clients' / 'python'}"},
        command=(python, "-m", "memory_service", "serve"),
    ) as process:
        yield process


@pytest.fixture(scope="session")
def address(server: ServerProcess) -> str:
    """The server's address."""
    return server.address


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"test/{uuid.uuid4().hex[:12]}"


@pytest.fixture
def memory(address: str, namespace: str) -> Iterator[MemoryClient]:
    """A client of the namespace."""
    with MemoryClient(address, namespace=namespace) as client:
        yield client


@pytest_asyncio.fixture
async def async_memory(address: str, namespace: str) -> AsyncIterator[AsyncMemoryClient]:
    """An asynchronous client of the namespace."""
    async with AsyncMemoryClient(address, namespace=namespace) as client:
        yield client
