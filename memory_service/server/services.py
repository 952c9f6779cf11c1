"""Builds the services on top of the domain, and registers them."""

from __future__ import annotations

from typing import Any

from memory_service.config import Config
from memory_service.deciders.choice import Deciders
from memory_service.domain.administration import Administration
from memory_service.domain.backfill import Backfill
from memory_service.domain.batches import Batches
from memory_service.domain.change_feed import ChangeFeed
from memory_service.domain.checks import Checks
from memory_service.domain.deleting import Deleting
from memory_service.domain.embedding import TextEmbedding
from memory_service.domain.facts.consolidating import FactConsolidating
from memory_service.domain.facts.correcting import FactCorrecting
from memory_service.domain.facts.extracting import FactExtracting
from memory_service.domain.facts.judging import Judging
from memory_service.domain.facts.preloading import UserMemoryPreloading
from memory_service.domain.facts.reading import UserMemoryReading
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Parts
from memory_service.domain.file_batches import FileBatches
from memory_service.domain.file_items import answer_bytes
from memory_service.domain.file_listing import FileListing
from memory_service.domain.file_planning import FilePlanning
from memory_service.domain.file_search import FileSearch
from memory_service.domain.file_undo import FileUndo
from memory_service.domain.file_versions import FileVersions
from memory_service.domain.files import Files
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.fragment_search import FragmentSearch
from memory_service.domain.interaction_context import InteractionContext
from memory_service.domain.interactions import Interactions
from memory_service.domain.items import Items
from memory_service.domain.knowledge import Knowledge
from memory_service.domain.label_values import LabelListing
from memory_service.domain.namespace_settings import Settings
from memory_service.domain.overseer import Overseer
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.quarantine import Quarantine
from memory_service.domain.reranking import Reranking
from memory_service.domain.result_storage import ResultStorage
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.save_command import SaveCommand
from memory_service.domain.screening import Screening
from memory_service.domain.session_forking import SessionForking
from memory_service.domain.sessions import Sessions
from memory_service.domain.splitting import Split
from memory_service.domain.states import States
from memory_service.domain.undo import Undo
from memory_service.domain.versions import Versions
from memory_service.embedders.base import Embedder
from memory_service.llms.base import Llm
from memory_service.policies.base import WritePolicy
from memory_service.rerankers.base import Reranker
from memory_service.server.admin_servicer import AdminServicer, ServerInfo
from memory_service.server.call_counts import CallCounts
from memory_service.server.documents import document_bytes
from memory_service.server.file_servicer import FileServicer
from memory_service.server.interaction_servicer import InteractionServicer
from memory_service.server.items import item_bytes
from memory_service.server.knowledge_servicer import KnowledgeServicer
from memory_service.server.memory_servicer import MemoryServicer
from memory_service.server.overseer_servicer import OverseerServicer
from memory_service.server.session_servicer import SessionServicer
from memory_service.server.state_servicer import StateServicer
from memory_service.server.states import state_bytes
from memory_service.server.user_memories import memory_bytes
from memory_service.server.user_memory_servicer import UserMemoryServicer
from memory_service.store import Store
from memory_service.v1 import (
    admin_pb2_grpc,
    file_pb2_grpc,
    interaction_pb2_grpc,
    knowledge_pb2_grpc,
    memory_pb2_grpc,
    overseer_pb2_grpc,
    session_pb2_grpc,
    state_pb2_grpc,
    user_memory_pb2_grpc,
)


