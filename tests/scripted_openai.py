"""A server with OpenAI's HTTP API that answers as the test wants: well, late, badly or not at all."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from embedding_provider import embed


@dataclass(frozen=True)
class ChatRequest:
    """A request as the server received it."""

    body: dict[str, Any]
    """Return the JSON body of the request."""

    @property
    def system(self) -> str:
        """Return the system message: instructions, and the schema of the answer."""
        return "\n".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def user(self) -> str:
        """Return the first user message: the data, delimited."""
        return next((m["content"] for m in self.body["messages"] if m["role"] == "user"), "")

    @property
    def is_repair(self) -> bool:
        """Return whether this is a second attempt after a bad answer."""
        return any(m["role"] == "assistant" for m in self.body["messages"])

    @property
    def schema_name(self) -> str:
        """Return the name of the requested type; empty if the request has no `response_format`."""
        schema = (self.body.get("response_format") or {}).get("json_schema") or {}
        return str(schema.get("name", ""))


@dataclass(frozen=True)
class Reply:
    """A response. Without `status` and `raw` it is an ordinary completion with `content`."""

    content: str | None = ""
    finish_reason: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    """With a status other than 200: fields of the error object, such as `param`."""
    raw: bytes | None = None
    """Send this body unchanged instead."""
    never: bool = False
    """Do not respond; the request waits until the server is closed or the client gives up."""
    usage: Mapping[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    )

    @classmethod
    def slow(cls) -> Reply:
        """Return a response that never comes."""
        return cls(never=True)

    @classmethod
    def overloaded(cls, retry_after_s: float | None = None) -> Reply:
        """Return status 429, with or without Retry-After."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        return cls(status=429, headers=headers)

    @classmethod
    def broken(cls, status: int = 500) -> Reply:
        """Return an error of the provider."""
        return cls(status=status)

    @classmethod
    def in_prose(cls, answer: object) -> Reply:
        """Return the answer with text around it."""
        return cls(f"Sure! Here is my answer: {json.dumps(answer)}\nLet me know if {{you}} need more.")

    @classmethod
    def fenced(cls, answer: object) -> Reply:
        """Return the answer in a code fence."""
        return cls(f"```json\n{json.dumps(answer, indent=2)}\n```")

    @classmethod
    def nested(cls, answer: object) -> Reply:
        """Return the answer inside another object."""
        return cls(json.dumps({"response": {"answer": answer}}))

    @classmethod
    def truncated(cls, answer: object) -> Reply:
        """Return the answer without its end."""
        text = json.dumps(answer)
        return cls(text[: len(text) * 2 // 3], finish_reason="length")


Answer = Mapping[str, Any] | Reply
"""Return a reply; an object becomes a good one with the object as JSON."""


class ScriptedOpenAI:
    """Use it as a context manager and pass `environment()` to a ServerProcess with `--llm openai`.

    The function given to `answer`, which may change at any time, answers chat completions, or the queue of
    `answer_in_order`; before either is called they fail with status 503. Embeddings are deterministic: equal
    texts have equal vectors.
    """

    flags = ("--llm", "openai")

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        """The requests, oldest first."""
        self.asked = threading.Event()
        """Set when a request has arrived."""
        self.embedded: list[list[str]] = []
        """The texts of each embeddings request."""
        self.refuses_response_format = False
        """Return status 400 for a `response_format`, like servers without structured output."""
        self._respond: Callable[[ChatRequest], Answer] = lambda _: Reply.broken(503)
        self._queue: list[Answer] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    def answer(self, respond: Callable[[ChatRequest], Answer] | Answer) -> None:
        """Answer requests with the result of this function, or always with this answer."""
        with self._lock:
            self._queue = []
            self._respond = respond if callable(respond) else lambda _: respond

    def answer_in_order(self, answers: Sequence[Answer]) -> None:
        """Give these answers in order, then 503 for unexpected requests."""
        with self._lock:
            self._queue = list(answers)
            self._respond = lambda _: Reply.broken(503)

    @property
    def base_url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def environment(self) -> dict[str, str]:
        """Return the variables that make a server process use this one."""
        return {"OPENAI_API_KEY": "not-a-secret", "OPENAI_BASE_URL": self.base_url}

    def __enter__(self) -> ScriptedOpenAI:
        # Poll often for the end, so that tests do not wait for it.
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _complete(self, body: dict[str, Any]) -> Reply:
        """Return the response to a request: the next of the queue, or the result of the test's function."""
        request = ChatRequest(body)
        with self._lock:
            self.requests.append(request)
            self.asked.set()
            if self.refuses_response_format and "response_format" in body:
                return Reply(status=400, error={"message": "unknown field response_format"})
            if self._queue:
                found: Answer = self._queue.pop(0)
                return found if isinstance(found, Reply) else Reply(json.dumps(found))
            respond = self._respond
        found = respond(request)
        return found if isinstance(found, Reply) else Reply(json.dumps(found))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are two writes, and the second would wait for an acknowledgement of the first.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path.endswith("/embeddings"):
                    texts = body["input"]
                    provider.embedded.append([texts] if isinstance(texts, str) else list(texts))
                    self._send(200, json.dumps(embed(body)).encode(), {})
                elif self.path.endswith("/chat/completions"):
                    self._reply(provider._complete(body), body)
                else:
                    self._send(404, b'{"error": {"message": "no such path"}}', {})

            def _reply(self, reply: Reply, body: dict[str, Any]) -> None:
                if reply.never:
                    provider._closing.wait()
                    self.close_connection = True
                    return
                if reply.raw is not None:
                    answer = reply.raw
                elif reply.status != 200:
                    answer = json.dumps({"error": {"message": "boom", **reply.error}}).encode()
                else:
                    answer = json.dumps(_completion(reply, body)).encode()
                self._send(reply.status, answer, reply.headers)

            def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                # A client that has given up has closed its end of the connection.
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Keep the test's output clean."""

        return Handler


def _completion(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": reply.usage,
    }
