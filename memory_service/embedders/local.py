"""The embedder that is always there: WordLlama's static model, bundled in its package.

A static model has one vector per token and takes their mean: about 30 µs a text, no network, no GPU.
See Model2Vec and WordLlama for the idea: token vectors distilled from a large model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

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
    # Calibrated by `python -m benchmarks.fact_pairs`: the least that no two facts on different
    # subjects reach. A higher one finds fewer paraphrases and is no safer, because what changes a
    # meaning is compared by rules: a mean of token vectors does not see it at any threshold.
    duplicate_threshold = 0.63

    def __init__(self) -> None:
        # One thread per text: the texts are short, and the cores serve other calls.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import wordllama
        from wordllama import WordLlama

        # The package looks for its bundled tokenizer in another folder than it is in, and would
        # ask the network: it is told where it is.
        folder = Path(wordllama.__file__).parent
        model = WordLlama.load(cache_dir=folder, disable_download=True, dim=_DIMENSION)
        self._vectors = np.ascontiguousarray(model.embedding, np.float32)
        self._tokenizer = model.tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._known: dict[str, list[int]] = {}
        self._waiting: list[tuple[Sequence[str], asyncio.Future[list[Vector | None]]]] = []

    async def embed(self, texts: Sequence[str], *, background: bool = False) -> list[Vector | None]:
        # A long text would hold up everything else on the loop.
        if background or max(map(len, texts), default=0) > _INLINE_CHARS_MAX:
            return await aside(asyncio.to_thread(self._embed, texts))
        if sum(map(len, texts)) <= _TOGETHER_CHARS_MAX:
            return await self._embed_together(texts)
        return await each(self._embed_one, texts)

    def _embed_together(self, texts: Sequence[str]) -> asyncio.Future[list[Vector | None]]:
        """Embed together with what else is asked for in this turn of the loop.

        Alone, between other work, a text takes twice as long: the model is out of the processor's caches.
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
            # Others come between.
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
        """Return the tokens of a text: those of each of its words.

        The tokenizer puts a mark in the place of each space, and knows no token in which a mark follows
        anything but marks: none reaches into the next word. Only where marks meet, or the text has one of
        its own, or what may be a token such as <s>, the tokenizer has to see the whole.
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
        """Return the tokens of words, found together: for each call the interpreter's lock is given away and
        waited for, and the event loop waits for it as well."""
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
