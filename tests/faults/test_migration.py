"""R18: folders of earlier formats open, with a copy kept before; a crash on the way leaves one that opens."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from contract.builders import (
    NOW,
    NS,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
    scan_ids,
    words_found,
)
from contract.cases import GRAPH
from contract.frozen_formats import FROZEN, of_then, read_all, read_then, write_frozen
from contract.invariants import assert_consistent
from contract.older_formats import make_older
from faults.folder_workload import Span
from faults.recorded import RecordedDisk
from faults.scale import drawn, rounds
from memory_service.data_key import DataKey
from memory_service.data_model import ChangeType, Provenance, TextPart, WritesBy
from memory_service.operations import RemoveItem
from memory_service.records.base import CannotOpen
from memory_service.records.sqlite.backups import rewrite_with_key
from memory_service.records.sqlite.schema import FORMAT
from memory_service.stores import SqliteStore

COPY = f"records-before-format-{FORMAT}.db"
EARLIER = range(1, FORMAT)
# The formats that a migration is interrupted from: one with few items as the code of the time wrote it.
INTERRUPTED = ("made 1", *(f"frozen {number}" for number in FROZEN))
VECTORS = random_vectors(60)
# Opens a folder, and ends itself at the step of this number: a statement, or a file renamed or removed.
_OPENS_AND_DIES = """
import asyncio, os, signal, sys, threading
from pathlib import Path
import apsw
from contract.cases import GRAPH
from memory_service.stores import SqliteStore

left = int(sys.argv[2])
def step(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(step))
sys.addaudithook(lambda event, _: event in ("os.rename", "os.remove") and step() and None)
async def main():
    store = SqliteStore(Path(sys.argv[1]), GRAPH)
    await store.open()
