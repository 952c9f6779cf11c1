"""Servers that the corpus is run against, and what a case has the runner do to them."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from corpus import VECTORS, CorpusError, Settings, fill_in
from grpc_api import ERROR_DOMAIN, Api
from memory_service.v1 import memory_pb2
from server_process import ServerProcess
from server_stores import flags_of, statement

_SERVE = (sys.executable, "-m", "memory_service", "serve")
# The limit is set by the process that then becomes the server.
_LIMITED = (
    "import os, resource, sys; size = int(sys.argv[1]); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); os.execv(sys.argv[2], sys.argv[2:])"
)
_WAIT_S = 30.0


class Server:
    """A running server with the settings of a file of the corpus."""

    def __init__(self, settings: Settings, data_dir: Path, store: str) -> None:
        self._data_dir = data_dir
        self._store = store
        self._api: Api | None = None
        self._under_way: list[Any] = []
        names = {"vectors": str(VECTORS)}
        command = _SERVE
        if settings.file_bytes_max:
            command = (sys.executable, "-c", _LIMITED, str(settings.file_bytes_max), *_SERVE)
        env: Mapping[str, str] = fill_in(dict(settings.env), names)
        flags = [fill_in(flag, names) for flag in settings.flags]
        if "--store" not in flags:
            flags += flags_of(store, data_dir)
        self._process = ServerProcess(data_dir, flags=flags, env=env, command=command).start()
        self.address = self._process.address

    def deed(self, name: str) -> None:
        """Does what a step leaves to the runner."""
        deeds: dict[str, Callable[[], None]] = {
            "fill_streams": self._fill_streams,
            "damage_states": self._damage_states,
        }
        if name not in deeds:
            raise CorpusError(f"the runner knows no {name!r}")
        deeds[name]()

    def close(self) -> None:
        """Ends the server."""
        if self._api is not None:
            self._api.channel.close()
        self._process.kill()

    def _stubs(self) -> Api:
        if self._api is None:
            self._api = Api.connect(self.address)
        return self._api

    def _fill_streams(self) -> None:
        """Opens as many streams as the server lets there be."""
        api = self._stubs()
        for number in range(api.limits()["concurrent_streams_max"]):
            # One namespace alone does not get all of them.
            stream = api.memory.Watch(memory_pb2.WatchRequest(namespace=f"streams-{number % 4}"))
            # After its first message the server counts it.
            next(stream)
            self._under_way.append(stream)

    def _damage_states(self) -> None:
        """Makes every value of a state what no server wrote, as a failing disk might."""
        if self._store == "postgres":
            statement(self._data_dir, "UPDATE $.states SET value = '{'")
            return
        (path,) = self._data_dir.glob("*.db")
        with sqlite3.connect(path, timeout=_WAIT_S) as database:
            database.execute("UPDATE states SET value = '{'")
        database.close()


class Refusing:
    """Stands where a server would: refuses some calls as what is in front of a server may."""

    def __init__(self, refuses: str) -> None:
        errors: dict[str, dict[str, Any]] = json.loads(refuses)
        handlers = {f"/memory_service.v1.{call}": _refusal(**error) for call, error in errors.items()}
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((_Paths(handlers),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def deed(self, name: str) -> None:
        """There is no server to do anything to."""
        raise CorpusError(f"no server to do {name!r} to")

    def close(self) -> None:
        """Stops answering."""
        self._server.stop(None).wait()


class _Paths(grpc.GenericRpcHandler):
    def __init__(self, handlers: dict[str, Any]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: Any) -> Any:
        return self._handlers.get(handler_call_details.method)


def _refusal(code: str, reason: str, metadata: Mapping[str, str] | None = None) -> Any:
    info = error_details_pb2.ErrorInfo(
        reason=f"ERROR_REASON_{reason}", domain=ERROR_DOMAIN, metadata=metadata or {}
    )
    detail = any_pb2.Any()
    detail.Pack(info)
    status = status_pb2.Status(
        code=grpc.StatusCode[code].value[0], message="refused on the way to the server", details=[detail]
    )

    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        answer = rpc_status.to_status(status)
        # As the server has it: a full disk is no reason to come again.
        never_again = ("grpc-retry-pushback-ms", "-1")
        context.abort_with_status(answer._replace(trailing_metadata=(*answer.trailing_metadata, never_again)))
        raise AssertionError("aborting raises")

    return grpc.unary_unary_rpc_method_handler(refuse)


class Servers:
    """The servers of a run: one for each store and settings, except cases with a separate one."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._shared: dict[tuple[Settings, str], Server | Refusing] = {}
        self._lock = threading.Lock()

    def get(self, settings: Settings, store: str) -> Server | Refusing:
        """Return the server for these settings; the caller closes a separate one.

        `store` is where it keeps its records if the settings do not say.
        """
        if settings.own:
            return Server(settings, self._new_folder(), store)
        with self._lock:
            if (settings, store) not in self._shared:
                self._shared[settings, store] = (
                    Refusing(settings.refuses)
                    if settings.refuses
                    else Server(settings, self._new_folder(), store)
                )
            return self._shared[settings, store]

    def close(self) -> None:
        """Ends every shared server."""
        for server in self._shared.values():
            server.close()
