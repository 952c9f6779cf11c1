"""A real server process for tests and benchmarks: started on port 0, stopped by its own id."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

_LISTENING = re.compile(r"listening on (\S+)(?:.*, health checks on (\S+))?")


class ServerProcess:
    """`memory-service serve` as a process.

    Use it as a context manager, or call `start` and one of `terminate` and `kill`. `address` is the
    "host:port" it listens on, `health_address` the separate one of health checks, if configured; `log` holds
    the last lines it wrote to stderr.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = (sys.executable, "-m", "memory_service", "serve"),
    ) -> None:
        store = [] if data_dir is None else ["--data-dir", str(data_dir)]
        self._command = [*command, "--address", "127.0.0.1:0", *store, *flags]
        # Settings of the caller's shell must not reach the server under test.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_SERVICE_", "OPENAI_"))}
        # Hundreds of servers would reserve gigabytes.
        self._env = {**inherited, "MEMORY_SERVICE_BALLAST_BYTES": "65536", **(env or {})}
        self.log: deque[str] = deque(maxlen=1000)
        self.address = ""
        self.health_address = ""

    def start(self, timeout_s: float = 60) -> ServerProcess:
        """Start the server and return when it listens; raise RuntimeError with its log if it ends."""
        self.process = subprocess.Popen(
            self._command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # Drain both pipes all the time: a talkative server would block on a full one.
        self._drains = [threading.Thread(target=self._drain_stderr, daemon=True)]
        self._drains[0].start()
        watchdog = threading.Timer(timeout_s, self.process.kill)
        watchdog.start()
        try:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                if match := _LISTENING.search(line):
                    self.address, self.health_address = match[1], match[2] or ""
                    break
            else:
                self.process.wait()
                self._release()
                raise RuntimeError(
                    f"the server ended with {self.process.returncode}:\n" + "\n".join(self.log)
                )
        finally:
            watchdog.cancel()
        self._drains.append(threading.Thread(target=self.process.stdout.read, daemon=True))
        self._drains[1].start()
        return self

    def _drain_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))

    def _release(self) -> None:
        """Close the pipes of a server that has ended, once all its output was read."""
        for thread in self._drains:
            thread.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def kill(self) -> None:
        """Kill the server (SIGKILL), as in a crash."""
        self.process.kill()
        self.process.wait()
        self._release()

    def terminate(self, timeout_s: float = 60) -> int:
        """Ask the server to drain and stop (SIGTERM) and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout_s)
        self._release()
        return code

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used so far, user and system, in all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Return the server's resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _end(self) -> None:
        """Kill the server, but terminate it under `make coverage`: a killed process reports no coverage."""
        if "COVERAGE_PROCESS_CONFIG" in os.environ:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.terminate()
                return
        self.kill()

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self._end()
        elif not self.process.stdout.closed:  # type: ignore[union-attr]
            self._release()
