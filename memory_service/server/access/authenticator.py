"""The contract of what verifies credentials."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.runtime.caller import Caller

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class Verified:
    """A credential that is good: whom it names, and until when, in seconds since 1970."""

    caller: Caller
    expires_s: float = NEVER_S


class Authenticator:
    """Verifies one kind of credentials. What it does not know or cannot verify is None, never a caller."""

    async def verify_token(self, token: str) -> Verified | None:
        """Return whom a bearer token names. It may wait, but MUST NOT block the event loop."""
        return None

    def verify_peer(self, subject: str) -> Verified | None:
        """Return whom a client certificate names, which the transport has verified.

        `subject` is its SPIFFE URI, or "CN=" with its common name; "" where it names nobody.
        """
        return None

    async def refresh(self) -> bool:
        """Look whether what it knows has changed; True: what it verified before has to be verified again.

        It is called every second or so, and MUST NOT raise because of what it reads.
        """
        return False
