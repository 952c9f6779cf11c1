"""Run the benchmarks and print one table. `python -m benchmarks --help` lists the options."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import uvloop

from benchmarks.bench import Bench, progress
from benchmarks.rows import (
    add,
    auth,
    fairness,
    hybrid,
    imports,
    locomo,
    million,
    namespaces,
    overload,
    recall,
    retrieve,
    scale,
    servers,
    startup,
)
from benchmarks.settings import FULL, QUICK
from benchmarks.table import Measurement, environment, render

ROWS: dict[str, Callable[[Bench], Awaitable[list[Measurement]]]] = {
    "retrieve": retrieve.run,
    "hybrid": hybrid.run,
    "auth": auth.run,
    "recall": recall.run,
    "add": add.run,
    "import": imports.run,
    "namespaces": namespaces.run,
    "startup": startup.run,
    "overload": overload.run,
    "fairness": fairness.run,
    "locomo": locomo.run,
    "million": million.run,
    "scale": scale.run,
    "servers": servers.run,
}
_ONLY_WHEN_NAMED = ("million", "scale", "servers")

_FSYNCS = 20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = ",".join(name for name in ROWS if name not in _ONLY_WHEN_NAMED)
    parser.add_argument(
        "--rows",
        default=default,
        metavar="NAME[,NAME]",
        help=f"default: %(default)s; only when named: {', '.join(_ONLY_WHEN_NAMED)}",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, under two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    parser.add_argument(
        "--locomo",
        type=Path,
        metavar="FILE",
        default=os.environ.get("LOCOMO_DATA") or None,
        help="the LoCoMo JSON (default: the environment's LOCOMO_DATA); without it that row is left out",
    )
    parser.add_argument(
        "--vectors", choices=("clustered", "random"), default="clustered", help="default: %(default)s"
    )
    parser.add_argument(
        "--work-dir",
        type=Path,
        help="where the servers' data is while this runs (default: a temporary folder)",
    )
    args = parser.parse_args()
    args.rows = [name.strip() for name in args.rows.split(",")]
    if unknown := [name for name in args.rows if name not in ROWS]:
        parser.error(f"unknown row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if args.locomo is not None:
        args.locomo = Path(args.locomo)
        if not args.locomo.is_file():
            parser.error(f"no such file: {args.locomo}")
    return args


async def _measure(bench: Bench, rows: list[str], notes: list[str]) -> tuple[list[Measurement], bool]:
    """Run the rows in the order of ROWS; a row that fails becomes a note, and the others still run."""
    lines: list[Measurement] = []
    failed = False
    for name, run in ROWS.items():
        if name not in rows:
            continue
        if name == "locomo" and bench.locomo is None:
            notes.append("row locomo was LEFT OUT: give the data with --locomo FILE or LOCOMO_DATA")
            continue
        try:
            lines += await run(bench)
        except Exception as error:  # whatever the error, the other rows are still worth having
            traceback.print_exc()
            first = (str(error).splitlines() or [""])[0]
            notes.append(f"row {name} FAILED: {type(error).__name__}: {first}")
            failed = True
    return lines, failed


def _fsync_seconds(folder: Path) -> float:
    """Return the median time of an fsync after writing 4 KiB: the wait of each durable write."""
    took = []
    with open(folder / "fsync", "wb", buffering=0) as file:
        for _ in range(_FSYNCS):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took)


def main() -> int:
    """Measure, print and write the results. Return 1 if a row could not be measured; bars are only shown."""
    args = _arguments()
    # Stopping a run also stops the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sizes = QUICK if args.quick else FULL
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="memory-bench-", dir=args.work_dir) as folder:
        fsync = _fsync_seconds(Path(folder))
        notes = [
            f"{args.vectors} vectors; {os.cpu_count()} cores, shared by client and server; "
            f"fsync of 4 KiB {fsync * 1e3:.2f} ms; the middle one of {sizes.rounds} turns "
            f"(the best of {sizes.import_rounds} of the import)",
            "a ratio is comparable from run to run, an absolute figure only within one",
        ]
        bench = Bench(sizes, args.vectors, Path(folder), args.locomo)
        lines, failed = uvloop.run(_measure(bench, args.rows, notes))
    notes.append(f"took {time.perf_counter() - began:.0f} s")
    print(render(lines, notes))
    if args.json:
        report = {
            "environment": {**environment(), "fsync_ms": fsync * 1e3, "vectors": args.vectors},
            "sizes": asdict(sizes),
            "measurements": [line.as_json() for line in lines],
            "notes": notes,
        }
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        progress(f"wrote {args.json}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
