"""Decides whether a tool's result is worth saving, and under which key, and saves it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from memory_service.data_model import Json, Receipt, StateEntry
from memory_service.deciders.base import Begin, Deciding, ToolOutput
from memory_service.decisions import DecidedBy, Failure, FailureReason, Usage
from memory_service.domain.answers import Answering, Repeated, check_new, keep_answer
from memory_service.domain.checks import Checks
from memory_service.domain.overseer import live_entry
from memory_service.domain.states import States
from memory_service.errors import Conflict, InvalidArgument, MemoryServiceError
from memory_service.store import Store

SKIPPED_TOOLS = ("getCurrentDate", "calculateTimestamp", "llm_analyze")
"""Tools whose results are never saved, unless the configuration names others."""

_TOOL_NAME_BYTES_MAX = 256

_RequestName = tuple[str, str]
"""Namespace and id of a request."""


@dataclass(frozen=True)
class ToolResult:
    """A result to decide on, and what to do with it. `nbytes` is its size as it was sent."""

    namespace: str
    tool_name: str
    result: Json
    nbytes: int
    goal: str = ""
    arguments: dict[str, Json] | None = None
    is_error: bool = False
    key: str = ""
    save: bool = False
    overwrite: bool = False
    ttl_us: int | None = None
    decide_by: DecidedBy = DecidedBy.UNSPECIFIED


@dataclass
class StorageDecision:
    """The decision, and the saved state. `existing_version` is the key's version at the decision."""

    should_save: bool = False
    key: str = ""
    reason: str = ""
    decided_by: DecidedBy = DecidedBy.RULES
    entry: StateEntry | None = None
    skipped: bool = False
    description: str = ""
    existing_version: int = 0
    failures: list[Failure] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    revision: int = 0

    def at(self, revision: int) -> None:
        """Set the revision that it is of."""
        self.revision = revision


