"""The one way out of the command line: all that a terminal sees goes through here, and commands nothing.

What is stored was written by others, and a terminal obeys some characters: they move the cursor, retitle
the window, write to the clipboard, or show a text in another order than it has. In their place \\uXXXX is
printed, as in JSON. JSON is written so wherever it goes, since it means the same. Other text is changed only
on a terminal; a file or a pipe gets it as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import click

if TYPE_CHECKING:
    from tqdm import tqdm

    Progress = tqdm[Any]

# General categories Cc, Cf, Cs, Zl and Zp. Not the ends of lines and tabs; nor the joiners, without which
# words of some languages and many emoji fall apart; nor format characters that are seen, as signs of numbers.
_COMMANDS = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    # It takes the cursor back to where the line began, unless the line ends there.
    "|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""Return a text in which \uXXXX stands for each character that a terminal obeys or hides."""
    return _COMMANDS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def json_text(value: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """Return JSON values as JSON that commands no terminal."""
    separators = (",", ":") if compact else None
    return visible(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators))


def tell(text: str) -> None:
    """Print a text to stdout, and the end of its line."""
    # With `color` click leaves the text alone; else it takes some escapes out of what goes to a file.
    click.echo(_for_stdout(text), color=True)


def tell_exactly(text: str) -> None:
    """Print a text to stdout: a file or a pipe gets its bytes in UTF-8 and no more."""
    if sys.stdout.isatty():
        click.echo(visible(text), nl=not text.endswith("\n"), color=True)
    else:
        click.echo(text.encode(), nl=False)


def tell_json(value: Any) -> None:
    """Print JSON values to stdout as one line."""
    click.echo(json_text(value))


def data_stream() -> BinaryIO:
    """Return stdout for data that is written in bytes: lines of `json_text`, and nothing else."""
    return sys.stdout.buffer


def note(text: str, file: IO[Any] | None = None) -> None:
    """Print a text to stderr, where nobody looks for data."""
    click.echo(visible(text), file=file, err=True)


class _Reported(click.ClickException):
    """An error as it is printed, whatever kind it was."""

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.exit_code = error.exit_code  # type: ignore[misc]
        rendered = io.StringIO()
        error.show(rendered)
        self._text = rendered.getvalue().rstrip("\n")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it to stderr."""
        note(self._text, file)


@contextlib.contextmanager
def visible_errors() -> Iterator[None]:
    """Have click print its own errors, which quote what was typed, as `note` prints."""
    try:
        yield
    except click.ClickException as error:
        raise _Reported(error) from error


def confirm(question: str) -> bool:
    """Ask on stderr."""
    return click.confirm(visible(question), err=True)


def columns() -> int | None:
    """Return how wide stdout is. None: it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def progress(**settings: Any) -> Progress:
    """Return a bar on stderr, if that is a terminal. It must be given no text of others."""
    from tqdm import tqdm

    return tqdm(disable=None, **settings)


def _for_stdout(text: str) -> str:
    return visible(text) if sys.stdout.isatty() else text
