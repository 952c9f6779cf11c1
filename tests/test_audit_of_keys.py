"""The audit log records changes of API keys while a server runs, and none of their secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from credentials import Client, connect, keys_in, write_secret
from grpc_api import eventually, outcome
from memory_service.cli import main
from memory_service.credentials.api_keys import ApiKey
from memory_service.credentials.key_differences import TOLD
from server_process import ServerProcess

KEY = "c3" * 32


@dataclass
class Running:
    """A server that requires keys, and commands on its folder."""

    folder: Path
    client: Client
    key_file: tuple[str, ...] = ()

    def run(self, *words: str) -> Result:
        """Run a command that must succeed."""
        ended = CliRunner().invoke(main, [*words, "--data-dir", str(self.folder), *self.key_file])
        assert ended.exit_code == 0, ended.output
        return ended

    def shown(self, *filters: str) -> list[dict[str, Any]]:
        """Return the entries of the audit log as the command prints them."""
        lines = self.run("audit", "show", "--json", *filters).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def told(self) -> list[dict[str, Any]]:
        """Return the entries about keys, except those of the start."""
        found = [line for line in self.shown() if line["event"].startswith("key_")]
        return [line for line in found if "at_start" not in line]

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """Return the entries about keys once there are this many."""
        eventually(lambda: len(self.told()) >= count, f"{count} entries of keys")
        return self.told()

    def alter(self, change: Callable[[list[ApiKey]], list[ApiKey]]) -> None:
        """Change the keys of a plain file by hand."""
        keys_in(self.folder).file.change(lambda keys, _: change(keys))

    def token(self) -> str:
        """Return the token of a key that the server accepts already."""
        return str(self.client.metadata[0][1]).removeprefix("Bearer ")


@pytest.fixture(params=["plain", "sealed"])
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    folder, flags = tmp_path / "data", ["--auth", "keys", "--embedder", "none"]
    key_file: tuple[str, ...] = ()
    if request.param == "sealed":
        write_secret(tmp_path / "key", KEY)
        key_file = ("--encryption-key-file", str(tmp_path / "key"))
    grant = ["--namespace", "*", "--role", "read", "--role", "write"]
    made = CliRunner().invoke(main, ["keys", "create", "first", *grant, "--data-dir", str(folder), *key_file])
    assert made.exit_code == 0, made.output
    with ServerProcess(folder, flags=[*flags, *key_file]) as server:
        client = connect(server.address, made.stdout.strip())
        yield Running(folder, client, key_file)
        client.channel.close()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Running]:
    """A server with a key file that can be edited by hand."""
    token = keys_in(tmp_path).token("first")
    with ServerProcess(tmp_path, flags=["--auth", "keys", "--embedder", "none"]) as server:
        client = connect(server.address, token)
        yield Running(tmp_path, client)
        client.channel.close()


def id_of(token: str) -> str:
    """Return the id in a token."""
    return token.split("_")[1]


def test_making_rotating_and_revoking_a_key_leaves_entries_without_its_secret(running: Running) -> None:
    grant = ["--namespace", "team/*", "--namespace", "own", "--role", "write", "--trust", "0.5"]
    first = running.run("keys", "create", "ada", *grant, "--expires-in", "90d").stdout.strip()
    (added,) = running.wait_for(1)
    assert (added["event"], added["ids"], added["principal"]) == ("key_added", [id_of(first)], "ada")
    assert "before" not in added and "caller" not in added
    expires = added["after"].pop("expires")
    assert added["after"].pop("created") < expires
    assert added["after"] == {
        "principal": "ada", "namespaces": "team/* own", "roles": "write", "trust": "0.5"
    }  # fmt: skip

    second = running.run("keys", "rotate", id_of(first), "--overlap", "1h").stdout.strip()
    _, old, new = running.wait_for(3)
    assert (old["event"], old["ids"], old["principal"]) == ("key_changed", [id_of(first)], "ada")
    assert old["before"] == {"expires": expires} and set(old["after"]) == {"expires"}
    assert old["after"]["expires"] < expires
    assert (new["event"], new["ids"]) == ("key_added", [id_of(second)])

    running.run("keys", "revoke", id_of(second))
    revoked = running.wait_for(4)[-1]
    assert (revoked["event"], revoked["ids"]) == ("key_revoked", [id_of(second)])
    assert "before" not in revoked and set(revoked["after"]) == {"revoked"}
    assert [line["event"] for line in running.shown("--id", id_of(second))] == ["key_added", "key_revoked"]

    text = running.run("audit", "show").stdout
    assert f"(key_revoked)  {id_of(second)}  of ada  revoked {revoked['after']['revoked']}" in text
    assert f"expires {expires} -> {old['after']['expires']}" in text
    assert "the chain is intact" in running.run("audit", "verify").stdout
    _no_secret_is_in_the_log(running, first, second, running.token())


def _no_secret_is_in_the_log(running: Running, *tokens: str) -> None:
    files = sorted((running.folder / "audit").glob("*.jsonl"))
    raw = b"".join(path.read_bytes() for path in files).decode()
    opened = running.run("audit", "show", "--json").stdout
    assert "key_added" in opened
    secrets = [token.split("_", 2)[2] for token in tokens]
    keys = running.folder / "api-keys.json"
    digests = [] if running.key_file else re.findall(r'"digest": "([0-9a-f]{64})"', keys.read_text())
    assert len(digests) == (0 if running.key_file else len(tokens))
    for secret in (*secrets, *digests):
        assert secret not in raw and secret not in opened
    # Without its key, a sealed log does not even show that an entry is about a key.
    assert ("key_added" in raw) == (not running.key_file)


def test_what_is_changed_by_hand_is_told_with_both_values(plain: Running) -> None:
    ada, token = keys_in(plain.folder).make("ada", ["a"], ["read"])
    bob, _ = keys_in(plain.folder).make("bob", ["b"], ["read"], certificate="CN=bob")
    plain.wait_for(2)
    replace = msgspec.structs.replace

    def widened(key: ApiKey) -> ApiKey:
        if key.id != ada.id:
            return key
        return replace(key, namespaces=("*",), roles=("read", "admin"), digest="ab" * 32)

    plain.alter(lambda keys: [widened(key) for key in keys if key.id != bob.id])
    _, added, changed, removed = plain.wait_for(4)
    assert added["after"]["certificate"] == "CN=bob"
    assert (changed["event"], changed["ids"]) == ("key_changed", [ada.id])
    assert changed["before"] == {"namespaces": "a", "roles": "read"}
    assert changed["after"] == {"namespaces": "*", "roles": "read admin", "secret": "replaced"}
    assert (removed["event"], removed["ids"], removed["principal"]) == ("key_removed", [bob.id], "bob")
    assert removed["before"] == added["after"] and "after" not in removed
    _no_secret_is_in_the_log(plain, token, plain.token())
    assert ada.digest not in plain.run("audit", "show", "--json").stdout


def test_a_file_that_cannot_be_read_ends_no_key_and_is_compared_once_it_can_be(plain: Running) -> None:
    ada, _ = keys_in(plain.folder).make("ada")
    plain.wait_for(1)
    file = plain.folder / "api-keys.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    eventually(lambda: outcome(lambda: plain.client.call("GetInfo")).name == "UNAUTHENTICATED", "refused")
    file.write_bytes(whole)
    keys_in(plain.folder).file.change(lambda keys, _: [key for key in keys if key.id != ada.id])
    eventually(lambda: outcome(lambda: plain.client.call("GetInfo")).name == "OK", "good again")
    assert [line["event"] for line in plain.wait_for(2)] == ["key_added", "key_removed"]


def test_the_entry_of_a_key_comes_before_those_of_its_calls(plain: Running) -> None:
    key, token = keys_in(plain.folder).make("ada")
    ada = plain.client.presenting(token)
    item = {"text": "hello"}
    eventually(lambda: outcome(lambda: ada.call("Add", namespace="n", item=item)).name == "OK", "good")

    def about_it() -> list[str]:
        lines = plain.shown()
        return [line["event"] for line in lines if key.id in (line.get("credential"), *line.get("ids", []))]

    # The response comes before the entry is written.
    eventually(lambda: "call" in about_it(), "the entry of the call")
    assert about_it()[0] == "key_added"


def test_a_file_that_is_written_again_without_a_change_leaves_no_entry(plain: Running) -> None:
    plain.alter(lambda keys: keys)
    ada, _ = keys_in(plain.folder).make("ada")
    assert [line["ids"] for line in plain.wait_for(1)] == [[ada.id]]


def test_every_field_of_a_key_is_told_but_its_secret() -> None:
    assert set(TOLD) == set(ApiKey.__struct_fields__) - {"id", "digest"}
