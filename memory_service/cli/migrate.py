"""The command that migrates a data folder to PostgreSQL."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli import output
from memory_service.cli.encryption import given_key, key_file_option
from memory_service.cli.options import option
from memory_service.cli.session import CommandError

if TYPE_CHECKING:
    from memory_service.data_key import DataKey
    from memory_service.migration.to_postgres import Moved


_PAGE_TOKENS = "page tokens"


@click.command()
@option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    variable="MIGRATE_FROM",
    help="Data folder that no server uses, or a backup; it stays unchanged.",
)
@option(
    "--to",
    "dsn",
    default="",
    variable="POSTGRES_DSN",
    help="Database to write to, as for `serve --postgres-dsn`.",
)
@option(
    "--schema",
    default="memory_service",
    variable="POSTGRES_SCHEMA",
    help="Database schema for the tables; created if missing.",
)
@key_file_option
@option("--start-over", is_flag=True, help="Discard an unfinished migration to this schema.")
@option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def migrate(
    folder: Path, dsn: str, schema: str, encryption_key_file: Path | None, start_over: bool, as_json: bool
) -> None:
    """Copy all records of a data folder to PostgreSQL, for `serve --store postgres`.

    The records become visible after all rows have been read back and compared. An interrupted migration
    continues when run again. No server may use the schema meanwhile. If the source is a backup, its server
    may keep running, but later writes are not migrated.
    """
    from memory_service.errors import MemoryServiceError
    from memory_service.records.base import CannotOpen
    from memory_service.records.sqlite.backup_checks import NotRestorable

    try:
        from memory_service.migration.to_postgres import NotEqual, migrate
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise CommandError('migrate needs psycopg: pip install "memory-service[postgres]"') from None
    try:
        key = given_key(encryption_key_file)
        with output.progress(unit=" rows", leave=False) as bar:

            def progress(done: str, rows: int) -> None:
                bar.set_description(done, refresh=False)
                bar.update(rows)

            settings = partial(_settings_of, folder, key)
            moved = migrate(folder, key, dsn, schema, progress, settings=settings, start_over=start_over)
    except (CannotOpen, NotRestorable, NotEqual, MemoryServiceError, ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    _tell(moved, folder, schema, as_json)


def _settings_of(folder: Path, key: DataKey | None) -> dict[str, bytes]:
    """Return what a server stores besides records: API keys, and the key of page tokens."""
    from memory_service.credentials.key_file import FILE_NAME, KeyFile
    from memory_service.postgres_keys import settings_of

    keys, token_key = KeyFile(folder / FILE_NAME, key), folder / "page-token.key"
    settings = settings_of(keys.pepper(), keys.entries()) if keys.path.exists() else {}
    if key is not None:
        settings[_PAGE_TOKENS] = key.derive(_PAGE_TOKENS)
    elif token_key.exists():
        settings[_PAGE_TOKENS] = token_key.read_bytes()
    return settings


def _tell(moved: Moved, folder: Path, schema: str, as_json: bool) -> None:
    import msgspec

    from memory_service.postgres_keys import API_KEYS

    if as_json:
        output.tell_json(msgspec.to_builtins(moved))
    elif moved.before:
        output.tell(f"{folder} was already migrated to the schema {schema}")
    else:
        output.tell(
            f"migrated {moved.namespaces} namespaces with {moved.items} items to the schema {schema}:"
            f" {moved.rows} rows, each compared with {folder} (digest {moved.digest}),"
            f" {'with' if API_KEYS in moved.settings else 'without'} API keys"
        )
