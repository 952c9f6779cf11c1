"""Reports of a server that runs as `altered_server.py observed`."""

from __future__ import annotations

import os
import signal

from grpc_api import eventually
from server_process import ServerProcess


def tasks(server: ServerProcess) -> int:
    """Return the number of tasks: each report of the server is numbered."""

    def told() -> list[str]:
        return [line for line in list(server.log) if line.startswith("tasks ")][-1:] or ["tasks 0 0"]

    before = told()
    os.kill(server.process.pid, signal.SIGUSR1)
    eventually(lambda: told() != before, "the server to tell")
    return int(told()[0].split()[2])
