"""`memory-service hook`: real processes, as Claude Code and Codex start them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from credentials import keys_in
from faults.scale import rounds
from memory_client import MemoryClient, OnContradiction, chat_message
from server_process import ServerProcess

PLUGIN = Path(__file__).parents[1] / "clients" / "claude-code-plugin"
EVENTS = ("session-start", "user-prompt", "stop", "session-end")
PATIENT = ("--timeout", "60")
"""For tests of what a hook does, on a machine that is busy with others."""


class Hooks:
    """Runs hooks against a server; none may fail or write to stderr."""

    def __init__(self, address: str, namespace: str, folder: Path) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MEMORY_SERVICE_")}
        self.environment = inherited | {
            "MEMORY_SERVICE_ADDRESS": address,
            "MEMORY_SERVICE_NAMESPACE": namespace,
            "MEMORY_SERVICE_HOOK_LOG": str(folder / "hook.log"),
        }
        self.folder = folder

    def command(self, event: str, *options: str) -> list[str]:
        return [sys.executable, "-m", "memory_service", "hook", event, *options]

    def run(self, event: str, given: Any, *options: str, **environment: str) -> dict[str, Any]:
        """Return what the hook prints for the agent; {}: nothing."""
        ended = subprocess.run(
            self.command(event, *options),
            input=given if isinstance(given, bytes) else json.dumps(given).encode(),
            capture_output=True,
            env=self.environment | environment,
            timeout=120,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        found: dict[str, Any] = json.loads(ended.stdout) if ended.stdout else {}
        return found

    def context(self, event: str, given: Mapping[str, Any], *options: str) -> str:
        """Return the text for the model; empty: none."""
        found = self.run(event, given, *PATIENT, *options)
        if not found:
            return ""
        assert set(found) == {"hookSpecificOutput"}
        names = {"session-start": "SessionStart", "user-prompt": "UserPromptSubmit"}
        assert found["hookSpecificOutput"]["hookEventName"] == names[event]
        text: str = found["hookSpecificOutput"]["additionalContext"]
        return text

    @property
    def log(self) -> list[str]:
        """The outcomes of the calls so far."""
        return (self.folder / "hook.log").read_text().splitlines()


@pytest.fixture
def hooks(server: ServerProcess, namespace: str, tmp_path: Path) -> Hooks:
    """The hooks of a namespace that no other test uses."""
    return Hooks(server.address, namespace, tmp_path)


@pytest.fixture
def memory(server: ServerProcess, namespace: str) -> Iterator[MemoryClient]:
    """A client of that namespace."""
    with MemoryClient(server.address, namespace=namespace) as client:
        yield client


class Transcript:
    """A transcript as Claude Code writes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "transcript.jsonl"

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Append an entry."""
        entry = {
            "type": role,
            "uuid": str(uuid.uuid4()),
            "timestamp": "2026-11-27T17:00:00.000Z",
            "message": {"role": role, "content": content},
            **more,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def turn(self, prompt: str, answer: str) -> None:
        """Append a prompt, a call of a tool and an answer."""
        self.add("user", prompt)
        self.add("assistant", [{"type": "thinking", "thinking": "Hm."}])
        self.add("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}])
        self.add("user", [{"type": "tool_result", "content": "user assistant secret listing"}])
        self.add("assistant", [{"type": "text", "text": answer}])

    def given(self, **more: Any) -> dict[str, Any]:
        """Return the JSON of a hook in session s1."""
        return {"session_id": "s1", "transcript_path": str(self.path), "cwd": "/", **more}


def recorded(memory: MemoryClient) -> list[tuple[str, str]]:
    return [(item.speaker, item.text) for item in memory.list_items(session_id="s1")]


def test_a_session_starts_with_the_facts_about_the_user(hooks: Hooks, memory: MemoryClient) -> None:
    given = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup"}
    assert hooks.context("session-start", given) == ""
    memory.save_memory("User prefers tabs over spaces", "preference", "They said so")
    for number in range(30):
        memory.save_memory(
            f"User knows person number {number}",
            "relationship",
            "They said so",
            on_contradiction=OnContradiction.KEEP_BOTH,
        )
    text = hooks.context("session-start", given)
    assert "User prefers tabs over spaces" in text and "not instructions" in text
    short = hooks.context("session-start", given, "--max-tokens", "100")
    assert 0 < len(short) < len(text) / 2


def test_a_prompt_is_answered_with_what_earlier_sessions_say(hooks: Hooks, memory: MemoryClient) -> None:
    memory.add(chat_message("user", "The staging database runs on host <b>pg-17</b>"), session_id="old")
    memory.add(chat_message("user", "The staging database is on host pg-18, said here"), session_id="s1")
    data = {"type": "entity", "name": "staging database"}
    memory.add(data, index="The staging database runs in the data centre of Oslo")
    memory.add({"staging database": "runs on host"}, session_id="old")
    memory.save_memory("User lives in Paris", "identity", "They said so")
    memory.save_memory("User lives in Rome", "identity", "They said so")
    prompt = "On which host does the staging database run?"
    text = hooks.context("user-prompt", {"session_id": "s1", "prompt": prompt})
    assert "&lt;b&gt;pg-17" in text and "not instructions" in text
    assert "pg-18" not in text and "centre of Oslo" in text
    assert not any(line.endswith("] ") for line in text.splitlines())
    # Facts that no longer hold are left out.
    text = hooks.context("user-prompt", {"session_id": "s1", "prompt": "Where does the user live?"})
    assert "lives in Rome" in text and "Paris" not in text
    for other in ("Write a haiku about tulips", "/clear", "", "   "):
        assert hooks.context("user-prompt", {"session_id": "s1", "prompt": other}) == ""
    assert "pg-18" in hooks.context("user-prompt", {"prompt": prompt})
    long = hooks.context("user-prompt", {"session_id": "s2", "prompt": prompt + " x" * 100_000})
    assert "pg-17" in long or long == ""


def test_a_conversation_is_recorded_once(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.turn("I always deploy on Fridays. Fix the login", "Fixed.")
    hooks.run("stop", transcript.given(last_assistant_message="Fixed."), *PATIENT)
    first = [("user", "I always deploy on Fridays. Fix the login"), ("assistant", "Fixed.")]
    assert recorded(memory) == first
    assert [fact.content for fact in memory.list_memories()] == ["User always deploys on Fridays"]
    revision = memory.retrieve(limit=1).revision
    for event in ("stop", "session-end"):
        hooks.run(event, transcript.given(last_assistant_message="Fixed."), *PATIENT)
    assert memory.retrieve(limit=1).revision == revision

    transcript.turn("Fix the login", "Fixed.")
    transcript.add("user", "<command-name>/cost</command-name>")
    transcript.add("user", "A summary", isCompactSummary=True)
    transcript.add("user", "A note of the agent", isMeta=True)
    transcript.add("assistant", [{"type": "text", "text": "A subagent"}], isSidechain=True)
    hooks.run("stop", transcript.given(), *PATIENT, "--no-extract")
    assert recorded(memory) == [*first, ("user", "Fix the login"), ("assistant", "Fixed.")]
    assert memory.retrieve(session_id="s1", limit=1)[0].item.create_time is not None


def test_messages_are_known_by_their_ids(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    """Also if the newest item of the session is not in the transcript."""
    transcript = Transcript(tmp_path)
    transcript.turn("Fix the login", "Fixed.")
    hooks.run("stop", transcript.given(), *PATIENT)
    memory.add("Something else", session_id="s1")
    transcript.turn("Fix the logout", "Fixed.")
    hooks.run("stop", transcript.given(), *PATIENT)
    texts = ["Fix the login", "Fixed.", "Something else", "Fix the logout", "Fixed."]
    assert [text for _, text in recorded(memory)] == texts


def test_concurrent_hooks_record_once(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for number in range(5):
        transcript.turn(f"Question {number}", f"Answer {number}")
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda event: hooks.run(event, transcript.given(), *PATIENT), ("stop", "session-end") * 2
            )
        )
    assert len(recorded(memory)) == 10


def test_the_last_message_counts_before_it_is_in_the_file(
    hooks: Hooks, memory: MemoryClient, tmp_path: Path
) -> None:
    transcript = Transcript(tmp_path)
    transcript.add("user", "Fix the login")
    hooks.run("stop", transcript.given(last_assistant_message="Done, the login works."), *PATIENT)
    transcript.add("assistant", [{"type": "text", "text": "Done, the login works."}])
    transcript.turn("Thanks. And the logout?", "Also done.")
    hooks.run("stop", transcript.given(last_assistant_message="Also done."), *PATIENT)
    assert [text for _, text in recorded(memory)] == [
        "Fix the login",
        "Done, the login works.",
        "Thanks. And the logout?",
        "Also done.",
    ]


def test_a_transcript_of_codex(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    def line(kind: str, **payload: Any) -> str:
        return json.dumps({"timestamp": "2026-11-27T17:00:00.000Z", "type": kind, "payload": payload}) + "\n"

    def message(role: str, kind: str, text: str) -> str:
        return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    path = tmp_path / "rollout.jsonl"
    path.write_text(
        line("session_meta", id="s1")
        + message("user", "input_text", "<environment_context>x</environment_context>")
        + message("developer", "input_text", "Be brief")
        + message("user", "input_text", "Fix the login")
        + line("event_msg", type="user_message", message="Fix the login")
        + message("assistant", "output_text", "Fixed.")
    )
    given = {
        "session_id": "s1",
        "turn_id": "1",
        "transcript_path": str(path),
        "last_assistant_message": "Fixed.",
    }
    hooks.run("stop", given, *PATIENT)
    assert recorded(memory) == [("user", "Fix the login"), ("assistant", "Fixed.")]
    # Without a transcript there is the last message.
    hooks.run(
        "stop", given | {"transcript_path": None, "turn_id": "2", "last_assistant_message": "Bye."}, *PATIENT
    )
    assert recorded(memory)[2:] == [("assistant", "Bye.")]


def test_a_huge_transcript_is_read_from_its_end(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    with transcript.path.open("wb") as file:
        file.truncate(2**34)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    transcript.turn("The newest question", "The newest answer")
    started = time.monotonic()
    hooks.run("stop", transcript.given(), *PATIENT)
    assert recorded(memory) == [("user", "The newest question"), ("assistant", "The newest answer")]
    assert time.monotonic() - started < 30


BAD_INPUTS: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"session_id": 5, "prompt": {"a": 1}, "transcript_path": ["x"], "last_assistant_message": 7}',
    b'{"session_id": "s1", "transcript_path": "/nowhere/t.jsonl"}',
    b'{"session_id": "s1", "transcript_path": "/"}',
    b'{"session_id": "s1", "transcript_path": "/dev/zero"}',
    b'{"session_id": "\\u0000\\ud800", "prompt": "\\ud800", "transcript_path": "\\u0000"}',
]


def test_bad_input_is_no_error(hooks: Hooks) -> None:
    for given in BAD_INPUTS:
        for event in EVENTS:
            assert hooks.run(event, given, *PATIENT) == {} or event == "session-start"


def test_wrong_settings_are_no_error(hooks: Hooks, tmp_path: Path) -> None:
    """Exit code 2 would block the user's prompt."""
    for option in (
        ["--timeout", "soon"],
        ["--max-tokens", "0"],
        ["--nonsense"],
        ["--api-key-file", str(tmp_path / "none")],
        ["--tls-key", "x"],
        ["--address", "300.1.2.3:1"],
        ["--address", ","],
        ["--namespace", "a//b"],
        ["--log", str(tmp_path / "none" / "log")],
    ):
        command = hooks.command("user-prompt", *option)
        given = b'{"prompt": "x"}'
        ended = subprocess.run(command, input=given, capture_output=True, env=hooks.environment, timeout=120)
        assert (ended.returncode, ended.stdout) == (0, b""), (option, ended)
    unknown = subprocess.run(hooks.command("pre-compact"), capture_output=True, env=hooks.environment)
    assert unknown.returncode == 0 and b"pre-compact" in unknown.stderr


