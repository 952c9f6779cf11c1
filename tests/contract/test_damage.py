"""Damage: index files are derived. Whatever happens to them, searches answer from the records."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from contract.builders import NOW, NS, build_write, found_by_vector, random_vectors, recall, word_scores
from contract.cases import ENCRYPTED, STORES, StoreCase
from contract.conftest import Stores
from memory_service.data_model import OnDuplicate, Vector
from memory_service.store import Store

Damage = Callable[[Path, list[Path]], None]


@pytest.fixture(params=[pytest.param(case, id=case.name) for case in (*STORES, ENCRYPTED) if case.snapshots])
def case(request: pytest.FixtureRequest) -> StoreCase:
    """Each store that keeps index files."""
    chosen: StoreCase = request.param
    return chosen


class Library:
    """Two namespaces, what can be found in them, and their index files."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.live: dict[str, dict[str, Vector]] = {}
        self.words: dict[str, dict[str, float]] = {}

    @property
    def folder(self) -> Path:
        """The folder of the index files."""
        return self._stores.data_dir / "indexes"

    @property
    def files(self) -> list[Path]:
        """The index files, at least one."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        assert found, "nothing is saved, so nothing can be damaged"
        return found

    async def fill(self, store: Store, namespace: str, stream: int, count: int = 90) -> None:
        """Write items and replace and delete some; remember what is left."""
        vectors = random_vectors(count, stream=stream)
        writes = [build_write(f"i{n}", f"kiwi w{n}", vectors[n]) for n in range(count)]
        await store.add_items(namespace, writes, on_duplicate=OnDuplicate.REPLACE)
        for n in range(0, count, 9):
            await store.delete_item(namespace, f"i{n}", now_us=NOW)
        self.live[namespace] = {f"i{n}": vectors[n] for n in range(count) if n % 9}
        self.words[namespace] = await word_scores(store, "kiwi w5", namespace)

    async def check(self, store: Store) -> None:
        """Assert that every search answers as if nothing had happened."""
        for namespace, live in self.live.items():
            queries = random_vectors(10, stream=9)
            assert (await recall(store, live, queries, 10, namespace)).is_as_promised
            assert await found_by_vector(store, queries[0], namespace) == set(live)
            assert await word_scores(store, "kiwi w5", namespace) == pytest.approx(self.words[namespace])

    async def close(self) -> None:
        """Close the store, so that its files can be touched."""
        await self._stores.close()

    async def reopen_and_check(self) -> None:
        """Open, search, write, repair the files and search again."""
        store = await self._stores.open()
        await self.check(store)
        vector = random_vectors(1, stream=5)[0]
        await store.add_items(NS, [build_write("new", "plum", vector)], on_duplicate=OnDuplicate.REPLACE)
        self.live[NS]["new"] = vector
        self.words[NS] = await word_scores(store, "kiwi w5")
        await store.flush()
        await self.check(await self._stores.reopen())
        await self.close()


@pytest.fixture
async def library(store: Store, stores: Stores) -> Library:
    """A closed store with two namespaces whose index files are saved."""
    filled = Library(stores)
    await filled.fill(store, NS, stream=0)
    await filled.fill(store, "other", stream=1)
    # It erases what was deleted, and with it the files of graphs that are not in memory.
    await store.flush()
    await filled.check(store)
    await store.flush()
    await filled.close()
    return filled


def _rewrite(change: Callable[[bytearray], bytes | bytearray]) -> Damage:
    """Damage that changes the bytes of every file."""

    def damage(folder: Path, files: list[Path]) -> None:
        for path in files:
            path.write_bytes(change(bytearray(path.read_bytes())))

    return damage


def _flip(position: Callable[[int], int]) -> Damage:
    def change(content: bytearray) -> bytearray:
        if content:
            content[position(len(content))] ^= 0x10
        return content

    return _rewrite(change)


def _remove_folder(folder: Path, files: list[Path]) -> None:
    shutil.rmtree(folder)


def _remove_files(folder: Path, files: list[Path]) -> None:
    for path in files:
        path.unlink()


def _remove_every_other(folder: Path, files: list[Path]) -> None:
    _remove_files(folder, files[::2])


def _swap(folder: Path, files: list[Path]) -> None:
    # Complete and with valid checksums, but the contents of another file.
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def _swap_within_kind(folder: Path, files: list[Path]) -> None:
    for suffix in {path.suffix for path in files}:
        _swap(folder, [path for path in files if path.suffix == suffix])


def _copy_over_the_next(folder: Path, files: list[Path]) -> None:
    for source, target in pairwise(files):
        target.write_bytes(source.read_bytes())


def _add_strangers(folder: Path, files: list[Path]) -> None:
    (folder / "unknown").write_bytes(b"?")
    (folder / "unknown.tmp").write_bytes(b"")
    (folder / "99999").mkdir()
    for path in files:
        path.with_name(path.name + ".tmp").write_bytes(path.read_bytes()[:100])


def _shuffle(content: bytearray) -> bytes:
    chunks = [bytes(content[start : start + 64]) for start in range(0, len(content), 64)]
    random.Random(1).shuffle(chunks)
    return b"".join(chunks)


OF_A_FILE: dict[str, Damage] = {
    "removed": _remove_files,
    "emptied": _rewrite(lambda content: b""),
    "cut to one byte": _rewrite(lambda content: content[:1]),
    "cut to half": _rewrite(lambda content: content[: len(content) // 2]),
    "cut by one byte": _rewrite(lambda content: content[:-1]),
    "one byte longer": _rewrite(lambda content: content + b"\x00"),
    "twice": _rewrite(lambda content: content * 2),
    "first byte flipped": _flip(lambda length: 0),
    "byte of the header flipped": _flip(lambda length: min(20, length - 1)),
    "middle flipped": _flip(lambda length: length // 2),
    "last byte flipped": _flip(lambda length: length - 1),
    "zeros": _rewrite(lambda content: bytes(len(content))),
    "ones": _rewrite(lambda content: b"\xff" * len(content)),
    "noise": _rewrite(lambda content: random.Random(1).randbytes(len(content))),
    "first half zeros": _rewrite(lambda content: bytes(len(content) // 2) + content[len(content) // 2 :]),
    "second half zeros": _rewrite(lambda content: content[: len(content) // 2].ljust(len(content), b"\x00")),
    "blocks out of order": _rewrite(_shuffle),
    "text": _rewrite(lambda content: b'{"version": 1}\n'),
}
OF_THE_FOLDER: dict[str, Damage] = {
    "folder removed": _remove_folder,
    "every other file removed": _remove_every_other,
    "swapped": _swap,
    "swapped within kind": _swap_within_kind,
    "copied over the next": _copy_over_the_next,
    "strangers beside them": _add_strangers,
}


@pytest.mark.parametrize("damage", [*OF_A_FILE, *OF_THE_FOLDER])
async def test_damaged_files_change_no_search(library: Library, damage: str) -> None:
    (OF_A_FILE | OF_THE_FOLDER)[damage](library.folder, library.files)
    await library.reopen_and_check()


@pytest.mark.parametrize("damage", OF_A_FILE)
async def test_one_damaged_file_changes_no_search(
    library: Library, stores: Stores, tmp_path: Path, damage: str
) -> None:
    # One at a time, because a rejected file keeps the others from being read.
    shutil.copytree(library.folder, tmp_path / "whole")
    for at in range(len(library.files)):
        OF_A_FILE[damage](library.folder, [library.files[at]])
        await library.check(await stores.open())
        await library.close()
        shutil.rmtree(library.folder)
        shutil.copytree(tmp_path / "whole", library.folder)


async def test_a_flipped_bit_anywhere_changes_no_search(
    library: Library, stores: Stores, tmp_path: Path
) -> None:
    picks = random.Random(2)
    shutil.copytree(library.folder, tmp_path / "whole")
    for at in [at for at in range(len(library.files)) for _ in range(4)]:
        content = bytearray(library.files[at].read_bytes())
        content[picks.randrange(len(content))] ^= 1 << picks.randrange(8)
        library.files[at].write_bytes(content)
        await library.check(await stores.open())
        await library.close()
        shutil.rmtree(library.folder)
        shutil.copytree(tmp_path / "whole", library.folder)


async def test_files_of_an_earlier_revision_miss_nothing(
    library: Library, stores: Stores, tmp_path: Path
) -> None:
    shutil.copytree(library.folder, tmp_path / "kept")
    store = await stores.open()
    await library.fill(store, NS, stream=2, count=110)
    await store.flush()
    await library.close()
    shutil.rmtree(library.folder)
    shutil.copytree(tmp_path / "kept", library.folder)
    await library.reopen_and_check()


@pytest.mark.parametrize("end", ["reset", "delete"])
async def test_files_of_an_earlier_life_of_a_namespace_are_not_its_own(
    library: Library, stores: Stores, tmp_path: Path, end: str
) -> None:
    # The second life reaches the same revision and the same ids, with other vectors and words.
    shutil.copytree(library.folder, tmp_path / "kept")
    store = await stores.open()
    await (store.reset(NS) if end == "reset" else store.delete_namespace(NS))
    await library.fill(store, NS, stream=3)
    await store.flush()
    await library.close()
    shutil.copytree(tmp_path / "kept", library.folder, dirs_exist_ok=True)
    await library.reopen_and_check()


@pytest.mark.parametrize("written_on", [False, True])
async def test_files_of_a_future_that_was_undone_are_not_used(
    library: Library, stores: Stores, tmp_path: Path, written_on: bool
) -> None:
    # The records come from an older copy, the newer index files beside them stay. With further writes, the
    # namespace reaches the revisions of that future again, with other vectors.
    shutil.copytree(stores.data_dir, tmp_path / "older")
    live, words = dict(library.live), dict(library.words)
    store = await stores.open()
    await library.fill(store, NS, stream=4, count=110)
    await store.flush()
    await library.close()
    shutil.copytree(library.folder, tmp_path / "later")
    shutil.rmtree(stores.data_dir)
    shutil.copytree(tmp_path / "older", stores.data_dir)
    shutil.rmtree(library.folder)
    shutil.copytree(tmp_path / "later", library.folder)
    library.live, library.words = live, words
    if written_on:
        await library.fill(await stores.open(), NS, stream=8, count=110)
        await library.close()
    await library.reopen_and_check()


async def test_records_of_another_store_are_not_searched_through_these_files(
    library: Library, stores: Stores, tmp_path: Path
) -> None:
    # Same names, same ids, same revisions; only the contents differ.
    twin_dir = tmp_path / "twin"
    twin = Library(stores)
    store = await stores.open(twin_dir)
    await twin.fill(store, NS, stream=6)
    await twin.fill(store, "other", stream=7)
    await store.flush()
    await stores.close()
    shutil.rmtree(twin_dir / "indexes")
    shutil.copytree(library.folder, twin_dir / "indexes")
    await twin.check(await stores.open(twin_dir))
