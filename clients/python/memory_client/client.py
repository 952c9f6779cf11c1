# Generated from aio.py by generate_sync.py. Do not edit: change that and run it again.
"""The synchronous client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from memory_client._arguments import checked_namespace
from memory_client._sync.admin import AdminMethods
from memory_client._sync.batches import BatchMethods
from memory_client._sync.files import FileMethods
from memory_client._sync.interactions import InteractionMethods
from memory_client._sync.knowledge import KnowledgeMethods
from memory_client._sync.labels import LabelMethods
from memory_client._sync.memory import MemoryMethods
from memory_client._sync.overseer import OverseerMethods
from memory_client._sync.sessions import SessionMethods
from memory_client._sync.state import StateMethods
from memory_client._sync.transport import Transport
from memory_client._sync.user_memories import UserMemoryMethods
from memory_client._sync.versions import VersionMethods
from memory_client.options import MIB, ClientOptions


class MemoryClient(
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
    """A client of one server or several over the same records. Safe for use from many threads.

        with MemoryClient(namespace="ada") as memory:
            memory.add("Ada likes tea")
            for result in memory.retrieve("what tea does she like?"):
                print(result.text)

    It is bound to one namespace. Every method raises a subclass of `MemoryServiceError` if the server refuses
    the call or cannot be reached. The first call that needs a connection opens it.
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
        token_source: Callable[[], str] | None = None,
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

    def close(self) -> None:
        """End all calls and close the connections."""
        if not self._is_view:
            self._transport.close()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def __repr__(self) -> str:
        """Show address and namespace."""
        return f"MemoryClient({self._transport.options.address!r}, namespace={self._namespace!r})"
