"""The deciders available to a call: the server's language model, and rules."""

from __future__ import annotations

from memory_service.deciders.base import Deciding
from memory_service.deciders.llm.decider import LlmDecider
from memory_service.deciders.rules.decider import RulesDecider
from memory_service.deciders.rules.relevance import Words
from memory_service.decisions import DecidedBy
from memory_service.errors import FailedPrecondition
from memory_service.llms.base import Llm
from memory_service.runtime.caller import Owner, present_caller


class Deciders:
    """Makes the deciders of each call. `llm` None: rules only."""

    def __init__(self, llm: Llm | None) -> None:
        self._llm = llm
        self._words = Words()

    def begin(self, decide_by: DecidedBy, namespace: str) -> Deciding:
        """Return the deciders of a call for a namespace. Raises LLM_REQUIRED; see `base.Begin`."""
        insist = decide_by is DecidedBy.LLM
        if insist and self._llm is None:
            raise FailedPrecondition.llm_required()
        rules = RulesDecider(self._words)
        if self._llm is None or decide_by is DecidedBy.RULES:
            return Deciding(rules)
        owner = Owner(present_caller().name, namespace.encode())
        return Deciding(rules, LlmDecider(self._llm, owner, rules, insist=insist))
