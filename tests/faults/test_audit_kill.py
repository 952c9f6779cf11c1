"""kill -9 under load: the audit log verifies, and nothing was removed without an entry."""

from __future__ import annotations

import random
import secrets
import threading
from pathlib import Path

import grpc
import pytest

from credentials import write_secret
from faults.scale import drawn, rounds
from grpc_api import Api
from memory_service.audit.files import files_of
from memory_service.audit.verification import entries, verify
from memory_service.data_key import read_key
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

THREADS = 4
ROUNDS = rounds(1, 20)
CUT_OFF = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
FLAGS = ["--audit", "--embedder", "none"]


class Writer(threading.Thread):
    """Adds an item and deletes it, repeatedly, until the server is gone."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        super().__init__()
        self._api = Api.connect(server.address)
        self._prefix = name
        self.deleted: list[str] = []
        self.ended: grpc.StatusCode | None = None
        self.progress = threading.Semaphore(0)

    def run(self) -> None:
        number = 0
        try:
            while True:
                item_id = f"{self._prefix}-{number}"
                self._api.add("n", id=item_id, text="x")
                self._api.memory.Delete(pb.DeleteRequest(namespace="n", id=item_id))
                self.deleted.append(item_id)
                self.progress.release()
                number += 1
        except grpc.RpcError as error:
            self.ended = error.code()
        finally:
            self.progress.release()
            self._api.channel.close()


def load_until_killed(server: ServerProcess, chance: random.Random, round_number: int) -> list[str]:
    """Kill the server after some deletes, and return the ids whose deletion was acknowledged."""
    writers = [Writer(server, f"{round_number}-{number}") for number in range(THREADS)]
    for writer in writers:
        writer.start()
    for _ in range(chance.randint(1, 40)):
        writers[0].progress.acquire()
    server.kill()
    for writer in writers:
        writer.join()
        assert writer.ended in CUT_OFF
    return [item_id for writer in writers for item_id in writer.deleted]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_log_of_killed_servers_verifies_and_has_every_delete(tmp_path: Path, sealed: bool) -> None:
    chance = drawn(f"audit-kill {sealed}")
    data_dir, folder = tmp_path / "data", tmp_path / "data" / "audit"
    key_file = tmp_path / "key"
    write_secret(key_file, secrets.token_hex(32))
    key = read_key(key_file) if sealed else None
    flags = [*FLAGS, "--encryption-key-file", str(key_file)] if sealed else FLAGS
    deleted: list[str] = []
    torn = 0
    for number in range(ROUNDS):
        with ServerProcess(data_dir, flags=flags) as server:
            deleted += load_until_killed(server, chance, number)
        assert verify(folder, key=key).problem is None
        # A loss of power can leave half a line, a kill cannot: here it is simulated.
        if number == 0 or chance.random() < 0.5:
            with files_of(folder)[-1][1].open("ab") as file:
                file.write(b'{"sequence":' + b"7" * chance.randint(0, 90))
            torn += 1
            assert verify(folder, key=key).problem is None
    with ServerProcess(data_dir, flags=flags) as server:
        server.terminate()
    verdict = verify(folder, key=key)
    assert verdict.problem is None
    assert len(verdict.healed) == torn
    assert verdict.sealed_count == (verdict.entry_count if sealed else 0)
    intents = {line.ids[0] for line in entries(folder, key) if line.event == "intent"}
    assert deleted
    assert [item_id for item_id in deleted if item_id not in intents] == []
    print(f"{ROUNDS} kills, {len(deleted)} deletes acknowledged, each of them in the log;")
    print(f"{verdict.entry_count} entries in {verdict.file_count} files verified, {torn} torn lines healed")
