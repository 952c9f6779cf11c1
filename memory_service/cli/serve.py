"""The command that runs a server."""

from __future__ import annotations

import click


@click.command()
def serve() -> None:
    """Run a server."""
    raise click.ClickException("not written yet")