asyncio.run(main())
print("steps", int(sys.argv[2]) - left, flush=True)
os._exit(0)
"""


async def fill(data_dir: Path, number: int) -> None:
    """Write a closed data folder of an earlier format."""
    store = SqliteStore(data_dir, GRAPH)
    await store.open()
    await store.add_items(NS, [build_write(f"i{n}", f"kiwi w{n}", VECTORS[n]) for n in range(60)])
    await store.save_state(NS, build_state("k", {"v": 1}))
    await store.close()
    make_older(data_dir, number)


async def check(data_dir: Path, key: DataKey | None = None) -> None:
    """Open a folder, and assert that all is there and can be written to."""
    store = SqliteStore(data_dir, GRAPH, key)
    await store.open()
    try:
        ids = [f"i{n}" for n in range(60)]
        assert await scan_ids(store) == ids
        assert await words_found(store, "kiwi") == await found_by_vector(store, VECTORS[0]) == set(ids)
        assert set(await store.load_states(NS, ["k"])) == {"k"}
        await store.add_items(NS, [build_write("new")])
        await store.delete_item(NS, "new", now_us=0)
        await assert_consistent(store)
    finally:
        await store.close()


async def prepare(folder: str, data_dir: Path) -> None:
    """Write one of `INTERRUPTED`."""
    kind, number = folder.split()
    if kind == "made":
        await fill(data_dir, int(number))
    else:
        write_frozen(data_dir, int(number))


async def check_folder(folder: str, data_dir: Path) -> None:
    """Open what became of one of `INTERRUPTED`, and assert that all is there."""
    kind, number = folder.split()
    if kind == "made":
        await check(data_dir)
    else:
        await check_frozen(data_dir, int(number))


async def check_frozen(data_dir: Path, number: int, key: DataKey | None = None) -> None:
    """Open a frozen folder, and assert that it reads as it did."""
    store = SqliteStore(data_dir, GRAPH, key)
    await store.open()
    try:
        then, now = read_then(number), await read_all(store)
        assert of_then(now, then) == then
        await assert_consistent(store)
    finally:
        await store.close()


class Migrated(RecordedDisk):
    """A disk on which a folder of an earlier format was opened."""

    def __init__(self, folder: Path, source: Path) -> None:
        super().__init__(folder)
        self.run("faults.folder_workload", "migrate", source, self.data_dir, folder / "report")
        self.span = msgspec.json.decode((folder / "report").read_bytes(), type=Span)


def names(folder: Path) -> set[str]:
    """Return the names of what is in a folder."""
    return {path.name for path in folder.iterdir()}


def columns(records: Path) -> dict[str, list[object]]:
    """Return the columns of each table and index of a database, in any order."""
    with contextlib.closing(sqlite3.connect(records)) as database:
        return {
            name: sorted(row[1:] for row in database.execute(f"PRAGMA {kind}_xinfo({name})"))
            for kind, name in database.execute("SELECT type, name FROM sqlite_master WHERE sql NOT NULL")
        }


def shape(records: Path) -> tuple[int, str, int]:
    """Return the format of a database, its tables, and how many items it has; it must be whole."""
    with contextlib.closing(sqlite3.connect(records)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        ((number,),) = database.execute("PRAGMA user_version")
        tables = "\n".join(
            sql for (sql,) in database.execute("SELECT sql FROM sqlite_master ORDER BY name") if sql
        )
        return number, tables, database.execute("SELECT count(*) FROM items").fetchone()[0]


def run(data_dir: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    """Open a folder in a process that ends at a step."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    return subprocess.run(
        [sys.executable, "-c", _OPENS_AND_DIES, str(data_dir), str(kill_at)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("number", EARLIER)
async def test_each_earlier_format_opens_and_its_copy_does_too(tmp_path: Path, number: int) -> None:
    data_dir = tmp_path / "data"
    await fill(data_dir, number)
    before = shape(data_dir / "records.db")
    await check(data_dir)
    assert shape(data_dir / COPY) == before and before[0] == number
    # The way back: the copy in the place of the records.
    (tmp_path / "back").mkdir()
    shutil.copy(data_dir / COPY, tmp_path / "back" / "records.db")
    await check(tmp_path / "back")


@pytest.mark.parametrize("number", EARLIER)
async def test_an_encrypted_folder_of_an_earlier_format_keeps_an_encrypted_copy(
    tmp_path: Path, number: int
) -> None:
    key = DataKey(b"k" * 32)
    await fill(tmp_path / "plain", number)
    rewrite_with_key(tmp_path / "plain", None, tmp_path / "data", key)
    await check(tmp_path / "data", key)
    copy = (tmp_path / "data" / COPY).read_bytes()
    assert b"kiwi" in (tmp_path / "plain" / "records.db").read_bytes()
    assert b"kiwi" not in copy and b"SQLite format 3" not in copy
    shutil.move(tmp_path / "data" / COPY, tmp_path / "data" / "records.db")
    await check(tmp_path / "data", key)


@pytest.mark.parametrize("number", FROZEN)
async def test_a_folder_of_the_code_of_its_time_reads_as_it_did_then(tmp_path: Path, number: int) -> None:
    data_dir = tmp_path / "data"
    write_frozen(data_dir, number)
    before = shape(data_dir / "records.db")
    await check_frozen(data_dir, number)
    assert shape(data_dir / COPY) == before and before[0] == number
    (tmp_path / "back").mkdir()
    shutil.copy(data_dir / COPY, tmp_path / "back" / "records.db")
    await check_frozen(tmp_path / "back", number)


@pytest.mark.parametrize("number", FROZEN)
async def test_what_was_made_older_is_of_the_shape_that_the_code_of_the_time_gave_it(
    tmp_path: Path, number: int
) -> None:
    await fill(tmp_path / "made", number)
    write_frozen(tmp_path / "frozen", number)
    made, frozen = (columns(tmp_path / name / "records.db") for name in ("made", "frozen"))
    assert made == frozen


@pytest.mark.parametrize("number", FROZEN)
async def test_an_encrypted_folder_of_the_code_of_its_time_reads_as_it_did_then(
    tmp_path: Path, number: int
) -> None:
    key = DataKey(b"k" * 32)
    write_frozen(tmp_path / "plain", number)
    rewrite_with_key(tmp_path / "plain", None, tmp_path / "data", key)
    await check_frozen(tmp_path / "data", number, key)
    assert b"kiwi" not in (tmp_path / "data" / COPY).read_bytes()


@pytest.mark.parametrize("number", FROZEN)
async def test_what_the_code_of_its_time_wrote_is_written_to_and_repeated_as_its_own(
    tmp_path: Path, number: int
) -> None:
    write_frozen(tmp_path, number)
    store = SqliteStore(tmp_path, GRAPH)
    await store.open()
    try:
        # A response that was lost then is returned now, without applying the request again.
        request = build_request("r-delete")
        receipt = await store.delete_item(NS, "gone", now_us=NOW, request=request)
        assert receipt.replayed and receipt.revision == 23
        state = build_state("st", {"v": 1}, description="first")
        receipt = await store.save_state(NS, state, request=build_request("r-state"))
        assert (receipt.replayed, receipt.version, receipt.description) == (True, 1, "first")
        await store.replace_item(NS, build_write("a", "plum", provenance=Provenance("mallory")))
        # One of now, and of each that format 4 has kept.
        undone = await store.undo_items(NS, WritesBy(NOW, "mallory"), 0, 9, dry_run=False)
        assert undone.restored_count == (2 if number >= 4 else 1)
        items = await store.get_items(NS, ["a", "b"])
        assert items["a"].content == TextPart("a kiwi went by")
        was_kept = TextPart("another kiwi" if number >= 4 else "another kiwi, replaced")
        assert items["b"].content == was_kept
        await assert_consistent(store)
    finally:
        await store.close()


async def test_nothing_is_copied_where_nothing_is_migrated(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, GRAPH)
    for _ in range(2):
        await store.open()
        await store.close()
    assert names(tmp_path) == {"records.db", "LOCK", "indexes"}


@pytest.mark.parametrize("folder", INTERRUPTED)
async def test_a_crash_at_any_step_leaves_records_that_open(tmp_path: Path, folder: str) -> None:
    await prepare(folder, tmp_path / "older")
    before = shape(tmp_path / "older" / "records.db")
    shutil.copytree(tmp_path / "older", tmp_path / "whole")
    whole = run(tmp_path / "whole", 1_000_000)
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stdout.split()[1])
    after = shape(tmp_path / "whole" / "records.db")
    assert steps > 20 and after[0] == FORMAT
    chance = drawn(f"migration {folder}")
    seen = set()
    for kill_at in sorted({2, *chance.sample(range(1, steps + 1), min(steps, rounds(2, 1000)))}):
        data_dir = tmp_path / f"killed-{kill_at}"
        shutil.copytree(tmp_path / "older", data_dir)
        assert run(data_dir, kill_at).returncode == -signal.SIGKILL
        # As an earlier release would find it, which knows of no copy.
        shutil.copytree(data_dir, tmp_path / "look")
        found = shape(tmp_path / "look" / "records.db")
        assert found in (before, after), kill_at
        if found == after:
            assert shape(data_dir / COPY) == before, kill_at
        seen.add(found)
        shutil.rmtree(tmp_path / "look")
        await check_folder(folder, data_dir)
        assert shape(data_dir / COPY) == before and not list(data_dir.glob(".*"))
        shutil.rmtree(data_dir)
    assert before in seen


