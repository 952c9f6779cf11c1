# Generated from _aio/overseer.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods for decisions on state: what a goal needs, and what is worth saving."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from memory_client._calls import overseer
from memory_client._sync.transport import Bound
from memory_client.decisions import DecidedBy
from memory_client.overseer import Relevance, StorageDecision


class OverseerMethods(Bound):
    """Decisions on the state of the client's namespace, by a language model or else by rules."""

    def check_relevance(
        self,
        goal: str,
        *,
        limit: int = 10,
        max_tokens: int = 2000,
        pattern: str = "",
        max_candidates: int = 50,
        omit_values: bool = False,
        decide_by: DecidedBy | str | None = None,
        explain: bool = False,
    ) -> Relevance:
        """Return the state that a goal needs, with its values.

        Args:
            goal: What the agent will work on, in plain words.
            limit: Maximum number of entries, up to 100. 0: only decisions.
            max_tokens: Maximum estimated tokens of all values together. -1: no limit.
            pattern: A glob that keys must match, such as "plan/*". Empty: all keys.
            max_candidates: Maximum number of keys to decide on, up to 200.
            omit_values: Omit the values, and leave `context_text` empty.
            decide_by: The decider. None: the language model if it can, else rules.
            explain: Explain the score of each decision.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has no model (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and the model failed (LLM_UNAVAILABLE).
        """
        call = overseer.check_relevance(
            self._namespace,
            goal,
            limit=limit,
            max_tokens=max_tokens,
            pattern=pattern,
            max_candidates=max_candidates,
            omit_values=omit_values,
            decide_by=decide_by,
            explain=explain,
        )
        return self._transport.unary(call)

    def evaluate_for_storage(
        self,
        tool_name: str,
        result: Any,
        *,
        goal: str = "",
        save: bool = False,
        arguments: Mapping[str, Any] | None = None,
        is_error: bool = False,
        key: str = "",
        overwrite: bool = False,
        ttl: timedelta | float | None = None,
        decide_by: DecidedBy | str | None = None,
        request_id: str | None = None,
    ) -> StorageDecision:
        """Decide whether a tool's result is worth keeping, and under which key; save it on request.

        Args:
            tool_name: The tool that was called.
            result: The result, any JSON value.
            goal: The goal of the call. Empty: unknown.
            save: Save the result if the decision is to keep it.
            arguments: Arguments of the call. None: unknown.
            is_error: The tool failed; such a result is never kept.
            key: Key to save under. Empty: the overseer chooses one.
            overwrite: Replace the value of an existing key, which is otherwise left unchanged.
            ttl: Time until a saved entry expires, a timedelta or seconds. None: never.
            decide_by: The decider. None: the language model if it can, else rules.
            request_id: Makes a retry safe: decided and applied once. None: a new id for this call.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has no model (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and the model failed (LLM_UNAVAILABLE). Nothing was written.
        """
        call = overseer.evaluate_for_storage(
            self._namespace,
            tool_name,
            result,
            goal=goal,
            save=save,
            arguments=arguments,
            is_error=is_error,
            key=key,
            overwrite=overwrite,
            ttl=ttl,
            decide_by=decide_by,
            request_id=request_id,
        )
        return self._transport.unary(call)
