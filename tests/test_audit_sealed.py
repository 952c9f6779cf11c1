"""An audit log in an encrypted folder reveals nothing without the key and cannot be forged."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from credentials import connect, write_secret
from memory_service.audit.entries import GENESIS, Entry, Line, line_of, read_line
from memory_service.audit.files import HEAD, Head, files_of, written_head
from memory_service.audit.log import AuditLog
from memory_service.audit.verification import entries, verify
from memory_service.cli import main
from memory_service.data_key import DataKey
from memory_service.sealing import Seal
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

KEY = DataKey(secrets.token_bytes(32))
ANOTHER = DataKey(secrets.token_bytes(32))


async def write_log(folder: Path, key: DataKey | None, count: int = 6) -> None:
    """Write entries as a server does."""
    log = AuditLog(folder, "1", key=key)
    log.open()
    for number in range(count):
        await log.write_ahead(
            Entry(event="call", time_us=number, rpc="/s/Delete", namespace="ada-secret", ids=[f"id-{number}"])
        )
    await log.close()


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A sealed log of one file."""
    await write_log(tmp_path / "audit", KEY)
    return tmp_path / "audit"


def lines_of(folder: Path) -> list[Line]:
    """Return the lines of the only file, as they are sealed."""
    return [read_line(raw) for raw in files_of(folder)[0][1].read_bytes().splitlines()]


def rewrite(folder: Path, lines: list[Line]) -> None:
    """Rewrite the log as an attacker without the key would: with valid hashes and a valid head."""
    previous, written = GENESIS, b""
    for sequence, line in enumerate(lines, 1):
        placed = msgspec.structs.replace(line, sequence=sequence, previous=previous, hash="")
        names = ("sequence", "previous", "event", "sealed")
        told = {name: value for name in names if (value := getattr(placed, name)) != ""}
        if not line.sealed:
            raw, previous = line_of(Entry(event="call", rpc="/s/Delete"), sequence, previous)
        else:
            raw, previous = _hashed(told)
        written += raw
    files_of(folder)[0][1].write_bytes(written)
    (folder / HEAD).write_bytes(written_head(Head(len(lines), previous)))


def _hashed(told: dict[str, object]) -> tuple[bytes, str]:
    body = msgspec.json.encode(told)[:-1]
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), digest


