"""The key of a data folder, and the keys derived from it, one per purpose."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memory_service.runtime.secret_files import read_secret

KEY_BYTES = 32
KEY_VARIABLE = "MEMORY_SERVICE_ENCRYPTION_KEY"
NEW_KEY_VARIABLE = "MEMORY_SERVICE_NEW_ENCRYPTION_KEY"


class DataKey:
    """The key of a data folder, which is never written, logged or shown."""

    def __init__(self, master: bytes) -> None:
        if len(master) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._master = master

    @classmethod
    def parse(cls, text: str) -> DataKey:
        """Read a key of 32 bytes, written as 64 hexadecimal digits or as base64. Raises ValueError."""
        text = text.strip()
        for decode in (bytes.fromhex, lambda coded: base64.b64decode(coded, validate=True)):
            try:
                return cls(decode(text))
            except (ValueError, binascii.Error):
                continue
        # The message leaves out the input: it may be most of a key.
        raise ValueError("an encryption key is 32 bytes, as 64 hexadecimal digits or as base64")

    def derive(self, purpose: str, salt: bytes | None = None) -> bytes:
        """Return 32 bytes for one purpose, which reveal nothing about the key or other purposes."""
        return HKDF(SHA256(), KEY_BYTES, salt, f"memory-service {purpose}".encode()).derive(self._master)


def read_key(path: Path | None, variable: str = KEY_VARIABLE) -> DataKey | None:
    """Read the key from a file or an environment variable; return None if there is no key in either.

    Raises ValueError for an invalid key, for both sources at once, and for a file that others can read.
    Raises OSError.
    """
    text = os.environ.get(variable)
    if path is not None and text is not None:
        raise ValueError(f"give the encryption key in a file or in {variable}, not in both")
    if path is not None:
        text = read_secret(path).decode("utf-8", "replace")
    # An empty key is invalid: the secret may be missing by mistake.
    return None if text is None else DataKey.parse(text)
