"""The first connection, with a one-line reason for the operator if it fails, never with a password."""

from __future__ import annotations

import ipaddress
import os

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege, ReadOnlySqlTransaction

from memory_service.records.base import CannotOpen
from memory_service.records.postgres.database import Async, Database, close
from memory_service.records.postgres.schema import prepare
from memory_service.runtime.event_log import EventLog

_NO_DSN = (
    "postgres_dsn is not a valid connection string: give a URL, postgresql://USER@HOST/DATABASE, or host=…;"
    " escape special characters, or give the password in PGPASSWORD or ~/.pgpass"
)
_log = EventLog(__name__)
_SECRETS = ("password", "sslpassword", "oauth_client_secret")


async def prepare_database(database: Database) -> None:
    """Connect and migrate the tables to this release's format. Raises CannotOpen."""
    secrets = _secrets_of(database)
    try:
        connection = await database.connect_unwatched()
    except (psycopg.Error, OSError) as error:
        raise CannotOpen(f"cannot connect to the database: {_told(error, secrets)}") from None
    try:
        _warn_of_open_network(connection)
        await prepare(connection, database)
    except InsufficientPrivilege as error:
        raise CannotOpen(
            f"the database does not let user {connection.info.user!r} prepare the schema {database.schema}:"
            f" {_told(error, secrets)}; make that user its owner: docs/operations.md lists the rights needed"
        ) from None
    except ReadOnlySqlTransaction:
        raise CannotOpen("the database accepts no writes: it is a standby, or set to read-only") from None
    except (psycopg.Error, OSError) as error:
        raise CannotOpen(f"cannot prepare the schema {database.schema}: {_told(error, secrets)}") from None
    finally:
        await close(connection)


def _warn_of_open_network(connection: Async) -> None:
    # None for a socket file.
    address = connection.info.hostaddr
    if address and not ipaddress.ip_address(address).is_loopback and not connection.pgconn.ssl_in_use:
        _log.warning(
            "database_not_encrypted",
            host=connection.info.host,
            effect="anyone on the network path can read the data and the credentials of the database",
            remedy="sslmode=verify-full, with sslrootcert, in --postgres-dsn",
        )


def _secrets_of(database: Database) -> list[str]:
    """Return the texts to hide in messages. Raises CannotOpen for an invalid connection string."""
    try:
        if _is_torn(database.dsn):
            raise CannotOpen(_NO_DSN)
        given = conninfo_to_dict(database.dsn)
    except psycopg.ProgrammingError:
        # libpq's message quotes that part, which may belong to a password with a space.
        raise CannotOpen(_NO_DSN) from None
    found = [str(given[name]) for name in _SECRETS if given.get(name)]
    return [*found, *filter(None, [os.environ.get("PGPASSWORD")])]


def _is_torn(dsn: str) -> bool:
    """Return whether a URL has a password with an unescaped delimiter, so that libpq takes the rest for a
    host.
    """
    scheme, _, rest = dsn.partition("://")
    place = rest.partition("?")[0]
    torn = place.count("@") > 1 or ("@" in place and "/" in place.partition("@")[0])
    return scheme in ("postgresql", "postgres") and torn


def _told(error: BaseException, secrets: list[str]) -> str:
    """Return an error's message in one line. It names hosts, users and databases, but no caller's data."""
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
