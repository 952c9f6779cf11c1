"""Row `import`: items per second of an Import with vectors, against hnswlib alone."""

from __future__ import annotations

import os

from benchmarks.bench import Bench, Filled
from benchmarks.settings import GRAPH_EF_CONSTRUCTION, GRAPH_M, IMPORT_BATCH
from benchmarks.table import Bar, Measurement, count

_BAR = Bar(0.7, "higher")


async def run(bench: Bench) -> list[Measurement]:
    """Measure until the response of the Import, and until all its vectors are in the index."""
    size = bench.sizes.stored[-1]
    build_s, imports = [bench.graph(size).build_s], [await bench.filled(size)]
    for _ in range(bench.sizes.import_rounds - 1):
        build_s.append(bench.build_graph(size).build_s)
        imports.append(await bench.fill(size))
        bench.discard(imports[-1].data_dir)
    return _lines(size, min(build_s), imports)


def _lines(size: int, build_s: float, imports: list[Filled]) -> list[Measurement]:
    acknowledged = min(filled.import_s for filled in imports)
    best = min(imports, key=lambda filled: filled.import_s + filled.settled.seconds)
    settled, settled_s = best.settled, best.import_s + best.settled.seconds
    name = f"hnswlib.add_items, {os.cpu_count()} threads"
    return [
        Measurement(
            row="import",
            what=f"Import of {count(size)} items until acknowledged",
            measured=size / acknowledged,
            unit="items/s",
            reference=size / build_s,
            reference_name=name,
            bar=_BAR,
            details={
                "batch": float(IMPORT_BATCH),
                "seconds": acknowledged,
                "hnswlib seconds": build_s,
                "M": float(GRAPH_M),
                "ef_construction": float(GRAPH_EF_CONSTRUCTION),
            },
        ),
        Measurement(
            row="import",
            what=f"Import of {count(size)} items until the index is settled ({settled.kind})",
            measured=size / settled_s,
            unit="items/s",
            reference=size / build_s,
            reference_name=name,
            details={
                "seconds": settled_s,
                "in the graph": float(settled.graph_count),
                "searched exactly": float(settled.exact_count),
                **({} if settled.quiet else {"warning": "the index was still changing"}),
            },
        ),
    ]