PLAIN = Line(sequence=0, previous="")
FORGERIES: dict[str, Callable[[list[Line]], list[Line]]] = {
    "leave one out": lambda lines: [*lines[:2], *lines[3:]],
    "swap two": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "repeat one": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "put a plain one in": lambda lines: [*lines[:3], PLAIN, *lines[4:]],
    "append a plain one": lambda lines: [*lines, PLAIN],
    "change what is sealed": lambda lines: [
        *lines[:2],
        msgspec.structs.replace(lines[2], sealed=lines[2].sealed[:-1] + bytes([lines[2].sealed[-1] ^ 1])),
        *lines[3:],
    ],
    "cut what is sealed": lambda lines: [
        *lines[:2],
        msgspec.structs.replace(lines[2], sealed=lines[2].sealed[:20]),
        *lines[3:],
    ],
    "call it something else": lambda lines: [
        *lines[:2],
        msgspec.structs.replace(lines[2], event="opened"),
        *lines[3:],
    ],
    "seal with another key": lambda lines: [
        *lines[:2],
        msgspec.structs.replace(lines[2], sealed=Seal(ANOTHER, "audit log").seal(b"{}")),
        *lines[3:],
    ],
    "seal for another purpose": lambda lines: [
        *lines[:2],
        msgspec.structs.replace(lines[2], sealed=Seal(KEY, "api keys").seal(b"{}")),
        *lines[3:],
    ],
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_who_has_no_key_cannot_write_the_log_anew(folder: Path, forgery: str) -> None:
    rewrite(folder, lines_of(folder))
    assert verify(folder, key=KEY).problem is None  # otherwise the rest proves nothing
    rewrite(folder, FORGERIES[forgery](lines_of(folder)))
    assert verify(folder).problem is None  # the chain has no key
    assert verify(folder, key=KEY).problem is not None


def test_another_key_opens_nothing(folder: Path) -> None:
    assert verify(folder, key=KEY).sealed_count == verify(folder).sealed_count == 8
    problem = verify(folder, key=ANOTHER).problem
    assert problem is not None and problem.line == 1
    assert list(entries(folder, ANOTHER)) == []


def test_without_the_key_only_the_places_and_the_logs_own_events_are_read(folder: Path) -> None:
    data = files_of(folder)[0][1].read_bytes()
    assert not re.search(rb"ada-secret|id-\d|Delete|1970-", data)
    assert [line.event for line in entries(folder)] == ["opened", *[""] * 6, "closed"]
    found = list(entries(folder, KEY))
    assert [line.ids for line in found if line.rpc] == [[f"id-{n}"] for n in range(6)]
    assert {line.namespace for line in found if line.rpc} == {"ada-secret"}
    assert found[1].time == "1970-01-01T00:00:00.000000Z"
    assert not any(line.sealed for line in found)


def test_no_two_entries_are_sealed_alike(tmp_path: Path) -> None:
    """No nonce is used twice with one key, within a file or after a restart."""
    seals = [Seal(KEY, "audit log") for _ in range(3)]
    heads = [seal.seal(b"same", b"same")[:28] for seal in seals for _ in range(1000)]
    assert len(set(heads)) == len(heads)
    assert len({head[:16] for head in heads}) == 3


async def test_a_plain_log_goes_on_sealed_and_all_of_it_is_read(tmp_path: Path) -> None:
    await write_log(tmp_path, None)
    await write_log(tmp_path, KEY)
    for key in (None, KEY):
        verdict = verify(tmp_path, key=key)
        assert (verdict.problem, verdict.entry_count, verdict.sealed_count) == (None, 16, 8)
    assert [line.sequence for line in entries(tmp_path, KEY)] == list(range(1, 17))
    assert sum(line.namespace == "ada-secret" for line in entries(tmp_path, KEY)) == 12


async def test_a_torn_last_line_is_healed_and_told_without_the_key(folder: Path) -> None:
    path = files_of(folder)[0][1]
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[0][:70])
    assert (verify(folder, key=KEY).problem, verify(folder).torn_bytes) == (None, 70)
    await write_log(folder, KEY, 1)
    assert verify(folder) == verify(folder, key=KEY)
    assert verify(folder).healed == [9]


