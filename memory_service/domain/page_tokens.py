"""Page tokens: opaque, signed, and valid for one request only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from memory_service.errors import InvalidArgument

_MAC_BYTES = 16


class PageTokens:
    """Makes and reads tokens with a key. A token holds a position and grants no access."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, scope: tuple[object, ...], place: list[int | str]) -> str:
        """Return the token for a place in the answer to a request; `scope` is the rest of the request."""
        payload = msgspec.json.encode(place)
        return base64.urlsafe_b64encode(self._mac(scope, payload) + payload).decode().rstrip("=")

    def read(self, scope: tuple[object, ...], token: str, field: str = "page_token") -> list[int | str]:
        """Return the place in a token. Raises InvalidArgument, of `field`, if it belongs to another
        request.
        """
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError) as error:
            raise InvalidArgument.page_token(field) from error
        mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(scope, payload)):
            raise InvalidArgument.page_token(field)
        return msgspec.json.decode(payload, type=list[int | str])

    def _mac(self, scope: tuple[object, ...], payload: bytes) -> bytes:
        digest = hmac.new(self._key, repr(scope).encode() + b"\0" + payload, hashlib.sha256)
        return digest.digest()[:_MAC_BYTES]
