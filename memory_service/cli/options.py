"""Options with their environment variables, and the options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memory_service.cli.connection import CONNECTION_ARGUMENTS, connection_settings
from memory_service.cli.parameters import Label
from memory_service.cli.session import Session, reported_errors

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)

DEFAULT_ADDRESS = "127.0.0.1:50051"
DEFAULT_NAMESPACE = "default"


def option(*names: str, help: str, variable: str = "", **settings: Any) -> Callable[[F], F]:
    """Return a click option with the environment variable MEMORY_SERVICE_<NAME>, which the help shows.

    NAME is that of the first long option: `--on-duplicate` has MEMORY_SERVICE_ON_DUPLICATE. `variable`
    replaces it if options of two commands have the same name but different meanings.
    """
    long_name = next(name for name in names if name.startswith("--")).partition("/")[0]
    variable = "MEMORY_SERVICE_" + (variable or long_name[2:].upper().replace("-", "_"))
    settings.setdefault("show_default", settings.get("default") not in (None, "", False))
    return click.option(*names, help=help, envvar=variable, show_envvar=True, **settings)


def own_variables(command: C) -> C:
    """Put the name of a command or group into the variables of its options: MEMORY_SERVICE_FILES_PATH.

    A variable that is meant for another command then does not change what this one does. The options of all
    client commands keep their variables. The group must have its commands already.
    """
    name = str(command.name).upper().replace("-", "_")
    for each in command.commands.values() if isinstance(command, click.Group) else [command]:
        for parameter in each.params:
            if isinstance(parameter, click.Option) and parameter.name not in _SHARED:
                assert isinstance(parameter.envvar, str)
                own = parameter.envvar.removeprefix("MEMORY_SERVICE_")
                parameter.envvar = f"MEMORY_SERVICE_{name}_{own}"
    return command


_POSTGRES = (
    option(
        "--postgres-dsn",
        default="",
        help="Database for --store postgres: libpq URL or host=… dbname=…; PG* variables fill in the rest."
        " Passwords belong in PGPASSWORD or ~/.pgpass: command lines are public.",
    ),
    option("--postgres-schema", default="memory_service", help="Database schema with the tables."),
)


def postgres_options(function: F) -> F:
    """Add the options that select the database of the records."""
    for add in reversed(_POSTGRES):
        function = add(function)
    return function


session_option = option("--session", "session_id", default="", help="Conversation within the namespace.")


_FILE = click.Path(path_type=Path)

_CONNECTION = (
    option(
        "--address",
        default=DEFAULT_ADDRESS,
        help="Address of the server, or a comma-separated list of equal servers.",
    ),
    option(
        "--api-key",
        metavar="KEY",
        help="API key or JWT. Prefer the variable or a file: command lines are public.",
    ),
    option("--api-key-file", type=_FILE, help="File with the API key."),
    option("--tls", is_flag=True, help="Use TLS and trust the CAs that come with gRPC."),
    option("--tls-ca", type=_FILE, help="Use TLS and trust the CAs in this PEM file."),
    option(
        "--tls-certificate",
        variable="CLIENT_TLS_CERTIFICATE",
        type=_FILE,
        help="Use TLS with this client certificate (PEM file).",
    ),
    option(
        "--tls-key",
        variable="CLIENT_TLS_KEY",
        type=_FILE,
        help="Private key of the client certificate (PEM file).",
    ),
    option(
        "--allow-insecure-token",
        is_flag=True,
        help="Send the API key to another machine even without TLS: anyone on the path can read it.",
    ),
)


_SHARED = {*CONNECTION_ARGUMENTS, "address", "namespace", "timeout", "as_json"}
"""Names of the options that `client_command` adds."""


def client_command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a client command, and pass a connected `Session` as first argument.

    An exception of the client ends the command with one line on stderr and exit code 1.
    """

    @_connection_options
    @option("--namespace", default=DEFAULT_NAMESPACE, help="Namespace to act on.")
    @option("--timeout", default=30.0, help="Seconds to wait for a response.")
    @option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
    @functools.wraps(function)
    def command(*, address: str, namespace: str, timeout: float, as_json: bool, **arguments: Any) -> None:
        connection = connection_settings(**{name: arguments.pop(name) for name in CONNECTION_ARGUMENTS})
        # gRPC's log lines about connections would mix with the output.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        # Imported here because gRPC loads slowly and `--help` does not need it.
        from memory_client import MemoryClient

        # Few attempts, so that a waiting user soon learns that the server is down.
        settings = {"namespace": namespace, "timeout_s": timeout, "max_attempts": 3, **connection}
        with reported_errors(address, encrypted=connection["tls"]):
            with MemoryClient(address, **settings) as client:
                function(Session(client, namespace, as_json), **arguments)

    return command


def _connection_options(function: F) -> F:
    for add in reversed(_CONNECTION):
        function = add(function)
    return function


on_duplicate_option = option(
    "--on-duplicate",
    type=click.Choice(["fail", "skip", "replace"]),
    default="fail",
    help="How to handle an id that exists.",
)
SOURCE_KINDS = click.Choice(["user", "agent", "tool", "web", "document", "derived", "import", "unspecified"])
sources_option = option(
    "--source",
    "sources",
    variable="SOURCE_KIND",
    type=SOURCE_KINDS,
    multiple=True,
    help="Only content from this source; repeatable.",
)
min_trust_option = option("--min-trust", type=float, help="Only content with at least this trust, 0 to 1.")
labels_option = option(
    "--label",
    "labels",
    type=Label(),
    multiple=True,
    callback=lambda context, parameter, labels: dict(labels),
    help="Label as key=value; repeatable.",
)
mode_option = option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "lexical"]),
    help="How to search; default: words and vectors.",
)