# The commands, on the log of a real server


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A file with a key."""
    path = tmp_path / "key"
    write_secret(path, secrets.token_hex(32))
    return path


def command(*arguments: object, exit_code: int = 0) -> Result:
    """Run a command that needs no server."""
    ended = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert ended.exit_code == exit_code, (ended.output, ended.exception)
    return ended


NAMES = (b"ada-secret", b"id-secret", b"grace-secret", b"key-secret")


def names_in(folder: Path) -> set[bytes]:
    """Return the names of namespaces, items and callers that appear in any file of a folder."""
    files = b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {name for name in NAMES if name in files}


def write_as_grace(data_dir: Path, token: str, flags: list[str]) -> None:
    """Run a server, and write, read, delete and be refused as one caller."""
    flags = ["--audit-reads", "--auth", "keys", "--embedder", "none", *flags]
    with ServerProcess(data_dir, flags=flags) as server:
        client = connect(server.address, token)
        client.call("Add", namespace="ada-secret", item=pb.MemoryItem(id="id-secret", text="x"))
        client.refused("LoadState", namespace="ada-secret", key="key-secret")
        client.call("Delete", namespace="ada-secret", id="id-secret")
        assert client.refused("Get", namespace="other", id="id-secret").reason == "PERMISSION_DENIED"
        client.channel.close()
        server.terminate()
    assert not any("audit_log_damaged" in line for line in server.log)


def made_token(data_dir: Path, *arguments: object) -> str:
    """Create a key with all rights to one namespace and return its token."""
    roles = [part for role in ("read", "write", "forget") for part in ("--role", role)]
    what = ("grace-secret", "--namespace", "ada-secret", *roles)
    found = re.search(r"mem_\S+", command("keys", "create", *what, "--data-dir", data_dir, *arguments).output)
    assert found is not None
    return found[0]


def test_no_file_tells_who_did_what(tmp_path: Path, key_file: Path) -> None:
    data_dir = tmp_path / "data"
    sealed = ("--data-dir", data_dir, "--encryption-key-file", key_file)
    token = made_token(data_dir, "--encryption-key-file", key_file)
    write_as_grace(data_dir, token, ["--encryption-key-file", str(key_file)])
    assert {path.name for path in data_dir.iterdir()} >= {"audit", "api-keys.json", "api-keys.json.pepper"}
    assert names_in(data_dir) == set()

    whole = command("audit", "verify", *sealed)
    assert re.search(r"(\d+) entries, \1 of them sealed", whole.output)
    blind = command("audit", "verify", "--data-dir", data_dir)
    assert blind.output.splitlines()[-1] == whole.output.splitlines()[-1]
    assert "only the chain" in blind.output and "only the chain" not in whole.output
    shown = command("audit", "show", "--rpc", "Delete", *sealed).output
    assert "grace-secret" in shown and "ada-secret" in shown and "id-secret" in shown
    assert "is sealed: pass the key" in command("audit", "show", "--data-dir", data_dir, exit_code=1).output
    wrong = tmp_path / "wrong"
    write_secret(wrong, secrets.token_hex(32))
    for what in ("verify", "show"):
        refused = command("audit", what, "--data-dir", data_dir, "--encryption-key-file", wrong, exit_code=1)
        assert "another key" in refused.output


def test_another_key_carries_credentials_and_the_chain_over(tmp_path: Path, key_file: Path) -> None:
    """plain -> key -> another key -> plain: old logs stay, and new ones continue their chain."""
    other = tmp_path / "other"
    write_secret(other, secrets.token_hex(32))
    old = tmp_path / "d0"
    since: tuple[object, ...] = ()
    token = made_token(old)
    write_as_grace(old, token, [])
    assert names_in(old) == set(NAMES)
    for number, (key, new_key) in enumerate(((None, key_file), (key_file, other), (other, None)), 1):
        new = tmp_path / f"d{number}"
        present = ("--encryption-key-file", key) if key else ()
        wanted = ("--new-encryption-key-file", new_key) if new_key else ("--plain",)
        output = command("rekey", "--data-dir", old, "--to", new, *present, *wanted).output
        told = re.search(r"--from-sequence (\d+) --known (\d+:[0-9a-f]{64})", output)
        assert told is not None
        begins, known = int(told[1]), told[2]
        flags = ["--encryption-key-file", str(new_key)] if new_key else []
        write_as_grace(new, token, flags)
        assert names_in(new) == (set() if new_key else set(NAMES))
        verify_new = ("audit", "verify", "--data-dir", new, *flags, "--from-sequence", begins)
        whole = command(*verify_new, "--known", known)
        assert "healed" not in whole.output
        another = known[:-1] + ("0" if known[-1] != "0" else "1")
        assert "the previous entry is not" in command(*verify_new, "--known", another, exit_code=1).output
        assert "are missing" in command(*verify_new[:-2], exit_code=1).output
        assert known in command("audit", "verify", "--data-dir", old, *present, *since).output
        since, old = ("--from-sequence", begins), new
    # All of them in one folder
    audit = tmp_path / "all"
    audit.mkdir()
    for number in range(4):
        for path in (tmp_path / f"d{number}" / "audit").iterdir():
            (audit / path.name).write_bytes(path.read_bytes())
    verdict = verify(audit)
    assert verdict.problem is None and 0 < verdict.sealed_count < verdict.entry_count
