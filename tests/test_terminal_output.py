"""Output of the command line never controls the terminal, whatever others stored."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import memory_service.cli
from memory_client import MemoryClient, MemorySource, Provenance, chat_message
from memory_service.cli import main, output
from memory_service.domain.search_text import leaves
from server_process import ServerProcess
from test_cli import commands

# A title, a bell, colours by ESC and by C1, steps back, reversed and isolated text, hidden characters.
HOSTILE = (
    "A\x1b]0;owned\x07\x1b[31m\x9b31m\x7f\b\x00\v\r\u202e\u2066\u200e\u200f\u061c\u200b\ufeff\U000e0041Z"
)
HARMLESS = "naïve 日本 👩\u200d💻\r\n\tمرحبا \u0600"
TYPED = HOSTILE.replace("\0", "")
"""A valid argument of a command or name of a session: these have no zero bytes."""
ID = "".join(c for c in HOSTILE if unicodedata.category(c) != "Cc")
"""A valid id: the server accepts no control characters in ids."""

_CLI = Path(memory_service.cli.__file__).parent
_WHY = "It is worth remembering"
_FILE = str(Path(__file__).parents[1] / "LICENSE")
_OPERATIONS = str(Path(__file__).parent / "data" / "hostile-operations.jsonl")
# Run commands one after another, so that Python starts once, and print a line before each.
_DRIVER = """
import json, sys
from memory_service.cli import main
for number, arguments in enumerate(json.loads(sys.stdin.buffer.read())):
    for stream in (sys.stdout, sys.stderr):
        print(f"<<{number}>>", file=stream, flush=True)
    try:
        main(arguments, prog_name="memory-service")
    except SystemExit as end:
        print(f"<<ended {end.code}>>", flush=True)
"""


def commanding(text: str) -> list[str]:
    """Return the characters of a text that a terminal obeys or hides."""
    bare = text.replace("\r\n", "\n")
    return sorted({c for c in bare if output.visible(c) != c})


class Terminal:
    """A pseudo-terminal and its output."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        modes = termios.tcgetattr(self.theirs)
        modes[1] &= ~termios.OPOST  # Keep the output raw: the terminal turns "\n" into "\r\n".
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.theirs, termios.TCSANOW, modes)
        self._raw = b""

    def read(self, *, until: str = "") -> str:
        """Return the output once it has this text, or once every process has closed the terminal."""
        with contextlib.suppress(OSError):  # EIO: closed on the other side.
            while not until or until not in self.text:
                chunk = os.read(self._ours, 65536)
                if not chunk:
                    break
                self._raw += chunk
        return self.text

    @property
    def text(self) -> str:
        return self._raw.decode(errors="surrogateescape")

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def close(self) -> None:
        os.close(self._ours)


