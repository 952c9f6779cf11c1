"""The processes that are measured: the memory server and the bare server."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memory_service.config import Config

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "tests"))

from server_process import ServerProcess  # noqa: E402 - found only on the path set above

__all__ = ["ServerProcess", "bare_server", "memory_server", "stop"]


def memory_server(
    data_dir: Path, *, flags: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> ServerProcess:
    """The server under test, with its defaults but for `flags`; not started yet."""
    # Tests hold back less room, which keeps the write-ahead log short and makes writes dearer.
    defaults = {"MEMORY_SERVICE_BALLAST_BYTES": str(Config().ballast_bytes)}
    return ServerProcess(data_dir, flags=flags, env={**defaults, **(env or {})})


def bare_server() -> ServerProcess:
    """The server that answers from a constant; not started yet."""
    return ServerProcess(command=(sys.executable, "-m", "benchmarks.bare_server"))


def stop(server: ServerProcess, timeout_s: float = 60) -> None:
    """Stops a server with SIGTERM, as an operator does; raises if it does not end well."""
    code = server.terminate(timeout_s)
    if code != 0:
        raise RuntimeError(f"the server ended with {code} after SIGTERM:\n" + "\n".join(server.log))
