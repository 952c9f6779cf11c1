"""A server that speaks OpenAI's HTTP API and answers as a test says: well, late, badly or not at all."""

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
    """A question as it reached the server."""

    body: dict[str, Any]
    """The JSON body of the request."""

    @property
    def system(self) -> str:
        """The system message: instructions, and the schema of the answer."""
        return "\n".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def user(self) -> str:
        """The first user message: the data, delimited."""
        return next((m["content"] for m in self.body["messages"] if m["role"] == "user"), "")

    @property
    def is_repair(self) -> bool:
        """Whether a bad answer went before, and another is asked for."""
        return any(m["role"] == "assistant" for m in self.body["messages"])

    @property
    def schema_name(self) -> str:
        """The name of the type that is asked for; empty: the request has no `response_format`."""
        schema = (self.body.get("response_format") or {}).get("json_schema") or {}
        return str(schema.get("name", ""))


@dataclass(frozen=True)
class Reply:
    """What to send back. Without `status` and `raw` it is an ordinary completion with `content`."""

    content: str | None = ""
    finish_reason: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    """With another status than 200: fields of the error object, such as `param`."""
    raw: bytes | None = None
    """This body instead, as it is."""
    never: bool = False
    """Do not answer; the request waits until the server is closed or the client gives up."""
    usage: Mapping[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    )

    @classmethod
    def slow(cls) -> Reply:
        """No answer for as long as the client is ready to wait."""
        return cls(never=True)

    @classmethod
    def overloaded(cls, retry_after_s: float | None = None) -> Reply:
        """429, with Retry-After or without."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        return cls(status=429, headers=headers)

    @classmethod
    def broken(cls, status: int = 500) -> Reply:
        """An error of the provider."""
        return cls(status=status)

    @classmethod
    def in_prose(cls, answer: object) -> Reply:
        """The answer with talk around it."""
        return cls(f"Sure! Here is my answer: {json.dumps(answer)}\nLet me know if {{you}} need more.")

    @classmethod
    def fenced(cls, answer: object) -> Reply:
        """The answer in a code fence."""
        return cls(f"```json\n{json.dumps(answer, indent=2)}\n```")

    @classmethod
    def nested(cls, answer: object) -> Reply:
        """The answer inside of another object."""
        return cls(json.dumps({"response": {"answer": answer}}))

    @classmethod
    def truncated(cls, answer: object) -> Reply:
        """The answer without its end."""
        text = json.dumps(answer)
        return cls(text[: len(text) * 2 // 3], finish_reason="length")


Answer = Mapping[str, Any] | Reply
"""An object stands for a good reply with it as JSON."""


class ScriptedOpenAI:
    """Use it as a context manager and hand `environment()` to a ServerProcess with `--llm openai`.

    Chat completions are answered by the function given to `answer`, which may be changed at any
    time, or by what is left of `answer_in_order`; until one of them was called, with status 503.
    Embeddings are deterministic: equal texts have equal vectors.
    """

    flags = ("--llm", "openai")

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        """The questions that came in, oldest first."""
        self.asked = threading.Event()
        """Set when a question has come in."""
        self.embedded: list[list[str]] = []
        """The texts of each embeddings request."""
        self.refuses_response_format = False
        """Answer 400 to a request with `response_format`, as servers do that have no structured output."""
        self._respond: Callable[[ChatRequest], Answer] = lambda _: Reply.broken(503)
        self._queue: list[Answer] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    def answer(self, respond: Callable[[ChatRequest], Answer] | Answer) -> None:
        """Answer questions with what this function returns for them, or with this answer always."""
        with self._lock:
            self._queue = []
            self._respond = respond if callable(respond) else lambda _: respond

    def answer_in_order(self, answers: Sequence[Answer]) -> None:
        """Give these answers one after the other, then 503 for what was not expected."""
        with self._lock:
            self._queue = list(answers)
            self._respond = lambda _: Reply.broken(503)

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL has to be."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def environment(self) -> dict[str, str]:
        """The variables that make a server process ask this one."""
        return {"OPENAI_API_KEY": "not-a-secret", "OPENAI_BASE_URL": self.base_url}

    def __enter__(self) -> ScriptedOpenAI:
        # Looks often whether to end, so that a test does not wait for it.
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _complete(self, body: dict[str, Any]) -> Reply:
        """The reply to a question: the next of the queue, or what the test's function says."""
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
            # Head and body are two writes, and the second would wait for the first to be acknowledged.
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
                # A client that has given up has closed its end.
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing to the test's output."""

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
