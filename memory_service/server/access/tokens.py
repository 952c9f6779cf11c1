"""JSON Web Tokens, signed by an issuer whose public keys the server knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from memory_service.credentials.grants import NAME_CHARS_MAX, BadGrant, grant
from memory_service.runtime.caller import Caller
from memory_service.server.access.authenticator import Authenticator, Verified
from memory_service.server.access.key_sets import KeySource

_SKEW_S = 60
_REQUIRED = ["exp", "iss", "aud", "sub"]


class Tokens(Authenticator):
    """Verifies tokens of one issuer for one audience.

    Only the key id of a token's header counts: the algorithm is that of the key, and keys embedded in a
    header are ignored.
    """

    def __init__(self, keys: KeySource, issuer: str, audience: str, lifetime_s_max: int = 0) -> None:
        """`lifetime_s_max` 0: tokens may have any lifetime, and need no `iat`."""
        self._keys, self._issuer, self._audience = keys, issuer, audience
        self._lifetime_s_max = lifetime_s_max
        self._required = [*_REQUIRED, "iat"] if lifetime_s_max else _REQUIRED

    async def verify_token(self, token: str) -> Verified | None:
        """Return the caller of a token; None if it is forged, for another audience, expired or malformed."""
        if token.count(".") != 2:
            return None
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        if not isinstance(kid, str) or not 1 <= len(kid) <= NAME_CHARS_MAX:
            return None
        key = await self._keys.find(kid)
        return None if key is None else self._verified(token, key, kid)

    def _verified(self, token: str, key: jwt.PyJWK, kid: str) -> Verified | None:
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self._issuer,
                audience=self._audience,
                leeway=_SKEW_S,
                options={"require": self._required},
            )
            if self._lifetime_s_max and claims["exp"] - claims["iat"] > self._lifetime_s_max:
                return None
            return Verified(_caller(claims, kid), float(claims["exp"]) + _SKEW_S)
        except (jwt.PyJWTError, BadGrant, ValueError, TypeError, OverflowError, RecursionError):
            return None

    async def refresh(self) -> bool:
        """Check for changed keys."""
        return await self._keys.refresh()


def _caller(claims: Mapping[str, Any], kid: str) -> Caller:
    token_id = claims.get("jti", kid)
    if (
        not isinstance(token_id, str)
        or not 1 <= len(token_id) <= NAME_CHARS_MAX
        or not token_id.isprintable()
    ):
        raise BadGrant("jti must be a short text")
    return grant(
        claims["sub"],
        f"jwt:{token_id}",
        claims.get("namespaces"),
        claims.get("roles"),
        claims.get("trust", 1.0),
    )
