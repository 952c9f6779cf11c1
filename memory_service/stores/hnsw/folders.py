"""Folders that outlive a loss of power."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from memory_service.stores.encryption import sync


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, so that they last. Raises OSError."""
    if not path.is_dir():
        if not path.parent.is_dir():
            make_folder(path.parent)
        path.mkdir(exist_ok=True)
    # A file can be synced as often as one likes: it is lost with the name of its folder. Also of one that
    # is there: whoever made it may have failed to.
    with suppress(PermissionError):
        sync(path.parent)
