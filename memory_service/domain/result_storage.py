"""Whether a tool's result is worth keeping, under which key; and keeping it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import msgspec

from memory_service.decisions import DecidedBy, Failure, FailureReason, Usage
from memory_service.domain.answers import Answering, Repeated, check_new, keep_answer
from memory_service.domain.checks import Checks
from memory_service.domain.deciding import Deciding
from memory_service.domain.overseer import live_entry, told_reason
from memory_service.domain.states import States
from memory_service.domain.storage_rules import Verdict, evaluate
from memory_service.errors import (
    Conflict,
    InvalidArgument,
    MemoryServiceError,
    Unavailable,
)
from memory_service.llms.base import Llm
from memory_service.records import Json, Receipt, StateEntry
from memory_service.runtime.yielding import aside
from memory_service.stores.base import Store

SKIPPED_TOOLS = ("getCurrentDate", "calculateTimestamp", "llm_analyze")
"""Tools whose results are never kept, unless the configuration names others."""

_TOOL_NAME_BYTES_MAX = 256
_RESULT_CHARS_SHOWN = 2000
# Some milliseconds at most. Twice as many would be twice that.
_INLINE_BYTES_MAX = 20_000
_ARGUMENTS_CHARS_SHOWN = 1000

_RequestName = tuple[str, str]
"""Namespace and id of a request."""

_INSTRUCTIONS = """\
You decide whether the result of a tool should be saved to memory for future use. Save only what is useful
across multiple sessions, such as preferences, lists of people, profiles, settings or patterns. Do not save
data for a single query, such as times, the weather, one-off numbers or the hits of a search; never save
passwords or tokens. "result" may be cut off. Answer with save; with key, a short descriptive name in
snake_case to keep it under; with description, one sentence that says what the value is, so that it is found
again; and with reason, a brief explanation."""


class StorageAnswer(msgspec.Struct):
    """Whether to save the result, and as what."""

    save: bool
    key: str = ""
    reason: str = ""
    description: str = ""


@dataclass(frozen=True)
class ToolResult:
    """A result to decide on, and what is to become of it. `nbytes` is its size as it was sent."""

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
    """What was decided, and what was saved. `existing_version` of the key when it was decided on."""

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
        """Note as of which revision it is."""
        self.revision = revision


class ResultStorage:
    """Decides on results of tools, and saves them. `skipped_tools` are those never to be kept."""

    def __init__(
        self,
        store: Store,
        states: States,
        checks: Checks,
        llm: Llm | None,
        skipped_tools: Collection[str] = SKIPPED_TOOLS,
    ) -> None:
        self._store = store
        self._states = states
        self._checks = checks
        self._llm = llm
        self._skipped_tools = frozenset(skipped_tools)
        self._locks: WeakValueDictionary[_RequestName, asyncio.Lock] = WeakValueDictionary()

    async def evaluate(
        self, asked: ToolResult, request: Answering[StorageDecision] | None
    ) -> StorageDecision:
        """Decide on a result, and save it if that is asked for and decided.

        Raises LLM_REQUIRED and LLM_UNAVAILABLE, see `Deciding`, and Repeated.
        """
        encoded = self._check(asked, request)
        deciding = Deciding(self._llm, asked.decide_by, asked.namespace)
        if request is None:
            return await self._evaluate(asked, encoded, deciding, None)
        # A request that comes twice at once is decided once: the second waits for the answer.
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
            decision.reason = "results of this tool are never kept, by the server's configuration"
            return
        if asked.is_error:
            decision.reason = "the tool failed, and the result of a failure is never kept"
            return
        if len(encoded) <= _INLINE_BYTES_MAX:
            verdict = evaluate(asked.tool_name, asked.result, asked.goal)
        else:
            # Others do not wait while rules look through a large result.
            verdict = await aside(asyncio.to_thread(evaluate, asked.tool_name, asked.result, asked.goal))
        answer = await deciding.ask(_INSTRUCTIONS, _shown(asked, encoded, before), StorageAnswer)
        if answer is not None:
            decision.decided_by = DecidedBy.LLM
            verdict = self._by_model(asked, answer, verdict, decision.failures)
        decision.should_save, decision.reason = verdict.save, verdict.reason
        if verdict.save:
            decision.key, decision.description = asked.key or verdict.key, verdict.description

    def _by_model(
        self, asked: ToolResult, answer: StorageAnswer, rules: Verdict, failures: list[Failure]
    ) -> Verdict:
        """Take a model's answer; where a part of it is not allowed, that of the rules takes its place."""
        verb = "should" if answer.save else "should not"
        reason = told_reason(answer.reason, f"the language model says that it {verb} be kept")
        if not answer.save:
            return Verdict(False, reason, "", "")
        parts = [rules.key, rules.description]
        for at, (name, text) in enumerate((("key", answer.key), ("description", answer.description))):
            if name == "key" and asked.key:
                continue
            text = " ".join(text.split()) if name == "description" else text.strip()
            try:
                self._check_part(name, text)
                parts[at] = text or parts[at]
            except MemoryServiceError as error:
                if asked.decide_by is DecidedBy.LLM:
                    raise Unavailable.llm(error.message) from error
                message = f"the language model's answer was not allowed: {error.message}"
                failures.append(Failure(FailureReason.INVALID_VALUE, message, answer.key))
        return Verdict(True, reason, *parts)

    def _check_part(self, name: str, text: str) -> None:
        if name == "key":
            self._checks.state_key(text)
        else:
            self._checks.size(name, len(text.encode()), "state_description_bytes_max")

    # --- saving -------------------------------------------------------------------------------

    async def _settle(
        self,
        asked: ToolResult,
        before: StateEntry | None,
        decision: StorageDecision,
        request: Answering[StorageDecision] | None,
    ) -> None:
        """Set the version that the key had when it was decided on, and save if that is asked for."""
        now = await live_entry(self._store, asked.namespace, decision.key)
        if asked.key:
            decision.existing_version = before.version if before else 0
            changed = decision.existing_version != (now.version if now else 0)
        else:
            # The key was named on the way: what was written since the beginning was not decided on.
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
        message = "the key exists already" if exists else "the key was changed while it was decided on"
        decision.failures.append(Failure(reason, f"{message}; nothing was saved", decision.key))


def _shown(asked: ToolResult, encoded: bytes, before: StateEntry | None) -> dict[str, str]:
    """Return what a language model is told of a result."""
    data = {"tool": asked.tool_name, "goal": asked.goal or "(not known)"}
    if asked.arguments:
        data["arguments"] = _beginning(msgspec.json.encode(asked.arguments), _ARGUMENTS_CHARS_SHOWN)
    data["result"] = _beginning(encoded, _RESULT_CHARS_SHOWN)
    if asked.key:
        data["key that the caller chose"] = asked.key
    if before is not None:
        data["value that the key has now"] = _beginning(before.value_json, _ARGUMENTS_CHARS_SHOWN)
    return data


def _beginning(encoded: bytes, chars: int) -> str:
    text = encoded.decode()
    return text if len(text) <= chars else text[:chars] + "..."