def on_terminal(environment: dict[str, str], *arguments: Sequence[str]) -> list[str]:
    """Run commands with a terminal as stdout and stderr, and return the output of each."""
    terminal = Terminal()
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=terminal.theirs,
        stderr=terminal.theirs,
    ) as process:
        os.close(terminal.theirs)
        assert process.stdin is not None
        process.stdin.write(json.dumps([list(each) for each in arguments]).encode())
        process.stdin.close()
        text = terminal.read()
    terminal.close()
    assert "Traceback" not in text, text
    found = re.split(r"<<\d+>>\n<<\d+>>\n", text)[1:]
    assert len(found) == len(arguments), text
    return found


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def audited(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with an audit log, and a policy with a reason as hostile as the texts."""
    rules = tmp_path_factory.mktemp("rules") / "rules.json"
    rule = {"contains": ["xyloquestioned"], "reason": TYPED}
    refused = {"contains": ["xyloforbidden"], "reason": TYPED}
    rules.write_text(
        json.dumps({"rules": [{"action": "quarantine", **rule}, {"action": "reject", **refused}]})
    )
    flags = ["--audit", "--audit-reads", "--write-policy-file", str(rules)]
    with ServerProcess(data_dir, flags=flags) as process:
        yield process


@pytest.fixture(scope="module")
def environment(audited: ServerProcess, data_dir: Path) -> dict[str, str]:
    """Settings for commands in a namespace where everything is hostile."""
    with MemoryClient(audited.address, namespace="hostile") as client:
        _fill(client)
    return {
        "MEMORY_SERVICE_ADDRESS": audited.address,
        "MEMORY_SERVICE_NAMESPACE": "hostile",
        "MEMORY_SERVICE_DATA_DIR": str(data_dir),
        "COLUMNS": "2000",
    }


def _fill(client: MemoryClient) -> None:
    said = {"labels": {ID: TYPED}, "metadata": {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}}
    whence = Provenance(source="web", source_uri=ID, model=ID)
    client.add(chat_message("user", HOSTILE, name=ID), id=ID, session_id=TYPED, provenance=whence, **said)
    client.save_state(ID, HOSTILE, description=TYPED)
    client.update(ID, importance=1)
    client.save_state(ID, HOSTILE, description=TYPED)
    client.write_file(f"/{ID}/{ID}", f"{HOSTILE} before")
    client.add(HOSTILE, id="removed")
    client.add("x", id="labelled", labels={ID: TYPED})
    client.add(f"xyloquestioned {HOSTILE}", id=f"q{ID}", provenance=whence)
    client.save_state("object", {HOSTILE: [HOSTILE]})
    client.update_session(TYPED, title=HOSTILE, **said)
    client.write_file(f"/{ID}/{ID}", HOSTILE)
    client.add_document(HOSTILE, id=f"book{ID}", title=HOSTILE, source=HOSTILE, session_id=TYPED, **said)
    source = MemorySource(session_id=TYPED, quote=HOSTILE, actor=ID)
    client.save_memory(f"User likes {HOSTILE}", "preference", _WHY + HOSTILE, source=source, **said)


SHOWN: dict[str, list[str]] = {
    "add": ["--id", f"new{ID}", "x"],
    "retrieve": ["--context-window", "1", "--explain", "A"],
    "list": [],
    "get": [ID],
    "labels": [ID],
    "versions": [ID],
    "redact": [ID, "1", "--yes"],
    "delete": ["removed"],
    "write": [_OPERATIONS],
    "state save": [f"new{ID}", "1"],
    "state load": [ID],
    "state list": [],
    "state search": ["*"],
    "state versions": [ID],
    "state redact": [ID, "2", "--yes"],
    "state rename": [f"new{ID}", f"renamed{ID}"],
    "state delete": [f"renamed{ID}"],
    "sessions list": [],
    "sessions get": [TYPED],
    "sessions update": [TYPED, "--title", TYPED],
    "sessions fork": [TYPED, "--new-session-id", f"fork{TYPED}"],
    "sessions delete": [f"fork{TYPED}", "--yes"],
    "files write": [f"/new{ID}", _FILE],
    "files read": [f"/{ID}/{ID}"],
    "files edit": [f"/new{ID}", "--append", TYPED],
    "files versions": [f"/{ID}/{ID}"],
    "files redact": [f"/{ID}/{ID}", "5", "--yes"],
    "files list": [],
    "files search": ["A"],
    "files rename": [f"/new{ID}", f"/renamed{ID}"],
    "files delete": [f"/renamed{ID}"],
    "memories save": ["User owns a heron", "--category", "identity", "--reasoning", _WHY + TYPED],
    "memories search": ["A"],
    "memories list": [],
    "memories preload": [],
    "memories extract": ["--session", TYPED, "--dry-run"],
    "memories export": [],
    "documents add": [_FILE, "--id", f"another{ID}", "--title", TYPED],
    "documents list": [],
    "documents get": [f"book{ID}"],
    "documents search": ["A"],
    "documents delete": [f"another{ID}"],
    "export": [],
    "namespaces": [],
    "stats": [],
    "settings": ["--time-zone", "Europe/Berlin"],
    "health": [],
    "undo": ["--any-writer", "--since", "1h", "--dry-run"],
    "quarantine list": [],
    "reembed": [],
    "backup write": ["copy"],
    "audit show": [],
    "keys create": ["ada", "--namespace", "*", "--role", "read"],
    "keys list": [],
}
"""Commands that print stored data or their arguments, with arguments that make them print a lot."""
WITHOUT_STORED = {
    *(
        "serve",
        "flush",
        "reset",
        "delete-where",
        "state clear",
        "import",
        "memories delete",
        "quarantine release",
    ),
    *("quarantine delete", "backup verify", "restore", "rekey", "audit verify", "keys revoke", "keys rotate"),
    "migrate",
}
"""Commands that print numbers, and names that other callers cannot choose."""
TOLD_IN_JSON = [
    *("retrieve", "list", "get", "state load", "state list", "state search", "memories search"),
    *("memories list", "memories preload", "documents list", "documents get", "documents search"),
    *("quarantine list", "audit show", "labels", "versions", "state versions", "sessions list"),
    *("sessions get", "files list", "files read", "files search", "files versions"),
]
PRINTED_ALONE = {"watch"}


def test_every_command_is_looked_at() -> None:
    assert {name for name, _ in commands(main)} == {*SHOWN, *WITHOUT_STORED, *PRINTED_ALONE}


def test_no_command_prints_a_command_of_the_terminal(environment: dict[str, str]) -> None:
    """Each command as text and as JSON, in one terminal."""
    runs = [[*name.split(), *arguments] for name, arguments in SHOWN.items()]
    texts = dict(zip(SHOWN, on_terminal(environment, *runs), strict=True))
    assert {name: commanding(text) for name, text in texts.items() if commanding(text)} == {}
    assert {name: text for name, text in texts.items() if "<<ended 0>>" not in text} == {}
    # The stored text is visible, as distinct from its effect.
    for name in ("get", "state load", "documents get", "files read", "memories preload", "export"):
        assert "\\u001b]0;owned\\u0007" in texts[name], name
        assert "\\u202e\\u2066" in texts[name], name


def test_json_commands_nothing_and_means_the_same(environment: dict[str, str]) -> None:
    runs = [[*name.split(), *SHOWN[name], "--json"] for name in TOLD_IN_JSON]
    for name, text in zip(TOLD_IN_JSON, on_terminal(environment, *runs), strict=True):
        assert commanding(text) == [], name
        values = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        assert any(
            ID in leaf or TYPED in leaf or HOSTILE in leaf for value in values for leaf in leaves(value)
        ), name


def test_errors_command_nothing(environment: dict[str, str]) -> None:
    """Errors of the server, click's errors about arguments, and names of files."""
    runs = [
        ["add", "xyloforbidden"],
        ["get", f"missing{TYPED}"],
        ["backup", "verify", f"/nowhere/{TYPED}"],
        ["audit", "show", "--data-dir", f"/nowhere/{TYPED}"],
        ["get", "one", TYPED],
        ["list", f"--{TYPED}"],
        ["list", "--limit", TYPED],
        [TYPED],
        ["list", "--api-key-file", f"/nowhere/{TYPED}"],
        ["list", "--filter", TYPED],
        ["import", f"/nowhere/{TYPED}"],
        ["add", "xyloquestioned", "--id", f"again{ID}"],
    ]
    for arguments, text in zip(runs, on_terminal(environment, *runs), strict=True):
        assert commanding(text) == [], arguments
        assert re.search("(?i)error: |note: ", text), (arguments, text)


def test_watch_commands_nothing_until_it_is_interrupted(environment: dict[str, str]) -> None:
    terminal = Terminal()
    # Ctrl-C reaches processes that have the terminal as their controlling terminal. `preexec_fn`, which
    # could set it, forks, and gRPC's fork handlers may wait for ever.
    # A shell that runs the tests in the background has them, and so the command, ignore Ctrl-C.
    prefix = ["setsid", "--ctty", "env", "--default-signal=INT"]
    command = [*prefix, sys.executable, "-m", "memory_service", "watch", "--after-revision", "0"]
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=terminal.theirs,
        stdout=terminal.theirs,
        stderr=terminal.theirs,
    ) as process:
        os.close(terminal.theirs)
        terminal.read(until="heron")
        terminal.type(b"\x03")
        text = terminal.read()
        assert process.wait(30) == 0
    terminal.close()
    assert commanding(text) == []
    assert "owned" in text


