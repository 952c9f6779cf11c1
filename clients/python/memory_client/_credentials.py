"""What a client proves who it is with, and where that may be sent."""

from __future__ import annotations

import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable

Metadata = tuple[tuple[str, str], ...]
"""Headers of a call, as gRPC takes them."""

TokenSource = Callable[[], str | Awaitable[str]]
"""Returns the token to send with a call; of the asynchronous client it may be a coroutine function."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SOCKETS = ("unix:", "unix-abstract:")
_SCHEMES = re.compile(r"(?:ipv4|ipv6|dns):(?:///?)?")


def bearer(token: str) -> Metadata:
    """Return the metadata that carries a token.

    Raises:
        ValueError: No header can carry it. gRPC would say so, too, and show the token.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise ValueError("the token is no text of printable ASCII characters without spaces")
    return (("authorization", f"Bearer {token}"),)


def fetched(source: TokenSource) -> Metadata:
    """Return the metadata that carries the source's token of now; what the source raises is raised."""
    token = source()
    if inspect.isawaitable(token):
        if inspect.iscoroutine(token):
            token.close()
        raise TypeError("a token_source that is a coroutine function is for AsyncMemoryClient")
    return bearer(token)


async def awaited(source: TokenSource) -> Metadata:
    """Return the metadata that carries the source's token of now, wherever that takes a while."""
    token = source()
    return bearer(await token if inspect.isawaitable(token) else token)


def is_loopback(target: str) -> bool:
    """Whether what is sent to a target of gRPC stays on this machine."""
    if target.startswith(_SOCKETS):
        return True
    address = _SCHEMES.sub("", target, count=1)
    host = (address.rpartition(":")[0] or address).removeprefix("[").removesuffix("]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
