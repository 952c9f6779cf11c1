"""docs/limits.md has every limit of `Limits`, with the values of the code."""

from __future__ import annotations

import dataclasses
import re

import limits_page
from memory_service.limits import Limits


def test_the_tables_are_those_that_the_code_makes() -> None:
    page = limits_page.PAGE.read_text()
    assert limits_page.with_tables(page) == page  # otherwise run tests/limits_page.py


def test_every_limit_of_callers_is_in_one_table() -> None:
    tables = (
        limits_page.INVALID_FIELD,
        limits_page.LIMIT_EXCEEDED,
        limits_page.OVERLOADED,
        limits_page.OTHERS,
    )
    named = [name for table in tables for name in table]
    assert sorted(named) == sorted(dataclasses.asdict(Limits()))


def test_a_wrong_value_on_the_page_is_noticed() -> None:
    page = limits_page.PAGE.read_text()
    for row in ("| `id_bytes_max` | 128 |", "| `--drain` | 10 |", "| `sender` (bytes) | 256 |"):
        assert row in page
        assert limits_page.with_tables(page.replace(row, row[:-2] + "9 |")) == page


def test_a_limit_of_what_callers_send_has_its_unit_in_its_name() -> None:
    unit = re.compile(
        r"_(bytes|chars|items|values|parts|labels|depth|terms|fields|fragments|documents|commands|ids"
        r"|files|names|namespaces|queries|messages|calls|streams|backups|writes|searches)_max|labels_max"
        r"|parts_max|calls_per_s_max|.*_hours"
    )
    assert [name for name in dataclasses.asdict(Limits()) if not unit.search(name)] == []
