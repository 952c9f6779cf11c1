"""Requests to remember something, as part of what a user says."""

from __future__ import annotations

import re

from memory_service.domain.facts.word_lists import phrases

_LEAD = r"""
(?:(?:hey|hi|ok|okay|so|oh|also|and|well|btw|by the way)[,!]? )*
(?:(?:can|could|would|will) you |i(?:['’]d| would)? (?:just )?(?:want|like|need) you to |you should )?
(?:please,? |just |always )*
"""
_VERB = r"""
(?:remember|(?:don['’]?t|do not|never) forget|keep in mind|bear in mind|note|save|store|memori[sz]e
|make a (?:mental )?note|take note|know|record|write down)
"""
_OBJECT = r"(?: (?:this|it|the following|down))?(?: (?:to (?:your )?memory|for (?:later|me|next time)))?"
_REST = r"""
(?:\s*(?::|,|\s[-–—])\s*(?:that )?| (?:that|the fact that) (?!is\b|was\b)| (?=(?:I|my|we|our)\b))
"""
_REMARK = r"""
(?:fyi|for (?:the|your) (?:record|information|future reference)|(?:just )?so you know|important
|note to self|it(?:['’]s| is) important (?:to (?:know|remember) )?that|(?:remember|save|note) this)
\s*(?:[:,]|\s[-–—])?\s*(?:that )?
"""
_COMMAND = phrases(rf"^\s*(?:{_LEAD}{_VERB}{_OBJECT}{_REST}|{_REMARK})(?=\S)")
_AFTERTHOUGHT = phrases(
    r"""
    (?:[,.;!]\s*|\s(?<!\s\s))(?:[-–—]\s*)?(?:so |and )?(?:please,? )?
    (?:remember|save|note|memori[sz]e|keep|don['’]?t forget) (?:this|that|it)
    (?: in mind)?(?:,? please)?[.!]*\s*$
    """
)
_ASKS = phrases(r"\s*(?:\w+[,!]? )?(?:can|could|would|will)\b")


def without_request(text: str) -> tuple[str, bool]:
    """Take a request such as "Remember that …" off a text; tell whether there was one."""
    said = _COMMAND.sub("", text, count=1)
    question = said != text and re.match(
        r"\s*(?:\w+[,!]?\s+)?(?:can|could|would|will)\b", text, re.IGNORECASE
    )
    if question:
        said = re.sub(r"\s*\?+\s*$", "", said)
    said = _AFTERTHOUGHT.sub("", said) or said
    if said == text:
        return text, False
    return said[:1].upper() + said[1:], True
