"""Files beside the records: plain, or encrypted if the data directory has a key.

hnswlib reads and writes files by path and cannot encrypt. So it writes to a file in memory (memfd), whose
path is in /proc, and from there the data goes to the disk in chunks. Each file has a separate key. Each chunk
is sealed by AES-256-GCM with its number and a flag for the last one: chunks that were cut off, moved or taken
from another file do not open. On a system without memfd, nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memory_service.data_key import DataKey

_MAGIC = b"MSSEALED"
_SALT_BYTES = 32
_CHUNK_BYTES = 1 << 20
_TAG_BYTES = 16


class SealedFiles:
    """Writes and reads files by a path. `key` None: they are not encrypted."""

    def __init__(self, key: DataKey | None) -> None:
        self._key = key

    @contextmanager
    def writing(self, path: Path) -> Iterator[Path]:
        """Yield a path to write to; its final content becomes the file at `path`."""
        if self._key is None:
            yield path
            return
        with _in_memory() as plain:
            yield plain
            with plain.open("rb") as source, path.open("wb") as target:
                _seal(self._key, source, target)

    @contextmanager
    def reading(self, path: Path) -> Iterator[Path]:
        """Yield a path to read the content of the file at `path`. Raises ValueError if it was changed."""
        if self._key is None:
            yield path
            return
        with _in_memory() as plain:
            with path.open("rb") as source, plain.open("wb") as target:
                _unseal(self._key, source, target)
            yield plain


@contextmanager
def _in_memory() -> Iterator[Path]:
    """Create a file that is never on a disk, and yield its path."""
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no memfd: encrypted index snapshots are not written")
    descriptor = os.memfd_create("index", os.MFD_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _cipher(key: DataKey, salt: bytes) -> AESGCM:
    return AESGCM(key.derive("file", salt))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _seal(key: DataKey, source: IO[bytes], target: IO[bytes]) -> None:
    salt = os.urandom(_SALT_BYTES)
    cipher = _cipher(key, salt)
    target.write(_MAGIC + salt)
    number, chunk = 0, source.read(_CHUNK_BYTES)
    while True:
        following = source.read(_CHUNK_BYTES)
        target.write(cipher.encrypt(_nonce(number, not following), chunk, None))
        if not following:
            return
        number, chunk = number + 1, following


def _unseal(key: DataKey, source: IO[bytes], target: IO[bytes]) -> None:
    header = source.read(len(_MAGIC) + _SALT_BYTES)
    if not header.startswith(_MAGIC):
        raise ValueError("the file is not encrypted")
    cipher = _cipher(key, header[len(_MAGIC) :])
    number, chunk = 0, source.read(_CHUNK_BYTES + _TAG_BYTES)
    while True:
        following = source.read(_CHUNK_BYTES + _TAG_BYTES)
        try:
            target.write(cipher.decrypt(_nonce(number, not following), chunk, None))
        except InvalidTag as error:
            raise ValueError("the file was changed, or encrypted with another key") from error
        if not following:
            return
        number, chunk = number + 1, following
