"""The contract for verifying credentials."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.runtime.caller import Caller

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class Verified:
    """A valid credential: its caller, and its expiry in seconds since 1970."""

    caller: Caller
    expires_s: float = NEVER_S


class Authenticator:
    """Verifies one kind of credentials. Unknown or unverifiable credentials are None, never a caller."""

    async def verify_token(self, token: str) -> Verified | None:
        """Return the caller of a bearer token. It may wait, but MUST NOT block the event loop."""
        return None

    def verify_peer(self, subject: str) -> Verified | None:
        """Return the caller of a client certificate, which the transport has verified.

        `subject` is its SPIFFE URI, or "CN=" with its common name; "" if it has neither.
        """
        return None

    async def refresh(self) -> bool:
        """Check for changed keys; True: credentials verified earlier must be verified again.

        Called about every second. It MUST NOT raise because of what it reads.
        """
        return False
