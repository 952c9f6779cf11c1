"""Generates the tables of docs/configuration.md from `serve`. `python tests/options_page.py` updates them."""

from __future__ import annotations

from pathlib import Path

import click

from limits_page import number
from memory_service.cli.serve import serve
from tables_of_docs import with_rows

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"

# The first option of each table, which extends to the first option of the next one.
TABLES = {
    "Network": "--address",
    "Storage": "--store",
    "Credentials and audit": "--auth",
    "Models": "--embedder",
    "Deciding what to remember": "--overseer-skip-tools",
}
# Phrases of help texts that link to the page with the details.
LINKS = {
    "--address": ("TLS and credentials", "security.md#open-addresses"),
    "--server-name": ("audit log", "audit.md"),
    "--health-address": ("health checks", "operations.md#health"),
    "--tls-certificate": ("Certificate", "security.md#tls"),
    "--tls-client-ca": ("full access", "security.md#open-addresses"),
    "--connection-calls-max": ("concurrent calls", "operations.md#floods"),
    "--connection-idle-s-max": ("Close a connection", "operations.md#idle-connections"),
    "--calls-per-s-max": ("Rate limit", "api.md#overload"),
    "--drain": ("shutdown", "operations.md#stopping"),
    "--store": ("a shared database", "operations.md#postgresql"),
    "--postgres-dsn": ("Passwords", "operations.md#postgresql"),
    "--encryption-key-file": ("encryption key", "security.md#encryption-at-rest"),
    "--disk-free-bytes-min": ("grow the records", "operations.md#a-full-disk"),
    "--namespace-bytes-max": ("bytes", "limits.md#bytes-of-a-namespace"),
    "--history-days": ("undo", "write-policy.md#undo"),
    "--auth": ("credentials", "security.md"),
    "--api-keys": ("the database", "security.md#api-keys"),
    "--audit": ("audit log", "audit.md"),
    "--write-policy-file": ("write rules", "write-policy.md"),
    "--quarantine-days": ("quarantine", "write-policy.md#quarantine"),
    "--embedder-timeout": ("continues without", "operations.md#embedder-outages"),
    "--reranker": ("Reranker", "retrieval.md#reranking"),
}


def _default(option: click.Option) -> str:
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    if option.default in (None, ""):
        return "–"
    if not isinstance(option.default, int | float):
        return f"`{option.default}`"
    shown, *unit = number(option.default, in_bytes="bytes" in option.opts[0]).split(" ", 1)
    return " ".join([f"`{shown}`", *unit])


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    text = (option.help or "").removesuffix(".")
    if option.opts[0] in LINKS:
        words, target = LINKS[option.opts[0]]
        assert words in text, option.opts[0]
        text = text.replace(words, f"[{words}]({target})", 1)
    return f"| {names}<br>`{option.envvar}` | {_default(option)} | {text} |"


def tables() -> dict[str, list[str]]:
    """Return the rows of each table, by the heading above it."""
    headings = {first: heading for heading, first in TABLES.items()}
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for option in serve.params:
        assert isinstance(option, click.Option)
        if option.opts[0] in headings:
            rows = found[headings[option.opts[0]]] = []
        rows.append(_row(option))
    return found


def with_tables(page: str) -> str:
    """Return the page with table rows from the options of `serve`."""
    return with_rows(page, tables())


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