def test_a_credential_is_sent_and_never_unencrypted_to_another_machine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    key = keys_in(data).token(roles=("read", "write"))
    with ServerProcess(data, flags=("--auth", "keys", "--embedder", "none")) as process:
        with MemoryClient(process.address, namespace="ada", api_key=key) as memory:
            memory.save_memory("User prefers tabs", "preference", "They said so")
        hooks = Hooks(process.address, "ada", tmp_path)
        assert hooks.run("session-start", {}, *PATIENT) == {}
        assert "UNAUTHENTICATED" in hooks.log[-1]
        assert hooks.run("session-start", {}, *PATIENT, MEMORY_SERVICE_API_KEY=key) != {}
        # Of several servers the first is down.
        both = f"127.0.0.1:1,{process.address}"
        found = hooks.run(
            "session-start", {}, *PATIENT, MEMORY_SERVICE_API_KEY=key, MEMORY_SERVICE_ADDRESS=both
        )
        assert "User prefers tabs" in json.dumps(found)
        away = {"MEMORY_SERVICE_API_KEY": key, "MEMORY_SERVICE_ADDRESS": "192.0.2.1:50051"}
        assert hooks.run("session-start", {}, **away) == {}
        assert "Refused" in hooks.log[-1] or "out of time" in hooks.log[-1]
    assert key not in "".join(hooks.log)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listening:
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in accepted:
            each.close()


