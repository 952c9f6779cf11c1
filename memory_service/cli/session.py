"""What a client command works with: the client, and how its answers and errors are told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering

if TYPE_CHECKING:
    from memory_client import Degradation, MemoryClient


class CommandError(click.ClickException):
    """Ends the command with "error: ..." on stderr and exit code 1."""

    def show(self, file: Any = None) -> None:
        """Print the one line."""
        output.note(f"error: {rendering.one_line(self.message)}", file)


@dataclass(frozen=True, slots=True)
class Session:
    """A connected client and the wishes of the one who typed the command."""

    client: MemoryClient
    namespace: str
    as_json: bool

    def tell(self, record: Any, text: str) -> None:
        """Print an answer: as a JSON object if that was asked for, or else the text."""
        if self.as_json:
            output.tell_json(rendering.to_json(record))
        else:
            output.tell(text)

    def note(self, degraded: Iterable[Degradation]) -> None:
        """Tell on stderr what the server could not do."""
        for degradation in degraded:
            message = rendering.one_line(degradation.message)
            output.note(f"note: {message} ({degradation.reason})")


@contextlib.contextmanager
def reported_errors(address: str, *, encrypted: bool = False) -> Iterator[None]:
    """Turn what the client raises into one line for a human; `encrypted`: it was to be TLS."""
    from memory_client import MemoryServiceError, Unavailable

    try:
        yield
    except MemoryServiceError as error:
        if isinstance(error, Unavailable) and not error.reason:
            # Not the server's own answer: there is none.
            message = f"no server answers at {address}; start one with: memory-service serve"
            if encrypted:
                message = f"no encrypted connection to {address}: {error}"
            elif "Socket closed" in str(error):
                message = f"the server at {address} ends the connection; does it want --tls?"
            raise CommandError(f"{message} ({error.code})") from None
        raise CommandError(f"{error} ({error.reason or error.code})") from None
    except (ValueError, OSError) as error:
        # What was typed or what a file holds; a broken pipe is for click to handle.
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(str(error)) from None
