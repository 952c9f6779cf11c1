"""API keys: the commands, the file, and a server that follows changes of the file."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from click.testing import CliRunner, Result

from credentials import BY_NAME, Client, KeyMaker, connect, events_until_refused, keys_in
from grpc_api import decode, eventually, outcome
from memory_service.cli import main
from memory_service.credentials.api_keys import PEPPER_BYTES, KeyRing, digest_of
from memory_service.credentials.key_store import BadKeys
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

Run = Callable[..., Result]
TOKEN = re.compile(r"mem_[0-9a-f]{16}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run `memory-service keys` on the test's data folder."""

    def run(*arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(main, ["keys", *arguments, "--data-dir", str(tmp_path)])
        assert result.exit_code == exit_code, result.output
        return result

    return run


def create(run: Run, *options: str) -> dict[str, Any]:
    """Create a key for ada with the command."""
    made = run("create", "ada", "--namespace", "a/*", "--role", "read", "--json", *options)
    return json.loads(made.stdout)


def shown(run: Run) -> list[dict[str, Any]]:
    """Return the keys that the command lists."""
    return [json.loads(line) for line in run("list", "--json").stdout.splitlines()]


def test_a_token_is_shown_once_and_kept_nowhere(run: Run, tmp_path: Path) -> None:
    made = run("create", "ada", "--namespace", "a/*", "--role", "read")
    token = made.stdout.strip()
    assert TOKEN.fullmatch(token)
    secret = token.split("_", 2)[2]
    listed = run("list").output + run("list", "--json").output
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert "ada" in listed and "ada" in files.decode(errors="replace")
    assert secret not in listed + made.stderr and secret.encode() not in files
    pepper = (tmp_path / "api-keys.json.pepper").read_bytes()
    assert len(pepper) == PEPPER_BYTES
    assert digest_of(pepper, secret) in (tmp_path / "api-keys.json").read_text()
    assert digest_of(pepper, secret) not in listed


def test_files_are_for_their_owner_only(run: Run, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create(run)
        create(run)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"api-keys.json", "api-keys.json.pepper", "api-keys.json.lock"}
    assert set(modes.values()) == {0o600}


def test_list_tells_all_but_secrets(run: Run) -> None:
    made = create(run, "--role", "write", "--trust", "0.5", "--expires-in", "90d")
    token = made.pop("token")
    assert shown(run) == [made]
    assert made["id"] == token.split("_")[1]
    assert (made["principal"], made["namespaces"], made["roles"]) == ("ada", ["a/*"], ["read", "write"])
    assert (made["trust"], made["state"], made["revoked"]) == (0.5, "good", None)
    lives = datetime.fromisoformat(made["expires"]) - datetime.fromisoformat(made["created"])
    assert lives == timedelta(days=90)


def test_a_rotated_key_is_good_for_the_overlap_and_the_new_one_for_as_long_as_it_was(run: Run) -> None:
    old = create(run, "--trust", "0.3", "--expires-in", "90d")
    new = json.loads(run("rotate", old["id"], "--overlap", "1h", "--json").stdout)
    kept = ("principal", "namespaces", "roles", "trust")
    assert [new[name] for name in kept] == [old[name] for name in kept]
    assert new["id"] != old["id"] and new["token"] != old["token"]
    ends, began = (datetime.fromisoformat(shown(run)[0][name]) for name in ("expires", "created"))
    assert timedelta(hours=1) <= ends - began < timedelta(hours=2)
    lives = datetime.fromisoformat(new["expires"]) - datetime.fromisoformat(new["created"])
    assert lives == timedelta(days=90)
    short = json.loads(run("rotate", new["id"], "--overlap", "3650d", "--expires-in", "1d", "--json").stdout)
    assert shown(run)[1]["expires"] == new["expires"], "an overlap makes no key live longer"
    run("revoke", short["id"])
    assert "revoked" in run("rotate", short["id"], "--overlap", "0s", exit_code=1).output


def test_a_key_ring_compares_ids_secrets_and_times(tmp_path: Path) -> None:
    keys = keys_in(tmp_path)
    now = datetime.now(UTC)
    key, token = keys.make(lifetime=timedelta(hours=1))
    _, other = keys.make()
    ring = keys.file.read()
    assert ring.verify(token) == key
    assert ring.verify(token, now + timedelta(minutes=59)) == key
    assert ring.verify(token, now + timedelta(minutes=61)) is None
    assert ring.verify(token[:21] + other[21:]) is None, "the secret of another key"
    assert ring.verify(token + "A") is None
    assert KeyRing(b"x" * PEPPER_BYTES, [key]).verify(token) is None, "another pepper"


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "", "--namespace", "a", "--role", "read"),
        ("create", "a\nb", "--namespace", "a", "--role", "read"),
        ("create", "ada", "--namespace", "", "--role", "read"),
        ("create", "ada", "--namespace", "a*b", "--role", "read"),
        ("create", "ada", "--namespace", "a\x07b", "--role", "read"),
        ("create", "ada", "--namespace", "a", "--role", "read", "--certificate", "ada"),
        ("create", "ada", "--namespace", "a", "--role", "read", "--expires-in", "9999999d"),
        ("revoke", "0" * 16),
        ("rotate", "0" * 16, "--overlap", "1h"),
    ],
)
def test_what_cannot_be_changes_nothing(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    create(run)
    before = (tmp_path / "api-keys.json").read_bytes()
    assert run(*arguments, exit_code=1).output.startswith("error: ")
    assert (tmp_path / "api-keys.json").read_bytes() == before


def test_a_certificate_has_one_key_at_a_time(run: Run) -> None:
    options = ("--namespace", "a", "--role", "read", "--certificate", "spiffe://example/ada")
    made = run("create", "ada", *options)
    assert not made.stdout and "spiffe://example/ada" in made.stderr
    assert "revoke" in run("create", "eve", *options, exit_code=1).output
    run("revoke", shown(run)[0]["id"])
    run("create", "eve", *options)


def test_many_commands_at_once_lose_no_key(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memory_service", "keys", "create", "ada", "--namespace", "*"]
    command += ["--role", "read", "--api-keys", str(tmp_path / "new" / "keys.json")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    tokens = [process.communicate(timeout=60)[0].strip() for process in running]
    ring = KeyMaker(type(keys_in(tmp_path).file)(tmp_path / "new" / "keys.json")).file.read()
    assert len(set(tokens)) == 6 and all(ring.verify(token) for token in tokens)


def damages(keys: KeyMaker) -> dict[str, Callable[[], object]]:
    """Ways in which the files can be damaged."""
    path, pepper = keys.file.path, keys.file.pepper_path
    document = json.loads(path.read_text())
    first = document["keys"][0]

    def having(**fields: Any) -> Callable[[], object]:
        return lambda: path.write_text(json.dumps({**document, "keys": [{**first, **fields}]}))

    return {
        "half written": lambda: path.write_bytes(path.read_bytes()[:-20]),
        "empty": lambda: path.write_bytes(b""),
        "no JSON": lambda: path.write_bytes(b"\x00\xff" * 100),
        "nested": lambda: path.write_bytes(b"[" * 100_000),
        "another format": lambda: path.write_text(json.dumps({**document, "format": 2})),
        "twice the same id": lambda: path.write_text(json.dumps({**document, "keys": [first, first]})),
        "unknown field": having(revokd="2026-01-01T00:00:00Z"),
        "unknown role": having(roles=["root"]),
        "no role": having(roles=[]),
        "no namespace": having(namespaces=[]),
        "a digest that is none": having(digest=""),
        "a short digest": having(digest="00"),
        "a time without zone": having(expires="2099-01-01T00:00:00"),
        "trust above 1": having(trust=2),
        "gone": path.unlink,
        "open to all": lambda: path.chmod(0o644),
        "pepper gone": pepper.unlink,
        "pepper empty": lambda: pepper.write_bytes(b""),
        "pepper open to all": lambda: pepper.chmod(0o604),
    }


def mended(keys: KeyMaker) -> Callable[[], None]:
    """A function that restores both files."""
    before = {path: path.read_bytes() for path in (keys.file.path, keys.file.pepper_path)}

    def mend() -> None:
        for path, raw in before.items():
            path.touch()
            path.chmod(0o600)
            path.write_bytes(raw)

    return mend


def test_a_damaged_file_is_told_and_not_overwritten(run: Run, tmp_path: Path) -> None:
    create(run)
    keys = keys_in(tmp_path)
    mend = mended(keys)
    for how, damage in damages(keys).items():
        damage()
        with pytest.raises(BadKeys):
            keys.file.read()
        if how != "gone":
            before = keys.file.path.read_bytes()
            run("create", "ada", "--namespace", "a", "--role", "read", exit_code=1)
            assert keys.file.path.read_bytes() == before, how
        mend()
        assert keys.file.read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the server."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    """A server that requires keys."""
    keys_in(folder).make()
    with ServerProcess(folder, flags=["--auth", "keys", "--embedder", "none"]) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    """A client that presents no key yet."""
    client = connect(server.address)
    yield client
    client.channel.close()


def is_good(client: Client) -> bool:
    """Return whether the server accepts the client's credential."""
    answered = outcome(lambda: client.call("GetInfo"))
    assert answered.name in ("OK", "UNAUTHENTICATED")
    return answered.name == "OK"


def made(folder: Path, client: Client, **settings: Any) -> tuple[str, Client]:
    """Return a new key's id and a client with it, once the server accepts it."""
    key, token = keys_in(folder).make(**settings)
    client = client.presenting(token)
    eventually(lambda: is_good(client), "a new key is good")
    return key.id, client


def keys_command(folder: Path, *arguments: str) -> str:
    """Run a command on the keys of the server."""
    ended = CliRunner().invoke(main, ["keys", *arguments, "--data-dir", str(folder)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


def test_a_running_server_follows_what_is_created_rotated_and_revoked(folder: Path, client: Client) -> None:
    old_id, old = made(folder, client)
    new = client.presenting(keys_command(folder, "rotate", old_id, "--overlap", "1h"))
    eventually(lambda: is_good(new), "the new key is good")
    assert is_good(old), "the old key is good beside it"
    keys_command(folder, "revoke", old_id)
    eventually(lambda: not is_good(old), "the revoked key is refused")
    assert is_good(new)
    new_id = str(new.metadata[0][1]).split("_")[1]
    newest = client.presenting(keys_command(folder, "rotate", new_id, "--overlap", "0s"))
    eventually(lambda: not is_good(new), "the old key is refused when the overlap is over")
    assert is_good(newest)


def test_a_key_that_was_used_expires_all_the_same(folder: Path, client: Client) -> None:
    _, short = made(folder, client, lifetime=timedelta(seconds=3))
    eventually(lambda: not is_good(short), "an expired key is refused")


@pytest.mark.parametrize("how", ["revoked", "expired", "gone from the file"])
def test_streams_end_with_their_credential(folder: Path, client: Client, how: str) -> None:
    _, other = made(folder, client)
    lifetime = timedelta(seconds=4) if how == "expired" else None
    key_id, mine = made(folder, client, lifetime=lifetime)
    watch = mine.start(BY_NAME["Watch"], memory_pb2.WatchRequest(namespace="watched"))
    kept = other.start(BY_NAME["Watch"], memory_pb2.WatchRequest(namespace="watched"))
    next(watch), next(kept)
    if how == "revoked":
        keys_command(folder, "revoke", key_id)
    elif how == "gone from the file":
        keys_in(folder).file.change(lambda keys, _: [key for key in keys if key.id != key_id])
    events, refusal = events_until_refused(watch)
    assert refusal.reason == "UNAUTHENTICATED"
    assert all(not event.HasField("change") for event in events)
    other.call("Add", namespace="watched", item=memory_pb2.MemoryItem(text=how))
    assert any(event.change.item.text == how for event in kept)
    kept.cancel()


def test_a_stream_ends_when_its_key_is_good_for_less(folder: Path, client: Client) -> None:
    key_id, mine = made(folder, client)
    watch = mine.start(BY_NAME["Watch"], memory_pb2.WatchRequest(namespace="watched"))
    next(watch)
    keys_in(folder).file.change(
        lambda keys, _: [msgspec.structs.replace(k, namespaces=("x",)) if k.id == key_id else k for k in keys]
    )
    assert events_until_refused(watch)[1].reason == "UNAUTHENTICATED"
    assert mine.refused("List", namespace="watched").reason == "PERMISSION_DENIED"


def test_an_upload_ends_with_its_credential(folder: Path, client: Client) -> None:
    key_id, mine = made(folder, client)
    _, reader = made(folder, client)
    revoked = threading.Event()

    def messages() -> Iterator[memory_pb2.ImportRequest]:
        yield memory_pb2.ImportRequest(namespace="upload", items=[memory_pb2.MemoryItem(text="before")])
        revoked.wait(60)

    answer: list[Any] = []

    def upload() -> None:
        try:
            mine.start(BY_NAME["Import"], messages())
        except grpc.RpcError as error:
            answer.append(decode(error))

    thread = threading.Thread(target=upload)
    thread.start()
    eventually(lambda: reader.texts("upload") == ["before"], "the first message arrives")
    keys_command(folder, "revoke", key_id)
    thread.join(30)
    ended = not thread.is_alive()
    revoked.set()
    thread.join()
    assert ended and answer[0].reason == "UNAUTHENTICATED"


def test_while_the_file_is_damaged_everybody_is_refused(
    folder: Path, client: Client, server: ServerProcess
) -> None:
    keys = keys_in(folder)
    _, good = made(folder, client)
    mend = mended(keys)
    for how in ("half written", "gone", "pepper empty"):
        damages(keys)[how]()
        eventually(lambda: not is_good(good), f"refused while the file is damaged: {how}")
        refusal = good.refused("GetInfo")
        assert refusal.reason == "UNAUTHENTICATED" and refusal.message == "a valid credential is required"
        mend()
        eventually(lambda: is_good(good), "taken again once the file is mended")
    told = [line for line in server.log if "api_keys_unreadable" in line]
    assert len(told) == 3
    assert not [line for line in server.log if '"error"' in line and line not in told]


def test_nothing_secret_is_in_the_log_or_in_the_arguments(
    folder: Path, client: Client, server: ServerProcess
) -> None:
    _, good = made(folder, client)
    token = str(good.metadata[0][1]).removeprefix("Bearer ")
    good.refused("Add", b"\xff")
    secret = token.split("_", 2)[2]
    arguments = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().decode()
    digests = re.findall(r"[0-9a-f]{64}", keys_in(folder).file.path.read_text())
    assert digests
    for each in (secret, *digests):
        assert each not in "\n".join(server.log) + arguments
