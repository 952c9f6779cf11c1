"""Files, as frozen dataclasses. All times are aware datetimes in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from memory_client.models import Degradation, Provenance
from memory_client.versions import VersionKind


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Replaces a text that occurs exactly once in a file."""

    old_text: str
    """The text to replace, which may have several lines."""
    new_text: str
    """The new text. Empty: the old text is removed."""


@dataclass(frozen=True, slots=True)
class InsertText:
    """Inserts a text as separate lines: missing line breaks before and after it are added."""

    after_line: int
    """Insert after this line. 0: before the first."""
    text: str


@dataclass(frozen=True, slots=True)
class AppendText:
    """Adds a text to the end of a file. It continues the last line, unless that ends with a line break."""

    text: str


FileEdit: TypeAlias = ReplaceText | InsertText | AppendText
"""An edit of a part of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file, or a range of its lines."""

    content: str
    """The lines, with their line breaks, unchanged."""
    version: int
    """The version that was read: the revision of the namespace at which it was written."""
    sha256: str
    """SHA-256 of the whole file, in hexadecimal."""
    line_count: int
    """Number of lines of the whole file."""
    size_bytes: int
    """Size of the whole file in bytes of UTF-8."""
    start_line: int
    """The first line of the content, from 1. 0: the file is empty."""
    end_line: int
    """The last line of the content. 0: the file is empty."""
    truncated: bool
    """Whether the content ends early because of `max_characters`."""
    create_time: datetime | None
    update_time: datetime | None
    """When this version was written."""
    revision: int
    """Revision of the namespace that the answer reflects."""
    provenance: Provenance | None = None
    """Its writer and its trust. None: written by a caller without a name, and therefore trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file that was written or edited."""

    version: int
    """The version that was written. 0: it waits for a review."""
    sha256: str
    """SHA-256 of the whole content, in hexadecimal."""
    line_count: int
    """Number of lines."""
    size_bytes: int
    """Size in bytes of UTF-8."""
    created: bool = False
    """Whether the file did not exist before."""
    start_line: int = 0
    """After an edit: the line in which the change begins, from 1."""
    revision: int
    """Revision of the namespace after the write."""
    degraded: tuple[Degradation, ...] = ()
    """What the server could not do, such as embedding the text. Empty: it did everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedFiles:
    """What a rename changed."""

    renamed_count: int
    """Number of files that have a new path."""
    version: int
    """The new version of a file. 0: it was a folder."""
    revision: int
    """Revision of the namespace after the write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedFiles:
    """What a deletion removed."""

    deleted_count: int
    """Number of files that were deleted."""
    revision: int
    """Revision of the namespace after the deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file or a folder."""

    path: str
    is_folder: bool
    size_bytes: int
    """Size in bytes of UTF-8; of a folder the sum of all files below it."""
    file_count: int
    """Number of files below a folder. 0: it is a file."""
    version: int
    """The version of a file. 0: it is a folder."""
    create_time: datetime | None
    """When the file, or the first one below the folder, was created."""
    update_time: datetime | None
    """When the file, or one below the folder, was last written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """A version of a file."""

    version: int
    """The version: the revision of the namespace at which it was written."""
    kind: VersionKind
    time: datetime | None
    """When it was written."""
    writer: str
    """Name of the credential that wrote it. Empty: none."""
    credential_id: str
    """Id of that credential."""
    path: str
    """The path of the file in this version. Empty: redacted."""
    size_bytes: int
    """Size in bytes of UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearchResult:
    """A piece of a file that was found."""

    path: str
    start_line: int
    """The line in which the text begins, from 1."""
    end_line: int
    """The line in which it ends."""
    text: str
    """The text of the piece, unchanged."""
    score: float
    """Higher is better."""
    version: int
    """The version of the file."""
