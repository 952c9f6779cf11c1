import subprocess
import sys
from pathlib import Path

SAYS = "from faults.scale import SEED, drawn; print(SEED, drawn('a').random(), drawn('b').random())"


def says(seed: str) -> str:
    run = [sys.executable, "-c", SAYS]
    folder = Path(__file__).parents[1]
    return subprocess.run(
        run, cwd=folder, env={"SEED": seed}, check=True, capture_output=True, text=True
    ).stdout


def test_a_seed_gives_the_same_numbers_again() -> None:
    assert says("7") == says("7")
    assert says("7") != says("8")
