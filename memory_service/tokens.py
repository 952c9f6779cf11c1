"""How many tokens a text takes in a prompt, estimated: no tokenizer fits every language model."""

from __future__ import annotations

import re

_CHARS_PER_TOKEN = 4
# Scripts in which a token is about one character; in others a token is about four.
_WIDE = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text takes: a CJK character each, four of other characters one.

    Rounded up; 0 for an empty text only.
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide - (-(len(text) - wide) // _CHARS_PER_TOKEN)
