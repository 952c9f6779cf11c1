"""Options: each with its environment variable, and those that all client commands share."""

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

DEFAULT_ADDRESS = "127.0.0.1:50051"
DEFAULT_NAMESPACE = "default"


def option(*names: str, help: str, variable: str = "", **settings: Any) -> Callable[[F], F]:
    """Return click's option, with the environment variable MEMORY_SERVICE_<NAME>, shown in the help.

    The name is the first one with two dashes: `--on-duplicate` is MEMORY_SERVICE_ON_DUPLICATE. `variable`
    is another name, where two commands have options of one name that take different values.
    """
    long_name = next(name for name in names if name.startswith("--")).partition("/")[0]
    variable = "MEMORY_SERVICE_" + (variable or long_name[2:].upper().replace("-", "_"))
    settings.setdefault("show_default", settings.get("default") not in (None, "", False))
    return click.option(*names, help=help, envvar=variable, show_envvar=True, **settings)


_POSTGRES = (
    option(
        "--postgres-dsn",
        default="",
        help="Database of the store postgres, as libpq takes it: a URL, or host=… dbname=… and so on. What it"
        " leaves out comes from the PG* variables. A password is better there or in ~/.pgpass: others on this"
        " machine can see a command line.",
    ),
    option(
        "--postgres-schema", default="memory_service", help="Schema of that database that has the tables."
    ),
)


def postgres_options(function: F) -> F:
    """Add the options that say which database has the records."""
    for add in reversed(_POSTGRES):
        function = add(function)
    return function


session_option = option("--session", "session_id", default="", help="Conversation inside the namespace.")


_FILE = click.Path(path_type=Path)

_CONNECTION = (
    option(
        "--address",
        default=DEFAULT_ADDRESS,
        help="Host and port of the server; of several equal ones, with commas.",
    ),
    option(
        "--api-key",
        metavar="KEY",
        help="API key, or another token, to prove who you are. Better in its variable or in a file: others "
        "on this machine can see a command line.",
    ),
    option("--api-key-file", type=_FILE, help="File of the API key."),
    option("--tls", is_flag=True, help="Encrypt; trust the authorities that come with gRPC."),
    option("--tls-ca", type=_FILE, help="Encrypt; trust the authorities of this file (PEM)."),
    option(
        "--tls-certificate",
        variable="CLIENT_TLS_CERTIFICATE",
        type=_FILE,
        help="Encrypt; present the certificate of this file (PEM).",
    ),
    option(
        "--tls-key",
        variable="CLIENT_TLS_KEY",
        type=_FILE,
        help="File of the private key of --tls-certificate (PEM).",
    ),
    option(
        "--allow-insecure-token",
        is_flag=True,
        help="Send the API key to another machine even without TLS: everybody on the way can read it.",
    ),
)


def client_command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a client command, and pass a connected `Session` as first argument.

    What the client raises ends the command with one line on stderr and exit code 1.
    """

    @_connection_options
    @option("--namespace", default=DEFAULT_NAMESPACE, help="Namespace to act on.")
    @option("--timeout", default=30.0, help="Seconds to wait for an answer.")
    @option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
    @functools.wraps(function)
    def command(*, address: str, namespace: str, timeout: float, as_json: bool, **arguments: Any) -> None:
        connection = connection_settings(**{name: arguments.pop(name) for name in CONNECTION_ARGUMENTS})
        # gRPC's own notes on connections that come and go would stand between the answers.
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        # Imported here, for gRPC takes long to load, and `--help` does without it.
        from memory_client import MemoryClient

        # Few attempts: a human waits, and wants to be told soon that the server is not there.
        settings = {"namespace": namespace, "timeout_s": timeout, "max_attempts": 3, **connection}
        with reported_errors(address, encrypted=connection["tls"]):
            with MemoryClient(address, **settings) as client:
                function(Session(client, namespace, as_json), **arguments)

    return command


def _connection_options(function: F) -> F:
    for add in reversed(_CONNECTION):
        function = add(function)
    return function


SOURCE_KINDS = click.Choice(["user", "agent", "tool", "web", "document", "derived", "import", "unspecified"])
sources_option = option(
    "--source",
    "sources",
    variable="SOURCE_KIND",
    type=SOURCE_KINDS,
    multiple=True,
    help="Only what comes from there; give it several times for several.",
)
min_trust_option = option("--min-trust", type=float, help="Only what is trusted at least this much, 0 to 1.")
labels_option = option(
    "--label",
    "labels",
    type=Label(),
    multiple=True,
    callback=lambda context, parameter, labels: dict(labels),
    help="Label as key=value; give it several times for several labels.",
)
mode_option = option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "lexical"]),
    help="By what the query is answered. Words and vectors if not given.",
)
