"""The asynchronous client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from memory_client._aio.admin import AdminMethods
from memory_client._aio.batches import BatchMethods
from memory_client._aio.files import FileMethods
from memory_client._aio.interactions import InteractionMethods
from memory_client._aio.knowledge import KnowledgeMethods
from memory_client._aio.labels import LabelMethods
from memory_client._aio.memory import MemoryMethods
from memory_client._aio.overseer import OverseerMethods
from memory_client._aio.sessions import SessionMethods
from memory_client._aio.state import StateMethods
from memory_client._aio.transport import Transport
from memory_client._aio.user_memories import UserMemoryMethods
from memory_client._aio.versions import VersionMethods
from memory_client._arguments import checked_namespace
from memory_client.options import MIB, ClientOptions


class AsyncMemoryClient(
    MemoryMethods,
    BatchMethods,
    LabelMethods,
    VersionMethods,
    StateMethods,
    UserMemoryMethods,
    InteractionMethods,
    KnowledgeMethods,
    SessionMethods,
    FileMethods,
    OverseerMethods,
    AdminMethods,
):
    """A client of one server or several over the same records. For use in any event loop.

        async with AsyncMemoryClient(namespace="ada") as memory:
            await memory.add("Ada likes tea")
            for result in await memory.retrieve("what tea does she like?"):
                print(result.text)

    It is bound to one namespace. Every method raises a subclass of `MemoryServiceError` if the server refuses
    the call or cannot be reached. The first call that needs a connection opens it; each event loop
    has its own, which is closed with the client or when `asyncio.run` ends.
    """

    def __init__(
        self,
        address: str | Sequence[str] = "127.0.0.1:50051",
        *,
        namespace: str = "default",
        timeout_s: float | None = 30.0,
        max_attempts: int = 5,
        wait_for_ready: bool | None = None,
        keepalive_s: float = 60.0,
        max_receive_bytes: int = 16 * MIB,
        tls: bool = False,
        root_certificates: bytes | None = None,
        client_certificate: bytes | None = None,
        client_key: bytes | None = None,
        tls_server_name: str | None = None,
        api_key: str | None = None,
        token_source: Callable[[], str | Awaitable[str]] | None = None,
        allow_insecure_token: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Make a client; `ClientOptions` describes the settings.

        Raises:
            InvalidArgument: A setting is invalid, or credentials would be sent unencrypted.
        """
        options = ClientOptions(
            address=address,
            timeout_s=timeout_s,
            max_attempts=max_attempts,
            wait_for_ready=wait_for_ready,
            keepalive_s=keepalive_s,
            max_receive_bytes=max_receive_bytes,
            tls=tls,
            root_certificates=root_certificates,
            client_certificate=client_certificate,
            client_key=client_key,
            tls_server_name=tls_server_name,
            api_key=api_key,
            token_source=token_source,
            allow_insecure_token=allow_insecure_token,
            headers=headers or {},
        )
        self._transport = Transport(options)
        self._namespace = checked_namespace(namespace)
        self._is_view = False

    def namespace(self, name: str) -> Self:
        """Return this client bound to another namespace; it shares the connections.

        It is cheap enough for every call. Closing it closes nothing.
        """
        view = object.__new__(type(self))
        view._transport = self._transport
        view._namespace = checked_namespace(name)
        view._is_view = True
        return view

    async def close(self) -> None:
        """End all calls and close the connections."""
        if not self._is_view:
            await self._transport.close()

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    def __repr__(self) -> str:
        """Show address and namespace."""
        return f"AsyncMemoryClient({self._transport.options.address!r}, namespace={self._namespace!r})"
