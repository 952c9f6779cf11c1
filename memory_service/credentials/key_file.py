"""The file of API keys and the file of its pepper. Both are replaced atomically, under a lock.

With the data folder's key both are sealed, because they contain names of callers and namespaces. Unsealed
files are still read, and sealed at the next change, so that keys from elsewhere can be imported.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from memory_service.credentials.api_keys import PEPPER_BYTES, ApiKey, KeyRing
from memory_service.credentials.key_store import BadKeys, Change, decode_keys, encode_keys
from memory_service.data_key import DataKey
from memory_service.runtime.files import Stamp, make_folder, stamp_of, write_whole
from memory_service.runtime.secret_files import OpenToOthers, read_secret
from memory_service.sealing import Opener, Seal

FILE_NAME = "api-keys.json"
"""Name of the file in a data folder."""

_FILE_BYTES_MAX = 64 << 20
_MAGIC = b"MSKEYS01"
_SEALED_FOR = "api keys"


class KeyFile:
    """Keys in the file `path`; the pepper is in the file with ".pepper" appended. `key` seals both."""

    def __init__(self, path: Path, key: DataKey | None = None) -> None:
        self.path = path
        self._key = key
        self.pepper_path = path.with_name(path.name + ".pepper")

    @property
    def place(self) -> str:
        """The location of the keys, for messages."""
        return str(self.path)

    def stamp(self) -> tuple[Stamp, Stamp]:
        """Return a value that differs after every change of either file; None in place of a missing file."""
        return stamp_of(self.path), stamp_of(self.pepper_path)

    def read(self) -> KeyRing:
        """Return the keys. Raises BadKeys."""
        return KeyRing(self.pepper(), self.entries())

    def entries(self) -> list[ApiKey]:
        """Return all keys, including revoked ones, in order of creation. Raises BadKeys."""
        return decode_keys(self._read(self.path, _FILE_BYTES_MAX), str(self.path))

    def change(self, change: Change) -> None:
        """Replace the keys by the result of `change`, which gets the keys and the pepper.

        Waits for concurrent changes. Creates missing files, private to their owner. Raises BadKeys and what
        `change` raises, and then changes nothing.
        """
        make_folder(self.path.parent)
        with self._lock():
            pepper = self._pepper_made()
            raw = encode_keys(change(self.entries() if self.path.exists() else [], pepper))
            # A pepper from before the data folder had a key.
            if self._is_plain(self.pepper_path):
                self._write(self.pepper_path, pepper)
            self._write(self.path, raw)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def copy_to(self, other: KeyFile) -> None:
        """Write the keys and the pepper to a new file. Raises BadKeys and OSError."""
        with self._lock():
            other._write(other.pepper_path, self.pepper())
            other._write(other.path, encode_keys(self.entries()))

    def _is_plain(self, path: Path) -> bool:
        return self._key is not None and not _read(path, _FILE_BYTES_MAX).startswith(_MAGIC)

    def _write(self, path: Path, raw: bytes) -> None:
        if self._key is not None:
            raw = _MAGIC + Seal(self._key, _SEALED_FOR).seal(raw, _MAGIC)
        write_whole(path, raw)

    def _read(self, path: Path, bytes_max: int) -> bytes:
        raw = _read(path, bytes_max)
        if not raw.startswith(_MAGIC):
            return raw
        if self._key is None:
            raise BadKeys(
                f"{path} is encrypted: give the key of the data folder with --encryption-key-file or"
                " MEMORY_SERVICE_ENCRYPTION_KEY"
            )
        try:
            return Opener(self._key, _SEALED_FOR).open(raw[len(_MAGIC) :], _MAGIC)
        except ValueError:
            raise BadKeys(f"{path} was modified, or is encrypted with another key") from None

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # A separate file, because each change replaces the file of the keys.
        path = self.path.with_name(self.path.name + ".lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def pepper(self) -> bytes:
        """Return the pepper, with which keys are verified. Raises BadKeys."""
        pepper = self._read(self.pepper_path, 1024)
        if len(pepper) < PEPPER_BYTES:
            raise BadKeys(f"{self.pepper_path} is shorter than {PEPPER_BYTES} bytes")
        return pepper

    def _pepper_made(self) -> bytes:
        if not self.pepper_path.exists():
            if self.path.exists():
                # A new pepper would silently invalidate every key.
                raise BadKeys(f"{self.pepper_path} is missing: without it no key of {self.path} is valid")
            self._write(self.pepper_path, secrets.token_bytes(PEPPER_BYTES))
        return self.pepper()


def _read(path: Path, bytes_max: int) -> bytes:
    try:
        raw = read_secret(path, bytes_max + 1)
    except OpenToOthers as error:
        raise BadKeys(str(error)) from None
    except OSError as error:
        raise BadKeys(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > bytes_max:
        raise BadKeys(f"{path} is larger than {bytes_max} bytes")
    return raw
