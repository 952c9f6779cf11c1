"""Benchmarks of the memory server, each beside a reference that is measured in the same run."""

from __future__ import annotations

import os


def _load_numpy_with_one_blas_thread() -> None:
    """Import numpy with one BLAS thread, so that the reference search is single-threaded.

    The variable is restored afterwards: servers started from here must not inherit it.
    """
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    import numpy  # noqa: F401 - loading it is the purpose

    if before is None:
        del os.environ[name]
    else:
        os.environ[name] = before


_load_numpy_with_one_blas_thread()