def seconds_of(log: list[str]) -> list[float]:
    return [float(line.split()[2].removesuffix("s")) for line in log]


def test_a_server_that_is_slow_or_down_costs_a_second(
    silent_server: str, hooks: Hooks, tmp_path: Path
) -> None:
    transcript = Transcript(tmp_path)
    transcript.turn("A question", "An answer")
    for address in (silent_server, "127.0.0.1:1"):
        for event in EVENTS:
            given = transcript.given(prompt="What is it?")
            assert hooks.run(event, given, MEMORY_SERVICE_ADDRESS=address) == {}
    assert all("gave up" in line for line in hooks.log)
    # A busy machine may take longer to start Python; then the hook ends right after.
    assert sorted(seconds_of(hooks.log))[len(hooks.log) // 2] < 1.5
    # So does an agent that does not close stdin.
    with subprocess.Popen(
        hooks.command("stop"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=hooks.environment
    ) as process:
        assert process.wait(60) == 0
    assert "out of time" in hooks.log[-1]


def test_many_hooks_beside_a_working_agent(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    """None fails, and the median of their times is shown; the aim is 300 ms on an idle machine."""
    memory.save_memory("User prefers tabs over spaces", "preference", "They said so")
    transcript = Transcript(tmp_path)
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.wait(0.05):
            number += 1
            memory.add(chat_message("user", f"I am working on part {number}"), session_id="s2")
            memory.retrieve("What is being worked on?", limit=5)

    agent = threading.Thread(target=work)
    agent.start()
    try:
        for number in range(rounds(6, 250)):
            transcript.turn(f"Question {number}", f"Answer {number}")
            for event in EVENTS:
                hooks.run(event, transcript.given(prompt=f"Question {number}?"))
        hooks.run("stop", transcript.given(), *PATIENT)
    finally:
        stop.set()
        agent.join()
    assert [text for _, text in recorded(memory)][-2:] == [f"Question {number}", f"Answer {number}"]
    assert not any("Error" in line or "INTERNAL" in line for line in hooks.log)
    times = sorted(seconds_of(hooks.log))
    print(f"median of {len(times)} hooks: {times[len(times) // 2]:.3f} s, slowest {times[-1]:.3f} s")


def test_the_plugin_runs_these_commands(hooks: Hooks, memory: MemoryClient, tmp_path: Path) -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == "memory-service"
    servers = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]
    assert servers == {"memory": {"command": "memory-service", "args": ["mcp"]}}
    registered = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    assert list(registered) == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    memory.save_memory("User prefers tabs over spaces", "preference", "They said so")
    programs = tmp_path / "bin"
    programs.mkdir()
    shell = shutil.which("sh")
    assert shell is not None
    (programs / "memory-service").write_text(
        f'#!{shell}\nexec {sys.executable} -m memory_service "$@" --timeout 60\n'
    )
    (programs / "memory-service").chmod(0o755)
    for path in (str(programs), "/nowhere"):
        for event, groups in registered.items():
            ended = subprocess.run(
                [shell, "-c", groups[0]["hooks"][0]["command"]],
                input=b'{"session_id": "s1", "prompt": "x"}',
                capture_output=True,
                env=hooks.environment | {"PATH": path},
                timeout=120,
            )
            assert (ended.returncode, ended.stderr) == (0, b"")
            assert (b"tabs" in ended.stdout) == (event == "SessionStart" and path != "/nowhere")
