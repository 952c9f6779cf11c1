"""The machine's clock jumps by days while the server serves: nothing is lost, early, late or out of order."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import libfaketime
import pytest
from google.protobuf.duration_pb2 import Duration

from faults.altered_server import command
from faults.load import SWEEP
from faults.scale import SOAK, drawn, rounds
from faults.test_linearizability import NAMESPACES, recorded, wrong_revisions
from grpc_api import SMALL_GRAPHS, Api, eventually, exactly, outcome
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2
from server_process import ServerProcess

DAY_S = 86_400
NAMESPACE = "clock"
LIBRARY = Path(libfaketime.__file__).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"


class MachineClock:
    """The clock of a server's machine. The monotonic clock is unaffected, as on a real one.

    In a soak, libfaketime sets it for the whole process. That does not work for every run: native code that
    waits until a time of day computes it from this clock, and the kernel compares it with the true one.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the clock ahead of the true time by this much."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.replace(self._file)

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that start a server with this clock."""
        if SOAK:
            return {"env": self._env}
        env = {"CLOCK_FILE": str(self._file), **SMALL_GRAPHS, **SWEEP}
        return {"env": env, "command": command("settable_clock")}

    @property
    def _env(self) -> dict[str, str]:
        """The environment that gives a server this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Otherwise the jumps also move waits on conditions that use the monotonic clock, such as Python's
            # for its GIL: they end at once, and threads spin, or they last a day.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            **SMALL_GRAPHS,
            **SWEEP,
        }


@pytest.fixture
def clock(tmp_path: Path) -> MachineClock:
    return MachineClock(tmp_path)


@pytest.fixture
def server(tmp_path: Path, clock: MachineClock) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data", **clock.how) as process:
        yield process


@pytest.fixture
def api(server: ServerProcess) -> Iterator[Api]:
    api = Api.connect(server.address)
    yield api
    api.channel.close()


def lasting(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(int(seconds * 1e9))
    return duration


def let_sweep(api: Api) -> None:
    """Wait until everything that has expired is removed: the sweep goes by the time of expiry."""
    api.add("clock/sweep", text="short", ttl=lasting(0.001))
    eventually(lambda: api.stats("clock/sweep").item_count == 0, "a sweep")


def is_there(api: Api, name: str) -> list[bool]:
    """Return whether an item and a state of this name are there, for every way to ask."""
    get, load = (
        pb.GetRequest(namespace=NAMESPACE, id=name),
        state_pb2.LoadStateRequest(namespace=NAMESPACE, key=name),
    )
    records = list(api.memory.Export(pb.ExportRequest(namespace=NAMESPACE)))
    return [
        outcome(lambda: api.memory.Get(get)) is grpc.StatusCode.OK,
        outcome(lambda: api.state.LoadState(load)) is grpc.StatusCode.OK,
        name in [item.id for item in api.items(NAMESPACE)],
        f"text of {name}" in api.found(NAMESPACE, limit=-1),
        f"text of {name}" in api.found(NAMESPACE, query_text=name, mode=pb.RETRIEVE_MODE_LEXICAL, limit=-1),
        f"text of {name}" in api.found(NAMESPACE, query_text=name, mode=pb.RETRIEVE_MODE_VECTOR, limit=-1),
        name in [record.item.id for record in records],
        name in [record.state.key for record in records],
    ]


def add(api: Api, name: str, ttl_s: float) -> None:
    api.add(NAMESPACE, id=name, text=f"text of {name}", ttl=lasting(ttl_s))
    api.save(NAMESPACE, name, name, ttl=lasting(ttl_s))


def test_nothing_ends_early_or_comes_back(clock: MachineClock, api: Api) -> None:
    add(api, "hours", 3 * 3600)
    add(api, "days", 3 * DAY_S)
    for number, ahead_s in enumerate((DAY_S, -DAY_S, 0, 365 * DAY_S)[: rounds(2, 4)]):
        clock.set(ahead_s)
        began = time.monotonic()
        add(api, f"second-{number}", 1)
        let_sweep(api)
        for name in ("hours", "days"):
            assert is_there(api, name) == [True] * 8, (name, ahead_s)
        get = pb.GetRequest(namespace=NAMESPACE, id=f"second-{number}")
        eventually(lambda: outcome(lambda: api.memory.Get(get)) is not grpc.StatusCode.OK, "its end")  # noqa: B023
        # Never early by more than a tenth, the rate at which the server's clock follows the machine's.
        assert time.monotonic() - began > 0.9
        let_sweep(api)
        for earlier in range(number + 1):
            assert not any(is_there(api, f"second-{earlier}"))


def test_revisions_and_versions_do_not_care(tmp_path: Path, clock: MachineClock) -> None:
    chance = drawn("clock jumps")
    ended = threading.Event()

    def jump(chance: random.Random) -> None:
        while not ended.wait(0.05):
            clock.set(chance.choice([0, DAY_S, -DAY_S, chance.randint(-1000, 1000)]))

    jumping = threading.Thread(target=jump, args=(random.Random(chance.random()),))
    jumping.start()
    try:
        history = recorded(tmp_path / "data", chance, rounds(250, 6000), rounds(0, 5), **clock.how)
    finally:
        ended.set()
        jumping.join()
    assert history.wrong_keys() == []
    assert [each for namespace in NAMESPACES for each in wrong_revisions(history, namespace)] == []


def test_requests_pages_and_deadlines_go_on(clock: MachineClock, server: ServerProcess, api: Api) -> None:
    for number in range(30):
        api.add(NAMESPACE, id=f"{number:02}", text=f"text {number}")
    request = pb.AddRequest(namespace=NAMESPACE, item=pb.MemoryItem(text="once"), request_id="r-1")
    first = api.memory.Add(request)
    watch = api.memory.Watch(
        pb.WatchRequest(namespace=NAMESPACE, after_revision=31, heartbeat_interval=lasting(1)), timeout=60
    )
    next(watch)
    pages = api.memory.List(pb.ListRequest(namespace=NAMESPACE, page_size=5))
    options = pb.RetrieveOptions(query_text="text", limit=-1, page_size=5)
    found = api.memory.Retrieve(pb.RetrieveRequest(namespace=NAMESPACE, options=options))
    listed, texts = list(pages.items), [r.item.text for r in found.results]
    for ahead_s in itertools.cycle((2 * DAY_S, -2 * DAY_S, 30 * DAY_S)):
        clock.set(ahead_s)
        let_sweep(api)
        # Requests are remembered for a day.
        assert exactly(api.memory.Add(request)) == exactly(first)
        if not pages.next_page_token and not found.next_page_token:
            break
        assert pages.next_page_token and found.next_page_token
        pages = api.memory.List(
            pb.ListRequest(namespace=NAMESPACE, page_size=5, page_token=pages.next_page_token)
        )
        options.page_token = found.next_page_token
        found = api.memory.Retrieve(pb.RetrieveRequest(namespace=NAMESPACE, options=options))
        listed += pages.items
        texts += [r.item.text for r in found.results]
        assert not next(watch).HasField("change")  # a heartbeat
        short = api.memory.Watch(pb.WatchRequest(namespace=NAMESPACE), timeout=0.2)
        assert outcome(lambda: list(short)) is grpc.StatusCode.DEADLINE_EXCEEDED  # noqa: B023
        assert (
            outcome(lambda: api.memory.Get(pb.GetRequest(namespace=NAMESPACE, id="00"), timeout=20))
            is grpc.StatusCode.OK
        )
    watch.cancel()
    assert len({item.id for item in listed}) == len(listed) == 31
    assert len(set(texts)) == len(texts) == 31
    assert server.terminate() == 0
