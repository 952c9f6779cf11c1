"""Estimate how many tokens a text has in a prompt; no tokenizer fits every language model."""

from __future__ import annotations

import re

_CHARS_PER_TOKEN = 4
# Scripts with about one token per character; others have about one per four characters.
_WIDE = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: one per CJK character, one per four other characters.

    Rounded up; 0 for an empty text only.
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide - (-(len(text) - wide) // _CHARS_PER_TOKEN)
