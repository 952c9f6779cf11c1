"""Peers of the corpus: what makes a case's calls, through the stubs or through a client's program."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from grpc_api import METHODS, Api, decode, path

RPCS = {f"{method.containing_service.name}/{method.name}": method for method in METHODS}
_ANSWER_S = 60.0


class Peer(Protocol):
    """Makes one call at a time and says what came back."""

    def call(self, step: dict[str, Any]) -> dict[str, Any]:
        """The answer to a step: `response`, `responses`, `error` or `inexpressible`."""
        ...

    def close(self) -> None:
        """Lets go of the server."""
        ...


class PeerFailed(AssertionError):
    """A peer ended, hung, or wrote what is no answer."""


class StubPeer:
    """The server itself, by its generated stubs: requests go out as they are written."""

    def __init__(self, address: str) -> None:
        self._api = Api.connect(address)

    def call(self, step: dict[str, Any]) -> dict[str, Any]:
        """The answer of the server."""
        try:
            if step["call"] == "Iterate":
                return {"response": self._iterate(**step["request"])}
            return self._rpc(RPCS[step["call"]], step)
        except grpc.RpcError as error:
            return {"error": _refusal(error)}

    def close(self) -> None:
        """Closes the channel."""
        self._api.channel.close()

    def _rpc(self, method: MethodDescriptor, step: dict[str, Any]) -> dict[str, Any]:
        written = step["requests"] if method.client_streaming else [step["request"]]
        requests = [json_format.ParseDict(one, GetMessageClass(method.input_type)()) for one in written]
        kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
            "stream" if method.server_streaming else "unary"
        )
        remote = getattr(self._api.channel, kind)(
            path(method),
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        answer = remote(iter(requests) if method.client_streaming else requests[0])
        if not method.server_streaming:
            return {"response": json_format.MessageToDict(answer)}
        if method.name == "Watch":
            answer = _first_changes(answer, step["take"])
        return {"responses": [json_format.MessageToDict(response) for response in answer]}

    def _iterate(self, namespace: str, by: str) -> dict[str, Any]:
        texts = iter(self._listed(namespace) if by == "list" else self._retrieved(namespace))
        count, ordered, first, last = 0, True, "", ""
        for text in texts:
            first, last = first or text, text
            ordered = ordered and text == f"item {count}"
            count += 1
        return {"count": count, "first": first, "last": last, "ordered": ordered}

    def _listed(self, namespace: str) -> Iterator[str]:
        call, request = "MemoryService/List", {"namespace": namespace, "pageSize": 1000}
        for page in self._pages(call, request, request):
            yield from (item["text"] for item in page.get("items", ()))

    def _retrieved(self, namespace: str) -> Iterator[str]:
        call, options = "MemoryService/Retrieve", {"limit": -1}
        for page in self._pages(call, {"namespace": namespace, "options": options}, options):
            yield from (result["item"]["text"] for result in page.get("results", ()))

    def _pages(self, call: str, request: dict[str, Any], options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while True:
            page = self._rpc(RPCS[call], {"request": request})["response"]
            yield page
            options["pageToken"] = page.get("nextPageToken", "")
            if not options["pageToken"]:
                return


def _first_changes(stream: Any, take: int) -> Iterator[Message]:
    """The first changes of a Watch without its heartbeats; then the call is ended."""
    try:
        for response in stream:
            if response.HasField("change"):
                yield response
                take -= 1
                if not take:
                    return
    finally:
        stream.cancel()


def _refusal(error: grpc.RpcError) -> dict[str, Any]:
    refusal = decode(error)
    return {
        "code": refusal.code.name,
        "reason": refusal.reason,
        "field": next(iter(refusal.fields), ""),
        "metadata": refusal.metadata,
    }


class ProcessPeer:
    """A client's program, spoken to in lines of JSON over its pipes."""

    def __init__(self, command: Sequence[str], address: str) -> None:
        self._process = subprocess.Popen(
            [*command, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._log: deque[str] = deque(maxlen=50)
        # Drained all the time, or a talkative program would block on a full pipe.
        self._drain = threading.Thread(target=self._keep_log, daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def _keep_log(self) -> None:
        assert self._process.stderr is not None
        self._log.extend(self._process.stderr)

    def call(self, step: dict[str, Any]) -> dict[str, Any]:
        """The answer of the program; raises PeerFailed when there is none within a minute."""
        assert self._process.stdin is not None and self._process.stdout is not None
        watchdog = threading.Timer(_ANSWER_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(step) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            answer = json.loads(line)
        except (OSError, ValueError) as error:
            raise PeerFailed(f"{step['call']}: {error}\n{''.join(self._log)}") from None
        finally:
            watchdog.cancel()
        if not isinstance(answer, dict):
            raise PeerFailed(f"{step['call']}: no answer: {line!r}")
        return answer

    def close(self) -> None:
        """Ends the program by its end of input, and by its own handle if that does not help."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._drain.join()
        self._process.stdout.close()
        if self._process.stderr is not None:
            self._process.stderr.close()


Connect = Callable[[str], Peer]
"""Makes a peer for the server at an address."""
