"""A process that writes an audit log on a recorded disk, and reports when each entry was promised.

Usage: python -m faults.audit_workload FOLDER REPORT NUMBER plain|sealed [--unsynced] [--on IMAGE]; its
environment is that of a `Disk`. The disk starts with the contents of the image, if there is one: the result
of an earlier loss of power.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path

import msgspec

from contract.cases import KEY
from faults.disk import Disk, put, sync_names_only
from memory_service.audit.entries import Entry
from memory_service.audit.log import AuditLog
from memory_service.data_key import DataKey
from memory_service.runtime.files import make_folder

_LIVES = 3
_ROUNDS = 12
# About ten files.
FILE_BYTES_MAX = 4_000


class Promised(msgspec.Struct):
    """An entry that was written ahead, and its place in the disk's record."""

    id: str
    acknowledged: int


class Work(msgspec.Struct):
    """The promised entries, and when the log was first opened, in the disk's record."""

    promised: list[Promised]
    opening: int


def open_log(folder: Path, key: DataKey | None) -> AuditLog:
    """Continue the log in a folder, or start one."""
    log = AuditLog(folder, "1", FILE_BYTES_MAX, key)
    log.open()
    return log


async def work(folder: Path, disk: Disk, chance: random.Random, key: DataKey | None) -> list[Promised]:
    """Write entries ahead, among others, and reopen the log; return the promised entries."""
    promised: list[Promised] = []

    async def promise(log: AuditLog) -> None:
        made = Promised(f"id-{chance.randrange(1 << 40)}", 0)
        await log.write_ahead(Entry(event="intent", rpc="/s/Delete", ids=[made.id]))
        made.acknowledged = disk["records"]
        promised.append(made)

    make_folder(folder.parent)
    for _ in range(_LIVES):
        log = open_log(folder, key)
        for _ in range(_ROUNDS):
            for number in range(chance.randrange(6)):
                before = disk["records"]
                # Many sectors or a part of one.
                log.append(Entry(event="call", rpc="/s/Add", ids=["x" * chance.randrange(900)], count=number))
                # Each in a separate write.
                while disk["records"] == before:  # noqa: ASYNC110 - the shim counts
                    await asyncio.sleep(0)
            await asyncio.gather(*(promise(log) for _ in range(chance.randrange(3))))
        await log.close()
    return promised


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    given.add_argument("folder", type=Path)
    given.add_argument("report", type=Path)
    given.add_argument("number")
    given.add_argument("kind")
    given.add_argument("--unsynced", action="store_true")
    given.add_argument("--on", type=Path)
    args = given.parse_args()
    disk = Disk.present()
    if args.on is not None:
        put(args.on, args.folder.parent)
    opening = disk["records"]
    if args.unsynced:
        sync_names_only()
    key = KEY if args.kind == "sealed" else None
    promised = asyncio.run(work(args.folder, disk, random.Random(args.number), key))
    args.report.write_bytes(msgspec.json.encode(Work(promised, opening)))
