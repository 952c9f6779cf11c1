"""All output of the commands, with control characters escaped.

Stored texts come from others, and some characters control a terminal: they move the cursor, rename the
window, write to the clipboard, or reorder text. They are printed as \\uXXXX, as in JSON. In JSON they are
always escaped, which does not change its meaning; in other text only on a terminal: files and pipes get it
unchanged.
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

# General categories Cc, Cf, Cs, Zl and Zp, except line ends and tabs, the joiners (which words of some
# languages and many emoji need), and visible format characters such as number signs.
_COMMANDS = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    # It moves the cursor to the start of the line, unless it is part of a line end.
    "|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""Return a text in which characters that control a terminal, or are invisible, are \uXXXX."""
    return _COMMANDS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def json_text(value: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """Return JSON with control characters escaped."""
    separators = (",", ":") if compact else None
    return visible(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators))


def tell(text: str) -> None:
    """Print a line to stdout."""
    # Without `color`, click removes some escape sequences from output to a file.
    click.echo(_for_stdout(text), color=True)


def tell_exactly(text: str) -> None:
    """Print a text to stdout; files and pipes get exactly its bytes in UTF-8."""
    if sys.stdout.isatty():
        click.echo(visible(text), nl=not text.endswith("\n"), color=True)
    else:
        click.echo(text.encode(), nl=False)


def tell_json(value: Any) -> None:
    """Print JSON values to stdout as one line."""
    click.echo(json_text(value))


def data_stream() -> BinaryIO:
    """Return stdout in binary mode, for lines of `json_text` only."""
    return sys.stdout.buffer


def note(text: str, file: IO[Any] | None = None) -> None:
    """Print a text to stderr, apart from the data."""
    click.echo(visible(text), file=file, err=True)


class _Reported(click.ClickException):
    """An error of any class, as it is printed."""

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.exit_code = error.exit_code  # type: ignore[misc]
        rendered = io.StringIO()
        error.show(rendered)
        self._text = rendered.getvalue().rstrip("\n")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error to stderr."""
        note(self._text, file)


@contextlib.contextmanager
def visible_errors() -> Iterator[None]:
    """Print errors of click, which quote the command line, like `note`."""
    try:
        yield
    except click.ClickException as error:
        raise _Reported(error) from error


def confirm(question: str) -> bool:
    """Ask a yes/no question on stderr."""
    return click.confirm(visible(question), err=True)


def columns() -> int | None:
    """Return the width of stdout, or None if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def progress(**settings: Any) -> Progress:
    """Return a progress bar on stderr, shown on a terminal only. Do not pass it texts of others."""
    from tqdm import tqdm

    return tqdm(disable=None, **settings)


def _for_stdout(text: str) -> str:
    return visible(text) if sys.stdout.isatty() else text


def and_derived(count: int) -> str:
    """Return the end of a sentence that says how many derived items were deleted; empty: none were."""
    return f", and {count} derived" if count else ""
