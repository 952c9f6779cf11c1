"""Commands on backups: write, verify and restore them; write records with another key.

Only `write` calls a server; the others work on folders.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.encryption import given_key, key_file_option
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_service.cli.output import Progress
    from memory_service.data_key import DataKey

_POLL_S = 0.2
_FOLDER = click.Path(path_type=Path)


class _BackupGroup(click.Group):
    """`backup NAME` is `backup write NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["write", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_BackupGroup)
def backup() -> None:
    """Write a backup (`backup NAME` for short), or verify one."""


@backup.command()
@click.argument("name", default="")
@client_command
def write(session: Session, name: str) -> None:
    """Write a consistent copy of all records to the server's backup folder, as NAME.

    Default NAME: the current time.
    """
    with _backup_progress(session):
        written = session.client.backup(name)
    session.tell(written, rendering.fields(written))


@backup.command()
@click.argument("path", type=_FOLDER)
@key_file_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def verify(path: Path, encryption_key_file: Path | None, as_json: bool) -> None:
    """Compare the backup in the folder PATH with its manifest, and check its database.

    Needs no server. Without the key of an encrypted backup, only the files are compared.
    """
    from memory_service.records.sqlite.backup_checks import verify_backup

    with _reported_refusals():
        manifest = verify_backup(path, given_key(encryption_key_file))
    _tell(manifest, as_json)


@click.command()
@click.argument("path", type=_FOLDER)
@option("--data-dir", type=_FOLDER, required=True, help="Folder to restore to; new or empty.")
@key_file_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def restore(path: Path, data_dir: Path, encryption_key_file: Path | None, as_json: bool) -> None:
    """Verify the backup in the folder PATH and copy it to a new data folder, all or nothing.

    Needs no server. An encrypted backup stays encrypted with its key.
    """
    from memory_service.records.sqlite.backups import restore_backup

    with _reported_refusals():
        manifest = restore_backup(path, data_dir, given_key(encryption_key_file))
    _tell(manifest, as_json)


@click.command()
@option(
    "--data-dir",
    type=_FOLDER,
    required=True,
    help="Data folder that no server uses; it stays unchanged.",
)
@option("--to", "target", type=_FOLDER, required=True, help="Folder to write to; new or empty.")
@option(
    "--encryption-key-file",
    type=_FOLDER,
    help="File with the current key, if any. Or set the key in MEMORY_SERVICE_ENCRYPTION_KEY.",
)
@option(
    "--new-encryption-key-file",
    type=_FOLDER,
    help="File with the new key. Or set the key in MEMORY_SERVICE_NEW_ENCRYPTION_KEY.",
)
@option("--plain", is_flag=True, help="Write unencrypted: anyone with the files can read them.")
def rekey(
    data_dir: Path,
    target: Path,
    encryption_key_file: Path | None,
    new_encryption_key_file: Path | None,
    plain: bool,
) -> None:
    """Copy records and API keys of a data folder to a new one with a new encryption key or none.

    Deleted data is not copied. Remove the old folder and its backups once the new one is in use.
    """
    from memory_service.data_key import NEW_KEY_VARIABLE
    from memory_service.records.sqlite.backups import rewrite_with_key

    with _reported_refusals():
        key, new_key = given_key(encryption_key_file), given_key(new_encryption_key_file, NEW_KEY_VARIABLE)
        if plain == (new_key is not None):
            raise ValueError("give either a new key or --plain")
        carried = _Carried(data_dir, key, new_key)
        rewrite_with_key(data_dir, key, target, new_key, carried.write)
    output.tell(f"written to {target}; {data_dir} is unchanged")
    if carried.audit_log_end is not None:
        sequence, digest = carried.audit_log_end
        output.tell(
            f"the audit log stays in {data_dir / 'audit'}: keep it. The new one continues it:"
            f" verify it with --from-sequence {sequence + 1} --known {sequence}:{digest}"
        )


class _Carried:
    """API keys and the end of the audit log's chain, which are copied with the records."""

    def __init__(self, data_dir: Path, key: DataKey | None, new_key: DataKey | None) -> None:
        self._data_dir, self._key, self._new_key = data_dir, key, new_key
        self.audit_log_end: tuple[int, str] | None = None

    def write(self, target: Path) -> None:
        """Write both next to the new records. Raises ValueError and OSError."""
        from memory_service.audit.files import begin_behind
        from memory_service.credentials.key_file import FILE_NAME, KeyFile

        self.audit_log_end = begin_behind(self._data_dir / "audit", target / "audit")
        keys = KeyFile(self._data_dir / FILE_NAME, self._key)
        if keys.path.exists():
            keys.copy_to(KeyFile(target / FILE_NAME, self._new_key))


@contextmanager
def _reported_refusals() -> Iterator[None]:
    """Report expected errors on one line."""
    from memory_service.records.base import CannotOpen
    from memory_service.records.sqlite.backup_checks import NotRestorable

    try:
        yield
    except (CannotOpen, NotRestorable, ValueError, OSError) as error:
        raise CommandError(str(error)) from None


def _tell(manifest: Any, as_json: bool) -> None:
    import msgspec

    values = msgspec.to_builtins(manifest)
    if as_json:
        output.tell_json(values)
        return
    files = {file["name"]: f"{file['size_bytes']} bytes, {file['checksum']}" for file in values.pop("files")}
    output.tell(rendering.fields({**values, **files}))


@contextmanager
def _backup_progress(session: Session) -> Iterator[None]:
    """Show the progress that the server reports while it writes a backup."""
    done = threading.Event()
    with output.progress(desc="backup", unit="B", unit_scale=True, leave=False) as bar:
        poller = threading.Thread(target=_poll, args=(session, bar, done), daemon=True)
        poller.start()
        try:
            yield
        finally:
            done.set()
            poller.join()


def _poll(session: Session, bar: Progress, done: threading.Event) -> None:
    from memory_client import MemoryServiceError

    # On an error the bar stops; the call of the backup reports what is wrong.
    with contextlib.suppress(MemoryServiceError):
        while not bar.disable and not done.wait(_POLL_S):
            progress = session.client.info().backup
            if progress is not None:
                bar.total = progress.total_bytes
                bar.update(progress.done_bytes - bar.n)
