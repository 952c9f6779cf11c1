"""A check at the start that the compiled modules run on this processor."""

from __future__ import annotations

import click


def use_compiled_modules() -> None:
    """Run each compiled module that may have been built for another processor.

    If one needs instructions that this processor lacks, the command ends with a one-line error of the handler
    of illegal instructions, the loader or the library.
    """
    try:
        import numpy as np

        import memory_service.domain.json_walk
        import memory_service.domain.weighted_sums
        import memory_service.embedders.token_sums
        import memory_service.indexes.quantized_rows
        import memory_service.indexes.word_scoring
        import memory_service.server.field_counts
        import memory_service.server.json_values  # noqa: F401
        from memory_service.indexes.hnsw import HnswGraph
    except (ImportError, RuntimeError) as error:
        raise click.ClickException(
            f"a compiled module does not load: {' '.join(str(error).split())}"
        ) from error
    vectors = np.eye(32, dtype=np.float32)
    graph = HnswGraph(dimension=32, m=4, ef_construction=8, capacity=32)
    graph.add(vectors, np.arange(32), threads=1)
    graph.search(vectors[:1], k=3)
    graph.scores(np.arange(3, dtype=np.int32), vectors[0])
