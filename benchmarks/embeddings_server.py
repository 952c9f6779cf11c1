"""A small HTTP server with OpenAI's embeddings API, for a model that runs in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.vectors import Vectors

Embed = Callable[[Sequence[str]], Vectors]


class EmbeddingsServer:
    """Serves on a free port of the loopback while it is used as a context manager."""

    def __init__(self, model: str, embed: Embed) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model, embed))
        self._http.daemon_threads = True

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that points a memory server with `--embedder openai` at this server."""
        url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        return {"OPENAI_API_KEY": "not-a-secret", "OPENAI_BASE_URL": url}

    def __enter__(self) -> EmbeddingsServer:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler(model: str, embed: Embed) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # Keep connections alive.

        def do_POST(self) -> None:
            """Return a vector for each text, as a list of numbers."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            data = [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(embed(texts).tolist())
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "model": model, "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Log nothing: the benchmarks report their own progress."""

    return Handler
