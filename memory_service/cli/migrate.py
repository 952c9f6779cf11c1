"""The command that brings a data folder into PostgreSQL."""

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
    help="Data folder that no server works on, or a backup of one; it is left as it is.",
)
@option(
    "--to",
    "dsn",
    default="",
    variable="POSTGRES_DSN",
    help="Database to write to, as `serve --postgres-dsn` takes it.",
)
@option(
    "--schema",
    default="memory_service",
    variable="POSTGRES_SCHEMA",
    help="Schema of that database that has the tables; it is made if it is not there.",
)
@key_file_option
@option("--start-over", is_flag=True, help="Give up what another migration has begun there.")
@option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def migrate(
    folder: Path, dsn: str, schema: str, encryption_key_file: Path | None, start_over: bool, as_json: bool
) -> None:
    """Bring all records of a data folder into PostgreSQL, for `serve --store postgres`.

    Nothing of it is seen there before all of it was read back and compared, row by row. When it is
    interrupted, run it again: it goes on. No server may work on that schema meanwhile. If the source is a
    backup, its server may go on for those who read; what is written to it afterwards stays behind.
    """
    from memory_service.errors import MemoryServiceError
    from memory_service.records.base import CannotOpen
    from memory_service.records.sqlite.backup_checks import NotRestorable

    try:
        from memory_service.migration.to_postgres import NotEqual, migrate
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise CommandError('this needs psycopg: pip install "memory-service[postgres]"') from None
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
    """Return what a server keeps beside its records: API keys, and the key of page tokens."""
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
        output.tell(f"all of {folder} was in the schema {schema} already")
    else:
        output.tell(
            f"{moved.namespaces} namespaces with {moved.items} items, {moved.rows} rows in all, are in the"
            f" schema {schema}, each compared with {folder} (digest {moved.digest});"
            f" {'with' if API_KEYS in moved.settings else 'without'} API keys"
        )
