"""Paths of files: which are valid, and the tags by which a file is found."""

from __future__ import annotations

import re
import unicodedata

from memory_service.domain.checks import Checks
from memory_service.errors import InvalidArgument, LimitExceeded
from memory_service.limits import Limits

PATH_BYTES_MAX = Limits.file_path_bytes_max
FILE_TAG = "file"
"""Tag of a fragment: the id of its file."""
_PATH_TAG = "file_path"
_FOLDER_TAG = "file_folder"
"""Begins the tags of a file's folders, followed by the number of names in the folder's path."""
FILE_TAGS = frozenset(
    {FILE_TAG, _PATH_TAG, *(f"{_FOLDER_TAG}{depth}" for depth in range(1, Limits.file_path_names_max))}
)
"""All tags of files and their fragments."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def fault_of_path(path: str) -> str:
    """Return what is wrong with the characters of a path; empty if nothing is."""
    if not path.startswith("/"):
        return 'must begin with "/"'
    names = path[1:].split("/")
    if "" in names:
        return 'may not contain an empty name, as "//" or "/" at the end'
    if "." in names or ".." in names:
        return 'may not contain the names "." and ".."'
    if _CONTROL.search(path):
        return "may not contain control characters"
    if not unicodedata.is_normalized("NFC", path):
        return "is not in Unicode normalization form C"
    return ""


def check_path(checks: Checks, field: str, path: str) -> None:
    """Check the path of a file or a folder. Raises InvalidArgument and LimitExceeded."""
    if not path:
        raise InvalidArgument(field, "is required")
    checks.size(field, len(path.encode()), "file_path_bytes_max")
    if fault := fault_of_path(path):
        raise InvalidArgument(field, fault)
    count, limit = path.count("/"), checks.limits.file_path_names_max
    if count > limit:
        raise LimitExceeded(field, "file_path_names_max", limit, count)


def checked_place(checks: Checks, field: str, path: str) -> str:
    """Return a place to read, without a "/" at its end: a file, a folder, or "" for all files."""
    place = path.removesuffix("/")
    if place:
        check_path(checks, field, place)
    elif path not in ("", "/"):
        raise InvalidArgument(field, "is not a path")
    return place


def folders_of(path: str) -> list[str]:
    """Return the folders that a file is in, from the outermost."""
    at = [n for n, character in enumerate(path) if character == "/"]
    return [path[:end] for end in at[1:]]


def path_tag(path: str) -> tuple[str, str]:
    """Return the tag of the file at a path."""
    return _PATH_TAG, path


def folder_tag(folder: str) -> tuple[str, str]:
    """Return the tag of all files below a folder."""
    return f"{_FOLDER_TAG}{folder.count('/')}", folder


def tags_of(path: str) -> dict[str, str]:
    """Return the tags of the file at a path."""
    return dict([path_tag(path), *map(folder_tag, folders_of(path))])
