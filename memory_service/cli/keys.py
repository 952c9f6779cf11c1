"""Commands on API keys in a file or a database. Running servers apply the changes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.encryption import given_key, key_file_option, key_of
from memory_service.cli.options import option, postgres_options
from memory_service.cli.parameters import Duration
from memory_service.cli.session import CommandError
from memory_service.namespaces import in_one_line

if TYPE_CHECKING:
    from memory_service.credentials.api_keys import ApiKey
    from memory_service.credentials.key_store import KeyStore

_PLACE = ("store", "postgres_dsn", "postgres_schema", "data_dir", "api_keys", "encryption_key_file")
_ROLES = click.Choice(["read", "write", "forget", "admin"])


def _key_command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the place of the keys, and pass the key store as first argument."""

    @option(
        "--data-dir",
        type=click.Path(path_type=Path),
        default="data",
        help="Data folder of the server, with the key file unless --api-keys is set.",
    )
    @option("--api-keys", type=click.Path(path_type=Path), default=None, help="Key file, as for `serve`.")
    @option(
        "--store",
        type=click.Choice(["hnsw", "postgres"]),
        default="hnsw",
        help="Store of the server. With postgres or --postgres-dsn, keys are in the database unless"
        " --api-keys is set.",
    )
    @postgres_options
    @key_file_option
    @option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
    @functools.wraps(function)
    def command(*, as_json: bool, **arguments: Any) -> None:
        # Imported here because `--help` does not need them.
        from memory_service.credentials.key_changes import NoSuchKey
        from memory_service.errors import Unavailable
        from memory_service.records.base import CannotOpen

        place = {name: arguments.pop(name) for name in _PLACE}
        try:
            with contextlib.closing(_key_store(**place)) as store:
                function(store, as_json, **arguments)
        except Unavailable as error:
            raise CommandError(error.message) from None
        except (CannotOpen, NoSuchKey, ValueError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise CommandError(str(error)) from None

    return command


def _key_store(
    store: str,
    postgres_dsn: str,
    postgres_schema: str,
    data_dir: Path,
    api_keys: Path | None,
    encryption_key_file: Path | None,
) -> KeyStore:
    from memory_service.credentials.key_file import FILE_NAME, KeyFile

    if api_keys is not None:
        return KeyFile(api_keys, given_key(encryption_key_file))
    if store != "postgres" and not postgres_dsn:
        return KeyFile(data_dir / FILE_NAME, key_of(data_dir, encryption_key_file))
    try:
        from memory_service.postgres_keys import prepared_keys
    except ImportError:
        raise ValueError('the store postgres needs psycopg: pip install "memory-service[postgres]"') from None
    return prepared_keys(postgres_dsn, postgres_schema)


@click.group()
def keys() -> None:
    """Manage the API keys of a server with --auth keys: create, list, revoke, rotate.

    The commands change a file, or with --store postgres the database, and need no server. Running servers
    apply the change within seconds and record it in their audit logs.
    """


@keys.command()
@click.argument("principal")
@option(
    "--namespace",
    "namespaces",
    multiple=True,
    required=True,
    variable="KEY_NAMESPACES",
    help='Namespace that the key gives access to, or a prefix followed by "*"; repeatable.'
    r" In names, write \* for * and \\ for \.",
)
@option(
    "--role",
    "roles",
    type=_ROLES,
    multiple=True,
    required=True,
    variable="KEY_ROLES",
    help="Role of the key; repeatable.",
)
@option(
    "--trust",
    type=click.FloatRange(0, 1),
    default=1.0,
    variable="KEY_TRUST",
    help="Maximum trust of what is written with the key, 0 to 1.",
)
@option("--expires-in", type=Duration(), help="Lifetime of the key, such as 12h or 90d; default: unlimited.")
@option(
    "--certificate",
    default="",
    help="Client certificate to accept instead of a token: SPIFFE URI or CN=NAME.",
)
@_key_command
def create(
    store: KeyStore,
    as_json: bool,
    principal: str,
    namespaces: tuple[str, ...],
    roles: tuple[str, ...],
    trust: float,
    expires_in: timedelta | None,
    certificate: str,
) -> None:
    """Create a key for PRINCIPAL and print its token, which cannot be shown again."""
    from memory_service.credentials import key_changes

    wanted = key_changes.NewKey(principal, namespaces, roles, trust, expires_in, certificate)
    _tell_new(*key_changes.create(store, wanted), as_json)


@keys.command("list")
@_key_command
def list_keys(store: KeyStore, as_json: bool) -> None:
    """Print all keys, including revoked and expired ones: id, state, principal, roles, namespaces."""
    for key in store.entries():
        if as_json:
            output.tell_json(_described(key))
            continue
        allowed = f"{','.join(key.roles)}  {in_one_line(key.namespaces)}"
        row = f"{key.id}  {_state(key):<8} {key.principal}  {allowed}"
        details = [f"trust {key.trust:g}"] if key.trust < 1 else []
        details += [f"expires {rendering.moment(key.expires)}"] if key.expires else []
        details += [key.certificate] if key.certificate else []
        output.tell(rendering.one_line("  ".join([row, *details])))


@keys.command()
@click.argument("key_id", metavar="ID")
@_key_command
def revoke(store: KeyStore, as_json: bool, key_id: str) -> None:
    """Revoke a key permanently. Running servers reject it within seconds and end its streams."""
    from memory_service.credentials import key_changes

    key = key_changes.revoke(store, key_id)
    if as_json:
        output.tell_json(_described(key))
    else:
        output.tell(f"revoked {key.id} of {key.principal}")


@keys.command()
@click.argument("key_id", metavar="ID")
@option(
    "--overlap",
    type=Duration(),
    required=True,
    help="How long the old key stays valid, such as 0s, 1h or 7d.",
)
@option("--expires-in", type=Duration(), help="Lifetime of the new key; default: that of the old one.")
@_key_command
def rotate(
    store: KeyStore, as_json: bool, key_id: str, overlap: timedelta, expires_in: timedelta | None
) -> None:
    """Create a new key with the principal and rights of ID, and print its token."""
    from memory_service.credentials import key_changes

    _tell_new(*key_changes.rotate(store, key_id, overlap, expires_in), as_json)


def _tell_new(key: ApiKey, token: str, as_json: bool) -> None:
    """Print a token alone on stdout, for scripts; everything else goes to stderr."""
    if as_json:
        output.tell_json({**_described(key), "token": token})
        return
    if token:
        output.tell(token)
    note = "keep the token: it cannot be shown again" if token else f"its credential is {key.certificate}"
    output.note(f"key {key.id} of {key.principal}; {note}")


def _state(key: ApiKey) -> str:
    if key.revoked is not None:
        return "revoked"
    return "good" if key.is_good(datetime.now(UTC)) else "expired"


def _described(key: ApiKey) -> dict[str, Any]:
    """Return a key as JSON values without the digest of its secret."""
    shown = {
        "id": key.id,
        "state": _state(key),
        "principal": key.principal,
        "namespaces": list(key.namespaces),
        "roles": list(key.roles),
        "trust": key.trust,
        "certificate": key.certificate,
        "created": key.created,
        "expires": key.expires,
        "revoked": key.revoked,
    }
    described: dict[str, Any] = rendering.to_json(shown)
    return described
