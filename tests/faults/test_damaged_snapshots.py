"""Damaged snapshots of graphs and of views, in files or manifests: no crash and no wrong answer."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.builders import (
    build_write,
    found_by_vector,
    random_vectors,
    recall,
    scan_ids,
    word_scores,
    words_found,
)
from contract.cases import GRAPH
from faults.scale import drawn, rounds
from grpc_api import SMALL_GRAPHS, Connect
from logged_events import logged_events
from memory_service.data_model import OnDuplicate
from memory_service.records.sqlite.schema import FORMAT
from memory_service.stores import SqliteStore
from memory_service.v1 import memory_pb2 as pb
from memory_service.views.snapshots import Snapshots, checksum
from server_process import ServerProcess

NAMESPACES = ("ada", "bob")
PARTS = ("graph", "slots", "columns")
DIMENSION = 16
COUNT = 150
QUERIES = random_vectors(10, DIMENSION, stream=9)


def vectors_of(namespace: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the vectors of a namespace's items, by number."""
    return random_vectors(COUNT, DIMENSION, stream=NAMESPACES.index(namespace))


async def fill(data_dir: Path, dimension: int = DIMENSION, count: int = COUNT) -> None:
    """Make a data directory with saved graphs in its namespaces."""
    store = SqliteStore(data_dir, GRAPH)
    await store.open()
    for namespace in NAMESPACES:
        vectors = vectors_of(namespace)[:count, :dimension]
        await store.add_items(
            namespace,
            [build_write(f"i{n}", f"kiwi w{n}", vector, **fields_of(n)) for n, vector in enumerate(vectors)],
            on_duplicate=OnDuplicate.REPLACE,
        )
    await store.flush()
    await store.close()


def fields_of(number: int) -> dict[str, Any]:
    """Return the other fields of an item."""
    return {"session_id": f"s{number % 3}", "labels": {"topic": f"t{number % 5}"}}


class Saved:
    """A data directory whose server has stopped."""

    def __init__(self, data_dir: Path, chance: random.Random) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / "indexes"
        self.chance = chance

    def manifests(self) -> dict[int, Any]:
        """Return the manifests, by the uid of their namespace."""
        with closing(sqlite3.connect(self.data_dir / "records.db")) as database:
            return {
                uid: json.loads(text) for uid, text in database.execute("SELECT uid, manifest FROM snapshots")
            }

    def record(self, uid: int, manifest: Any) -> None:
        """Replace a namespace's manifest; anything but text is stored as JSON."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        # Closed at once: closing later would take the log from an open store.
        with closing(sqlite3.connect(self.data_dir / "records.db")) as database, database:
            database.execute("UPDATE snapshots SET manifest = ? WHERE uid = ?", (text, uid))

    def files(self, part: str) -> list[Path]:
        """Return the files of one kind, one for each namespace."""
        found = [self.folder / manifest[part]["name"] for manifest in self.manifests().values()]
        assert len(found) == len(NAMESPACES) and all(path.exists() for path in found)
        return found

    def sign(self) -> None:
        """Update the sizes and checksums in the manifests to match the files."""
        for uid, manifest in self.manifests().items():
            for part in PARTS:
                path = self.folder / manifest[part]["name"]
                manifest[part] |= {"size_bytes": path.stat().st_size, "checksum": checksum(path)}
            self.record(uid, manifest)


Damage = Callable[[Saved], None]
Change = Callable[[bytearray, random.Random], bytes | bytearray]


def _flipped(content: bytearray, at: int) -> bytearray:
    content[at] ^= 0x10
    return content


def _header(at: int, value: int) -> Change:
    """Put another number at this place in hnswlib's header."""

    def change(content: bytearray, _: random.Random) -> bytearray:
        struct.pack_into("<Q", content, 8 * at, value)
        return content

    return change


