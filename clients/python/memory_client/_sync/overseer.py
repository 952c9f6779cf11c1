# Generated from _aio/overseer.py by generate_sync.py. Do not edit: change that and generate anew.
"""The methods of a client that ask what of the state a goal needs, and what is worth saving."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from memory_client._calls import overseer
from memory_client._sync.transport import Bound
from memory_client.decisions import DecidedBy
from memory_client.overseer import Relevance, StorageDecision


class OverseerMethods(Bound):
    """Decisions on the state of the client's namespace: by a language model, or else by rules."""

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
            goal: What the agent is about to work on, in plain words.
            limit: The most entries wanted, at most 100. 0: only decisions.
            max_tokens: What the values may take together, estimated. -1: no bound.
            pattern: A glob that the keys match, such as "plan/*". Empty: all keys.
            max_candidates: The most keys to be decided on, at most 200.
            omit_values: Leave the values out, and `context_text` empty.
            decide_by: Who is to decide. None: the language model if it can, else rules.
            explain: Add to each decision how its score came about.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has none (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and it failed (LLM_UNAVAILABLE).
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
        """Decide whether a tool's result is worth keeping, and under which key; save it if asked to.

        Args:
            tool_name: The tool that was called.
            result: What it returned, any JSON value.
            goal: What it was called for. Empty: not known.
            save: Save the result if that is what is decided.
            arguments: What the tool was called with. None: not known.
            is_error: The tool failed; such a result is never kept.
            key: To save under. Empty: the overseer names one.
            overwrite: Replace the value of a key that exists. A key that exists is left alone otherwise.
            ttl: How long a saved entry lives, a timedelta or seconds. None: until it is deleted.
            decide_by: Who is to decide. None: the language model if it can, else rules.
            request_id: Decided and applied once, however often it is sent. None: a new one for this call.

        Raises:
            FailedPrecondition: `decide_by` is "llm" and the server has none (LLM_REQUIRED).
            Unavailable: `decide_by` is "llm" and it failed (LLM_UNAVAILABLE). Nothing was written.
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
