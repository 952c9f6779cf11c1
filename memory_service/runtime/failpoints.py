"""Points at which a test can kill the process, to simulate a crash.

`reach("commit.before_commit")` does nothing, at the cost of one `if`, unless the environment variable
MEMORY_SERVICE_FAILPOINTS armed the point when the server started: "commit.before_commit=kill" sends SIGKILL
to the process there, "commit.before_commit=kill:3" when it is reached for the third time. "name=note" logs
once that the point was reached, and "*=note" does that for all points that are not named.
"""

from __future__ import annotations

import os
import re
import signal
from threading import Lock

from memory_service.runtime.event_log import EventLog

VARIABLE = "MEMORY_SERVICE_FAILPOINTS"
_ARMED = re.compile(r"(?P<name>[a-z_.]+|\*)=(kill(:(?P<times>[1-9][0-9]*))?|note)")
_log = EventLog(__name__)


class BadFailpoints(ValueError):
    """The environment variable has an invalid value."""


class Failpoints:
    """The armed points of this process."""

    def __init__(self) -> None:
        self.armed = False
        self._times_left: dict[str, int] = {}
        self._to_note: set[str] = set()
        self._noted: set[str] = set()
        self._lock = Lock()

    def arm(self, text: str) -> None:
        """Arm the points that a value of the environment variable names. Raises BadFailpoints."""
        for part in filter(None, text.split(",")):
            match = _ARMED.fullmatch(part)
            if match is None or (match["name"] == "*" and not part.endswith("=note")):
                raise BadFailpoints(
                    f"{VARIABLE}: {part!r} is not NAME=kill, NAME=kill:N, NAME=note or *=note"
                )
            if part.endswith("=note"):
                self._to_note.add(match["name"])
            else:
                self._times_left[match["name"]] = int(match["times"] or 1)
            self.armed = True

    def meet(self, name: str) -> None:
        """Perform the action that is armed for a point. Thread-safe."""
        with self._lock:
            if name in self._times_left:
                self._times_left[name] -= 1
                if self._times_left[name] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            elif name not in self._noted and not self._to_note.isdisjoint((name, "*")):
                self._noted.add(name)
                _log.warning("failpoint", name=name)


FAILPOINTS = Failpoints()


def reach(name: str) -> None:
    """Mark a point that the process has reached. Names have the form "subject.step"."""
    if FAILPOINTS.armed:
        FAILPOINTS.meet(name)
