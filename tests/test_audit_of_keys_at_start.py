"""The audit log records changes of API keys while no server ran: once, at the next start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from contract.cases import KEY
from credentials import write_secret
from memory_service.audit.entries import Entry
from memory_service.audit.files import files_of
from memory_service.audit.known_keys import SUMMARY, KnownKeys
from memory_service.audit.log import AuditLog
from memory_service.cli import main
from memory_service.credentials.api_keys import ApiKey
from memory_service.credentials.key_file import FILE_NAME, KeyFile
from memory_service.data_key import DataKey
from server_process import ServerProcess

READ = ("--namespace", "a/*", "--role", "read")


@dataclass
class Stopped:
    """A data folder that a server uses only while the test starts it."""

    folder: Path
    key: DataKey | None = None
    key_file: tuple[str, ...] = ()

    def start(self) -> ServerProcess:
        """Start a server that requires keys."""
        flags = ["--auth", "keys", "--embedder", "none", *self.key_file]
        return ServerProcess(self.folder, flags=flags).start()

    def start_and_stop(self) -> list[dict[str, Any]]:
        """Start and stop a server; return the entries about keys that its start wrote."""
        known = len(self.told())
        assert self.start().terminate() == 0
        assert "the chain is intact" in self.run("audit", "verify").stdout
        return self.told()[known:]

    def run(self, *words: str) -> Result:
        """Run a command that must succeed."""
        ended = CliRunner().invoke(main, [*words, "--data-dir", str(self.folder), *self.key_file])
        assert ended.exit_code == 0, ended.output
        return ended

    def made(self, principal: str, *more: str) -> str:
        """Create a key; return its id."""
        return self.run("keys", "create", principal, *READ, *more).stdout.split("_")[1]

    def alter(self, change: Callable[[list[ApiKey]], list[ApiKey]]) -> None:
        """Change the keys by hand."""
        KeyFile(self.folder / FILE_NAME, self.key).change(lambda keys, _: change(keys))

    def told(self) -> list[dict[str, Any]]:
        """Return the entries about keys, which must all be of a start."""
        if not (self.folder / "audit").exists():
            return []
        lines = [json.loads(line) for line in self.run("audit", "show", "--json").stdout.splitlines()]
        found = [line for line in lines if line["event"].startswith("key_")]
        assert all(line["at_start"] for line in found)
        return found


@pytest.fixture(params=["plain", "sealed"])
def stopped(tmp_path: Path, request: pytest.FixtureRequest) -> Stopped:
    if request.param == "plain":
        return Stopped(tmp_path / "data")
    write_secret(tmp_path / "key", (b"k" * 32).hex())
    return Stopped(tmp_path / "data", KEY, ("--encryption-key-file", str(tmp_path / "key")))


def by_key(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Return the event of each key; each has one."""
    found = {line["ids"][0]: line["event"] for line in lines}
    assert len(found) == len(lines)
    return found


def test_what_is_changed_while_no_server_runs_is_told_by_the_next_start_and_by_no_other(
    stopped: Stopped,
) -> None:
    ada, bob, eve, zoe = (stopped.made(name) for name in ("ada", "bob", "eve", "zoe"))
    first = stopped.start_and_stop()
    assert by_key(first) == dict.fromkeys((ada, bob, eve, zoe), "key_present")
    assert first[0]["principal"] == first[0]["after"]["principal"] == "ada"
    assert stopped.start_and_stop() == []

    new = stopped.made("new", "--expires-in", "90d")
    stopped.run("keys", "revoke", bob)
    rotated = stopped.run("keys", "rotate", eve, "--overlap", "1h").stdout.split("_")[1]
    stopped.alter(
        lambda keys: [
            msgspec.structs.replace(key, roles=("read", "admin")) if key.id == ada else key
            for key in keys
            if key.id != zoe
        ]
    )
    found = stopped.start_and_stop()
    assert by_key(found) == {
        ada: "key_changed",
        bob: "key_revoked",
        eve: "key_changed",
        zoe: "key_removed",
        new: "key_added",
        rotated: "key_added",
    }
    of = {line["ids"][0]: line for line in found}
    assert (of[ada]["before"], of[ada]["after"]) == ({"roles": "read"}, {"roles": "read admin"})
    assert set(of[bob]["after"]) == {"revoked"} and set(of[eve]["after"]) == {"expires"}
    assert of[zoe]["before"] == first[3]["after"] and of[zoe]["principal"] == "zoe"
    assert of[new]["after"]["expires"] > of[new]["after"]["created"]
    assert stopped.start_and_stop() == []
    assert f"(key_removed)  {zoe}  found at start  of zoe" in stopped.run("audit", "show").stdout
    _no_secret_is_beside_the_log(stopped)


def _no_secret_is_beside_the_log(stopped: Stopped) -> None:
    raw = b"".join(path.read_bytes() for path in sorted((stopped.folder / "audit").iterdir()))
    digests = [key.digest for key in KeyFile(stopped.folder / FILE_NAME, stopped.key).entries()]
    assert digests and not any(digest.encode() in raw for digest in digests)
    assert (b"a/*" in raw) == (stopped.key is None)


def test_a_server_that_is_killed_tells_each_change_once(stopped: Stopped) -> None:
    ids = [stopped.made(f"p{number}") for number in range(3)]
    for _ in range(3):
        stopped.start().kill()
        stopped.run("keys", "revoke", ids[0])
        ids.append(stopped.made("more"))
    stopped.start_and_stop()
    events = [(line["ids"][0], line["event"]) for line in stopped.told()]
    assert len(set(events)) == len(events)
    assert {key_id for key_id, _ in events} == set(ids)
    assert [event for key_id, event in events if key_id == ids[0]] == ["key_present", "key_revoked"]


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_without_the_summary_the_entries_tell_what_is_known(stopped: Stopped, damage: str) -> None:
    stopped.made("ada")
    bob = stopped.made("bob")
    stopped.start_and_stop()
    stopped.run("keys", "revoke", bob)
    stopped.start_and_stop()
    summary = stopped.folder / "audit" / SUMMARY
    if damage == "missing":
        summary.unlink()
    else:
        summary.write_bytes(summary.read_bytes()[:-5])
    assert stopped.start_and_stop() == []
    new = stopped.made("new")
    assert by_key(stopped.start_and_stop()) == {new: "key_added"}


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
async def test_what_is_known_outlives_the_files_that_told_it(tmp_path: Path, key: DataKey | None) -> None:
    async def told(*entries: Entry) -> KnownKeys:
        log = AuditLog(tmp_path, "1", 2000, key)
        log.open()
        known = log.known_keys()
        for entry in entries:
            await log.write_ahead(entry)
        await log.close()
        return known

    def of(event: str, number: int, after: dict[str, str], before: dict[str, str] | None = None) -> Entry:
        return Entry(event=event, ids=[f"id{number}"], after=after, before=before or {})

    assert (await told()).first
    await told(*(of("key_present", number, {"roles": "read"}) for number in range(20)))
    assert len((await told()).keys) == 20
    for _, path in files_of(tmp_path)[:-1]:
        await asyncio.to_thread(path.unlink)
    await told(
        of("key_removed", 0, {}, {"roles": "read"}),
        of("key_changed", 1, {"roles": "admin", "secret": "replaced"}, {"roles": "read"}),
        of("key_added", 20, {"roles": "write"}),
    )
    known = await told()
    assert not known.first
    read = {f"id{number}": {"roles": "read"} for number in range(2, 20)}
    assert known.keys == read | {"id1": {"roles": "admin"}, "id20": {"roles": "write"}}
