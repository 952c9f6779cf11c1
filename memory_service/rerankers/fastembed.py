"""Local cross-encoders: ONNX models run by fastembed. The only file that imports it.

A cross-encoder reads query and text together, which is more accurate than comparing two vectors, and takes a
thousand times longer.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory_service.rerankers.base import CannotLoad, Reranker, RerankerFailed
from memory_service.runtime.event_log import EventLog

# Most models read 512 tokens, some thousands; longer texts need not be tokenized.
_TEXT_CHARS_MAX = 8_000
_QUERY_CHARS_MAX = 2_000
_TEXTS_PER_BATCH = 16
_MODEL_FILES = ("onnx/model.onnx", "model.onnx")
_log = EventLog(__name__)


class FastembedReranker(Reranker):
    """One model in one thread: calls queue, while onnxruntime uses half of the cores.

    Without `model_dir`, the model is one of those known to fastembed and is downloaded once to its cache
    (FASTEMBED_CACHE_PATH). With it, the model in that folder is used, without a download.
    """

    def __init__(self, model: str, model_dir: Path | None = None) -> None:
        """Load the model. Raises CannotLoad."""
        try:
            from fastembed.rerank.cross_encoder import TextCrossEncoder
        except ImportError as error:
            raise CannotLoad(
                "the reranker fastembed needs additional packages: install locks/reranker.lock,"
                " as docs/retrieval.md says"
            ) from error
        self.name = f"fastembed:{model}"
        threads = max((os.cpu_count() or 2) // 2, 1)
        try:
            if model_dir is None:
                self._encoder = TextCrossEncoder(model, threads=threads)
            else:
                known = _register(model, model_dir)
                self._encoder = TextCrossEncoder(known, threads=threads, specific_model_path=str(model_dir))
        except Exception as error:  # Several libraries report a broken file.
            raise CannotLoad(f"the reranker's model {model!r} cannot be loaded: {error}") from error
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="rerank")

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        stop = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._executor, self._score, query, texts, stop
            )
        finally:
            stop.set()

    def _score(self, query: str, texts: Sequence[str], stop: threading.Event) -> list[float]:
        cut = [text[:_TEXT_CHARS_MAX] for text in texts]
        scores: list[float] = []
        try:
            for score in self._encoder.rerank(query[:_QUERY_CHARS_MAX], cut, batch_size=_TEXTS_PER_BATCH):
                if stop.is_set():
                    break
                scores.append(float(score))
        except Exception as error:
            _log.warning("reranker_failed", reranker=self.name, cause=type(error).__name__)
            raise RerankerFailed(self.name) from error
        if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
            raise RerankerFailed(self.name)
        return scores

    async def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def _register(model: str, model_dir: Path) -> str:
    """Register the model of a folder with fastembed; return its name there."""
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    file = next((name for name in _MODEL_FILES if (model_dir / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"there is no {' or '.join(_MODEL_FILES)} in {model_dir}")
    known = f"{model_dir.resolve()}:{model}"
    if all(each["model"] != known for each in TextCrossEncoder.list_supported_models()):
        # A source is required, but not used for a model in a folder.
        TextCrossEncoder.add_custom_model(known, ModelSource(hf=model), model_file=file)
    return known
