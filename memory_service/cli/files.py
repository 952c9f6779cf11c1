"""Commands on files: read, write, edit, rename, delete, list, search, versions, redact."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output
from memory_service.cli.options import client_command, option, own_variables
from memory_service.cli.rendering import moment, one_line
from memory_service.cli.session import CommandError, Session
from memory_service.cli.versions import confirm, row, yes_option

if TYPE_CHECKING:
    from memory_client import FileEdit, FileEntry, FileSearchResult

_expected_version = option("--expected-version", type=int, help="Only if the file has this version.")
_expected_sha256 = option("--expected-sha256", default="", help="Only if the content has this SHA-256.")


@click.group()
def files() -> None:
    """Manage text files for a model's notes: read, write, edit, delete, list, search, versions, redact."""


@files.command()
@click.argument("path")
@option("--start-line", default=0, help="First line to print, from 1; default: the first.")
@option("--end-line", default=0, help="Last line to print; default: the last.")
@option("--version", default=0, help="Version to print; default: the current one.")
@option("--max-characters", default=0, help="Maximum number of characters; default: no limit.")
@client_command
def read(session: Session, path: str, **asked: Any) -> None:
    """Print the exact content of the file PATH; with --json, all its fields."""
    found = session.client.read_file(path, **asked)
    if session.as_json:
        session.tell(found, "")
        return
    output.tell_exactly(found.content)
    if found.truncated:
        output.note(f"note: more follows after line {found.end_line} of {found.line_count}")


@files.command()
@click.argument("path")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), default="-")
@_expected_version
@_expected_sha256
@client_command
def write(session: Session, path: str, file: str, **asked: Any) -> None:
    """Write the UTF-8 text of FILE, by default stdin, to the file PATH. Print its version."""
    with click.open_file(file, "rb") as opened:
        content: bytes = opened.read()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8 text: byte {error.start} is invalid") from None
    written = session.client.write_file(path, text, **asked)
    session.tell(written, str(written.version))
    session.note(written.degraded)


@files.command()
@click.argument("path")
@option("--replace", nargs=2, metavar="OLD NEW", help="Replace OLD, which occurs exactly once, with NEW.")
@option("--insert", nargs=2, metavar="LINE TEXT", type=(int, str), help="Insert TEXT after a line; 0: first.")
@option("--append", metavar="TEXT", help="Add TEXT to the end.")
@_expected_version
@_expected_sha256
@client_command
def edit(
    session: Session,
    path: str,
    replace: tuple[str, str] | None,
    insert: tuple[int, str] | None,
    append: str | None,
    **asked: Any,
) -> None:
    """Change a part of the file PATH. Print its version."""
    written = session.client.edit_file(path, _edit_of(replace, insert, append), **asked)
    session.tell(written, str(written.version))
    session.note(written.degraded)


def _edit_of(replace: tuple[str, str] | None, insert: tuple[int, str] | None, append: str | None) -> FileEdit:
    from memory_client import AppendText, InsertText, ReplaceText

    edits: list[FileEdit] = []
    if replace is not None:
        edits.append(ReplaceText(*replace))
    if insert is not None:
        edits.append(InsertText(*insert))
    if append is not None:
        edits.append(AppendText(append))
    if not edits:
        raise click.UsageError("one of --replace, --insert and --append is required")
    if len(edits) > 1:
        raise click.UsageError("only one of --replace, --insert and --append may be given")
    return edits[0]


@files.command()
@click.argument("path")
@click.argument("new_path")
@_expected_version
@client_command
def rename(session: Session, path: str, new_path: str, expected_version: int | None) -> None:
    """Move the file PATH, or a folder with everything below it, to NEW_PATH."""
    renamed = session.client.rename_file(path, new_path, expected_version=expected_version)
    session.tell(renamed, f"renamed {renamed.renamed_count} files")


@files.command()
@click.argument("path")
@option("--recursive", is_flag=True, help="Delete a folder with everything below it.")
@_expected_version
@client_command
def delete(session: Session, path: str, **asked: Any) -> None:
    """Delete the file PATH with all its versions."""
    from memory_client import FailedPrecondition

    try:
        deleted = session.client.delete_file(path, **asked)
    except FailedPrecondition as error:
        if error.reason != "FOLDER_NOT_EMPTY":
            raise
        raise CommandError(f"{path} is a folder: delete it with --recursive ({error.reason})") from None
    session.tell(deleted, f"deleted {deleted.deleted_count} files")


@files.command("list")
@click.argument("path", default="")
@option("--depth", default=0, help="Levels to list; 0: all.")
@option("--limit", default=1000, help="Maximum number of entries; -1: all.")
@client_command
def list_files(session: Session, path: str, depth: int, limit: int) -> None:
    """Print the files and folders below PATH, by default all.

    Columns: size, time, version or number of files, path.
    """
    entries = session.client.list_files(path, depth=depth)
    for entry in itertools.islice(entries, limit if limit >= 0 else None):
        session.tell(entry, _entry_row(entry))


def _entry_row(entry: FileEntry) -> str:
    what = f"{entry.file_count} files" if entry.is_folder else f"v{entry.version}"
    row = f"{entry.size_bytes:>8} B  {moment(entry.update_time)}  {what:>12}"
    return f"{row}  {one_line(entry.path)}{'/' if entry.is_folder else ''}"


@files.command()
@click.argument("query")
@option("--path", default="", help="Only this file, or the files below this folder.")
@option("--limit", default=5, help="Maximum number of results, at most 100.")
@option("--max-characters", default=0, help="Maximum characters of all texts; default: no limit.")
@client_command
def search(session: Session, query: str, **asked: Any) -> None:
    """Print the pieces of files that match QUERY best, best first.

    Columns: score, path with lines, text.
    """
    results = session.client.search_files(query, **asked)
    for result in results:
        session.tell(result, _result_row(result))
    session.note(results.degraded)


def _result_row(result: FileSearchResult) -> str:
    where = f"{one_line(result.path)}:{result.start_line}-{result.end_line}"
    return f"{result.score:7.4f}  {where}  {one_line(result.text)}"


@files.command()
@click.argument("path")
@client_command
def versions(session: Session, path: str) -> None:
    """Print the kept versions of the file PATH, newest first: version, time, kind, writer, size, path."""
    for version in session.client.list_file_versions(path):
        session.tell(version, row(version.version, version, f"{version.size_bytes:>8} B  {version.path}"))


@files.command()
@click.argument("path")
@click.argument("version", type=int)
@yes_option
@client_command
def redact(session: Session, path: str, version: int, yes: bool) -> None:
    """Remove the content of the version VERSION of the file PATH."""
    confirm(yes, f"{path} in version {version}")
    at = session.client.redact_file_version(path, version)
    session.tell({"revision": at}, f"redacted version {version} of {one_line(path)}")


own_variables(files)
