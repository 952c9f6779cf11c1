"""How much the fault tests do: a little in every run, much in `make soak`.

What is drawn at random comes from one seed. It is printed, and SEED=n gives it again.
"""

from __future__ import annotations

import os
import random
import secrets

SOAK = os.environ.get("SOAK") == "1"
SEED = int(os.environ.get("SEED") or secrets.randbelow(1 << 32))
# The workers of this run, which are started from here, draw the same.
os.environ["SEED"] = str(SEED)


def rounds(fast: int, soak: int) -> int:
    """Return how often something is done: `fast` in every run, `soak` in `make soak`."""
    return soak if SOAK else fast


def drawn(name: str) -> random.Random:
    """Return a source of random numbers of its own for a test, so that no other test moves it."""
    return random.Random(f"{SEED}/{name}")


def hypothesis_seed(name: str) -> int:
    """Return what a test of Hypothesis draws from: in every run the same, in `make soak` this run's."""
    return (drawn(name) if SOAK else random.Random(name)).getrandbits(64)
