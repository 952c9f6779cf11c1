"""The file of API keys, and its pepper beside it: read whole, replaced whole, changed under a lock.

With the key of the data directory both are sealed: they tell names of callers and namespaces. What is not
sealed is read all the same, and sealed when it is changed, so that keys from elsewhere can be brought along.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from memory_service.credentials.api_keys import PEPPER_BYTES, ApiKey, KeyRing
from memory_service.credentials.grants import BadGrant
from memory_service.data_key import DataKey
from memory_service.runtime.files import Stamp, make_folder, stamp_of, write_whole
from memory_service.runtime.secret_files import OpenToOthers, read_secret
from memory_service.sealing import Opener, Seal

FILE_NAME = "api-keys.json"
"""Of the file in a data directory."""

_FORMAT = 1
_FILE_BYTES_MAX = 64 << 20
_MAGIC = b"MSKEYS01"
_SEALED_FOR = "api keys"


class BadKeyFile(ValueError):
    """The keys cannot be read; tells why, without what is in them."""


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    keys: list[ApiKey]


class KeyFile:
    """The keys at a path; the pepper is at the path with ".pepper" added. `key` seals both."""

    def __init__(self, path: Path, key: DataKey | None = None) -> None:
        self.path = path
        self._key = key
        self.pepper_path = path.with_name(path.name + ".pepper")

    def stamp(self) -> tuple[Stamp, Stamp]:
        """Return what differs once either file was changed. Of a file that is not there: None."""
        return stamp_of(self.path), stamp_of(self.pepper_path)

    def read(self) -> KeyRing:
        """Return the keys. Raises BadKeyFile."""
        return KeyRing(self._pepper(), self.entries())

    def entries(self) -> list[ApiKey]:
        """Return all keys, revoked ones too, in the order in which they were made. Raises BadKeyFile."""
        raw = self._read(self.path, _FILE_BYTES_MAX)
        try:
            document = msgspec.json.decode(raw, type=_Document)
            for key in document.keys:
                key.verify()
        except msgspec.MsgspecError as error:
            raise BadKeyFile(f"{self.path} is damaged: {error}") from None
        except (BadGrant, UnicodeDecodeError, RecursionError) as error:
            raise BadKeyFile(f"{self.path} is damaged: {error}") from None
        if document.format != _FORMAT:
            raise BadKeyFile(f"{self.path} is of format {document.format}, not {_FORMAT}")
        if len({key.id for key in document.keys}) != len(document.keys):
            raise BadKeyFile(f"{self.path} is damaged: an id comes twice")
        return document.keys

    def change(self, change: Callable[[list[ApiKey], bytes], list[ApiKey]]) -> None:
        """Replace the keys by what `change` makes of them and of the pepper.

        Raises BadKeyFile, and what `change` raises: then nothing is changed. Waits for others who do.
        Files that do not exist are made, for their owner only.
        """
        make_folder(self.path.parent)
        with self._lock():
            pepper = self._pepper_made()
            keys = change(self.entries() if self.path.exists() else [], pepper)
            for key in keys:
                key.verify()
            # One from before there was a key.
            if self._is_plain(self.pepper_path):
                self._write(self.pepper_path, pepper)
            self._write_keys(keys)

    def copy_to(self, other: KeyFile) -> None:
        """Write the same keys, and their pepper, to a file that is not there. Raises BadKeyFile, OSError."""
        with self._lock():
            other._write(other.pepper_path, self._pepper())
            other._write_keys(self.entries())

    def _write_keys(self, keys: list[ApiKey]) -> None:
        raw = msgspec.json.format(msgspec.json.encode(_Document(_FORMAT, keys)), indent=2)
        self._write(self.path, raw + b"\n")

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
            raise BadKeyFile(
                f"{path} is encrypted: give the key of the data folder with --encryption-key-file or"
                " MEMORY_SERVICE_ENCRYPTION_KEY"
            )
        try:
            return Opener(self._key, _SEALED_FOR).open(raw[len(_MAGIC) :], _MAGIC)
        except ValueError:
            raise BadKeyFile(f"{path} was changed, or is encrypted with another key") from None

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # A file of its own: the one with the keys is another one after each change.
        path = self.path.with_name(self.path.name + ".lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _pepper(self) -> bytes:
        pepper = self._read(self.pepper_path, 1024)
        if len(pepper) < PEPPER_BYTES:
            raise BadKeyFile(f"{self.pepper_path} is shorter than {PEPPER_BYTES} bytes")
        return pepper

    def _pepper_made(self) -> bytes:
        if not self.pepper_path.exists():
            if self.path.exists():
                # A new pepper would make every key void without a word.
                raise BadKeyFile(f"{self.pepper_path} is missing: no key of {self.path} is good without it")
            self._write(self.pepper_path, secrets.token_bytes(PEPPER_BYTES))
        return self._pepper()


def _read(path: Path, bytes_max: int) -> bytes:
    try:
        raw = read_secret(path, bytes_max + 1)
    except OpenToOthers as error:
        raise BadKeyFile(str(error)) from None
    except OSError as error:
        raise BadKeyFile(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > bytes_max:
        raise BadKeyFile(f"{path} is larger than {bytes_max} bytes")
    return raw
