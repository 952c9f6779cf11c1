"""A stand-in for the HTTP API of an embedding provider: answers, waits or fails, as a test says."""

from __future__ import annotations

import base64
import json
import random
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSION = 1536


class EmbeddingProvider:
    """Use it as a context manager and hand `env` and `flags` to a ServerProcess."""

    flags = ("--embedder", "openai")

    def __init__(self) -> None:
        self.asked = threading.Event()
        """Set when a request has come in."""
        self.may_answer = threading.Event()
        """Clear it to let requests wait."""
        self.may_answer.set()
        self.failing = False
        """Answer with an error of the provider."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def env(self) -> dict[str, str]:
        """What makes a server ask this provider."""
        url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        return {"OPENAI_API_KEY": "not-a-secret", "OPENAI_BASE_URL": url}

    def hold(self) -> None:
        """From now on requests wait; `asked` tells of the next one."""
        self.may_answer.clear()
        self.asked.clear()

    def __enter__(self) -> EmbeddingProvider:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.may_answer.set()
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.asked.set()
                provider.may_answer.wait()
                status, answer = (
                    (500, {"error": {"message": "boom"}}) if provider.failing else (200, embed(request))
                )
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing to the test's output."""

        return Handler


def embed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of the embeddings endpoint: the same vector for the same text."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    data = []
    for index, text in enumerate(texts):
        random_numbers = random.Random(text)
        vector = [random_numbers.gauss(0, 1) for _ in range(request.get("dimensions", DIMENSION))]
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        embedding = packed if request.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": request["model"], "data": data, "usage": usage}
