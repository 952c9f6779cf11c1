"""The context of a client command: the client, and the output of its responses and errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering

if TYPE_CHECKING:
    from memory_client import Degradation, MemoryClient, MemoryServiceError


class CommandError(click.ClickException):
    """Ends the command with "error: ..." on stderr and exit code 1."""

    def show(self, file: Any = None) -> None:
        """Print the line."""
        output.note(f"error: {rendering.one_line(self.message)}", file)


@dataclass(frozen=True, slots=True)
class Session:
    """A connected client, the namespace, and the output format."""

    client: MemoryClient
    namespace: str
    as_json: bool

    def tell(self, record: Any, text: str) -> None:
        """Print a response: as a JSON object with --json, otherwise the text."""
        if self.as_json:
            output.tell_json(rendering.to_json(record))
        else:
            output.tell(text)

    def note(self, degraded: Iterable[Degradation]) -> None:
        """Print to stderr what the server could not do."""
        for degradation in degraded:
            message = rendering.one_line(degradation.message)
            output.note(f"note: {message} ({degradation.reason})")


@contextlib.contextmanager
def reported_errors(address: str, *, encrypted: bool = False) -> Iterator[None]:
    """Report exceptions of the client on one line; `encrypted`: the connection uses TLS."""
    from memory_client import MemoryServiceError, Unavailable

    try:
        yield
    except MemoryServiceError as error:
        if isinstance(error, Unavailable) and not error.reason:
            # The server did not respond.
            message = f"no server responds at {address}; start one with: memory-service serve"
            if encrypted:
                message = f"no encrypted connection to {address}: {error}"
            elif "Socket closed" in str(error):
                message = f"the server at {address} closed the connection; does it need --tls?"
            raise CommandError(f"{message} ({error.code})") from None
        raise CommandError(f"{_with_operation(error)} ({error.reason or error.code})") from None
    except (ValueError, OSError) as error:
        # A bad argument or file; click handles a broken pipe.
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(str(error)) from None


def _with_operation(error: MemoryServiceError) -> str:
    """Return the text of an error, which begins with the operation of a batch that it concerns, if any."""
    text = str(error)
    is_named = error.field in text or not error.field.startswith("operations[")
    return text if is_named else f"{error.field}: {text}"
