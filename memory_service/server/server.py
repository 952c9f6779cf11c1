"""Building and running a server: what the command line and the tests start is made here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from memory_service.config import BadConfig, Config
from memory_service.domain.administration import Administration
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.facts.consolidating import FactConsolidating
from memory_service.domain.facts.correcting import FactCorrecting
from memory_service.domain.facts.extracting import FactExtracting
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.reading import MemoryReading
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Locks
from memory_service.domain.fragment_search import FragmentSearch
from memory_service.domain.interaction_context import InteractionContext
from memory_service.domain.interactions import Interactions
from memory_service.domain.knowledge import Knowledge
from memory_service.domain.memories import Memories
from memory_service.domain.overseer import Overseer
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.result_storage import ResultStorage
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.save_command import SaveCommand
from memory_service.domain.states import States
from memory_service.embedders.base import Embedder
from memory_service.llms.base import Llm
from memory_service.server.admin_servicer import AdminServicer, ServerInfo
from memory_service.server.call_guard import CallGuard
from memory_service.server.documents import document_bytes
from memory_service.server.interaction_servicer import InteractionServicer
from memory_service.server.items import item_bytes
from memory_service.server.knowledge_servicer import KnowledgeServicer
from memory_service.server.memory_servicer import MemoryServicer
from memory_service.server.overseer_servicer import OverseerServicer
from memory_service.server.reflection import Reflection
from memory_service.server.state_servicer import StateServicer
from memory_service.server.states import state_bytes
from memory_service.server.user_memories import memory_bytes
from memory_service.server.user_memory_servicer import UserMemoryServicer
from memory_service.stores.base import Store
from memory_service.v1 import (
    admin_pb2_grpc,
    interaction_pb2_grpc,
    knowledge_pb2_grpc,
    memory_pb2_grpc,
    overseer_pb2_grpc,
    state_pb2_grpc,
    user_memory_pb2_grpc,
)

SERVICES = (
    "memory_service.v1.MemoryService",
    "memory_service.v1.StateService",
    "memory_service.v1.AdminService",
    "memory_service.v1.InteractionService",
    "memory_service.v1.OverseerService",
    "memory_service.v1.UserMemoryService",
    "memory_service.v1.KnowledgeService",
)
_STREAMS_GRACE_S = 0.5
_log = structlog.get_logger(__name__)


def open_store(config: Config) -> Store:
    """Return the store that is asked for, not yet open."""
    if config.store == "memory":
        from memory_service.stores.memory import InMemoryStore

        return InMemoryStore()
    from memory_service.stores.hnsw import HnswStore

    return HnswStore(config.data_dir, config.index)


def open_embedder(config: Config) -> Embedder | None:
    """Return the embedder that is asked for."""
    if config.embedder == "none":
        return None
    if config.embedder == "local":
        from memory_service.embedders.local import LocalEmbedder

        return LocalEmbedder()
    if not os.environ.get("OPENAI_API_KEY"):
        raise BadConfig("the embedder openai needs OPENAI_API_KEY; a server that asks for no key takes any")
    from memory_service.embedders.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        config.embedding_model, config.embedding_dimension, config.embedder_timeout_s, config.embedder_retries
    )


def open_llm(config: Config) -> Llm | None:
    """Return the language model that is asked for; None: rules decide."""
    if config.llm == "none":
        return None
    if not os.environ.get("OPENAI_API_KEY"):
        raise BadConfig("the LLM openai needs OPENAI_API_KEY; a server that asks for no key takes any")
    from memory_service.llms.openai import LlmSettings, OpenAILlm

    return OpenAILlm(
        LlmSettings(
            config.llm_model,
            config.llm_timeout_s,
            config.llm_retries,
            config.llm_tokens_per_minute_max,
            config.llm_input_tokens_max,
        )
    )


def _page_token_key(config: Config) -> bytes:
    """Return the key of page tokens; on disk, so that a token outlives a restart."""
    if config.store == "memory":
        return secrets.token_bytes(32)
    path = config.data_dir / "page-token.key"
    if not path.exists() or path.stat().st_size != 32:
        path.write_bytes(secrets.token_bytes(32))
        path.chmod(0o600)
    return path.read_bytes()


@dataclass
class Server:
    """A server that listens. `port` is the one it got."""

    port: int
    grpc_server: grpc.aio.Server
    guard: CallGuard
    health: health_aio.HealthServicer

    async def drain(self, grace_s: float) -> None:
        """Say goodbye: health turns NOT_SERVING, calls under way finish, streams are told to come back."""
        await self.health.enter_graceful_shutdown()
        await self.guard.drain(grace_s)
        # What is still open, such as somebody's watch on our health, ends here.
        await self.grpc_server.stop(_STREAMS_GRACE_S)


def _options(config: Config) -> list[tuple[str, int]]:
    return [
        # Two servers on one port would share its calls without a word.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", config.limits.message_bytes_max),
        ("grpc.max_send_message_length", config.limits.message_bytes_max),
        ("grpc.max_concurrent_streams", 1000),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.server_handshake_timeout_ms", 10_000),
    ]


async def build_server(
    config: Config, store: Store, embedder: Embedder | None, llm: Llm | None = None
) -> tuple[Server, Administration]:
    """Build a server over an open store, and bind its port. Raises BadConfig when the port is taken."""
    checks = Checks(config.limits)
    tokens = PageTokens(_page_token_key(config))
    embedding = TextEmbedding(embedder)
    retrieval = Retrieval(store, embedding, checks, tokens, item_bytes)
    memories = Memories(store, embedding, retrieval, checks, tokens)
    administration = Administration(store, checks, tokens)
    guard = CallGuard(config.limits)
    server = grpc.aio.server(options=_options(config))
    guarded = guard.guarding(server)
    servicer = MemoryServicer(memories, retrieval, config.limits.page_bytes_max)
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, guarded)
    states = States(store, checks, tokens, state_bytes)
    state_pb2_grpc.add_StateServiceServicer_to_server(StateServicer(states), guarded)
    admin = AdminServicer(administration, ServerInfo(config.store, embedder, llm, config.limits))
    admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, guarded)
    overseer = OverseerServicer(
        Overseer(store, embedding, checks, llm, state_bytes),
        ResultStorage(store, states, checks, llm, config.overseer_skip_tools),
    )
    overseer_pb2_grpc.add_OverseerServiceServicer_to_server(overseer, guarded)
    interactions = Interactions(store, memories, retrieval, checks, tokens, item_bytes)
    interaction_context = InteractionContext(store, embedding, retrieval, interactions, checks, item_bytes)
    interaction_pb2_grpc.add_InteractionServiceServicer_to_server(
        InteractionServicer(interactions, interaction_context), guarded
    )
    user_memory_pb2_grpc.add_UserMemoryServiceServicer_to_server(
        _user_memories(store, memories, retrieval, embedding, checks, tokens, llm), guarded
    )
    knowledge_pb2_grpc.add_KnowledgeServiceServicer_to_server(
        _knowledge(store, memories, embedding, checks, tokens), guarded
    )
    health = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    if config.reflection:
        Reflection([*SERVICES, "grpc.health.v1.Health"]).add_to(server)
    try:
        port = server.add_insecure_port(config.address)
    except RuntimeError as error:
        raise BadConfig(f"cannot listen on {config.address}: is another server running there?") from error
    for service in ("", *SERVICES):
        await health.set(service, health_pb2.HealthCheckResponse.SERVING)
    return Server(port, server, guard, health), administration


def _user_memories(
    store: Store,
    memories: Memories,
    retrieval: Retrieval,
    embedding: TextEmbedding,
    checks: Checks,
    tokens: PageTokens,
    llm: Llm | None,
) -> UserMemoryServicer:
    locks = Locks()
    reading = MemoryReading(store, retrieval, checks, tokens, memory_bytes)
    judging = Judging(store, retrieval, embedding)
    saving = FactSaving(store, memories, reading, judging, checks, llm, locks)
    return UserMemoryServicer(
        saving,
        FactCorrecting(store, saving, reading, judging, checks, llm, locks),
        FactExtracting(store, saving, reading, checks, llm, locks),
        FactConsolidating(saving, reading, judging, checks, llm, locks),
        reading,
        judging,
    )


def _knowledge(
    store: Store, memories: Memories, embedding: TextEmbedding, checks: Checks, tokens: PageTokens
) -> KnowledgeServicer:
    knowledge = Knowledge(store, embedding, checks, tokens, document_bytes)
    return KnowledgeServicer(
        knowledge,
        FragmentSearch(store, knowledge.retrieval, checks, tokens, document_bytes),
        SaveCommand(store, memories, knowledge, checks),
    )


def configure_logging(level: str) -> None:
    """Log one JSON object a line to stderr."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends at once.

    `announce` is called with the address when the server listens. Raises BadConfig
    and CannotOpen before that.
    """
    stop = asyncio.Event()
    _on_signals(stop)
    embedder = open_embedder(config)
    llm = open_llm(config)
    store = open_store(config)
    await store.open()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        if embedder is not None:
            stack.push_async_callback(embedder.close)
        if llm is not None:
            stack.push_async_callback(llm.close)
        server, administration = await build_server(config, store, embedder, llm)
        await stack.enter_async_context(administration.sweeping())
        await server.grpc_server.start()
        address = f"{config.address.rpartition(':')[0]}:{server.port}"
        _log.info(
            "serving", address=address, store=config.store, embedder=embedder.name if embedder else "none"
        )
        announce(address)
        await stop.wait()
        _log.info("draining")
        await server.drain(config.drain_s)
    _log.info("stopped")


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def ask_to_stop() -> None:
        if stop.is_set():
            # Asked twice: no more waiting. Nothing acknowledged depends on an orderly end.
            os._exit(130)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop)