@pytest.mark.parametrize("folder", INTERRUPTED)
async def test_a_loss_of_power_at_any_time_leaves_records_that_open(tmp_path: Path, folder: str) -> None:
    await prepare(folder, tmp_path / "older")
    before = shape(tmp_path / "older" / "records.db")
    recorded = Migrated(tmp_path / "new", tmp_path / "older")
    span = recorded.span
    after = shape(recorded.data_dir / "records.db")
    assert after[0] == FORMAT
    chance = drawn(f"migration power {folder}")
    seen = set()
    cuts = [chance.randint(span.begun, span.done) for _ in range(rounds(4, 1000))]
    for cut in (span.begun, span.done, *cuts):
        recorded.lose_power(image := tmp_path / "image", chance, cut)
        # As an earlier release would find it, which knows of no copy.
        shutil.copytree(image, tmp_path / "look")
        found = shape(tmp_path / "look" / "records.db")
        shutil.rmtree(tmp_path / "look")
        assert found in (before, after), f"cut after {cut}"
        if found == after:
            assert shape(image / COPY) == before, f"cut after {cut}"
        assert cut < span.done or found == after
        seen.add(found)
        await check_folder(folder, image)
        assert shape(image / COPY) == before
    assert seen == {before, after}


@pytest.mark.parametrize("folder", INTERRUPTED)
async def test_a_loss_of_power_while_a_migration_goes_on_after_one_leaves_records_that_open(
    tmp_path: Path, folder: str
) -> None:
    await prepare(folder, tmp_path / "older")
    before = shape(tmp_path / "older" / "records.db")
    first = Migrated(tmp_path / "first", tmp_path / "older")
    after = shape(first.data_dir / "records.db")
    chance = drawn(f"migration power again {folder}")
    seen = set()
    for number in range(rounds(1, 50)):
        first.lose_power(left := tmp_path / "left", chance, chance.randint(first.span.begun, first.span.done))
        again = Migrated(tmp_path / f"{number}", left)
        for _ in range(rounds(3, 20)):
            cut = chance.randint(again.span.begun, again.span.done)
            again.lose_power(image := tmp_path / "image", chance, cut)
            shutil.copytree(image, tmp_path / "look")
            found = shape(tmp_path / "look" / "records.db")
            shutil.rmtree(tmp_path / "look")
            assert found in (before, after), f"start {number}, cut after {cut}"
            if found == after:
                assert shape(image / COPY) == before, f"start {number}, cut after {cut}"
            seen.add(found)
            await check_folder(folder, image)
            assert shape(image / COPY) == before
    assert seen <= {before, after}


