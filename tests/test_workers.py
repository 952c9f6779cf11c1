"""`serve --workers N`: several processes over one database, with a list of addresses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_client import MemoryClient
from server_process import ServerProcess
from server_stores import flags_of
from shared_servers import needs_postgres

pytestmark = needs_postgres


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[ServerProcess]:
    flags = [*flags_of("postgres", tmp_path), "--workers", "2"]
    with ServerProcess(tmp_path, flags=flags) as process:
        yield process


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _until(happened: Callable[[], bool], timeout_s: float = 30) -> None:
    end = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_what_one_has_added_the_others_find(workers: ServerProcess) -> None:
    addresses = workers.address.split(",")
    assert len(set(addresses)) == 2
    one, other = (MemoryClient(address, namespace="shared") for address in addresses)
    with one, other, MemoryClient(workers.address, namespace="shared") as any_of_them:
        added = one.add("Ada likes green tea")
        for client in (one, other, any_of_them):
            (result,) = client.retrieve("what does Ada drink?")
            assert result.item.id == added.id


def test_one_that_ends_comes_back_at_its_address(workers: ServerProcess) -> None:
    before = _children(workers.process.pid)
    os.kill(before[0], signal.SIGKILL)
    _until(lambda: _is_gone(before[0]))
    # Meanwhile the other one serves its namespaces, and afterwards both do.
    with MemoryClient(workers.address, namespace="shared", max_attempts=5) as client:
        client.add("Ada likes green tea")
    for address in workers.address.split(","):
        with MemoryClient(address, namespace="shared", wait_for_ready=True) as client:
            assert client.retrieve("tea")
    assert len(set(_children(workers.process.pid)) - set(before)) == 1


def test_they_end_with_the_first(workers: ServerProcess) -> None:
    children = _children(workers.process.pid)
    workers.kill()
    _until(lambda: all(map(_is_gone, children)))


def test_they_end_when_told_to(tmp_path: Path) -> None:
    flags = [*flags_of("postgres", tmp_path), "--workers", "2"]
    process = ServerProcess(tmp_path, flags=flags).start()
    children = _children(process.process.pid)
    assert len(children) == 2
    assert process.terminate() == 0
    assert all(map(_is_gone, children))


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--workers", "2"], "workers needs the store postgres"),
        (["--workers", "0"], "workers must be positive"),
        (["--workers", "2", "--store", "postgres", "--address", "unix:/tmp/s"], "address must be HOST:PORT"),
        (["--workers", "3", "--store", "postgres", "--address", "127.0.0.1:65534"], "with 3 ports"),
        (["--workers", "2", "--store", "postgres", "--postgres-dsn", "host=/no"], "a worker ended with 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(tmp_path: Path, flags: list[str], told: str) -> None:
    command = [sys.executable, "-m", "memory_service", "serve", "--address", "127.0.0.1:0", "--data-dir"]
    ended = subprocess.run(
        [*command, str(tmp_path / "data"), *flags], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert told in ended.stderr
