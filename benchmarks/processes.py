"""The measured processes: the memory server and the bare server."""

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
    """Return the server under test, with its defaults except for `flags`; it is not started yet."""
    # Tests reserve less disk space, which keeps the write-ahead log short and makes writes more expensive.
    defaults = {"MEMORY_SERVICE_BALLAST_BYTES": str(Config().ballast_bytes)}
    return ServerProcess(data_dir, flags=flags, env={**defaults, **(env or {})})


def bare_server() -> ServerProcess:
    """Return the server that answers with constants; it is not started yet."""
    return ServerProcess(command=(sys.executable, "-m", "benchmarks.bare_server"))


def stop(server: ServerProcess, timeout_s: float = 60) -> None:
    """Stop a server with SIGTERM, as an operator does; raise if it does not exit cleanly."""
    code = server.terminate(timeout_s)
    if code != 0:
        raise RuntimeError(f"the server ended with {code} after SIGTERM:\n" + "\n".join(server.log))
