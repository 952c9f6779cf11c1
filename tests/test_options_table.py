"""docs/configuration.md has every option of `serve`, with its variable, default and help text."""

from __future__ import annotations

import click

import options_page
from memory_service.cli.serve import serve


def test_the_tables_are_those_that_the_options_make() -> None:
    page = options_page.PAGE.read_text()
    assert options_page.with_tables(page) == page  # otherwise run tests/options_page.py


def test_every_option_of_serve_is_in_one_table_with_its_variable_and_a_help_text() -> None:
    rows = [row for table in options_page.tables().values() for row in table]
    options = [each for each in serve.params if isinstance(each, click.Option)]
    assert len(options) == len(serve.params)
    for option in options:
        assert option.help, option.opts[0]
        starts = f"| `{option.opts[0]}`"
        assert len([row for row in rows if row.startswith(starts) and f"`{option.envvar}` |" in row]) == 1
    assert len(rows) == len(options)


def test_every_linked_option_is_there() -> None:
    names = {option.opts[0] for option in serve.params}
    assert [name for name in (*options_page.LINKS, *options_page.TABLES.values()) if name not in names] == []


def test_a_wrong_row_on_the_page_is_noticed() -> None:
    page = options_page.PAGE.read_text()
    for row in ("`MEMORY_SERVICE_DRAIN` | `10` |", "`MEMORY_SERVICE_AUDIT_READS` | off |"):
        assert row in page
        assert options_page.with_tables(page.replace(row, row[:-2] + "9 |")) == page
