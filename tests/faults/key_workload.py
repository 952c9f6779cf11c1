"""A process that creates, rotates and revokes API keys on a recorded disk, and reports what it did when.

Usage: python -m faults.key_workload DATA_DIR REPORT [--unsynced]; its environment is that of a `Disk`, with
the key of the data directory if it has one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from faults.disk import Disk, sync_names_only
from memory_service.cli import main


class Change(msgspec.Struct):
    """A command: the token that it created, and the one that it revoked; its place in the disk's record."""

    made: str = ""
    ended: str = ""
    begun: int = 0
    acknowledged: int = 0

    def done(self, cut: int) -> bool:
        """Whether it was acknowledged when the power was lost."""
        return self.acknowledged <= cut


class Keys:
    """Runs commands on the keys of a folder."""

    def __init__(self, data_dir: str, disk: Disk) -> None:
        self._options = ["--data-dir", data_dir, "--json"]
        self._disk = disk
        self.changes: list[Change] = []

    def _run(self, *words: str, ended: str = "") -> Any:
        begun = self._disk["records"]
        told = CliRunner().invoke(main, ["keys", *words, *self._options])
        assert told.exit_code == 0, told.output
        key = msgspec.json.decode(told.stdout)
        self.changes.append(Change(key.get("token", ""), ended, begun, self._disk["records"]))
        return key

    def work(self) -> None:
        """Create some keys, rotate and revoke."""
        grant = ("--namespace", "a/*", "--role", "read")
        for number in range(3):
            rotated = self._run("create", f"ada{number}", *grant)
            revoked = self._run("create", f"bob{number}", *grant)
            self._run("rotate", rotated["id"], "--overlap", "0s", ended=rotated["token"])
            self._run("revoke", revoked["id"], ended=revoked["token"])


if __name__ == "__main__":
    data_dir, report, *rest = sys.argv[1:]
    if rest:
        sync_names_only()
    keys = Keys(data_dir, Disk.present())
    keys.work()
    Path(report).write_bytes(msgspec.json.encode(keys.changes))
