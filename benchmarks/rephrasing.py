"""How many sentences the rules rephrase correctly in the third person: `python -m benchmarks.rephrasing`.

The sentences are in `tests/data/rephrasing.json`. The held-out ones were written after the rules.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from memory_service.deciders.rules.rephrasing import third_person

SENTENCES = Path(__file__).resolve().parents[1] / "tests" / "data" / "rephrasing.json"
SHARE_MIN = 0.9
"""The bar."""


class Case(msgspec.Struct, frozen=True):
    """A sentence and its correct rephrasings."""

    said: str
    expected: list[str]
    held_out: bool = False

    @property
    def got(self) -> str:
        """The result of the rules."""
        return third_person(self.said)

    @property
    def right(self) -> bool:
        """Whether the result is one of the expected ones."""
        return self.got in self.expected


def cases() -> list[Case]:
    """Read the sentences."""
    return msgspec.json.decode(SENTENCES.read_bytes(), type=list[Case])


def share_right(some: list[Case]) -> float:
    """Return the share of sentences that are rephrased correctly."""
    return sum(case.right for case in some) / len(some)


def main() -> None:
    """Print the shares, then the errors."""
    everything = cases()
    held_out = [case for case in everything if case.held_out]
    for name, some in (("all", everything), ("held out", held_out)):
        share = share_right(some)
        verdict = "yes" if share >= SHARE_MIN else "NO"
        print(f"{name:9} {share:7.1%} of {len(some):3}   bar {SHARE_MIN:.0%}: {verdict}")
    for case in everything:
        if not case.right:
            print(f"\nsaid      {case.said}\nexpected  {case.expected[0]}\ngot       {case.got}")


if __name__ == "__main__":
    main()
