"""Print how well the overseer finds the state that goals need. `python -m benchmarks.relevance`

The cases are those of the tests. Without a language model, rules decide; that is what is measured.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.processes import ServerProcess, stop
from grpc_api import Api  # found on the path that benchmarks.processes sets
from relevance_cases import Case, Score, cases, measure

_BAR = 0.8


def _measured(embedder: str) -> list[tuple[str, list[Case], Score]]:
    """Return the scores of a server with this embedder, on the cases for tuning the rules and on new ones."""
    found = []
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        server = ServerProcess(Path(folder), flags=["--embedder", embedder, "--llm", "none"]).start()
        api = Api.connect(server.address)
        for name, held_out in (("tuned", False), ("held out", True)):
            wanted = [case for case in cases() if case.held_out is held_out]
            found.append((name, wanted, measure(api, "relevance", wanted)))
        api.channel.close()
        stop(server)
    return found


def main() -> int:
    """Measure and print. Return 1 if a figure with the local embedder is below the bar."""
    missed = False
    for embedder in ("local", "none"):
        for name, wanted, score in _measured(embedder):
            print(
                f"embedder {embedder}, {name}: {len(wanted)} cases, "
                f"precision {score.precision:.3f}, recall {score.recall:.3f} (bar {_BAR})"
            )
            for miss in score.misses:
                print(f"    {miss.case.goal!r}: extra {miss.extra}, missing {miss.missing}")
            missed |= embedder == "local" and min(score.precision, score.recall) < _BAR
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
