"""Addresses of servers: one, or several servers over the same records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_client.errors import invalid

_WITHOUT_PORT = ("unix:", "unix-abstract:", "vsock:", "xds:")
_PORT_MAX = 65_535
_LAST_COLON = re.compile(r":([^:/\]]*)$")


def addresses_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the addresses in a comma-separated text or in a list, in the given order.

    Raises:
        InvalidArgument: An address is not a text, empty, repeated or without a valid port.
    """
    entries = given.split(",") if isinstance(given, str) else list(given)
    if not entries:
        raise invalid("address", "none is given")
    found: list[str] = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, str):
            raise invalid("address", f"number {number} is not a string")
        address = entry.strip()
        if not address:
            raise invalid("address", f"number {number} of {len(entries)} is empty")
        if address in found:
            raise invalid("address", f"{address!r} is given twice")
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
            raise invalid("address", f"the port of {address!r} is not 1 to {_PORT_MAX}")
    elif not is_alone:
        # In a single address the port may be omitted or be a name, as gRPC allows.
        raise invalid("address", f"{address!r} is not a host and port")
