"""Loss of power: the audit log and the file of API keys hold what was promised."""

from __future__ import annotations

import asyncio
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from contract.builders import scan_ids
from contract.cases import GRAPH, KEY
from faults.audit_workload import FILE_BYTES_MAX, Work, open_log
from faults.key_workload import Change
from faults.recorded import RecordedDisk
from faults.scale import drawn, rounds
from grpc_api import Api
from memory_service.audit.entries import Entry
from memory_service.audit.files import HEAD, files_of
from memory_service.audit.verification import Verdict, entries, verify
from memory_service.credentials.key_changes import NewKey, create
from memory_service.credentials.key_file import FILE_NAME, KeyFile
from memory_service.credentials.key_store import BadKeys
from memory_service.data_key import KEY_VARIABLE, DataKey
from memory_service.stores import SqliteStore
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

IMAGES = rounds(10, 2000)
CONTROLS_MAX = 200
"""As in test_power_loss.py."""
# Starts after a loss of power, and how often it is lost again in each.
STARTS = rounds(2, 80)
CUTS_OF_A_START = rounds(4, 40)
KINDS: dict[str, DataKey | None] = {"plain": None, "sealed": KEY}


# --- the audit log --------------------------------------------------------------------------------


class Audited(RecordedDisk):
    """A disk on which an audit log was written."""

    def __init__(self, folder: Path, chance: random.Random, kind: str, *rest: object) -> None:
        super().__init__(folder)
        self._key = KINDS[kind]
        report = folder / "report.json"
        self.run(
            "faults.audit_workload", self.data_dir / "audit", report, chance.randrange(1 << 32), kind, *rest
        )
        done = msgspec.json.decode(report.read_bytes(), type=Work)
        self.promised, self.opening = done.promised, done.opening

    def missing(self, image: Path, cut: int) -> list[str]:
        """Return the ids of promised entries that are not in a log."""
        ids = self.ids(image)
        return [one.id for one in self.promised if one.acknowledged <= cut and one.id not in ids]

    def ids(self, image: Path) -> set[str]:
        """Return the ids in all entries of a log."""
        return {each for line in entries(image / "audit", self._key) for each in line.ids}

    def verdict(self, image: Path) -> Verdict:
        """Verify a log."""
        return verify(image / "audit", key=self._key)

    def open_again(self, image: Path) -> None:
        """Go on with a log as the next start does."""

        async def go_on() -> None:
            await open_log(image / "audit", self._key).close()

        asyncio.run(go_on())


def was_begun(image: Path) -> bool:
    """Whether there is a log: it begins with its head."""
    folder = image / "audit"
    return (folder / HEAD).exists() or (folder.exists() and bool(files_of(folder)))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_log_that_lost_power_verifies_and_has_what_was_written_ahead(
    tmp_path: Path, kind: str
) -> None:
    chance = drawn(f"audit power {kind}")
    audited = Audited(tmp_path / "new", chance, kind)
    torn = 0
    for at in range(10 * IMAGES):
        if at >= IMAGES and torn:
            break
        cut = audited.lose_power(image := tmp_path / "image", chance)
        (image / "audit").mkdir(exist_ok=True)
        assert audited.missing(image, cut) == []
        if was_begun(image):
            verdict = audited.verdict(image)
            assert verdict.problem is None, f"cut after {cut}"
            torn += verdict.torn_bytes > 0
        audited.open_again(image)
        assert audited.missing(image, cut) == []
        verdict = audited.verdict(image)
        assert (verdict.problem, verdict.torn_bytes) == (None, 0), f"cut after {cut}"
    print(f"{IMAGES} losses of power, {len(audited.promised)} entries promised, none lost; {torn} ends torn")
    assert torn  # or the test says nothing of them


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_log_that_loses_power_again_while_its_end_is_healed_has_all(
    tmp_path: Path, kind: str
) -> None:
    chance = drawn(f"audit power again {kind}")
    first = Audited(tmp_path / "first", chance, kind)
    torn = 0
    for number in range(STARTS):
        first.lose_power(left := tmp_path / "left", chance)
        (left / "audit").mkdir(exist_ok=True)
        torn += was_begun(left) and first.verdict(left).torn_bytes > 0
        shutil.rmtree(tmp_path / "healed", ignore_errors=True)
        shutil.copytree(left, healed := tmp_path / "healed")
        first.open_again(healed)
        # Not what stood behind a hole: it is cut off, and was never promised.
        kept = first.ids(healed)
        again = Audited(tmp_path / f"{number}", chance, kind, "--on", left)
        # Every second time among the first that the start does: it heals, and says so.
        early = min(again.opening + 12, len(again.records))
        for at in range(CUTS_OF_A_START):
            cut = chance.randint(again.opening, early if at % 2 else len(again.records))
            again.lose_power(image := tmp_path / "image", chance, cut)
            assert again.missing(image, cut) == [] and kept <= again.ids(image), f"start {number}, {cut}"
            if was_begun(image):
                assert again.verdict(image).problem is None, f"start {number}, cut after {cut}"
            again.open_again(image)
            assert again.missing(image, cut) == [] and kept <= again.ids(image), f"start {number}, {cut}"
            verdict = again.verdict(image)
            assert (verdict.problem, verdict.torn_bytes) == (None, 0), f"start {number}, cut after {cut}"
    print(f"{STARTS} starts, {torn} after a torn end; {CUTS_OF_A_START} losses of power in each, none lost")


