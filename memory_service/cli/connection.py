"""Converts the options of a client command to settings of its client: credentials and encryption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from memory_service.runtime.secret_files import OpenToOthers, read_secret

CONNECTION_ARGUMENTS = (
    "api_key",
    "api_key_file",
    "tls",
    "tls_ca",
    "tls_certificate",
    "tls_key",
    "allow_insecure_token",
)
"""The arguments of `connection_settings`."""


def connection_settings(
    *,
    api_key: str | None,
    api_key_file: Path | None,
    tls: bool,
    tls_ca: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    allow_insecure_token: bool,
) -> dict[str, Any]:
    """Return the arguments of `MemoryClient` for these options.

    Raises:
        click.UsageError: The options contradict each other.
        click.ClickException: A file cannot be read, has no API key, or has a secret that others can read.
    """
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("give --tls-certificate and --tls-key together")
    return {
        "api_key": _key(api_key, api_key_file),
        "tls": tls or tls_ca is not None or tls_certificate is not None,
        "root_certificates": _content("--tls-ca", tls_ca),
        "client_certificate": _content("--tls-certificate", tls_certificate),
        "client_key": _content("--tls-key", tls_key, read_secret),
        "allow_insecure_token": allow_insecure_token,
    }


def _key(key: str | None, file: Path | None) -> str | None:
    """Return the API key. An option takes precedence over an environment variable."""
    if key is not None and file is not None:
        source = click.get_current_context().get_parameter_source
        typed = [name for name in ("api_key", "api_key_file") if source(name) is ParameterSource.COMMANDLINE]
        if len(typed) != 1:
            raise click.UsageError("give --api-key or --api-key-file, not both")
        if typed == ["api_key"]:
            return key
    if file is None:
        return key
    content = _content("--api-key-file", file, read_secret) or b""
    found = content.decode("ascii", "replace").strip()
    if not found:
        raise click.ClickException(f"--api-key-file {str(file)!r} is empty")
    return found


def _content(option: str, path: Path | None, read: Callable[[Path], bytes] = Path.read_bytes) -> bytes | None:
    if path is None:
        return None
    try:
        return read(path)
    except OpenToOthers as error:
        raise click.ClickException(f"{option}: {error}") from None
    except OSError as error:
        raise click.ClickException(f"{option} {str(path)!r} cannot be read: {error.strerror}") from None
