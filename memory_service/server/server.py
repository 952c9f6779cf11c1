"""Builds and runs a server, for the command line and for tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from memory_service import __version__
from memory_service.audit.log import AuditLog
from memory_service.audit.log_file import CannotOpenLog
from memory_service.config import BadConfig, Config
from memory_service.data_key import DataKey, read_key
from memory_service.domain.page_tokens import PageTokens
from memory_service.embedders.base import Embedder
from memory_service.llms.base import Llm
from memory_service.policies.base import CannotLoadPolicy, WritePolicy
from memory_service.records.base import CannotOpen
from memory_service.records.folder_lock import locked_folder
from memory_service.rerankers.base import CannotLoad, Reranker
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.files import make_folder, write_whole
from memory_service.server.access.access import Access
from memory_service.server.access.opening import open_access
from memory_service.server.auditing import Auditing
from memory_service.server.call_guard import CallGuard
from memory_service.server.health_port import HealthPort, health_port
from memory_service.server.listening import Listener, listen
from memory_service.server.logs import log_of_loop
from memory_service.server.methods import SERVICES
from memory_service.server.reflection import Reflection
from memory_service.server.services import Services
from memory_service.server.soundness import tell_health, watching_soundness
from memory_service.server.transport import check_transport
from memory_service.store import Store

_STREAMS_GRACE_S = 0.5
# How long a stopping server rejects calls itself before gRPC closes the connections.
_REFUSING_S = 0.5
_log = EventLog(__name__)


def open_store(config: Config) -> Store:
    """Return the configured store, not yet open."""
    history_us = config.history_days * 24 * 3600 * 1_000_000
    room = config.limits.namespace_bytes_max
    if config.store == "memory":
        if _data_key(config) is not None:
            raise BadConfig("the store memory has no files to encrypt: omit the encryption key")
        from memory_service.records.in_memory.store import InMemoryStore

        return InMemoryStore(history_us=history_us, namespace_bytes_max=room)
    if config.store == "postgres":
        return _postgres_store(config, history_us)
    from memory_service.records.sqlite.disk_space import SpaceSettings
    from memory_service.stores import SqliteStore

    space = SpaceSettings(config.disk_free_bytes_min, config.ballast_bytes)
    return SqliteStore(
        config.data_dir,
        config.index,
        _data_key(config),
        history_us=history_us,
        space=space,
        namespace_bytes_max=room,
        queued_writes_max=config.limits.queued_writes_max,
        waiting_searches_max=config.limits.waiting_searches_max,
    )


def _postgres_store(config: Config, history_us: int) -> Store:
    if _data_key(config) is not None:
        raise BadConfig("the store postgres is encrypted by its database: omit the encryption key")
    try:
        from memory_service.postgres_store import PostgresStore
    except ImportError as error:
        raise BadConfig('the store postgres needs psycopg: pip install "memory-service[postgres]"') from error
    return PostgresStore(
        config.postgres_dsn,
        config.index,
        cache_dir=config.data_dir / "views",
        schema=config.postgres_schema,
        history_us=history_us,
        namespace_bytes_max=config.limits.namespace_bytes_max,
        queued_writes_max=config.limits.queued_writes_max,
        waiting_searches_max=config.limits.waiting_searches_max,
    )


@contextlib.contextmanager
def _own_folder(config: Config) -> Iterator[None]:
    """Lock the data folder of a server whose records are elsewhere. Raises CannotOpen."""
    make_folder(config.data_dir)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked_folder(config.data_dir))
        except CannotOpen as error:
            raise CannotOpen(f"{error}: give each server of a database its own --data-dir") from None
        yield


def _data_key(config: Config) -> DataKey | None:
    """Return the encryption key of the data folder, if there is one."""
    try:
        return read_key(config.encryption_key_file)
    except ValueError as error:
        raise BadConfig(str(error)) from error


def open_embedder(config: Config) -> Embedder | None:
    """Return the configured embedder."""
    if config.embedder == "none":
        return None
    if config.embedder == "local":
        from memory_service.embedders.local import LocalEmbedder

        return LocalEmbedder()
    if not os.environ.get("OPENAI_API_KEY"):
        raise BadConfig(
            "the embedder openai needs OPENAI_API_KEY; servers without authentication accept any value"
        )
    from memory_service.embedders.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        config.embedding_model,
        config.embedding_dimension,
        config.embedder_timeout_s,
        config.embedder_retries,
        config.embedder_pause_s,
    )


def open_llm(config: Config) -> Llm | None:
    """Return the configured language model; None: rules decide."""
    if config.llm == "none":
        return None
    if not os.environ.get("OPENAI_API_KEY"):
        raise BadConfig(
            "the LLM openai needs OPENAI_API_KEY; servers without authentication accept any value"
        )
    from memory_service.llms.openai import LlmSettings, OpenAILlm

    return OpenAILlm(
        LlmSettings(
            config.llm_model,
            config.llm_timeout_s,
            config.llm_retries,
            config.llm_tokens_per_minute_max,
            config.llm_total_tokens_per_minute_max,
            config.llm_input_tokens_max,
        )
    )


def open_reranker(config: Config) -> Reranker | None:
    """Return the configured reranker; None: results keep the order of their scores."""
    if config.reranker == "none":
        return None
    from memory_service.rerankers.fastembed import FastembedReranker

    try:
        return FastembedReranker(config.reranker_model, config.reranker_dir)
    except CannotLoad as error:
        raise BadConfig(str(error)) from error


def open_write_policy(config: Config) -> WritePolicy | None:
    """Return the configured write policy; None: everything may be written."""
    try:
        if config.write_policy:
            from memory_service.policies.loading import load_class

            return load_class(config.write_policy)
        if config.write_policy_file is not None:
            from memory_service.policies.rules import read_rules

            return read_rules(config.write_policy_file)
    except CannotLoadPolicy as error:
        raise BadConfig(f"write policy: {error}") from error
    return None


def open_audit_log(config: Config, store: Store, name: str) -> AuditLog | None:
    """Return the open audit log of a server; None: none is kept.

    `store` releases disk space for it if the disk is full.
    """
    if not config.audited:
        return None
    log = AuditLog(config.data_dir / "audit", __version__, key=_data_key(config), room=store, server=name)
    try:
        log.open()
    except CannotOpenLog as error:
        raise BadConfig(str(error)) from error
    return log


async def _page_token_key(config: Config, store: Store) -> bytes:
    """Return the key of page tokens; it is stored, so that they survive restarts and work on every server."""
    if store.capabilities.shared:
        return await store.keep_setting("page tokens", secrets.token_bytes(32))
    if config.store == "memory":
        return secrets.token_bytes(32)
    if (key := _data_key(config)) is not None:
        return key.derive("page tokens")
    path = config.data_dir / "page-token.key"
    if not path.exists() or path.stat().st_size != 32:
        write_whole(path, secrets.token_bytes(32))
    return path.read_bytes()


@dataclass
class Server:
    """A server that listens at an address."""

    address: str
    grpc_server: grpc.aio.Server
    guard: CallGuard
    health: health_aio.HealthServicer
    access: Access | None = None
    health_port: HealthPort | None = None

    async def start(self) -> None:
        """Start serving."""
        await self.grpc_server.start()
        if self.health_port is not None:
            await self.health_port.server.start()

    async def drain(self, grace_s: float) -> None:
        """Drain: health becomes NOT_SERVING, streams end with a hint to reconnect, running calls finish.

        Connections are closed early: a client that is refused repeatedly while others finish could give up
        before the next server is up.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + grace_s
        await self.health.enter_graceful_shutdown()
        await self.guard.turn_away(min(grace_s, _REFUSING_S))
        goodbye = asyncio.create_task(self.grpc_server.stop(grace_s + _STREAMS_GRACE_S))
        await self.guard.finish(until - loop.time())
        # End what is still open, such as health watches.
        await self.grpc_server.stop(_STREAMS_GRACE_S)
        await goodbye
        if self.health_port is not None:
            await self.health_port.server.stop(_STREAMS_GRACE_S)


