"""The built-in embedder: WordLlama's static model, bundled with its package.

A static model averages one vector per token: about 30 µs per text, without network or GPU. The token vectors
are distilled from a large model (see Model2Vec and WordLlama).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import numpy as np
from safetensors import safe_open
from tokenizers import Tokenizer

from memory_service.data_model import Vector
from memory_service.embedders.base import Embedder
from memory_service.embedders.token_sums import unit_sum
from memory_service.runtime.yielding import aside, each

_DIMENSION = 256
_INLINE_CHARS_MAX = 8000
_TOGETHER_CHARS_MAX = 4000
_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
_KNOWN_WORDS_MAX = 65_536
_KNOWN_WORD_CHARS_MAX = 32


class LocalEmbedder(Embedder):
    """WordLlama with 256 dimensions."""

    name = f"local:wordllama-{_DIMENSION}"
    dimension = _DIMENSION
    # Calibrated with `python -m benchmarks.fact_pairs`: the lowest value that no two facts on different
    # subjects reach. A higher one finds fewer paraphrases and is no safer: rules compare the details that
    # change a meaning, because a mean of token vectors does not reflect them.
    duplicate_threshold = 0.63
    # Measured with `python -m benchmarks.answerable`: the best of 600 turns has a cosine of 0.17 with queries
    # on other subjects, rarely of 0.26, and of 0.5 with questions that it answers; a quarter reach 0.6.
    cosine_scale = (0.25, 0.65)

    def __init__(self) -> None:
        # One thread per text: the texts are short, and the cores serve other calls.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        # Read the files of the package without importing it: its imports would take a quarter of a server's
        # start.
        package = find_spec("wordllama")
        assert package is not None
        assert package.origin is not None
        folder = Path(package.origin).parent
        with safe_open(folder / "weights" / "l2_supercat_256.safetensors", framework="np") as weights:
            self._vectors = np.ascontiguousarray(weights.get_tensor("embedding.weight"), np.float32)
        file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._known: dict[str, list[int]] = {}
        self._waiting: list[tuple[Sequence[str], asyncio.Future[list[Vector | None]]]] = []

    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        # A long text would block the event loop.
        if background or max(map(len, texts), default=0) > _INLINE_CHARS_MAX:
            return await aside(asyncio.to_thread(self._embed, texts))
        if sum(map(len, texts)) <= _TOGETHER_CHARS_MAX:
            return await self._embed_together(texts)
        return await each(self._embed_one, texts)

    def _embed_together(self, texts: Sequence[str]) -> asyncio.Future[list[Vector | None]]:
        """Embed the texts of all calls in this iteration of the event loop together.

        Alone, between other work, a text takes twice as long, because the model has left the CPU caches.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer)
        answer: asyncio.Future[list[Vector | None]] = loop.create_future()
        self._waiting.append((texts, answer))
        return answer

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        count = chars = 0
        while count < len(waiting) and chars <= _TOGETHER_CHARS_MAX:
            chars += sum(map(len, waiting[count][0]))
            count += 1
        if rest := waiting[count:]:
            # Let other work run in between.
            self._waiting = rest
            asyncio.get_running_loop().call_soon(self._answer)
        asked = [(texts, answer) for texts, answer in waiting[:count] if not answer.done()]
        try:
            vectors = iter(self._embed([text for texts, _ in asked for text in texts]))
        except Exception as error:
            for _, answer in asked:
                answer.set_exception(error)
            return
        for texts, answer in asked:
            answer.set_result([next(vectors) for _ in texts])

    def _embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._embed_one(text) for text in texts]

    def _embed_one(self, text: str) -> Vector | None:
        return unit_sum(self._vectors, self._tokens(text))

    def _tokens(self, text: str) -> list[list[int]]:
        """Return the tokens of a text, word by word.

        The tokenizer replaces each space by a mark, and has no token in which a mark follows anything but
        marks, so no token spans two words. It has to read the whole text only if marks are adjacent, or if
        the text contains a mark or a possible special token such as <s>.
        """
        if "  " in text or "<" in text or _MARK in text or text[:1] == " " or text[-1:] == " ":
            return [self._encode(text)]
        words = text.split(" ")
        tokens = list(map(self._known.get, words))
        if None not in tokens:
            return cast("list[list[int]]", tokens)
        new = list(dict.fromkeys(word for word, its in zip(words, tokens, strict=True) if its is None))
        learnt = dict(zip(new, self._learn(new), strict=True))
        return [learnt[word] if its is None else its for word, its in zip(words, tokens, strict=True)]

    def _learn(self, words: list[str]) -> list[list[int]]:
        """Return the tokens of words in one call: each call releases and reacquires the GIL, and blocks the
        event loop meanwhile."""
        found = [
            encoding.ids for encoding in self._tokenizer.encode_batch_fast(words, add_special_tokens=False)
        ]
        for word, tokens in zip(words, found, strict=True):
            if len(word) <= _KNOWN_WORD_CHARS_MAX:
                if len(self._known) >= _KNOWN_WORDS_MAX:
                    self._known.clear()
                self._known[word] = tokens
        return found

    def _encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return tokens
