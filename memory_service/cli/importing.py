"""The command that imports chat messages and records from a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from memory_service.cli import output
from memory_service.cli.options import client_command, option, session_option
from memory_service.cli.parameters import Label
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import MemoryServiceError
    from memory_service.cli.output import Progress
    from memory_service.importing.reading import Record

    Placed = Iterator[tuple[str, Record]]

_DUPLICATE = {"ITEM_ALREADY_EXISTS": "id", "VERSION_MISMATCH": "key"}
"""Reasons for which a record is not imported because it exists, and the metadata that names it."""


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
    from memory_service.importing import read_placed

    def read(lines: Iterable[bytes]) -> Placed:
        name = "stdin" if file == "-" else Path(file).name
        return read_placed(
            lines, name=name, format=format, session_id=session_id, omit_large_files=omit_large_files
        )

    with click.open_file(file, "rb") as opened, _progress(opened) as lines, _placed_duplicates(file, read):
        records = (record for _, record in read(lines))
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
def _placed_duplicates(file: str, read: Callable[[Iterable[bytes]], Placed]) -> Iterator[None]:
    """Report a record that exists with its place in the file, and the option for it."""
    from memory_client import MemoryServiceError

    try:
        yield
    except MemoryServiceError as error:
        if error.reason not in _DUPLICATE:
            raise
        places = _places(file, read, error)
        message = f"{places}{error}; choose with --on-duplicate skip or replace ({error.reason})"
        raise CommandError(message) from None


def _places(file: str, read: Callable[[Iterable[bytes]], Placed], error: MemoryServiceError) -> str:
    """Return where a file has the record of an error; empty if it cannot be read again.

    If the file has the record twice, either may be the one that failed.
    """
    from memory_client import MemoryItem
    from memory_service.importing import BadRecord

    if file == "-" or not Path(file).is_file():
        return ""
    named = _DUPLICATE[error.reason]
    places: list[str] = []
    with Path(file).open("rb") as lines, contextlib.suppress(BadRecord):
        for place, record in read(lines):
            of = ("id", record.id) if isinstance(record, MemoryItem) else ("key", record.key)
            if of == (named, error.metadata.get(named)):
                places.append(place)
            if len(places) == 2:
                break
    return f"{', '.join(places)}: " if places else ""


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