async def build_server(
    config: Config,
    listener: Listener,
    store: Store,
    embedder: Embedder | None,
    llm: Llm | None = None,
    reranker: Reranker | None = None,
    audit_log: AuditLog | None = None,
    policy: WritePolicy | None = None,
) -> tuple[Server, Services]:
    """Build a server over an open store. Raises BadConfig if that fails."""
    tokens = PageTokens(await _page_token_key(config, store))
    services = Services(config, store, embedder, llm, reranker, tokens, policy, listener.name)
    auditing = Auditing(audit_log, reads=config.audit_reads) if audit_log is not None else None
    try:
        access = open_access(config, auditing)
    except CannotOpenLog as error:
        raise BadConfig(str(error)) from error
    guard = CallGuard(config.limits, access)
    server = listener.grpc_server
    services.register(guard.guarding(server, auditing), guard.counts)
    health = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, guard.open_to_all(server))
    if config.reflection:
        Reflection([*SERVICES, "grpc.health.v1.Health"], guard.admit, guard.receiving).add_to(server)
    await tell_health(health, serving=True)
    return Server(listener.address, server, guard, health, access, health_port(config, health)), services


async def run(config: Config, announce: Callable[[str, str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal exits at once.

    `announce` is called with the address, and that of the health port, when the server listens. Raises
    BadConfig and CannotOpen before that.
    """
    check_transport(config)
    stop = asyncio.Event()
    _on_signals(stop)
    asyncio.get_running_loop().set_exception_handler(log_of_loop)
    embedder = open_embedder(config)
    llm = open_llm(config)
    reranker = open_reranker(config)
    policy = open_write_policy(config)
    store = open_store(config)
    async with contextlib.AsyncExitStack() as stack:
        if config.store == "postgres":
            stack.enter_context(_own_folder(config))
        await store.open()
        stack.push_async_callback(store.close)
        listener = listen(config)
        # After the store, which keeps a second server out of the folder.
        audit_log = open_audit_log(config, store, listener.name)
        if audit_log is not None:
            stack.push_async_callback(audit_log.close)
        if embedder is not None:
            stack.push_async_callback(embedder.close)
        if llm is not None:
            stack.push_async_callback(llm.close)
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        if policy is not None:
            stack.push_async_callback(policy.close)
        server, services = await build_server(
            config, listener, store, embedder, llm, reranker, audit_log, policy
        )
        if server.access is not None:
            await stack.enter_async_context(server.access.refreshing())
        await stack.enter_async_context(watching_soundness(store, audit_log, server.health))
        await stack.enter_async_context(services.administration.sweeping())
        await stack.enter_async_context(services.backfill.running())
        await server.start()
        _log.info(
            "serving",
            server=listener.name,
            address=server.address,
            store=config.store,
            embedder=embedder.name if embedder else "none",
        )
        announce(server.address, server.health_port.address if server.health_port else "")
        await stop.wait()
        _log.info("draining")
        await server.drain(config.drain_s)
    _log.info("stopped")


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def ask_to_stop() -> None:
        if stop.is_set():
            # Second signal: exit without waiting. Acknowledged writes do not depend on an orderly shutdown.
            os._exit(130)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop)
