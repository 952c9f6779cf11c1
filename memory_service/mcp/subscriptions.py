"""Subscriptions to resources. Each watches the changes of the namespace with the credential of its client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from memory_client import AsyncMemoryClient, MemoryServiceError
from memory_service.mcp.resources import may_change

_RETRY_S = 2.0
"""Pause before an unavailable server is tried again. Twice as much delays the first notification after its
return by that much; half as much costs a call more per pause."""

Context = ServerRequestContext[anyio.abc.TaskGroup, Any]

_log = logging.getLogger(__name__)


@asynccontextmanager
async def background_tasks(server: Server[anyio.abc.TaskGroup]) -> AsyncIterator[anyio.abc.TaskGroup]:
    """Yield the tasks of subscriptions that outlive their request; they end with the server."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


async def changed(
    memory: AsyncMemoryClient, uris: Collection[str], after_revision: int
) -> AsyncIterator[str]:
    """Yield each URI whose resource may have changed, until the caller stops.

    While the server is unavailable, try again and again.
    """
    revision: int | None = after_revision
    while True:
        try:
            async for change in memory.watch(after_revision=revision):
                revision = change.revision
                for uri in uris:
                    if may_change(uri, change):
                        yield uri
        except MemoryServiceError as error:
            _log.info("the watch of a subscription ended: %s", error)
        await anyio.sleep(_RETRY_S)


async def revision_now(memory: AsyncMemoryClient) -> int:
    """Return the revision of the namespace, from which changes are reported."""
    return (await memory.get_preloaded_memories(max_tokens=1, limit=1)).revision


async def listen(
    memory: AsyncMemoryClient, context: Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Serve `subscriptions/listen` (protocol 2026-07-28 and later) until the client ends it."""
    bus = InMemorySubscriptionBus()
    uris = tuple(params.notifications.resource_subscriptions or ())

    revision = await revision_now(memory) if uris else 0

    async def publish() -> None:
        async for uri in changed(memory, uris, revision):
            await bus.publish(ResourceUpdated(uri=uri))

    async with anyio.create_task_group() as group:
        if uris:
            group.start_soon(publish)
        result = await ListenHandler(bus)(context, params)
        group.cancel_scope.cancel()
    return result


class Subscribed:
    """The resources that a connection subscribed to by `resources/subscribe`, before protocol 2026-07-28."""

    def __init__(self) -> None:
        self._scopes: dict[str, anyio.CancelScope] = {}

    async def subscribe(self, memory: AsyncMemoryClient, context: Context, uri: str) -> None:
        """Notify the client of changes of a resource from now on. Subscribing twice is subscribing once."""
        if uri in self._scopes:
            return
        scope = self._scopes[uri] = anyio.CancelScope()
        try:
            revision = await revision_now(memory)
        except BaseException:
            self._scopes.pop(uri, None)
            raise

        async def notify() -> None:
            with scope:
                async for _ in changed(memory, (uri,), revision):
                    await context.session.send_resource_updated(uri)

        context.lifespan_context.start_soon(notify)

    def unsubscribe(self, uri: str) -> None:
        """End the notifications of a resource."""
        scope = self._scopes.pop(uri, None)
        if scope is not None:
            scope.cancel()

    def close(self) -> None:
        """End all notifications."""
        for uri in list(self._scopes):
            self.unsubscribe(uri)


def subscribed_by(context: Context) -> Subscribed:
    """Return the subscriptions of the connection of a request; they end with it."""
    # The SDK gives handlers no public name for the connection.
    connection = context.session._connection
    if "memory_service" not in connection.state:
        subscribed = connection.state["memory_service"] = Subscribed()
        connection.exit_stack.callback(subscribed.close)
    found = connection.state["memory_service"]
    assert isinstance(found, Subscribed)
    return found
