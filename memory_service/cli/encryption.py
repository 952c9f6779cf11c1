"""The encryption key of a data folder, for commands that work on the folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import option
from memory_service.cli.session import CommandError

if TYPE_CHECKING:
    from memory_service.data_key import DataKey

key_file_option = option(
    "--encryption-key-file",
    type=click.Path(path_type=Path),
    help="File with the encryption key, if any. Or set the key in MEMORY_SERVICE_ENCRYPTION_KEY.",
)


def given_key(path: Path | None, variable: str = "") -> DataKey | None:
    """Return the key from a file or an environment variable, if any. Raises ValueError and OSError."""
    from memory_service.data_key import KEY_VARIABLE, read_key

    return read_key(path, variable or KEY_VARIABLE)


def key_of(data_dir: Path, path: Path | None, *, needed: bool = True) -> DataKey | None:
    """Return the given key of a folder; it may be missing unless `needed`. Raises CommandError."""
    from memory_service.records.base import CannotOpen
    from memory_service.records.sqlite.encryption import check_key

    try:
        key = given_key(path)
        if needed or key is not None:
            check_key(data_dir, data_dir / "records.db", key)
    except (CannotOpen, ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    return key
