"""The command that imports chat messages and records from a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from memory_service.cli import output
from memory_service.cli.options import client_command, option, session_option
from memory_service.cli.parameters import Label
from memory_service.cli.session import Session

if TYPE_CHECKING:
    from memory_service.cli.output import Progress
    from memory_service.importing.reading import Record


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@option(
    "--format",
    type=click.Choice(["auto", "openai", "items"]),
    default="auto",
    help="Content of FILE: OpenAI messages (openai) or an export (items); auto: decide for each line.",
)
@option(
    "--on-duplicate",
    type=click.Choice(["fail", "skip", "replace"]),
    default="fail",
    help="How to handle a record whose id or key exists. Use skip to continue an interrupted import.",
)
@session_option
@option(
    "--label",
    "labels",
    type=Label(),
    multiple=True,
    help="Label to add to every item, as key=value; repeatable.",
)
@option(
    "--omit-large-files", is_flag=True, help="Omit the content of files over 1 MiB instead of rejecting them."
)
@option("--dry-run", is_flag=True, help="Read all of FILE without writing anything.")
@client_command
def import_file(
    session: Session,
    file: str,
    format: str,
    on_duplicate: str,
    session_id: str,
    labels: tuple[tuple[str, str], ...],
    omit_large_files: bool,
    dry_run: bool,
) -> None:
    """Import FILE, JSON or JSONL, into the namespace. "-" is stdin.

    Messages without a session get that of --session, or the name of the file. An invalid line ends the
    import; the lines before it may already be written.
    """
    from memory_service.importing import read_records

    name = "stdin" if file == "-" else Path(file).name
    with click.open_file(file, "rb") as opened, _progress(opened) as lines:
        records = read_records(
            lines,
            name=name,
            format=format,
            session_id=session_id,
            omit_large_files=omit_large_files,
        )
        labelled = _labelled(records, dict(labels))
        if dry_run:
            count = sum(1 for _ in labelled)
            session.tell({"readable_count": count}, f"{count} records can be imported")
            return
        summary = session.client.import_items(labelled, on_duplicate=on_duplicate)
    text = f"imported {summary.imported_count} items and {summary.imported_state_count} state keys"
    skipped = summary.skipped_count + summary.skipped_state_count
    session.tell(summary, f"{text}, skipped {skipped}")
    session.note(summary.degraded)


def _labelled(records: Iterable[Record], labels: dict[str, str]) -> Iterator[Record]:
    from memory_client import MemoryItem

    for record in records:
        if isinstance(record, MemoryItem):
            yield dataclasses.replace(record, labels={**record.labels, **labels})
        else:
            yield record


@contextlib.contextmanager
def _progress(file: IO[bytes]) -> Iterator[Iterable[bytes]]:
    """Yield the lines of the file and show the progress in bytes, on a terminal."""
    try:
        total: int | None = os.fstat(file.fileno()).st_size or None
    except (OSError, AttributeError):
        total = None  # Not a file of the operating system.
    with output.progress(total=total, desc="import", unit="B", unit_scale=True) as bar:
        yield _counted(file, bar)


def _counted(lines: Iterable[bytes], bar: Progress) -> Iterator[bytes]:
    for line in lines:
        yield line
        bar.update(len(line))
