"""How much the fault tests do: a little in every run, much in `make soak`.

All random draws come from one seed, which is printed; SEED=n repeats the run. In an ordinary run it is fixed,
so that the same code gets the same answer. `make soak` draws a new one, to find new faults.
"""

from __future__ import annotations

import os
import random
import secrets

SOAK = os.environ.get("SOAK") == "1"
SEED = int(os.environ.get("SEED") or (secrets.randbelow(1 << 32) if SOAK else 1))
# The workers of this run, started from here, draw the same.
os.environ["SEED"] = str(SEED)


def rounds(fast: int, soak: int) -> int:
    """Return the number of repetitions: `fast` in every run, `soak` in `make soak`."""
    return soak if SOAK else fast


def drawn(name: str) -> random.Random:
    """Return a separate source of random numbers for a test, so that no other test affects it."""
    return random.Random(f"{SEED}/{name}")


def hypothesis_seed(name: str) -> int:
    """Return the seed of a Hypothesis test: the same in every run, or this run's in `make soak`."""
    return (drawn(name) if SOAK else random.Random(name)).getrandbits(64)
