"""The command that writes a namespace to a file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from memory_service.cli import output
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import MemoryItem, StateEntry


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@option("--include-embedding", is_flag=True, help="Include the vectors of the items.")
@option("--resume", is_flag=True, help="Continue FILE.part of an interrupted export.")
@client_command
def export(session: Session, file: str, include_embedding: bool, resume: bool) -> None:
    """Write all items and states of the namespace to FILE or stdout, one JSON object per line.

    An incomplete export is in FILE.part. `memory-service import` imports the file.
    """
    if file == "-":
        if resume:
            raise click.UsageError("--resume needs a FILE")
        _write(session, output.data_stream(), include_embedding, 0)
        return
    part = Path(file + ".part")
    if resume and not part.exists():
        raise CommandError(f"there is no {part} to continue")
    with _kept_if_begun(part), part.open("r+b" if resume else "wb") as out:
        after_revision = _rewind(out) if resume else 0
        count = _write(session, out, include_embedding, after_revision)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)
    session.tell({"exported_count": count, "file": file}, f"exported {count} records to {file}")


@contextlib.contextmanager
def _kept_if_begun(part: Path) -> Iterator[None]:
    """Remove the file of an export that failed before it wrote a record: nothing can be continued."""
    try:
        yield
    except BaseException:
        if part.exists() and not part.stat().st_size:
            part.unlink()
        raise


def _write(session: Session, out: BinaryIO, include_embedding: bool, after_revision: int) -> int:
    """Write the records after a revision; return their number."""
    stats = session.client.namespace_stats()
    records = session.client.export(after_revision=after_revision, include_embedding=include_embedding)
    total = None if after_revision else stats.item_count + stats.state_count
    count = 0
    with output.progress(total=total, desc="export", unit=" records") as bar:
        for record in records:
            out.write(_line(record))
            count += 1
            bar.update()
    return count


def _line(record: MemoryItem | StateEntry) -> bytes:
    from memory_client import MemoryItem
    from memory_client.protojson import entry_to_json, item_to_json

    is_item = isinstance(record, MemoryItem)
    fields = item_to_json(record) if isinstance(record, MemoryItem) else entry_to_json(record)
    line = {"kind": "item" if is_item else "state", **fields}
    return (output.json_text(line, compact=True) + "\n").encode()


def _rewind(part: BinaryIO) -> int:
    """Truncate an interrupted export at the start of its last revision; return the revision before it.

    That revision, and even its last line, may be incomplete: both are written again.
    """
    start_of_last, last = 0, 0
    for start, revision in _revisions(part):
        if revision != last:
            start_of_last, last = start, revision
    part.seek(start_of_last)
    part.truncate()
    return max(0, last - 1)


def _revisions(part: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield the offset of each complete line, and its revision."""
    start = 0
    for line in part:
        if not line.endswith(b"\n"):
            return
        try:
            revision = int(json.loads(line)["revision"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CommandError(
                f"the line at byte {start} of the .part file is not from an export: delete the file"
            ) from None
        yield start, revision
        start += len(line)
