"""Query plans without statistics: PostgreSQL finds rows by keys, in new and in grown tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import postgres_server
from contract.alternating import make_postgres
from memory_service.indexes.settings import IndexSettings
from memory_service.records.postgres import (
    checks,
    database,
    flushing,
    item_store,
    journal,
    lookups,
    row_source,
)
from memory_service.records.postgres.database import Database

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
_GONE = "unnest(%s::int[], %s::bigint[], %s::bigint[]) w(part, uid, position)"
STATEMENTS = {
    "check": checks._STATEMENT,
    "lock": lookups._LOCK,
    **lookups._STATEMENTS,
    **{f"forgotten {of}": statement.replace("{w}", _GONE) for of, statement in flushing.FORGET_KIN.items()},
    "step": journal._INFO,
    "journal": journal._JOURNAL,
    "missed": journal._MISSED,
    "missed rows": journal._ROWS,
    "rows": f"{row_source._BATCH_OF} AND i.position > %s ORDER BY i.position LIMIT 8192",
    "rows of ids": f"{row_source._BATCH_OF_IDS} AND i.position <= %s",
    "loaded items": f"SELECT i.id {row_source._LOADED}",
    "items by ids": f"SELECT i.id {item_store._OF_ITEMS}",
}
TABLES = ("namespaces", "items", "parents", "journal")
# Hundreds of pages: the planner looks at their number.
GROWN = (
    "INSERT INTO $.namespaces SELECT n % 1024, n, 'n' || n, 1, 1, 1, 1, 1, 1, 1, 1, 4, 'm', 0, 0, false, 1"
    " FROM generate_series(1, 20000) n",
    "INSERT INTO $.items SELECT 1, 1, n, 'i' || n, n, '', 1, 1, NULL, NULL, NULL, '{}', NULL, 0, NULL, NULL,"
    " '', n, NULL, 1 FROM generate_series(1, 20000) n",
    "INSERT INTO $.parents SELECT 1, 1, n, n + 1 FROM generate_series(1, 20000) n",
    "INSERT INTO $.journal SELECT 1, 1, n, n, 0, '{1}', 1 FROM generate_series(1, 20000) n",
)


BY_ID = ("items", "item_ends", "families", "since", "rows of ids", "items by ids")
# What an index must be asked for, lest a plan read all of a namespace, or of the table.
WHOLE_KEYS = {"items_by_id": r"\bid = ", "parents_pkey": r"\bparent = ", "parents_by_child": r"\bchild = "}
CONDITION = re.compile(r"using (\w+) on .*\n +Index Cond: (.*)")


class Plans:
    """Tables of a store that are never analysed."""

    def __init__(self, schema: str) -> None:
        self._database = Database(postgres_server.dsn(), schema)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(postgres_server.dsn()) as connection:
            for statement in statements:
                connection.execute(self._database.sql(statement))

    def of_all(self, options: str) -> Iterator[tuple[str, str]]:
        with psycopg.connect(postgres_server.dsn(), options=options) as connection:
            if connection.info.server_version < 160000:
                pytest.skip("it does not tell plans that are for any values")
            for name, statement in STATEMENTS.items():
                sql, number = self._database.sql(statement).decode(), iter(range(1, 100))
                generic = re.sub("%s", lambda _: f"${next(number)}", sql)  # noqa: B023 - called at once
                rows = connection.execute(f"EXPLAIN (GENERIC_PLAN) {generic}".encode()).fetchall()
                yield name, "\n".join(row[0] for row in rows)


@pytest.fixture
async def plans(tmp_path: Path) -> Plans:
    store = make_postgres(tmp_path, IndexSettings())
    await store.open()
    await store.close()
    plans = Plans(postgres_server.schema_of(tmp_path))
    for table in TABLES:
        plans.execute(f"ALTER TABLE $.{table} SET (autovacuum_enabled = off)")
    return plans


def test_plans_of_new_tables_are_good_for_large_ones(plans: Plans) -> None:
    for name, plan in plans.of_all(database._OPTIONS):
        assert "Seq Scan" not in plan, (name, plan)
        assert ("items_by_id" in plan) == (name in BY_ID), (name, plan)
        for index, condition in CONDITION.findall(plan):
            assert re.search(WHOLE_KEYS.get(index, ""), condition), (name, plan)


def test_plans_of_grown_tables_need_no_settings(plans: Plans) -> None:
    plans.execute(*GROWN)
    for name, plan in plans.of_all(""):
        for table in TABLES:
            assert not re.search(rf"Seq Scan on {table}\b", plan), (name, plan)
