"""docs/tutorial.md: the agent is as short as its title says, and its model's input is that of the page."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from scripted_openai import Reply, ScriptedOpenAI
from server_process import ServerProcess
from toolchain import ROOT, run

PAGE = (ROOT / "docs" / "tutorial.md").read_text()


def block(language: str) -> str:
    """Return the only block of the page in a language, without indentation."""
    (found,) = re.findall(rf"^ *```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return re.sub(r"^   (?=[<\-\w])", "", found, flags=re.MULTILINE) if language == "text" else found


def run_agent(server: ServerProcess, provider: ScriptedOpenAI, folder: Path) -> str:
    """Run the page's program and return what it printed."""
    (folder / "agent.py").write_text(block("python").replace("127.0.0.1:50051", server.address))
    environment = {**os.environ, **provider.environment()}
    return run([sys.executable, "agent.py"], folder, timeout_s=60, env=environment)


def test_the_agent_has_twenty_lines() -> None:
    assert len([line for line in block("python").splitlines() if line.strip()]) <= 20


def test_the_agent_recalls_on_friday_what_it_learned_on_monday(tmp_path: Path) -> None:
    with ScriptedOpenAI() as provider, ServerProcess(tmp_path / "data") as server:
        provider.answer_in_order([Reply("Noted."), Reply("Take an apple.")])
        assert run_agent(server, provider, tmp_path) == "Noted.\nTake an apple.\n"
        monday, friday = provider.requests
    assert "<recalled_memories>" not in monday.system
    assert block("text") in friday.system
    assert "- Ada: I'm allergic to peanuts. I moved to Lisbon in May." in friday.system
    assert [message["role"] for message in friday.body["messages"]] == ["system", "user"]


def test_the_agent_continues_a_conversation_after_a_restart(tmp_path: Path) -> None:
    with ScriptedOpenAI() as provider, ServerProcess(tmp_path / "data") as server:
        provider.answer_in_order([Reply(text) for text in ("Noted.", "An apple.", "Yes.", "A pear.")])
        run_agent(server, provider, tmp_path)
        run_agent(server, provider, tmp_path)
        again = provider.requests[3].body["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == "An apple."