CHANGES: dict[str, Change] = {
    "torn at a sector": lambda content, chance: content[: chance.randrange(512, len(content), 512)],
    "torn in the middle": lambda content, _: content[: len(content) // 2],
    "torn by a byte": lambda content, _: content[:-1],
    "torn to a byte": lambda content, _: content[:1],
    "torn to nothing": lambda content, _: b"",
    "a sector of zeros": lambda content, _: content[:512] + bytes(512) + content[1024:],
    "flipped at the start": lambda content, _: _flipped(content, 0),
    "flipped in the header": lambda content, _: _flipped(content, 20),
    "flipped in the middle": lambda content, _: _flipped(content, len(content) // 2),
    "flipped at the end": lambda content, _: _flipped(content, -1),
    "flipped anywhere": lambda content, chance: _flipped(content, chance.randrange(len(content))),
    "longer": lambda content, _: content + bytes(512),
    "noise": lambda content, chance: chance.randbytes(len(content)),
}
SIGNED: dict[str, Change] = {
    "torn in the middle": CHANGES["torn in the middle"],
    "torn to nothing": CHANGES["torn to nothing"],
    "noise": CHANGES["noise"],
    "more vectors than there are": _header(2, 1 << 40),
    "larger elements": _header(3, 1 << 20),
}


def _header_of_columns(**changes: Any) -> Change:
    """Change something in the header of a file of columns."""

    def change(content: bytearray, _: random.Random) -> bytes:
        source = io.BytesIO(content)
        header = json.loads(np.load(source).tobytes()) | changes
        target = io.BytesIO()
        np.save(target, np.frombuffer(json.dumps(header).encode(), np.uint8))
        return target.getvalue() + source.read()

    return change


def _array_of_columns(
    at: int, change_array: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> Change:
    """Replace the array at this place in a file of columns; the header has place 0."""

    def change(content: bytearray, _: random.Random) -> bytes:
        source, target = io.BytesIO(content), io.BytesIO()
        for place in itertools.count():
            if source.tell() == len(content):
                return target.getvalue()
            array = np.load(source)
            np.save(target, change_array(array) if place == at else array)
        raise AssertionError

    return change


# The places of arrays in a file of columns.
POSITIONS, VECTOR_KEYS, SESSIONS, ROW_DOC, KINDS, LABEL_ROWS = 1, 2, 6, 8, 9, 12
SIGNED_COLUMNS: dict[str, Change] = {
    **{name: CHANGES[name] for name in ("torn in the middle", "torn by a byte", "torn to nothing", "longer")},
    **{name: CHANGES[name] for name in ("noise", "flipped at the start", "flipped in the header")},
    "of another format": _header_of_columns(format=99),
    "of a later format": _header_of_columns(format=99, sessions=7),
    "of other records": _header_of_columns(records_format=3),
    "of another namespace": _header_of_columns(uid=99),
    "of a later revision": _header_of_columns(revision=1 << 30),
    "of an earlier revision": _header_of_columns(revision=COUNT - 1),
    "of another model": _header_of_columns(vector_epoch=7),
    "of more segments": _header_of_columns(segment_count=9),
    "of fewer segments": _header_of_columns(segment_count=0),
    "of fewer sessions": _header_of_columns(sessions=["", "s0"]),
    "of the same sessions": _header_of_columns(sessions=["", "s0", "s0", "s0"]),
    "of fewer labels": _header_of_columns(labels=[["topic", "t0"]]),
    "with fewer rows": _array_of_columns(POSITIONS, lambda array: array[1:]),
    "in another order": _array_of_columns(POSITIONS, lambda array: array[::-1]),
    "of positions that are not there": _array_of_columns(POSITIONS, lambda array: array - 1),
    "of other types": _array_of_columns(VECTOR_KEYS, lambda array: array.astype(np.float32)),
    "of other shapes": _array_of_columns(VECTOR_KEYS, lambda array: np.stack([array, array])),
    "of sessions that are not there": _array_of_columns(SESSIONS, lambda array: array + 1000),
    "of documents that are not there": _array_of_columns(ROW_DOC, lambda array: array + 1),
    "of one document": _array_of_columns(ROW_DOC, lambda array: array * 0),
    "of kinds that are not there": _array_of_columns(KINDS, lambda array: array - 1),
    "of labelled rows that are not there": _array_of_columns(LABEL_ROWS, lambda array: array + 100_000),
    "of terms that are not there": _array_of_columns(13, lambda array: array[:-1]),
    "of postings elsewhere": _array_of_columns(14, lambda array: array + 1),
    "of postings that go back": _array_of_columns(14, lambda array: array[::-1].copy()),
    "of postings of documents that are not there": _array_of_columns(15, lambda array: array + 1_000_000),
    "of postings before the first": _array_of_columns(15, lambda array: array - 1_000_000),
    "of postings without counts": _array_of_columns(16, lambda array: array[1:]),
}

# Each takes a second, and all of them are rejected when the file is read.
CHECKED_COLUMNS = drawn("checked").sample(sorted(SIGNED_COLUMNS), rounds(6, len(SIGNED_COLUMNS)))


def _of_files(part: str, change: Change, *, sign: bool = False) -> Damage:
    def damage(saved: Saved) -> None:
        for path in saved.files(part):
            path.write_bytes(change(bytearray(path.read_bytes()), saved.chance))
        if sign:
            saved.sign()

    return damage


def _missing(*parts: str) -> Damage:
    return lambda saved: [path.unlink() for part in parts for path in saved.files(part)] and None


def _swapped(*parts: str) -> Damage:
    """Give each namespace the files of the other, which have the same size."""

    def damage(saved: Saved) -> None:
        for part in parts:
            one, other = saved.files(part)
            kept = one.read_bytes()
            one.write_bytes(other.read_bytes())
            other.write_bytes(kept)

    return damage


def _signed(damage: Damage) -> Damage:
    def signed(saved: Saved) -> None:
        damage(saved)
        saved.sign()

    return signed


def _swapped_manifests(saved: Saved) -> None:
    (one, first), (other, second) = saved.manifests().items()
    saved.record(one, second)
    saved.record(other, first)


def _manifest(change: Callable[[Any], Any]) -> Damage:
    def damage(saved: Saved) -> None:
        for uid, manifest in saved.manifests().items():
            saved.record(uid, change(manifest))

    return damage


def _of_another_store(dimension: int, count: int) -> Damage:
    """Use files that are complete and signed, but have vectors of another dimension, or fewer."""

    def damage(saved: Saved) -> None:
        asyncio.run(fill(saved.data_dir.with_name("another"), dimension, count))
        another = Saved(saved.data_dir.with_name("another"), saved.chance)
        for part in PARTS:
            for path, source in zip(saved.files(part), another.files(part), strict=True):
                path.write_bytes(source.read_bytes())
        saved.sign()

    return damage


def _stale(*, with_manifests: bool) -> Damage:
    """Restore an earlier snapshot after all of its vectors were replaced."""

    def damage(saved: Saved) -> None:
        whole = saved.data_dir.with_name("earlier")
        shutil.copytree(saved.folder, whole)
        manifests = saved.manifests()
        asyncio.run(write_again(saved.data_dir))
        for part in PARTS:
            for path, manifest in zip(saved.files(part), manifests.values(), strict=True):
                earlier = whole / manifest[part]["name"]
                path.write_bytes(earlier.read_bytes())
                (saved.folder / earlier.name).write_bytes(earlier.read_bytes())
        if with_manifests:
            for uid, manifest in manifests.items():
                saved.record(uid, manifest)

    return damage


async def write_again(data_dir: Path) -> None:
    """Give every item another item's vector, and then its own one again."""
    store = SqliteStore(data_dir, GRAPH)
    await store.open()
    for namespace in NAMESPACES:
        for vectors in (vectors_of(namespace)[::-1], vectors_of(namespace)):
            await store.add_items(
                namespace,
                [
                    build_write(f"i{n}", f"kiwi w{n}", vector, **fields_of(n))
                    for n, vector in enumerate(vectors)
                ],
                on_duplicate=OnDuplicate.REPLACE,
            )
        # Only a graph in memory is saved again.
        await found_by_vector(store, QUERIES[0], namespace)
    await store.flush()
    await store.close()


def _remove_folder(saved: Saved) -> None:
    shutil.rmtree(saved.folder)


DAMAGES: dict[str, Damage] = {
    **{f"graph {name}": _of_files("graph", change) for name, change in CHANGES.items()},
    **{f"slots {name}": _of_files("slots", change) for name, change in CHANGES.items()},
    **{f"columns {name}": _of_files("columns", change) for name, change in CHANGES.items()},
    **{
        f"signed columns {name}": _of_files("columns", change, sign=True)
        for name, change in SIGNED_COLUMNS.items()
        if name in CHECKED_COLUMNS
    },
    **{f"signed graph {name}": _of_files("graph", change, sign=True) for name, change in SIGNED.items()},
    "signed slots torn": _of_files("slots", CHANGES["torn in the middle"], sign=True),
    "signed slots noise": _of_files("slots", CHANGES["noise"], sign=True),
    "graph missing": _missing("graph"),
    "slots missing": _missing("slots"),
    "columns missing": _missing("columns"),
    "graph and columns missing": _missing("graph", "columns"),
    "all missing": _missing(*PARTS),
    "folder missing": _remove_folder,
    "graph of the other namespace": _swapped("graph"),
    "slots of the other namespace": _swapped("slots"),
    "columns of the other namespace": _swapped("columns"),
    "signed columns of the other namespace": _signed(_swapped("columns")),
    "files of the other namespace": _swapped(*PARTS),
    "manifest of an earlier release": _manifest(lambda manifest: manifest | {"columns": None}),
    "manifest of the other namespace": _swapped_manifests,
    "manifest of another version": _manifest(lambda manifest: manifest | {"format": 99}),
    "manifest of a later version": _manifest(lambda manifest: {"format": 99, "files": []}),
    "manifest that is no JSON": _manifest(lambda manifest: '{"format": 1, "uid":'),
    "manifest of another dimension": _manifest(lambda manifest: manifest | {"dimension": 8}),
    "manifest of files elsewhere": _manifest(
        lambda manifest: manifest | {"graph": manifest["graph"] | {"name": "../records.db"}}
    ),
    "signed files of another dimension": _of_another_store(8, COUNT),
    "signed files of a larger index": _of_another_store(DIMENSION, 60),
    "stale files": _stale(with_manifests=False),
    "stale files and manifests": _stale(with_manifests=True),
}  # fmt: skip


async def check(data_dir: Path) -> None:
    """Check that every search answers from the records, now and after the files are repaired."""
    for _ in range(2):
        store = SqliteStore(data_dir, GRAPH)
        await store.open()
        for namespace in NAMESPACES:
            live = {f"i{n}": vector for n, vector in enumerate(vectors_of(namespace))}
            # Each score is also compared with the exact one.
            assert (await recall(store, live, QUERIES, 10, namespace)).is_as_promised
            assert await found_by_vector(store, QUERIES[0], namespace) == set(live)
            assert await words_found(store, "kiwi", namespace) == set(live)
            scores = await word_scores(store, "w7", namespace)
            # The word also counts for its neighbours in the conversation.
            assert max(scores, key=lambda item_id: scores[item_id]) == "i7" and len(scores) == 6
            by_session = await scan_ids(store, namespace, session_id="s1")
            assert by_session == [f"i{n}" for n in range(1, COUNT, 3)]
            assert await scan_ids(store, namespace, labels=(("topic", "t2"),)) == [
                f"i{n}" for n in range(2, COUNT, 5)
            ]
        await store.flush()
        await store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged data directory."""
    data_dir = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(fill(data_dir))
    return data_dir


def test_a_whole_snapshot_is_used(whole: Path, tmp_path: Path) -> None:
    """Otherwise the other tests prove nothing. Damaged ones are refused. A graph shows neither: it is soon
    rebuilt.
    """

    async def search(data_dir: Path) -> None:
        store = SqliteStore(data_dir, GRAPH)
        await store.open()
        await found_by_vector(store, QUERIES[0], NAMESPACES[0])
        await store.close()

    cases: list[tuple[Damage, bool]] = [(lambda _: None, False), (DAMAGES["graph flipped anywhere"], True)]
    for at, (damage, refused) in enumerate(cases):
        shutil.copytree(whole, tmp_path / str(at))
        damage(Saved(tmp_path / str(at), drawn("used")))
        with logged_events() as logged:
            asyncio.run(search(tmp_path / str(at)))
        assert any(entry["event"] == "index_snapshot_refused" for entry in logged) == refused


def test_whole_columns_are_used(whole: Path, tmp_path: Path) -> None:
    """Damaged ones are not: the words are missing from the records here, which shows what was used."""

    async def found(data_dir: Path) -> set[str]:
        store = SqliteStore(data_dir, GRAPH)
        await store.open()
        found = await words_found(store, "kiwi", NAMESPACES[0])
        await store.close()
        return found

    damages: dict[str, Damage] = {
        "none": lambda _: None,
        "flipped": DAMAGES["columns flipped anywhere"],
        "of other records": _of_files("columns", SIGNED_COLUMNS["of other records"], sign=True),
    }
    for at, (name, damage) in enumerate(damages.items()):
        data_dir = tmp_path / str(at)
        shutil.copytree(whole, data_dir)
        damage(Saved(data_dir, drawn(name)))
        with sqlite3.connect(data_dir / "records.db") as database:
            database.execute("UPDATE items SET terms = x''")
        database.close()
        assert bool(asyncio.run(found(data_dir))) == (name == "none"), name


@pytest.mark.parametrize("damage", SIGNED_COLUMNS)
def test_columns_that_do_not_fit_are_refused_although_they_are_signed(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    shutil.copytree(whole, tmp_path / "data")
    saved = Saved(tmp_path / "data", drawn(damage))
    snapshots = Snapshots(tmp_path / "data" / "indexes", FORMAT)
    for uid, manifest in saved.manifests().items():
        assert snapshots.load_columns(uid, json.dumps(manifest)) is not None
    _of_files("columns", SIGNED_COLUMNS[damage], sign=True)(saved)
    for uid, manifest in saved.manifests().items():
        frozen = snapshots.load_columns(uid, json.dumps(manifest))
        # Errors that only a comparison with the records reveals are found later.
        assert frozen is None or damage in ("of a later revision", "of another model")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_changes_no_answer(whole: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(whole, tmp_path / "data")
    DAMAGES[damage](Saved(tmp_path / "data", drawn(damage)))
    asyncio.run(check(tmp_path / "data"))


def test_a_server_answers_over_damaged_snapshots(whole: Path, tmp_path: Path, connect: Connect) -> None:
    chance, searches = drawn("served"), 0
    damages = chance.sample(sorted(DAMAGES), rounds(1, len(DAMAGES)))
    for damage in damages:
        folder = tmp_path / damage.replace(" ", "-")
        shutil.copytree(whole, folder / "data")
        DAMAGES[damage](Saved(folder / "data", chance))
        with ServerProcess(folder / "data", flags=["--embedder", "none"], env=SMALL_GRAPHS) as server:
            api = connect(server)
            for namespace in NAMESPACES:
                vectors = vectors_of(namespace)
                for number in range(0, COUNT, 30):
                    best = api.found(
                        namespace, query_embedding=pb.Embedding(values=vectors[number].tolist()), limit=1
                    )
                    assert best == [f"kiwi w{number}"], damage
                    searches += 1
            assert server.terminate() == 0
    print(f"{len(damages)} damages met by servers, {searches} searches: no crash, no wrong answer")