class ResultStorage:
    """Decides on results of tools, and saves them. The results of `skipped_tools` are never saved."""

    def __init__(
        self,
        store: Store,
        states: States,
        checks: Checks,
        begin: Begin,
        skipped_tools: Collection[str] = SKIPPED_TOOLS,
    ) -> None:
        self._store = store
        self._states = states
        self._checks = checks
        self._begin = begin
        self._skipped_tools = frozenset(skipped_tools)
        self._locks: WeakValueDictionary[_RequestName, asyncio.Lock] = WeakValueDictionary()

    async def evaluate(
        self, asked: ToolResult, request: Answering[StorageDecision] | None
    ) -> StorageDecision:
        """Decide on a result, and save it if requested and worth saving.

        Raises LLM_REQUIRED and LLM_UNAVAILABLE, see `Begin`, and Repeated.
        """
        encoded = self._check(asked, request)
        deciding = self._begin(asked.decide_by, asked.namespace)
        if request is None:
            return await self._evaluate(asked, encoded, deciding, None)
        # Concurrent repetitions of a request are decided once: the second waits for the answer. This only
        # saves work: of two servers both decide, and both return the answer that the store accepted first.
        async with self._locks.setdefault((asked.namespace, request.key.id), asyncio.Lock()):
            await check_new(self._store, asked.namespace, request)
            return await self._evaluate(asked, encoded, deciding, request)

    async def _evaluate(
        self,
        asked: ToolResult,
        encoded: bytes,
        deciding: Deciding,
        request: Answering[StorageDecision] | None,
    ) -> StorageDecision:
        info = await self._store.namespace(asked.namespace)
        decision = StorageDecision(revision=info.revision if info else 0)
        before = await live_entry(self._store, asked.namespace, asked.key) if asked.key else None
        await self._decide(asked, encoded, before, deciding, decision)
        decision.failures[:0] = deciding.failures
        decision.usage = deciding.usage
        if decision.should_save:
            await self._settle(asked, before, decision, request)
        if decision.entry is None and request is not None:
            await keep_answer(self._store, asked.namespace, request, decision, decision.at)
        return decision

    def _check(self, asked: ToolResult, request: Answering[StorageDecision] | None) -> bytes:
        """Return the result as compact JSON."""
        checks = self._checks
        checks.namespace(asked.namespace)
        checks.name("tool_name", asked.tool_name, _TOOL_NAME_BYTES_MAX)
        encoded = checks.encoded("result", asked.result, "state_value_bytes_max")
        checks.size("result", asked.nbytes, "state_encoded_bytes_max")
        checks.size("goal", len(asked.goal.encode()), "goal_bytes_max")
        if asked.arguments is not None:
            checks.encoded("arguments", asked.arguments, "metadata_bytes_max")
        checks.name("key", asked.key, checks.limits.state_key_bytes_max, required=False)
        if asked.ttl_us is not None and asked.ttl_us <= 0:
            raise InvalidArgument("ttl", "must be positive")
        if request is not None:
            checks.request_id(request.key.id)
        return encoded

    # --- deciding -----------------------------------------------------------------------------

    async def _decide(
        self,
        asked: ToolResult,
        encoded: bytes,
        before: StateEntry | None,
        deciding: Deciding,
        decision: StorageDecision,
    ) -> None:
        """Set whether to save, why, and under which key."""
        if asked.tool_name in self._skipped_tools:
            decision.skipped = True
            decision.reason = "the server is configured never to save results of this tool"
            return
        if asked.is_error:
            decision.reason = "the tool failed, and results of failures are never saved"
            return
        output = ToolOutput(
            asked.tool_name,
            asked.result,
            encoded,
            asked.goal,
            asked.arguments,
            asked.key,
            before.value_json if before else None,
            self._problem,
        )
        keeping, decision.decided_by = await deciding.ask(lambda decider: decider.keep(output))
        decision.should_save, decision.reason = keeping.keep, keeping.reason
        if keeping.keep:
            decision.key, decision.description = asked.key or keeping.key, keeping.description

    def _problem(self, name: str, text: str) -> str:
        """Return what is wrong with a key or a description; empty if nothing is."""
        try:
            if name == "key":
                self._checks.state_key(text)
            else:
                self._checks.description(name, text)
        except MemoryServiceError as error:
            return error.message
        return ""

    # --- saving -------------------------------------------------------------------------------

    async def _settle(
        self,
        asked: ToolResult,
        before: StateEntry | None,
        decision: StorageDecision,
        request: Answering[StorageDecision] | None,
    ) -> None:
        """Set the version that the key had at the decision, and save if requested."""
        now = await live_entry(self._store, asked.namespace, decision.key)
        if asked.key:
            decision.existing_version = before.version if before else 0
            changed = decision.existing_version != (now.version if now else 0)
        else:
            # The key was chosen by the decision, which did not consider later writes.
            changed = now is not None and now.revision > decision.revision
            decision.existing_version = now.version if now and not changed else 0
        if not asked.save:
            return
        if changed:
            self._fail(decision, FailureReason.CHANGED_MEANWHILE)
        elif decision.existing_version and not asked.overwrite:
            self._fail(decision, FailureReason.KEY_EXISTS)
        else:
            await self._save(asked, decision, request)

    async def _save(
        self, asked: ToolResult, decision: StorageDecision, request: Answering[StorageDecision] | None
    ) -> None:
        def complete(entry: StateEntry, receipt: Receipt) -> None:
            decision.entry, decision.revision = entry, receipt.revision
            if request is not None:
                request.tell(receipt, decision)

        try:
            entry, receipt = await self._states.save(
                asked.namespace,
                decision.key,
                asked.result,
                nbytes=asked.nbytes,
                expected_version=decision.existing_version,
                ttl_us=asked.ttl_us,
                description=decision.description,
                request=None if request is None else request.key,
                complete=complete,
            )
        except Conflict:
            self._fail(decision, FailureReason.CHANGED_MEANWHILE)
            return
        if receipt.replayed:
            raise Repeated(receipt)
        decision.entry, decision.revision = entry, receipt.revision

    @staticmethod
    def _fail(decision: StorageDecision, reason: FailureReason) -> None:
        exists = reason is FailureReason.KEY_EXISTS
        message = "the key exists already" if exists else "the key was changed during the decision"
        decision.failures.append(Failure(reason, f"{message}; nothing was saved", decision.key))
