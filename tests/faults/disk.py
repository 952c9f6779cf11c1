"""Faulty disks: `disk_shim.c` is preloaded into a process, and controlled through a shared page."""

from __future__ import annotations

import functools
import mmap
import os
import stat
import struct
import subprocess
import tempfile
from pathlib import Path

from memory_service.runtime.files import make_folder, sync
from toolchain import tool

OPEN, READ, WRITE, SYNC, TRUNCATE, NAME, MAP = (1 << n for n in range(7))
EVERY_CALL = OPEN | READ | WRITE | SYNC | TRUNCATE | NAME | MAP
ALWAYS = 1 << 40

# The fields of `struct control`.
_FIELDS = (
    "records", "calls", "fail_at", "fail_errno", "fail_on", "kinds", "failed_kind", "sync_delay_us",
    "hold_syncs", "syncs_begun", "syncs_done", "quota_bytes", "failed_records",
)  # fmt: skip


@functools.cache
def shim() -> Path:
    """Compile the shim, once per process."""
    built = Path(tempfile.mkdtemp(prefix="disk-shim-")) / "disk_shim.so"
    source = Path(__file__).with_name("disk_shim.c")
    subprocess.run([tool("cc"), "-O1", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True)
    return built


def sync_names_only() -> None:
    """Make this process sync names but no contents from here on: as a control, which has to lose some."""
    right = os.fsync

    def wrong(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            right(file)

    os.fsync = wrong  # type: ignore[assignment]


def put(source: Path, folder: Path) -> None:
    """Copy the contents of a folder to a new one, and sync them."""
    make_folder(folder)
    for path in source.iterdir():
        target = folder / path.name
        if path.is_dir():
            put(path, target)
        else:
            target.write_bytes(path.read_bytes())
            target.chmod(path.stat().st_mode)
            sync(target)
    sync(folder)


class Disk:
    """The disk below `folder`, as seen by a process that is started with `env`."""

    def __init__(self, folder: Path, control: Path, *, trace: Path | None = None) -> None:
        if not control.exists():
            control.write_bytes(bytes(8 * len(_FIELDS)))
        with control.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8 * len(_FIELDS))
        self.folder = folder
        self._set = {"FAULT_DIR": str(folder), "FAULT_CONTROL": str(control)}
        if trace is not None:
            self._set["FAULT_TRACE"] = str(trace)

    @property
    def env(self) -> dict[str, str]:
        """The environment of a process that is to have this disk."""
        return {**self._set, "LD_PRELOAD": str(shim())}

    @classmethod
    def present(cls) -> Disk:
        """Return the disk of this process, which was started with it."""
        return cls(Path(os.environ["FAULT_DIR"]), Path(os.environ["FAULT_CONTROL"]))

    def __getitem__(self, field: str) -> int:
        value: int = struct.unpack_from("q", self._page, 8 * _FIELDS.index(field))[0]
        return value

    def __setitem__(self, field: str, value: int) -> None:
        struct.pack_into("q", self._page, 8 * _FIELDS.index(field), value)

    def count(self, kinds: int = EVERY_CALL) -> None:
        """Count the calls of these kinds from here on; none fails."""
        self["fail_at"] = self["calls"] = self["failed_kind"] = self["failed_records"] = 0
        self["kinds"] = kinds

    def fail(self, at: int, errno: int, *, on: int = 1, kinds: int = EVERY_CALL) -> None:
        """From here on, make call number `at`, from 1, of these kinds fail, and that many calls in total."""
        self["kinds"] = 0
        self["calls"] = self["failed_kind"] = self["failed_records"] = 0
        self["fail_errno"], self["fail_on"], self["fail_at"] = errno, on, at
        self["kinds"] = kinds

    def heal(self) -> None:
        """Stop all failures."""
        self["kinds"] = self["fail_at"] = 0
