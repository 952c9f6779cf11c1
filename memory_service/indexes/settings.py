"""The settings of the indexes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexSettings:
    """How namespaces are indexed. The defaults suit vectors of 256 to 1536 dimensions."""

    exact_vectors_max: int = 16_384
    """Up to this many vectors a namespace is searched exactly, above it through an HNSW graph."""
    tail_vectors_max: int = 1024
    """This many new vectors are searched exactly, beside the graph, before they are linked into it."""
    views_bytes_max: int = 1 << 30
    """Memory for the views of namespaces; beyond it the least recently used are dropped."""
    items_bytes_max: int = 128 << 20
    """Memory for encoded items."""
    graph_m: int = 16
    """Links per vector of an HNSW graph (M)."""
    graph_ef_construction: int = 200
    """Candidates considered while a vector is linked into a graph (ef_construction)."""
    recall_target: float = 0.994
    """Recall@10 on sampled queries to which a graph's ef is calibrated."""
