"""A stand-in for the HTTP API of an embedding provider: it answers, waits or fails as the test wants."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSION = 1536


@dataclass(frozen=True)
class Body:
    """A body that is sent with status 200."""

    raw: bytes
    content_type: str = "application/json"


def body_of(answer: Any) -> Body:
    """Return a value as JSON, also with NaN and infinities, which JSON lacks but clients parse."""
    return Body(json.dumps(answer).encode())


class EmbeddingProvider:
    """Use it as a context manager and hand `env` and `flags` to a ServerProcess."""

    flags = ("--embedder", "openai")

    def __init__(self) -> None:
        self.asked = threading.Event()
        """Set when a request has arrived."""
        self.may_answer = threading.Event()
        """Clear it to keep requests waiting."""
        self.may_answer.set()
        self.failing = False
        """Respond with an error of the provider."""
        self.failure_status = 500
        """The status of the error."""
        self.refuses: Callable[[str], bool] = lambda text: False
        """Respond with status 400 to a request with a text for which this returns true."""
        self.breaks: Callable[[str], bool] = lambda text: False
        """Fail requests with a text for which this returns true."""
        self.says: Callable[[dict[str, Any]], Body] = body_of
        """Changes a good response before it is sent."""
        self.dimension = DIMENSION
        """Dimensions of a vector when the request does not ask for a number."""
        self.batches_max: int | None = None
        """Answer only this many requests of more than one text; later ones wait. None: answer all."""
        self.requests: list[list[str]] = []
        """The texts of each request, oldest first."""
        self._batches = 0
        self._batch = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def env(self) -> dict[str, str]:
        """Environment that makes a server use this provider."""
        url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        return {"OPENAI_API_KEY": "not-a-secret", "OPENAI_BASE_URL": url}

    def hold(self) -> None:
        """Make requests wait from now on; `asked` is set when the next one arrives."""
        self.may_answer.clear()
        self.asked.clear()

    def answer_batches(self, count: int | None) -> None:
        """Set how many more requests of more than one text are answered."""
        with self._batch:
            self._batches, self.batches_max = 0, count
            self._batch.notify_all()

    def _wait_for_turn(self, texts: list[str]) -> None:
        self.may_answer.wait()
        with self._batch:
            if len(texts) > 1:
                self._batch.wait_for(lambda: self.batches_max is None or self._batches < self.batches_max)
                self._batches += 1

    def __enter__(self) -> EmbeddingProvider:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.may_answer.set()
        self.answer_batches(None)
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, request: dict[str, Any], texts: list[str]) -> tuple[int, Body]:
        if self.failing or any(map(self.breaks, texts)):
            return self.failure_status, body_of({"error": {"message": "boom"}})
        if any(map(self.refuses, texts)):
            return 400, body_of({"error": {"message": "boom"}})
        return 200, self.says(embed({"dimensions": self.dimension, **request}))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
                provider.requests.append(texts)
                provider.asked.set()
                provider._wait_for_turn(texts)
                status, body = provider._answer(request, texts)
                # A client that has given up has closed its end of the connection.
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", body.content_type)
                    self.send_header("Content-Length", str(len(body.raw)))
                    self.end_headers()
                    self.wfile.write(body.raw)

            def log_message(self, *args: object) -> None:
                """Keep the test's output clean."""

        return Handler


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return the vector of a text."""
    random_numbers = random.Random(text)
    return [random_numbers.gauss(0, 1) for _ in range(dimension)]


def embed(request: dict[str, Any]) -> dict[str, Any]:
    """Return a response of the embeddings endpoint: equal texts have equal vectors."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    data = []
    for index, text in enumerate(texts):
        vector = vector_of(text, request.get("dimensions", DIMENSION))
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        embedding = packed if request.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": request["model"], "data": data, "usage": usage}
