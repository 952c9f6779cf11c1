"""The commands of Anthropic's memory tool over files, as calls of a client that their caller makes.

Texts of answers and errors are those of the SDK's tool for local files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeAlias

from anthropic.lib.tools import ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memory_client.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from memory_client.files import FileContent, FileEntry, ReplaceText

ROOT = "/memories"
"""The folder of the namespace with the files of the tool."""

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of the client and its arguments."""
Steps: TypeAlias = Generator[Call, Any, str]
"""A command: yields calls, is sent their results or thrown their errors, and returns the answer."""

_LINES_MAX = 999999
_NUMBER_WIDTH = len(str(_LINES_MAX))


def _path(given: str) -> str:
    """Return the path of a file or folder of the tool as the server takes it."""
    if not given.startswith(ROOT):
        raise ToolError(f"Path must start with {ROOT}, got: {given}")
    path = posixpath.normpath(f"{ROOT}/{given[len(ROOT) :].lstrip('/')}")
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {given} would escape {ROOT} directory")
    return path


def view(command: BetaMemoryTool20250818ViewCommand) -> Steps:
    """Return a file with line numbers, or the files and folders below a folder."""
    path = _path(command.path)
    lines: Sequence[int] = command.view_range or ()
    start, end = (max(1, lines[0]), lines[1]) if len(lines) == 2 else (1, -1)
    if path != ROOT:
        try:
            return (yield from _view_file(path, command.path, start, end))
        except NotFound:
            pass  # A folder, perhaps.
    try:
        entries = yield "list_files", (path,), {"depth": 2, "page_size": 1000}
    except NotFound:
        if path != ROOT:
            raise _missing(command.path) from None
        entries = []
    return _listing(path, command.path, entries)


def _view_file(path: str, shown_path: str, start: int, end: int) -> Steps:
    is_in_file = end == -1 or end >= start
    file: FileContent | None = None
    if is_in_file:
        try:
            file = yield "read_file", (path,), {"start_line": start, "end_line": end}
        except InvalidArgument:
            is_in_file = False  # It begins after the last line: the SDK shows what a slice of the lines has.
    if file is None:
        file = yield "read_file", (path,), {}
    if file.line_count > _LINES_MAX:
        raise ToolError(f"File {shown_path} exceeds maximum line limit of 999,999 lines.")
    lines = file.content.split("\n")
    if not is_in_file:
        lines = lines[start - 1 : None if end == -1 else end]
    elif end != -1:
        lines = lines[: end - start + 1]
    return f"Here's the content of {shown_path} with line numbers:\n{_numbered(lines, start)}"


def _listing(path: str, shown_path: str, entries: Sequence[FileEntry]) -> str:
    below = sorted((entry.path.removeprefix(f"{path}/").split("/"), entry) for entry in entries)
    total = sum(entry.size_bytes for names, entry in below if len(names) == 1)
    lines = [f"{_size(total)}\t{shown_path}"]
    for names, entry in below:
        if not any(name.startswith(".") for name in names):
            end = "/" if entry.is_folder else ""
            lines.append(f"{_size(entry.size_bytes)}\t{shown_path}/{'/'.join(names)}{end}")
    header = f"Here're the files and directories up to 2 levels deep in {shown_path}, excluding hidden items:"
    return "\n".join([header, *lines])


def create(command: BetaMemoryTool20250818CreateCommand) -> Steps:
    """Write a new file."""
    path, exists = _path(command.path), ToolError(f"File {command.path} already exists")
    if path == ROOT:
        raise exists
    try:
        yield "write_file", (path, command.file_text), {"expected_version": 0}
    except (Conflict, AlreadyExists):
        raise exists from None
    return f"File created successfully at: {command.path}"


def str_replace(command: BetaMemoryTool20250818StrReplaceCommand) -> Steps:
    """Replace a text that occurs once."""
    path, old, new = _path(command.path), command.old_str, command.new_str
    try:
        written = yield "edit_file", (path, ReplaceText(old, new)), {}
    except NotFound:
        yield from _refuse(path, command.path)
    except FailedPrecondition as error:
        if error.metadata.get("occurrences") == "0":
            raise ToolError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            ) from None
        lines = ", ".join(error.metadata.get("lines", "").split(","))
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        ) from None
    start = max(1, written.start_line - 2)
    around = {"start_line": start, "end_line": written.start_line + 2, "version": written.version}
    file = yield "read_file", (path,), around
    snippet = _numbered(file.content.split("\n")[: written.start_line + 3 - start], start)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        f"{snippet}"
    )


def insert(command: BetaMemoryTool20250818InsertCommand) -> Steps:
    """Insert lines."""
    path, line = _path(command.path), command.insert_line
    while True:
        try:
            file = yield "read_file", (path,), {}
        except NotFound:
            yield from _refuse(path, command.path)
        lines = file.content.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(line, command.insert_text.rstrip("\n"))
        content = "".join(f"{each}\n" for each in lines)
        try:
            # An edit would leave a last line without a line break, to which the SDK adds one.
            yield "write_file", (path, content), {"expected_version": file.version}
        except Conflict:
            continue  # It was changed meanwhile.
        return f"The file {command.path} has been edited."


def delete(command: BetaMemoryTool20250818DeleteCommand) -> Steps:
    """Delete a file or a folder."""
    path = _path(command.path)
    if path == ROOT:
        raise ToolError(f"Cannot delete the {ROOT} directory itself")
    try:
        yield "delete_file", (path,), {"recursive": True}
    except NotFound:
        raise ToolError(f"The path {command.path} does not exist") from None
    return f"Successfully deleted {command.path}"


def rename(command: BetaMemoryTool20250818RenameCommand) -> Steps:
    """Move a file or a folder."""
    path, new_path = _path(command.old_path), _path(command.new_path)
    if path == ROOT:
        raise ToolError(f"Cannot rename the {ROOT} directory itself")
    exists = ToolError(f"The destination {command.new_path} already exists")
    if new_path == ROOT:
        raise exists
    try:
        yield "rename_file", (path, new_path), {}
    except (AlreadyExists, NotFound, InvalidArgument) as error:
        if isinstance(error, AlreadyExists) or (yield from _exists(new_path)):
            raise exists from None
        if isinstance(error, NotFound) or not (yield from _exists(path)):
            raise ToolError(f"The path {command.old_path} does not exist") from None
        raise
    return f"Successfully renamed {command.old_path} to {command.new_path}"


def clear() -> Steps:
    """Delete all files."""
    with suppress(NotFound):
        yield "delete_file", (ROOT,), {"recursive": True}
    return "All memory cleared"


def _exists(path: str) -> Generator[Call, Any, bool]:
    try:
        yield "list_files", (path,), {"depth": 1}
    except NotFound:
        return path == ROOT
    return True


def _refuse(path: str, shown_path: str) -> Generator[Call, Any, NoReturn]:
    """Raise the error for a path that is no file: a folder, or nothing."""
    if (yield from _exists(path)):
        raise ToolError(f"The path {shown_path} is not a file.")
    raise _missing(shown_path)


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _numbered(lines: Sequence[str], start: int) -> str:
    return "\n".join(f"{str(at).rjust(_NUMBER_WIDTH)}\t{line}" for at, line in enumerate(lines, start))


def _size(size_bytes: int) -> str:
    """Return a size as the SDK shows it, as "1.5K"."""
    power = min(max(0, (size_bytes.bit_length() - 1) // 10), 3)
    size = size_bytes / 1024**power
    return f"{int(size) if size == int(size) else format(size, '.1f')}{'BKMG'[power]}"