async def test_without_room_for_the_copy_nothing_is_changed(tmp_path: Path) -> None:
    await fill(tmp_path, 1)
    records = tmp_path / "records.db"
    before = records.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        with pytest.raises(
            CannotOpen, match=f"no copy of them could be written to .*{COPY}.*nothing was changed"
        ):
            await SqliteStore(tmp_path, GRAPH).open()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert shape(records)[0] == 1
    assert not {name for name in names(tmp_path) if "before" in name}
    await check(tmp_path)


async def test_the_copy_is_removed_after_a_week(tmp_path: Path) -> None:
    await fill(tmp_path, 1)
    await check(tmp_path)
    day = 24 * 3600
    os.utime(tmp_path / COPY, (0, time.time() - 6 * day))
    await check(tmp_path)
    assert (tmp_path / COPY).exists()
    store = SqliteStore(tmp_path, GRAPH)
    await store.open()
    os.utime(tmp_path / COPY, (0, time.time() - 8 * day))
    await store.flush()
    assert not (tmp_path / COPY).exists()
    await store.close()


@pytest.mark.parametrize("number", [number for number in FROZEN if number >= 4])
async def test_versions_of_states_of_earlier_formats_have_their_revisions(
    tmp_path: Path, number: int
) -> None:
    write_frozen(tmp_path, number)
    store = SqliteStore(tmp_path, GRAPH)
    await store.open()
    try:
        changes = await store.read_changes(NS, 0, 1000)
        saved = [c.revision for c in changes if c.type is ChangeType.STATE_SAVED and c.subject == "st"]
        versions = await store.state_versions(NS, "st", None, 1000, now_us=NOW)
        assert [version.revision for version in versions] == saved[::-1] and len(saved) > 1
        assert [version.number for version in versions] == list(range(len(saved), 0, -1))
    finally:
        await store.close()


async def test_what_was_made_from_what_is_known_of_items_of_earlier_formats(tmp_path: Path) -> None:
    write_frozen(tmp_path, 7)
    store = SqliteStore(tmp_path, GRAPH)
    await store.open()
    try:
        for item_id, derived in (("message", [1]), ("a", []), ("b", [2])):
            receipt = await store.write(NS, [RemoveItem(item_id, NOW, derived=True)])
            assert receipt.derived_counts == derived
        assert not await store.get_items(NS, ["answer", "child", "only"])
    finally:
        await store.close()
