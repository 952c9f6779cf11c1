"""API keys and the key of page tokens in the database: a change at one server reaches every server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import postgres_server
from credentials import Client, connect, keys_in
from grpc_api import eventually, outcome
from memory_service.cli import main
from server_process import ServerProcess
from server_stores import flags_of, statement

if postgres_server.programs() is None:
    pytest.skip("there is no PostgreSQL", allow_module_level=True)


def keys(folder: Path, *arguments: str) -> str:
    """Run a command on the keys in the database of a folder."""
    command = ["keys", *arguments, *flags_of("postgres", folder)]
    ended = CliRunner().invoke(main, command, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


def make(folder: Path, *options: str) -> tuple[str, str]:
    """Create a key; return its id and its token."""
    made = json.loads(keys(folder, "create", "ada", "--namespace", "*", "--role", "read", "--json", *options))
    return made["id"], made["token"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for a database, with a key from before any server."""
    folder = tmp_path_factory.mktemp("database")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    """Two servers over it that require keys, in data folders that they create."""
    flags = [*flags_of("postgres", folder), "--auth", "keys", "--embedder", "none"]
    homes = [tmp_path_factory.mktemp("home") / "data" for _ in range(2)]
    with ServerProcess(homes[0], flags=flags) as first, ServerProcess(homes[1], flags=flags) as second:
        yield [first, second]


@pytest.fixture
def clients(servers: list[ServerProcess]) -> Iterator[list[Client]]:
    """A client of each server, without credentials yet."""
    clients = [connect(server.address) for server in servers]
    yield clients
    for client in clients:
        client.channel.close()


def answers(clients: list[Client], token: str) -> list[str]:
    """Return each server's response to a token."""
    return [outcome(lambda c=client: c.presenting(token).call("GetInfo")).name for client in clients]


def test_every_server_follows_what_is_created_rotated_and_revoked(
    folder: Path, clients: list[Client]
) -> None:
    old_id, old = make(folder)
    eventually(lambda: answers(clients, old) == ["OK"] * 2, "both take the new key")
    new = keys(folder, "rotate", old_id, "--overlap", "1h")
    eventually(lambda: answers(clients, new) == ["OK"] * 2, "both take the one that follows")
    keys(folder, "revoke", old_id)
    eventually(lambda: answers(clients, old) == ["UNAUTHENTICATED"] * 2, "both refuse the revoked one")
    assert answers(clients, new) == ["OK"] * 2
    assert answers(clients, "") == ["UNAUTHENTICATED"] * 2


def test_of_a_secret_only_its_hash_is_kept(folder: Path) -> None:
    key_id, token = make(folder)
    kept = b"".join(value for _, value in statement(folder, "SELECT name, value FROM $.settings"))
    assert key_id.encode() in kept
    assert token.rpartition("_")[2].encode() not in kept


def test_keys_that_are_damaged_are_refused_and_not_written_over(folder: Path, clients: list[Client]) -> None:
    _, token = make(folder)
    eventually(lambda: answers(clients, token) == ["OK"] * 2, "both take the key")
    change = "UPDATE $.settings SET value = overlay(value PLACING {} FROM {}) WHERE name = 'API keys'"
    statement(folder, change.format("'\\x0000'", 1))
    statement(folder, change.format("'##'", 17))
    eventually(lambda: answers(clients, token) == ["UNAUTHENTICATED"] * 2, "nobody is let in")
    with pytest.raises(AssertionError, match="is damaged"):
        keys(folder, "list")
    with pytest.raises(AssertionError, match="is damaged"):
        make(folder)
    statement(folder, change.format("'{\n'", 17))
    statement(folder, change.format("'\\x0101'", 1))
    eventually(lambda: answers(clients, token) == ["OK"] * 2, "both take the key again")


def test_a_file_that_is_named_counts_and_the_database_does_not(folder: Path, tmp_path: Path) -> None:
    _, in_database = make(folder)
    in_file = keys_in(tmp_path).token()
    flags = [*flags_of("postgres", folder), "--auth", "keys", "--embedder", "none"]
    flags += ["--api-keys", str(tmp_path / "api-keys.json")]
    with ServerProcess(tmp_path / "home", flags=flags) as server:
        client = connect(server.address)
        assert answers([client, client.presenting("")], in_file) == ["OK", "OK"]
        assert answers([client], in_database) == ["UNAUTHENTICATED"]
        client.channel.close()


def test_a_server_without_any_key_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="there are no API keys in the schema .* keys create"):
        ServerProcess(tmp_path, flags=[*flags_of("postgres", tmp_path), "--auth", "keys"]).start()


def test_a_page_token_of_one_server_is_read_by_the_other(folder: Path, clients: list[Client]) -> None:
    made = json.loads(
        keys(folder, "create", "eve", "--namespace", "*", "--role", "read", "--role", "write", "--json")
    )
    eventually(lambda: answers(clients, made["token"]) == ["OK"] * 2, "both take the key")
    first, second = (client.presenting(made["token"]) for client in clients)
    for number in range(5):
        first.call("Add", namespace="pages", item={"id": f"i{number}", "text": f"page {number}"})
    page = first.call("List", namespace="pages", page_size=2)
    found = [item.id for item in page.items]
    while page.next_page_token:
        first, second = second, first
        page = first.call("List", namespace="pages", page_size=2, page_token=page.next_page_token)
        found += [item.id for item in page.items]
    assert sorted(found) == [f"i{number}" for number in range(5)]
