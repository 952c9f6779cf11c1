"""Requests to remember something, as part of what a user says."""

from __future__ import annotations

import re

_LEAD = (
    r"(?:(?:hey|hi|ok|okay|so|oh|also|and|well|btw|by\ the\ way)[,!]?\s+)*"
    r"(?:(?:can|could|would|will)\ you\s+|i(?:['’]d|\ would)?\ (?:just\ )?(?:want|like|need)\ you\ to\s+|you\ should\s+)?"
    r"(?:please[,]?\s+|just\s+|always\s+)*"
)
_VERB = (
    r"(?:remember|(?:don['’]?t|do\ not|never)\ forget|keep\ in\ mind|bear\ in\ mind|note|save|store|memorize|"
    r"memorise|make\ a\ (?:mental\ )?note|take\ note|know|record|write\ down)"
)
_COMMAND = re.compile(
    rf"""^\s*(?:
      {_LEAD}{_VERB}(?:\s+(?:this|it|the\ following|down))?(?:\s+(?:to\ (?:your\ )?memory|for\ (?:later|me|next\ time)))?
        (?:\s*(?::|,|\s[-–—])\s*(?:that\s+)?|\s+(?:that|the\ fact\ that)\s+(?!is\b|was\b)|\s+(?=(?:I|my|we|our)\b))
    | (?:fyi|for\ (?:the|your)\ (?:record|information|future\ reference)|(?:just\ )?so\ you\ know|important|note\ to\ self
        |it(?:['’]s|\ is)\ important\ (?:to\ (?:know|remember)\ )?that|(?:remember|save|note)\ this)
        \s*(?:[:,]|\s[-–—])?\s*(?:that\s+)?
    )(?=\S)""",
    re.VERBOSE | re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"[,.;!]?\s*(?:[-–—]\s*)?(?:so\s+|and\s+)?(?:please[,]?\s+)?"
    r"(?:remember|save|note|memori[sz]e|keep|don['’]?t\s+forget)\s+(?:this|that|it)"
    r"(?:\s+in\s+mind)?(?:[,]?\s+please)?[.!]*\s*$",
    re.IGNORECASE,
)


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
