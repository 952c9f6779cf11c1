"""Where servers are: one address, or several that are equal."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WITHOUT_PORT = ("unix:", "unix-abstract:", "vsock:", "xds:")
_PORT_MAX = 65_535
_LAST_COLON = re.compile(r":([^:/\]]*)$")


def addresses_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the addresses that a text with commas between them holds, or a list of them, in its order.

    Raises:
        ValueError: An address is empty, is there twice or has a port that is none; the message begins
            with "address".
        TypeError: It is neither a text nor a list of texts.
    """
    entries = given.split(",") if isinstance(given, str) else list(given)
    if not entries:
        raise ValueError("address: there is none")
    found: list[str] = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, str):
            raise TypeError(f"address: number {number} is no text")
        address = entry.strip()
        if not address:
            raise ValueError(f"address: number {number} of {len(entries)} is empty")
        if address in found:
            raise ValueError(f"address: {address!r} is there twice")
        _check_port(address, is_alone=len(entries) == 1)
        found.append(address)
    return tuple(found)


def _check_port(address: str, is_alone: bool) -> None:
    if address.startswith(_WITHOUT_PORT):
        return
    match = _LAST_COLON.search(address)
    port = match[1] if match else ""
    if port.isdecimal() and port.isascii():
        if not 1 <= int(port) <= _PORT_MAX:
            raise ValueError(f"address: the port of {address!r} is not 1 to {_PORT_MAX}")
    elif not is_alone:
        # Of a lone address the port may be left out or have a name, as gRPC takes it.
        raise ValueError(f"address: {address!r} is no host and port")
