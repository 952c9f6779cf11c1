"""A process that writes to a store until it is killed, and prints each acknowledged write.

Usage: python -m contract.writer_process STORE DATA_DIR
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from contract.builders import NS, build_request, build_state, build_write, random_vectors
from contract.cases import find_case

BATCH = 3


async def write_forever(case_name: str, data_dir: Path) -> None:
    """Open the store and write batches, each with a request, and occasionally a state."""
    store = find_case(case_name).make(data_dir)
    await store.open()
    print("open", flush=True)
    vectors = random_vectors(3000)
    for n in range(1000):
        names = [f"{n}-{k}" for k in range(BATCH)]
        writes = [build_write(name, f"kiwi w{n}", vectors[BATCH * n + k]) for k, name in enumerate(names)]
        await store.add_items(NS, writes, request=build_request(f"r{n}"))
        await store.save_state(NS, build_state("counter", n))
        print(n, flush=True)


if __name__ == "__main__":
    asyncio.run(write_forever(sys.argv[1], Path(sys.argv[2])))
