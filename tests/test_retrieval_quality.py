"""The retrieval benchmark reads LoCoMo's format, queries a real server and counts evidence correctly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolchain import ROOT

SAID = [
    ("Ada", "I adopted a greyhound called Comet"),
    ("Ben", "Congratulations! What does the vet say?"),
    ("Ada", "The violin lessons cost forty euros"),
    ("Ben", "My sister sails to Madeira"),
]


def conversation() -> dict[str, Any]:
    """Return a conversation of one session.

    Of the evidence for the cost of the lessons, one turn has none of the question's words, and one does not
    exist.
    """
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{number}", "text": text}
        for number, (speaker, text) in enumerate(SAID, 1)
    ]
    asked = [
        {"question": "What is the greyhound called?", "category": 4, "evidence": ["D1:1"]},
        {"question": "Where does the sister sail?", "category": 5, "evidence": ["D1:4"]},
        {"question": "What do the violin lessons cost?", "category": 1, "evidence": ["D1:3", "D1:4; D1:99"]},
        {"question": "Is there evidence?", "category": 1, "evidence": []},
    ]
    session = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    return {"sample_id": "conv-1", "conversation": session, "qa": asked}


def test_constants_are_chosen_with_each_conversation_left_out(tmp_path: Path) -> None:
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([conversation(), {**conversation(), "sample_id": "conv-2"}]))
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.retrieval_tuning", data],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line for line in lines if "chosen on the others" in line] == [
        f"{name}, chosen on the others: the code's" for name in ("conv-1", "conv-2")
    ]
    # The code's constants find all evidence: no others can be better.
    assert "  the code's                            all @5 1.0000 @10 1.0000; adversarial" in run.stdout
    assert "  which is: the code's" in lines


def test_evidence_recall_by_category(tmp_path: Path) -> None:
    data, figures, misses = tmp_path / "locomo.json", tmp_path / "figures.json", tmp_path / "misses.jsonl"
    data.write_text(json.dumps([conversation()]))
    command = [sys.executable, "-m", "benchmarks.retrieval_quality", data, "--models", "local"]
    run = subprocess.run(
        [*command, "--json", figures, "--misses", misses],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    recall = json.loads(figures.read_text())["models"]["local"]["recall"]
    assert set(recall) == {
        "server, default", "server, LEXICAL", "server, VECTOR", "dense alone", "BM25 alone"
    }  # fmt: skip
    by_group = recall["server, default"]
    assert set(by_group) == {"all", "1-4", "multi-hop", "single-hop", "adversarial"}
    assert all(depths == {"5": 1.0, "10": 1.0, "20": 1.0} for depths in by_group.values())
    # BM25 finds turns that share a word with the question: for one question of three only one of two turns.
    assert recall["BM25 alone"]["multi-hop"]["5"] == 0.5
    assert recall["BM25 alone"]["all"]["5"] == pytest.approx(5 / 6)
    assert misses.read_text() == ""
    assert "recall@10" in run.stdout
