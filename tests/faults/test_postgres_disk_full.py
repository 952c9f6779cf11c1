"""A full disk below PostgreSQL's tables: nothing grows, reads go on, and given space, writes work again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

import postgres_server
from faults.postgres_cluster import Node
from faults.test_postgres_connections import add, flags, texts, written
from grpc_api import Api, outcome, refusal
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
DISK_BYTES = 64 << 20
TEXT = "heron " * 5_000


@pytest.fixture
def disk() -> Iterator[tuple[Path, Node]]:
    """A small disk, and a database with its tables, but not its log, on that disk."""
    folder, programs = postgres_server.prepared_folder()
    small = folder / "disk"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        shutil.rmtree(folder)
        pytest.skip("a small disk can only be mounted by root")
    tables = small / "tables"
    tables.mkdir()
    postgres_server.give(tables)
    node = Node(folder, "small", programs).create().start()
    try:
        node.ask(f"CREATE TABLESPACE small LOCATION '{tables}'")
        node.ask("ALTER ROLE postgres SET default_tablespace = small")
        yield small, node
    finally:
        node.stop()
        subprocess.run(["umount", str(small)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def fill(disk: Path) -> Path:
    """Let another program take all free space."""
    stranger = disk / "stranger"
    with suppress(OSError), stranger.open("ab", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return stranger


def test_on_a_full_disk_nothing_grows_and_the_rest_goes_on(disk: tuple[Path, Node], tmp_path: Path) -> None:
    small, node = disk
    with ServerProcess(tmp_path, flags=flags(node.dsn)) as server:
        api = Api.connect(server.address)
        kept = [add(api, "full", f"{number} {TEXT}").item for number in range(20)]
        stranger = fill(small)
        refused = 0
        for number in range(50):
            # Room in the pages that there are is used up first.
            try:
                kept.append(add(api, "full", f"more {number} {TEXT}").item)
            except grpc.RpcError:
                refused += 1
            if refused > 2:
                break
        error = refusal(api.memory.Add, written("full", TEXT))
        assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")
        # Reads go on. A deletion takes room, too, if only in the log of changes.
        assert texts(api, "full") == sorted(item.text for item in kept)
        assert api.get("full", kept[0].id).text == kept[0].text
        delete = pb.DeleteRequest(namespace="full", id=kept[0].id)
        told = outcome(lambda: api.memory.Delete(delete))
        assert told in (grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED)
        kept = kept[1:] if told is grpc.StatusCode.OK else kept
        assert texts(api, "full") == sorted(item.text for item in kept)
        stranger.unlink()
        kept.append(add(api, "full", f"after {TEXT}").item)
        assert texts(api, "full") == sorted(item.text for item in kept)
        assert api.stats("full").item_count == len(kept)
        api.channel.close()
