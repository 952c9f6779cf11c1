"""Credentials of a client, and where they may be sent."""

from __future__ import annotations

import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable

from memory_client.errors import invalid

Metadata = tuple[tuple[str, str], ...]
"""Headers of a call, as gRPC takes them."""

TokenSource = Callable[[], str | Awaitable[str]]
"""Returns the token to send with a call. The asynchronous client also takes a coroutine function."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SOCKETS = ("unix:", "unix-abstract:")
_SCHEMES = re.compile(r"(?:ipv4|ipv6|dns):(?:///?)?")


def bearer(token: str) -> Metadata:
    """Return the metadata with a token.

    Raises:
        InvalidArgument: No header can carry it. gRPC also rejects it, but its error shows the token.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise invalid("token", "must be printable ASCII text without spaces")
    return (("authorization", f"Bearer {token}"),)


def fetched(source: TokenSource) -> Metadata:
    """Return the metadata with the source's current token; exceptions of the source propagate."""
    token = source()
    if inspect.isawaitable(token):
        if inspect.iscoroutine(token):
            token.close()
        raise invalid("token_source", "only AsyncMemoryClient takes a coroutine function")
    return bearer(token)


async def awaited(source: TokenSource) -> Metadata:
    """Return the metadata with the source's current token, awaiting it if needed."""
    token = source()
    return bearer(await token if inspect.isawaitable(token) else token)


def is_loopback(target: str) -> bool:
    """Whether data sent to a gRPC target stays on this machine."""
    if target.startswith(_SOCKETS):
        return True
    address = _SCHEMES.sub("", target, count=1)
    host = (address.rpartition(":")[0] or address).removeprefix("[").removesuffix("]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