@pytest.mark.parametrize("kind", KINDS)
def test_an_end_that_was_cut_off_stays_so_although_a_new_file_follows(tmp_path: Path, kind: str) -> None:
    """Unless the cut is on the disk before the new file is, it is undone in the midst of the log."""
    chance = drawn(f"audit cut off {kind}")
    left = tmp_path / "left"
    asyncio.run(fill_a_file(left / "audit", KINDS[kind]))
    ((_, path),) = files_of(left / "audit")
    with path.open("ab") as file:
        file.write(b'{"sequence":')
    again = Audited(tmp_path / "again", chance, kind, "--on", left)
    assert len(files_of(again.data_dir / "audit")) > 1
    for cut in range(again.opening, again.opening + 12):
        for _ in range(rounds(2, 40)):
            again.lose_power(image := tmp_path / "image", chance, cut)
            assert again.verdict(image).problem is None, f"cut after {cut}"


async def fill_a_file(folder: Path, key: DataKey | None) -> None:
    """Write a log that has room for less than two entries more in its only file: a start makes another."""
    log = open_log(folder, key)
    ((_, path),) = files_of(folder)
    entry_bytes = path.stat().st_size
    # And one for the end.
    while path.stat().st_size + 2 * entry_bytes <= FILE_BYTES_MAX:
        await log.write_ahead(Entry(event="intent", rpc="/s/Delete", ids=["x"]))
    await log.close()


def test_an_audit_log_that_is_not_synced_loses_what_was_promised(tmp_path: Path) -> None:
    """The control."""
    chance = drawn("audit control")
    audited = Audited(tmp_path / "unsynced", chance, "plain", "--unsynced")

    def some_are_missing() -> bool:
        cut = audited.lose_power(image := tmp_path / "image", chance)
        (image / "audit").mkdir(exist_ok=True)
        return bool(audited.missing(image, cut))

    assert any(some_are_missing() for _ in range(CONTROLS_MAX))


def test_after_a_loss_of_power_nothing_is_gone_without_an_entry(tmp_path: Path) -> None:
    """Records and audit log are synced each for itself, but never the effect before its entry."""
    chance = drawn("audit and records")
    recorded = RecordedDisk(tmp_path)
    ids = [f"i{number}" for number in range(60)]
    gone: dict[str, int] = {}
    flags = ["--audit", "--embedder", "none"]
    with ServerProcess(recorded.data_dir, flags=flags, env=recorded.disk.env) as server:
        api = Api.connect(server.address)
        items = [pb.MemoryItem(id=each, text="x") for each in ids]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace="people/ada", items=items))
        there = recorded.disk["records"]

        def delete(item_id: str) -> None:
            api.memory.Delete(pb.DeleteRequest(namespace="people/ada", id=item_id))
            gone[item_id] = recorded.disk["records"]

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(delete, ids))
        api.channel.close()
        server.kill()
    for _ in range(rounds(10, 500)):
        cut = chance.randint(there, len(recorded.records))
        recorded.lose_power(image := tmp_path / "image", chance, cut)
        left = asyncio.run(ids_in(image))
        intents = {line.ids[0] for line in entries(image / "audit") if line.event == "intent"}
        assert [each for each in ids if each not in left | intents] == [], f"cut after {cut}"
        assert [each for each in left if gone[each] <= cut] == [], f"cut after {cut}"


async def ids_in(data_dir: Path) -> set[str]:
    """The ids of the items in a folder."""
    store = SqliteStore(data_dir, GRAPH)
    await store.open()
    try:
        return set(await scan_ids(store))
    finally:
        await store.close()


# --- API keys -------------------------------------------------------------------------------------


class Keyed(RecordedDisk):
    """A disk on which API keys were made, rotated and revoked."""

    def __init__(self, folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch, *rest: str) -> None:
        super().__init__(folder)
        self._key = KINDS[kind]
        if self._key is not None:
            monkeypatch.setenv(KEY_VARIABLE, (b"k" * 32).hex())
        self.run("faults.key_workload", self.data_dir, folder / "report.json", *rest)
        self.changes = msgspec.json.decode((folder / "report.json").read_bytes(), type=list[Change])

    def wrong(self, image: Path, cut: int) -> list[str]:
        """Return completed changes that are not in effect."""
        done = [change for change in self.changes if change.done(cut)]
        try:
            good = self._good(image)
        except BadKeys as error:
            return [str(error)] if done else []
        ended = {change.ended for change in self.changes if change.begun <= cut}
        lost = [f"{c.made} is lost" for c in done if c.made and c.made not in good | ended]
        return lost + [f"{change.ended} is good again" for change in done if change.ended in good]

    def _good(self, image: Path) -> set[str]:
        ring = KeyFile(image / FILE_NAME, self._key).read()
        return {change.made for change in self.changes if change.made and ring.verify(change.made)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_of_power_takes_no_api_key_and_brings_none_back(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = drawn(f"keys power {kind}")
    keyed = Keyed(tmp_path / "new", kind, monkeypatch)
    for _ in range(IMAGES):
        cut = keyed.lose_power(image := tmp_path / "image", chance)
        assert keyed.wrong(image, cut) == [], f"cut after {cut}"
        create(KeyFile(image / FILE_NAME, KINDS[kind]), NewKey("eve", ("a/*",), ("read",)))
    assert KINDS[kind] is None or b"ada" not in (keyed.data_dir / FILE_NAME).read_bytes()


def test_keys_that_are_not_synced_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    chance = drawn("keys control")
    keyed = Keyed(tmp_path / "unsynced", "plain", monkeypatch, "--unsynced")
    assert any(
        keyed.wrong(tmp_path / "image", keyed.lose_power(tmp_path / "image", chance))
        for _ in range(CONTROLS_MAX)
    )
