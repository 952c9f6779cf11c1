"""Small things that only the data directory's key opens: AES-256-GCM, bound to where they stand."""

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
    """Seals things of one purpose. Each object has a salt, and so a key, of its own.

    It is good for 2**32 things, for their nonces are drawn. What is sealed begins with salt and nonce.
    """

    def __init__(self, key: DataKey, purpose: str) -> None:
        self._salt = os.urandom(_SALT_BYTES)
        self._cipher = AESGCM(key.derive(purpose, self._salt))

    def seal(self, plain: bytes, bound: bytes = b"") -> bytes:
        """Return what opens with the same `bound` only, which is not in it."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._salt + nonce + self._cipher.encrypt(nonce, plain, bound)


class Opener:
    """Opens what a `Seal` of the same key and purpose has sealed."""

    def __init__(self, key: DataKey, purpose: str) -> None:
        # Things that were sealed one after the other have a salt in common.
        self._cipher = functools.lru_cache(maxsize=4)(lambda salt: AESGCM(key.derive(purpose, salt)))

    def open(self, sealed: bytes, bound: bytes = b"") -> bytes:
        """Return what was sealed. Raises ValueError where it was changed or moved, or is of another key."""
        if len(sealed) < _SEALED_BYTES_MIN:
            raise ValueError("it is too short")
        salt, nonce = sealed[:_SALT_BYTES], sealed[_SALT_BYTES : _SALT_BYTES + _NONCE_BYTES]
        try:
            return self._cipher(salt).decrypt(nonce, sealed[_SALT_BYTES + _NONCE_BYTES :], bound)
        except InvalidTag as error:
            raise ValueError("it was changed or moved, or is of another key") from error
