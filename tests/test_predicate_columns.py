"""The columns for predicates: which are kept and dropped, and when a column may be used."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from contract.builders import NOW, NS, build_item, build_write
from memory_service.data_model import ItemFilter
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.selection import scan
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.value_column import ValueColumn
from memory_service.indexes.value_columns import COLUMNS_MAX, ValueColumns, new_column
from memory_service.indexes.view import Entry
from memory_service.predicates import Comparison, Field, FieldName, Operator, Pattern
from memory_service.records.effects import Effect
from memory_service.records.row_source import Rows, RowSource
from memory_service.records.sqlite.connection import connect
from memory_service.records.sqlite.row_source import reading
from memory_service.records.sqlite.schema import FORMAT
from memory_service.stores import SqliteStore
from memory_service.views.cache import ViewCache
from memory_service.views.snapshots import Snapshots

T = TypeVar("T")


def path(name: str) -> Field:
    return Field(FieldName.METADATA, (name,))


@pytest.mark.parametrize("distinct", [3, 2000])
@pytest.mark.parametrize("row_count", [1, 40, 2000])
def test_texts_are_compared_in_any_share_of_a_column(distinct: int, row_count: int) -> None:
    choose = Random(5)
    texts = [f"text {choose.randrange(distinct)}" for _ in range(2000)]
    column = ValueColumn()
    column.extend(texts)
    rows = slice(choose.randrange(2000 - row_count + 1), 2000)
    rows = slice(rows.start, rows.start + row_count)
    for operator, operand, test in (
        (Operator.LESS, "text 2", lambda text: text < "text 2"),
        (Operator.HAS, Pattern("1", True, False), lambda text: text.endswith("1")),
        (Operator.UNEQUAL, Pattern("text 1", False, True), lambda text: not text.startswith("text 1")),
    ):
        found = column.holds(Comparison(path("x"), operator, operand), rows)
        assert found.tolist() == [test(text) for text in texts[rows]]


def test_a_question_that_is_asked_again_is_answered_for_what_is_new() -> None:
    column = ValueColumn()
    column.extend(["a", "b", [1], [True], ["a"]])
    less, member = (Comparison(path("x"), Operator.LESS, "b"), Comparison(path("x"), Operator.HAS, 1))
    for _ in range(2):
        assert column.holds(less, slice(0, 5)).tolist() == [True, False, False, False, False]
        assert column.holds(member, slice(0, 5)).tolist() == [False, False, True, False, False]
    column.extend(["aa", "c", [1, 2]])
    column.put(0, "bb")
    assert column.holds(less, slice(0, 8)).tolist() == [False] * 5 + [True, False, False]
    assert column.holds(member, slice(0, 8)).tolist() == [
        False,
        False,
        True,
        False,
        False,
        False,
        False,
        True,
    ]
    other = Comparison(path("x"), Operator.HAS, True)
    assert column.holds(other, slice(0, 5)).tolist() == [False, False, False, True, False]


def test_the_columns_used_last_stay_and_those_in_use() -> None:
    columns = ValueColumns()
    fields = [path(f"f{n}") for n in range(COLUMNS_MAX)]
    columns.take({field: new_column(field) for field in fields})
    assert columns.lacking([fields[2]]) == []
    with columns.used([fields[0]]):
        for n in range(3):
            columns.take({path(f"more{n}"): new_column(path("more"))})
            columns.trim([])
        assert columns.lacking(fields) == [fields[1], fields[3], fields[4]]
    columns.take({field: new_column(field) for field in map(path, "abcdefghijklmnopq")})
    columns.trim([fields[5]])
    assert columns.lacking([fields[0], fields[5]]) == [fields[0]]


def test_a_column_of_texts_that_are_gone_is_dropped() -> None:
    columns, item = ValueColumns(), build_item("a", metadata={"x": "first"})
    column = new_column(path("x"))
    column.extend(["first"])
    columns.take({path("x"): column})
    most = 0
    for n in range(10_000):
        item = build_item("a", metadata={"x": f"text {n}"})
        columns.put(0, item)
        most = max(most, columns.nbytes)
    assert columns.lacking([path("x")])
    assert columns.nbytes == 0 < most < 2_000_000


async def test_a_column_is_used_when_the_view_has_come_to_its_revision(tmp_path: Path) -> None:
    # The records are read in a thread, and may be ahead by a commit that is not published yet.
    store = SqliteStore(tmp_path)
    await store.open()
    await store.add_items(NS, [build_write("a", labels={"k": "old"}, metadata={"k": "old"})])
    await store.close()
    connection = connect(tmp_path / "records.db")
    was_read = asyncio.Event()

    class Ahead(RowSource):
        records_format = FORMAT

        async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
            was_read.set()
            with reading(connection, namespace) as rows:
                return None if rows is None else work(rows)

        async def keep_manifest(self, uid: int, manifest: str) -> bool:
            return True

    cache = ViewCache(IndexSettings(), Snapshots(tmp_path / "indexes", FORMAT), Analyzer(), Ahead())
    view = await cache.get(NS)
    assert view is not None and view.revision == 1
    with closing(sqlite3.connect(tmp_path / "records.db")) as database:
        database.execute("UPDATE namespaces SET revision = 2")
        database.execute(
            """UPDATE items SET revision = 2, labels = '{"k":"new"}', metadata = '{"k":"new"}'"""
        )
        database.commit()
    was_read.clear()
    waiting = asyncio.ensure_future(cache.get(NS, [path("k")]))
    await was_read.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()

    item = build_item("a", labels={"k": "new"}, metadata={"k": "new"})
    entry = Entry(1, 2, "", NOW, None, {"k": "new"}, item.kind, b"", None, item)
    cache.publish(NS, Effect(replaced=[(entry, False)], revision=2))
    assert await waiting is view
    for value, expected in (("old", []), ("new", [1])):
        wanted = Comparison(path("k"), Operator.EQUAL, value)
        assert scan(view, ItemFilter(NOW, predicate=wanted), -1, newest=False) == expected
    # A view does not apply a commit again that it has already.
    cache.publish(NS, Effect(removed=[1], revision=2))
    assert scan(view, ItemFilter(NOW), -1, newest=False) == [1]
    await cache.close()
    connection.close()
