"""A crash at every named step: of a commit, a snapshot, a backup, a migration and so on."""

from __future__ import annotations

import ast
import contextlib
import json
import signal
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

import memory_service
from contract.older_formats import make_older
from faults.load import SWEEP, Writer, all_writers, check_all, under_load
from faults.scale import SOAK, drawn
from grpc_api import SMALL_GRAPHS, Api, eventually
from memory_service.records.sqlite.schema import FORMAT
from memory_service.runtime.failpoints import VARIABLE
from server_process import ServerProcess

SETTINGS = {**SMALL_GRAPHS, **SWEEP}
AT_START = ("open", "migration")
AT_THE_END = ("close",)


def points_in_the_code() -> list[str]:
    """Return the name of every failpoint: each is a literal where it is reached."""
    names = []
    for path in sorted(Path(memory_service.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text()) if "/v1/" not in str(path) else ast.Module()):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reach":
                (name,) = node.args
                assert isinstance(name, ast.Constant), path
                names.append(str(name.value))
    return names


POINTS = points_in_the_code()


def subject(point: str) -> str:
    return point.partition(".")[0]


def server_at(data_dir: Path, *armed: str) -> ServerProcess:
    return ServerProcess(data_dir, env={**SETTINGS, VARIABLE: ",".join(armed)})


def load_until_dead(server: ServerProcess, writers: Sequence[Writer]) -> None:
    with under_load(server.address, writers):
        server.process.wait(timeout=60)


def crash_at(point: str, times: int, data_dir: Path, writers: Sequence[Writer]) -> None:
    """Kill a server at a failpoint, during an operation that reaches it."""
    server = server_at(data_dir, f"{point}=kill:{times}")
    if subject(point) in AT_START:
        with pytest.raises(RuntimeError, match=f"ended with {-signal.SIGKILL}"):
            server.start()
        return
    with server:
        if subject(point) in AT_THE_END:
            assert server.terminate() == -signal.SIGKILL
        else:
            load_until_dead(server, writers)
            assert server.process.returncode == -signal.SIGKILL


def noted(server: ServerProcess) -> set[str]:
    lines = [json.loads(line) for line in list(server.log) if '"failpoint"' in line]
    return {line["name"] for line in lines}


def make_older_by_one(data_dir: Path) -> None:
    """Turn the data into those of the previous release."""
    with contextlib.closing(sqlite3.connect(data_dir / "records.db")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    make_older(data_dir, FORMAT - 1)


def with_older_data(data_dir: Path, writers: Sequence[Writer]) -> None:
    """Stop with data of the previous format."""
    with server_at(data_dir) as server:
        api = Api.connect(server.address)
        check_all(api, writers)
        api.channel.close()
        assert server.terminate() == 0
    make_older_by_one(data_dir)


def test_every_point_has_a_name_of_its_own() -> None:
    assert len(set(POINTS)) == len(POINTS)
    subjects = "backup checkpoint close commit migration open reembedding reset snapshot sweep"
    assert {subject(point) for point in POINTS} == set(subjects.split())


def test_every_point_is_reached_under_load(tmp_path: Path) -> None:
    writers = all_writers(drawn("points"))
    with_older_data(tmp_path, writers)
    at_the_end = {point for point in POINTS if subject(point) in AT_THE_END}
    with server_at(tmp_path, "*=note") as server:
        with under_load(server.address, writers):
            eventually(
                lambda: noted(server) >= set(POINTS) - at_the_end,
                f"{set(POINTS) - at_the_end} to be reached",
            )
            server.terminate()
    assert noted(server) == set(POINTS)


def drawn_points() -> list[str]:
    """Return some of them in every run, one for each subject; all of them in a soak."""
    if SOAK:
        return POINTS
    chance = drawn("drawn points")
    subjects = chance.sample(sorted({subject(point) for point in POINTS} - {"commit"}), 3)
    return [chance.choice([p for p in POINTS if subject(p) == one]) for one in ("commit", *subjects)]


@pytest.mark.timeout(1200)
def test_a_crash_at_any_point_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = drawn("crashes at points")
    writers = all_writers(chance)
    for point in drawn_points():
        print("crash at", point)  # shown when the test fails
        if subject(point) == "migration":
            with_older_data(tmp_path, writers)
        once = subject(point) in (*AT_START, *AT_THE_END, "backup", "checkpoint", "reembedding")
        crash_at(point, 1 if once else chance.randint(1, 3), tmp_path, writers)
        with server_at(tmp_path) as server:
            api = Api.connect(server.address)
            check_all(api, writers)
            api.channel.close()
        backups = tmp_path / "backups"
        assert not list(backups.glob(".*"))


def test_what_is_no_failpoint_is_refused() -> None:
    for wrong in ("commit.after_commit", "commit.after_commit=kill:0", "*=kill", "x=wait"):
        with pytest.raises(RuntimeError, match="is not NAME=kill"):
            ServerProcess(flags=["--store", "memory"], env={VARIABLE: wrong}).start()