class Services:
    """The services of one server, over one store."""

    def __init__(
        self,
        config: Config,
        store: Store,
        embedder: Embedder | None,
        llm: Llm | None,
        reranker: Reranker | None,
        tokens: PageTokens,
        policy: WritePolicy | None = None,
        name: str = "",
    ) -> None:
        """`name` is the name that the server reports."""
        self._name = name
        self._config, self._store, self._embedder, self._llm = config, store, embedder, llm
        self._reranker, self._tokens = reranker, tokens
        self._begin = Deciders(llm).begin
        self._checks = Checks(config.limits)
        self._embedding = TextEmbedding(embedder)
        reranking = Reranking(reranker, config.reranker_timeout_s)
        # One for all: building a parser takes longer than everything else here.
        self._filters = filters = FilterLanguage(config.limits)
        self._retrieval = Retrieval(
            store, self._embedding, self._checks, filters, tokens, item_bytes, reranking
        )
        self._quarantine = Quarantine(store, self._checks, tokens, config.quarantine_days)
        self._screening = screening = Screening(store, policy, self._quarantine)
        self._items = Items(store, self._embedding, self._retrieval, self._checks, tokens, screening)
        self._states = States(store, self._checks, tokens, state_bytes, screening)
        self._split = Split(config.fragment_characters, config.fragment_overlap)
        self._file_planning = planning = FilePlanning(self._items, self._checks, self._split)
        self._file_batches = FileBatches(store, self._items, planning, self._checks, screening)
        self.administration = Administration(store, self._embedding, self._checks, tokens, config.sweep_s)
        self.backfill = Backfill(store, self._embedding, config.embedder_pause_s)

    def register(self, server: Any, calls: CallCounts | None = None) -> None:
        """Register every service with a server or a registrar. `calls`: those that the server counts."""
        page_bytes_max = self._config.limits.page_bytes_max
        feed = ChangeFeed(self._store, self._checks)
        deleting = Deleting(self._store, self._items.committing, self._retrieval, self._checks, self._tokens)
        batches = Batches(
            self._store, self._items, deleting, self._checks, self._screening, self._file_batches
        )
        labels = LabelListing(self._store, self._checks, self._tokens)
        versions = Versions(self._store, self._checks, self._tokens, item_bytes, state_bytes)
        memories = MemoryServicer(
            self._items,
            batches,
            deleting,
            labels,
            self._states,
            self._retrieval,
            feed,
            versions,
            page_bytes_max,
        )
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(memories, server)
        state_pb2_grpc.add_StateServiceServicer_to_server(StateServicer(self._states, versions), server)
        info = ServerInfo(
            self._name, self._config.store, self._embedder, self._llm, self._config.limits, self._reranker
        )
        files = FileUndo(self._store, self._items.committing, self._checks, self._split)
        undo = Undo(self._store, self._embedding, self._checks, files)
        settings = Settings(self._store, self._checks)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(
            AdminServicer(
                self.administration,
                undo,
                self._items,
                self._quarantine,
                settings,
                info,
                calls or CallCounts(self._config.limits),
            ),
            server,
        )
        overseer_pb2_grpc.add_OverseerServiceServicer_to_server(self._overseer(), server)
        interaction_pb2_grpc.add_InteractionServiceServicer_to_server(self._interactions(), server)
        user_memory_pb2_grpc.add_UserMemoryServiceServicer_to_server(self._user_memories(), server)
        knowledge_pb2_grpc.add_KnowledgeServiceServicer_to_server(self._knowledge(), server)
        session_pb2_grpc.add_SessionServiceServicer_to_server(self._sessions(deleting), server)
        file_pb2_grpc.add_FileServiceServicer_to_server(self._files(), server)

    def _overseer(self) -> OverseerServicer:
        skipped = self._config.overseer_skip_tools
        return OverseerServicer(
            Overseer(self._store, self._embedding, self._checks, self._begin, state_bytes),
            ResultStorage(self._store, self._states, self._checks, self._begin, skipped),
        )

    def _interactions(self) -> InteractionServicer:
        interactions = Interactions(
            self._store, self._items, self._retrieval, self._checks, self._tokens, item_bytes
        )
        context = InteractionContext(
            self._store, self._embedding, self._retrieval, interactions, self._checks, item_bytes
        )
        return InteractionServicer(interactions, context)

    def _user_memories(self) -> UserMemoryServicer:
        store, checks = self._store, self._checks
        half_life_days = self._config.memory_half_life_days or None
        reading = UserMemoryReading(
            store, self._retrieval, checks, self._tokens, memory_bytes, half_life_days
        )
        judging = Judging(store, self._retrieval, self._embedding)
        parts = Parts(store, self._items, reading, judging, checks, self._begin)
        saving = FactSaving(parts)
        return UserMemoryServicer(
            saving,
            FactCorrecting(parts, saving),
            FactExtracting(parts, saving),
            FactConsolidating(parts, saving),
            reading,
            UserMemoryPreloading(reading, checks, memory_bytes),
            judging,
        )

    def _sessions(self, deleting: Deleting) -> SessionServicer:
        store, items, checks = self._store, self._items, self._checks
        sessions = Sessions(store, items, checks, self._tokens, item_bytes)
        forking = SessionForking(store, items, sessions, checks, item_bytes)
        return SessionServicer(sessions, forking, deleting)

    def _files(self) -> FileServicer:
        store, checks, tokens = self._store, self._checks, self._tokens
        retrieval = Retrieval(store, self._embedding, checks, self._filters, tokens, answer_bytes)
        return FileServicer(
            Files(store, self._items, self._file_planning, checks, self._screening),
            FileListing(store, checks, tokens),
            FileSearch(store, retrieval, checks),
            FileVersions(store, Versions(store, checks, tokens, answer_bytes, state_bytes), checks),
        )

    def _knowledge(self) -> KnowledgeServicer:
        config, store, checks, tokens = self._config, self._store, self._checks, self._tokens
        knowledge = Knowledge(
            store,
            self._embedding,
            checks,
            self._filters,
            tokens,
            self._screening,
            document_bytes,
            self._split,
        )
        command = SaveCommand(
            store,
            knowledge,
            checks,
            self._begin,
            commands=config.save_commands,
            max_recent_messages=config.save_recent_messages,
        )
        search = FragmentSearch(store, knowledge.retrieval, checks, tokens, document_bytes)
        return KnowledgeServicer(knowledge, search, command)
