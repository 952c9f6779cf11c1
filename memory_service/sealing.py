"""Small values encrypted with the data folder's key: AES-256-GCM, bound to their location."""

from __future__ import annotations

import functools
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memory_service.data_key import DataKey

_SALT_BYTES = 16
_NONCE_BYTES = 12
_SEALED_BYTES_MIN = _SALT_BYTES + _NONCE_BYTES + 16


class Seal:
    """Seals values of one purpose. Each object has its own salt, and so its own key.

    Use it for at most 2**32 values, because nonces are random. A sealed value begins with salt and nonce.
    """

    def __init__(self, key: DataKey, purpose: str) -> None:
        self._salt = os.urandom(_SALT_BYTES)
        self._cipher = AESGCM(key.derive(purpose, self._salt))

    def seal(self, plain: bytes, bound: bytes = b"") -> bytes:
        """Return a value that opens only with the same `bound`, which it does not contain."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._salt + nonce + self._cipher.encrypt(nonce, plain, bound)


class Opener:
    """Opens values of a `Seal` with the same key and purpose."""

    def __init__(self, key: DataKey, purpose: str) -> None:
        # Values sealed one after another share a salt.
        self._cipher = functools.lru_cache(maxsize=4)(lambda salt: AESGCM(key.derive(purpose, salt)))

    def open(self, sealed: bytes, bound: bytes = b"") -> bytes:
        """Return the plain value. Raises ValueError if it was changed, moved, or sealed with another key."""
        if len(sealed) < _SEALED_BYTES_MIN:
            raise ValueError("it is too short")
        salt, nonce = sealed[:_SALT_BYTES], sealed[_SALT_BYTES : _SALT_BYTES + _NONCE_BYTES]
        try:
            return self._cipher(salt).decrypt(nonce, sealed[_SALT_BYTES + _NONCE_BYTES :], bound)
        except InvalidTag as error:
            raise ValueError("it was changed or moved, or sealed with another key") from error
