"""Every size, count and time limit of the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

DIMENSION = 256
"""Dimension of every vector: that of the server's built-in embedder."""

LIMIT = 10
"""Results wanted from every search, the k of recall@k."""

RECALL_MIN = 0.99
"""Recall that a search has to reach, for the server and the reference."""

GRAPH_M = 16
GRAPH_EF_CONSTRUCTION = 200
"""How the reference builds its HNSW graph."""

GRAPH_EF = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Search widths that the reference may use; it takes the smallest that reaches RECALL_MIN."""

RETRIEVE_IN_FLIGHT = 16
ADD_IN_FLIGHT = 32
ADD_NAMESPACES = 100
IMPORT_BATCH = 500

OVERLOAD_FACTOR = 10
OVERLOAD_PROCESSES = 2
OVERLOAD_CONNECTIONS = 8
OVERLOAD_IN_FLIGHT = 32
OVERLOAD_DEADLINE_S = 1.0

CALL_TIMEOUT_S = 60.0
BURST_TIMEOUT_S = 30.0
"""A burst of calls ends after this time even if not all calls were made."""
IMPORT_TIMEOUT_S = 600.0
SETTLE_TIMEOUT_S = 300.0
MILLION_TIMEOUT_S = 3600.0
"""Time limit for building the graph of the largest namespace, and for saving it."""
FILL_TIMEOUT_S = 240.0
"""Time limit for filling many namespaces; the row reports how many were filled."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of one run; the two sets of them follow below."""

    stored: tuple[int, ...]
    """Items in a namespace, for the rows by size; the last size is also imported and timed."""
    queries: int
    """Distinct queries per size."""
    calls: int
    """Calls per burst; CPU per call is read from a clock with a resolution of 10 ms."""
    rounds: int
    """Turns of a measurement and its reference: an odd number, the median counts."""
    import_rounds: int
    """The same for the import, which takes longest: the best counts."""
    add_seconds: float
    """Length of one burst of writes."""
    add_into: int
    """Items in the namespace that is already full when writes to it are measured."""
    namespaces: int
    """Number of small namespaces."""
    namespace_items: int
    """Items in each small namespace."""
    namespace_sample: int
    """Small namespaces that are searched."""
    hybrid_items: int
    """Items in the namespace that is queried by text."""
    million: int
    """Items in the largest namespace, which is measured only when its row is named."""
    overload_items: int
    """Items in the namespace whose queries overload the server: expensive ones, because the client has to
    make ten times as many calls as the server answers, on the same cores.
    """
    overload_turns: int
    """Turns of a peak and an overload: an odd number, the median counts."""
    overload_s: float
    """Seconds of the peak, and of the overload."""
    fairness_turns: int
    """Turns of a tenant alone and beside others: an odd number, the median counts."""
    starts: int
    """Starts of a server after each way of stopping it."""


FULL = Sizes(
    stored=(1_000, 10_000, 100_000),
    queries=500,
    calls=2_500,
    rounds=9,
    import_rounds=2,
    add_seconds=1.5,
    add_into=100_000,
    namespaces=10_000,
    namespace_items=100,
    namespace_sample=2_000,
    hybrid_items=10_000,
    million=1_000_000,
    overload_items=50_000,
    overload_turns=9,
    overload_s=4.0,
    fairness_turns=5,
    starts=3,
)

QUICK = Sizes(
    stored=(1_000, 10_000),
    queries=200,
    calls=2_500,
    rounds=3,
    import_rounds=1,
    add_seconds=1.0,
    add_into=10_000,
    namespaces=500,
    namespace_items=100,
    namespace_sample=200,
    hybrid_items=10_000,
    million=50_000,
    overload_items=20_000,
    overload_turns=1,
    overload_s=3.0,
    fairness_turns=1,
    starts=2,
)