def piped(environment: dict[str, str], *arguments: str) -> bytes:
    command = [sys.executable, "-m", "memory_service", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True).stdout


def test_a_pipe_gets_the_text_as_it_is_stored(environment: dict[str, str]) -> None:
    assert piped(environment, "documents", "get", f"book{ID}") == HOSTILE.encode()
    assert piped(environment, "state", "load", ID) == f"{HOSTILE}\n".encode()
    assert TYPED.encode() in piped(environment, "get", ID)


def test_what_is_harmless_is_left_alone() -> None:
    assert output.visible(HARMLESS) == HARMLESS
    assert output.visible("a\rb") == "a\\u000db"
    assert json.loads(output.json_text({HOSTILE: HARMLESS})) == {HOSTILE: HARMLESS}


def test_what_is_escaped_is_what_unicode_calls_format_and_control() -> None:
    """All of them, except visible ones: signs before Arabic numbers and hieroglyphic marks."""
    escaped = {c for c in map(chr, range(sys.maxunicode + 1)) if output.visible(c) != c}
    commands = {
        c
        for c in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t\u200c\u200d"
    }
    seen = re.compile(r"ARABIC|SYRIAC|KAITHI|EGYPTIAN")
    left_alone = {c for c in commands - escaped if not seen.match(unicodedata.name(c, ""))}
    assert left_alone == set()
    assert {unicodedata.category(c) for c in escaped - commands} <= {"Cn"}


_WAYS_OUT = {
    "print",
    *(f"click.{name}" for name in ("echo", "secho", "confirm", "prompt", "echo_via_pager", "progressbar")),
    *("click.get_text_stream", "click.get_binary_stream", "sys.stdout", "sys.stderr", "os.write"),
    *("sys.__stdout__", "sys.__stderr__", "tqdm", "rich"),
}


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (origin + alias.name for alias in node.names)
            yield (origin or f"{node.names[0].name}.").split(".")[0]


@pytest.mark.parametrize("path", sorted(_CLI.glob("*.py")), ids=lambda path: path.stem)
def test_only_one_file_prints(path: Path) -> None:
    used = set(_names(ast.parse(path.read_text()))) & _WAYS_OUT
    assert (used == set()) != (path.stem == "output"), used


@pytest.mark.parametrize(
    "way", ["print('x')", "click.echo('x')", "from tqdm import tqdm", "sys.stdout.write('x')"]
)
def test_a_way_out_is_seen(way: str) -> None:
    assert set(_names(ast.parse(way))) & _WAYS_OUT
