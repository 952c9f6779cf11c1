"""Requests to remember something, as parts of a user's text."""

from __future__ import annotations

import re

from memory_service.deciders.rules.word_lists import phrases

_LEAD = r"""
(?:(?:hey|hi|ok|okay|so|oh|also|and|well|btw|by the way)[,!]? )*
(?:(?:can|could|would|will) you |i(?:['’]d| would)? (?:just )?(?:want|like|need) you to |you should )?
(?:please,? |just |always )*
"""
_MIND = (
    r"(?:remember|(?:don['’]?t|do not|never) forget|keep in mind|bear in mind|note"
    r"|make a (?:mental )?note|take note)"
)
_KEEP = r"(?:save|store|memori[sz]e|record|write down|know)"
_WHERE = r"(?: (?:to (?:your )?memory|for (?:later|me|next time)))?"
_COLON = r"\s*(?::|\s[-–—]\s)\s*(?:that )?"
_COMMA = r"\s*(?:[:,]|\s[-–—]\s)\s*(?:that )?"
_REMARK = rf"""
(?:fyi,? |(?:for (?:the|your) (?:record|information|future reference)|(?:just )?so you know|important
|note to self){_COMMA}|it(?:['’]s| is) important to (?:know|remember) that )
"""
_COMMAND = phrases(
    rf"""
    ^\s*(?:{_LEAD}(?:
    {_MIND}(?: (?:this|it|the following))?{_WHERE}{_COMMA}
    |{_MIND}{_WHERE} (?:that|the fact that) (?!(?:is|was|one|time|day|for|to|please)\b)
    |{_MIND} (?=(?:I|my|we|our)\b)
    |{_KEEP} (?:this|it|the following|that)(?: down)?{_WHERE}{_COMMA}
    |{_KEEP}(?: down)?{_WHERE}{_COLON}
    |{_KEEP}(?: down)?{_WHERE} that (?=(?:I|my|we|our|the|all)\b)
    )|{_REMARK})(?=\S)
    """
)
_AFTERTHOUGHT = phrases(
    r"""
    (?:[,.;!]\s*(?:[-–—]\s*)?(?:so |and )?(?:please,? )?|\s[-–—]\s(?:please )?|\s(?:so |and )?please,? )
    (?:remember|save|note|memori[sz]e|keep|don['’]?t forget) (?:this|that|it)
    (?: in mind)?(?:,? please)?[.!]*\s*$
    """
)


def without_request(text: str) -> tuple[str, bool]:
    """Remove a request such as "Remember that …" from a text; return whether there was one."""
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
