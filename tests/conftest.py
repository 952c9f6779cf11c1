"""Real servers, one per store and test run, and stubs to call them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

import faults.scale  # noqa: F401 - sets the seed before workers start, so that all draw the same tests
from corpus_running import PeerPrograms
from grpc_api import SMALL_GRAPHS, Api, Connect
from server_process import ServerProcess
from server_stores import chosen_stores, flags_of

_LONGEST = (
    "test_corpus",
    "test_go_clients",
    "test_typescript_client",
    "test_kills",
    "test_clients_examples",
    "test_languages",
    "test_drain",
    "test_write_policy",
    "test_damaged_snapshots",
    "test_processors",
    "test_server",
    "test_data_folder",
    "test_postgres_outage",
    "test_model",
    "test_user_memory_llm",
    "test_nasty_texts",
)
"""Slow files, the slowest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first, so that no worker is left with one when the others are done."""
    order = {name: number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server as `serve` starts it, except for the folder."""
    with ServerProcess(tmp_path_factory.mktemp("data")) as process:
        yield process


@pytest.fixture(scope="session")
def memory_server() -> Iterator[ServerProcess]:
    """A server that keeps everything in memory."""
    with ServerProcess(flags=["--store", "memory"]) as process:
        yield process


@pytest.fixture(scope="session")
def postgres_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that keeps its records in a database."""
    with ServerProcess(tmp_path_factory.mktemp("data"), flags=flags_of("postgres")) as process:
        yield process


_PROCESSES = {"hnsw": "server", "memory": "memory_server", "postgres": "postgres_process"}


@pytest.fixture(scope="session", params=chosen_stores())
def any_server(request: pytest.FixtureRequest) -> ServerProcess:
    """Each store in turn; all of them must behave alike."""
    process: ServerProcess = request.getfixturevalue(_PROCESSES[request.param])
    return process


@pytest.fixture(scope="session")
def graph_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that searches by HNSW from 64 vectors up."""
    with ServerProcess(tmp_path_factory.mktemp("data"), env=SMALL_GRAPHS) as process:
        yield process


@pytest.fixture(scope="session")
def api(any_server: ServerProcess) -> Iterator[Api]:
    """The stubs of each store's server in turn."""
    api = Api.connect(any_server.address)
    yield api
    api.channel.close()


@pytest.fixture(scope="session")
def peer_programs(tmp_path_factory: pytest.TempPathFactory) -> PeerPrograms:
    """The programs of the clients' peers, each in its own folder."""
    return PeerPrograms(tmp_path_factory.mktemp)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to a server that the test started; each call makes a new connection."""
    opened: list[Api] = []

    def connect_to(process: ServerProcess) -> Api:
        opened.append(Api.connect(process.address))
        return opened[-1]

    yield connect_to
    for api in opened:
        api.channel.close()


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"test/{uuid.uuid4().hex[:12]}"
