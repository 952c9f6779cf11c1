"""A server restarts under the Python client: no caller notices, and each write is applied once."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from both_clients import connected
from memory_client import DeadlineExceeded, MemoryClient, Unavailable
from server_process import ServerProcess


class Writers:
    """Threads that add numbered items until they are stopped, each through its own client."""

    def __init__(self, address: str, kind: str, count: int) -> None:
        self._address, self._kind = address, kind
        self._ended = threading.Event()
        self._progress = threading.Condition()
        self.acknowledged = [0] * count
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        for client in connected(self._address, "ada", self._kind):
            while not self._ended.is_set() and not self.errors:
                try:
                    client.add(f"{number}/{self.acknowledged[number]}")
                    client.save_state(f"writer {number}", self.acknowledged[number])
                except BaseException as error:
                    self.errors.append(error)
                with self._progress:
                    self.acknowledged[number] += 1
                    self._progress.notify_all()

    def go_on(self, writes: int = 20) -> None:
        """Return when each thread has written this many more, or one has failed."""
        goals = [count + writes for count in self.acknowledged]
        with self._progress:
            self._progress.wait_for(
                lambda: self.errors or all(map(int.__ge__, self.acknowledged, goals)), timeout=60
            )

    def stop(self) -> None:
        """Stop the threads."""
        self._ended.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_no_call_fails_and_each_write_is_applied_once(tmp_path: Path, kind: str) -> None:
    with ExitStack() as running:
        server = running.enter_context(ServerProcess(tmp_path))
        address = server.address
        writers = Writers(address, kind, 3)
        running.callback(writers.stop)
        for end in ("terminate", "kill"):
            writers.go_on()
            getattr(server, end)()
            server = running.enter_context(ServerProcess(tmp_path, flags=["--address", address]))
        writers.go_on()
        writers.stop()
        assert not writers.errors
        with MemoryClient(address, namespace="ada") as client:
            written = [item.text for item in client.list_items(page_size=1000)]
            versions = [entry.version for entry in client.list_state_keys()]
    expected = {f"{number}/{n}" for number, count in enumerate(writers.acknowledged) for n in range(count)}
    assert len(written) == len(expected)
    assert set(written) == expected
    assert versions == writers.acknowledged


def test_how_long_a_call_waits_for_a_server_that_is_gone(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        address = server.address
        fast = MemoryClient(address, wait_for_ready=False, max_attempts=1)
        # One more attempt: the first may still be sent over the broken connection, and fail.
        patient = MemoryClient(address, timeout_s=1, max_attempts=2)
        for client in (fast, patient):
            client.add("x")
    with pytest.raises(Unavailable):
        fast.add("y")
    with pytest.raises(DeadlineExceeded):
        patient.add("y")
    # A call without a timeout does not wait for ever, and a wrong address fails immediately.
    with pytest.raises(Unavailable):
        patient.flush()
    with MemoryClient(address, max_attempts=1) as client, pytest.raises(Unavailable):
        client.add("y")
    fast.close()
    patient.close()
