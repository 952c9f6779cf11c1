"""Real servers, one per store and test run, and stubs to call them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import faults.scale  # noqa: F401 - sets the seed before workers start, so that all draw the same tests
from corpus_running import PeerPrograms
from grpc_api import SMALL_GRAPHS, Api, Connect
from server_process import ServerProcess
from server_stores import chosen_stores, flags_of

collect_ignore = ["conformance"]
"""Run by `make conformance`, in an environment with the frameworks."""

_LONGEST = (
    "faults/test_pieces",
    "test_typescript_client",
    "faults/test_bounded_memory",
    "contract/test_requests",
    "faults/test_overload",
    "test_corpus",
    "test_go_clients",
    "contract/test_filters",
    "contract/test_recall",
    "faults/test_power_loss",
    "faults/test_postgres_linearizability",
    "contract/test_search",
    "faults/test_linearizability",
    "contract/test_scan",
    "test_mcp",
    "test_mcp_knowledge_graph",
    "test_mcp_resources",
    "test_hooks",
    "faults/test_failpoints",
    "faults/test_migration",
    "test_knowledge_service",
    "contract/test_damage",
    "contract/test_pending",
    "test_admin_service",
    "contract/test_items",
    "contract/test_undo",
    "faults/test_fuzz",
    "faults/test_postgres_connections",
    "test_nasty_texts",
    "test_languages",
    "faults/test_embedder_nonsense",
    "test_model",
    "contract/test_words",
    "faults/test_io_errors",
    "test_import_export",
    "test_tenant_isolation",
    "test_server",
    "test_data_folder",
    "faults/test_two_tenants",
)
"""Files that take half a minute or longer, the longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that no worker is left with one when the others are done."""
    here = Path(__file__).parent
    order = {here / f"{name}.py": number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


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
