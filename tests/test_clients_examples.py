"""The examples of the page of all clients: compiled and run."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

import certificates
from memory_client import MemoryClient
from server_process import ServerProcess
from toolchain import ROOT, leave_out, run, tool

CLIENTS = ROOT / "clients"
PAGE = (CLIENTS / "README.md").read_text()


STRICT = [
    *("--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
    *("--module", "NodeNext", "--target", "ES2022", "--skipLibCheck", "--types", "node"),
]


def examples(page: str, language: str) -> list[str]:
    """The examples of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def example(page: str, language: str) -> str:
    """The first example of a page in a language, which all languages have."""
    return examples(page, language)[0]


def moved(program: str, server: ServerProcess, namespace: str) -> str:
    """An example that goes to another server and namespace."""
    assert "127.0.0.1:50051" in program and '"ada"' in program
    return program.replace("127.0.0.1:50051", server.address).replace('"ada"', f'"{namespace}"')


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project in TypeScript that has the package of this repository."""
    client = CLIENTS / "typescript"
    if not (client / "node_modules").is_dir():
        leave_out("the packages of the TypeScript client are not installed: run make test")
    folder = tmp_path_factory.mktemp("project")
    installed = folder / "node_modules" / "@memory-service" / "client"
    run([tool("node"), tsc(client), "--outDir", str(installed / "dist")], client, timeout_s=240)
    shutil.copy(client / "package.json", installed)
    (installed / "node_modules").symlink_to(client / "node_modules")
    for package in ("@types", "typescript"):
        (folder / "node_modules" / package).symlink_to(client / "node_modules" / package)
    return folder


def tsc(folder: Path) -> str:
    """TypeScript's compiler, as a program for Node."""
    return str(folder / "node_modules" / "typescript" / "bin" / "tsc")


def run_typescript(program: str, project: Path) -> str:
    """Compiles an example in strict mode and runs it."""
    (project / "example.mts").write_text(program)
    run([tool("node"), tsc(project), *STRICT, "example.mts"], project, timeout_s=240)
    return run([tool("node"), "example.mjs"], project, timeout_s=60)


TYPESCRIPT_README = (CLIENTS / "typescript" / "README.md").read_text()
# For a call in an example of the README, a part of what the example prints.
PRINTED = {
    "toolCall(": "trains ",
    "batchWrite": "[ 2, 3, 4 ]\n1\n",
    "explain: true": "Ada likes tea",
    "editFile": "# Trip\n- two tickets\n\ntrip 1\n[ [ ",
    "loadState": "{ step: 2 }\n",
    "saveMemory": "superseded User lives in Paris\n",
    "handleMessage": "saved I have saved that information.\n",
    "memory.watch(": "1 item_added ",
    "NotFoundError": "ITEM_NOT_FOUND",
    "AbortSignal": "1\n",
}


def title(program: str) -> str:
    """The first call of an example after its imports."""
    found = re.search(r"memory\.(\w+)\(", program) or re.search(r"using (\w+)", program)
    return found[1] if found else "example"


@pytest.fixture(scope="module")
def compiled(project: Path) -> Path:
    """The project with all examples of the README, compiled in strict mode."""
    for index, program in enumerate(examples(TYPESCRIPT_README, "ts")):
        (project / f"readme-{index}.mts").write_text(program)
    files = sorted(path.name for path in project.glob("readme-*.mts"))
    run([tool("node"), tsc(project), *STRICT, *files], project, timeout_s=240)
    return project


@pytest.mark.parametrize(
    ("index", "program"),
    [pytest.param(*each, id=title(each[1])) for each in enumerate(examples(TYPESCRIPT_README, "ts"))],
)
def test_an_example_of_the_readme_in_typescript_runs_by_itself(
    server: ServerProcess, namespace: str, compiled: Path, index: int, program: str
) -> None:
    with MemoryClient(server.address, namespace=namespace) as memory:
        if "saveMemory" in program:
            memory.save_memory("User lives in London", "identity", "Where the user lives")
        elif "toolCall(" not in program and "memory.add" not in program:
            memory.add("Ada likes tea", labels={"topic": "drinks"}, session_id="trip")
    (compiled / "numbers.txt").write_text("three\nfour\n")
    (compiled / "ca.pem").write_bytes(certificates.Authority("a").certificate)
    code = (compiled / f"readme-{index}.mjs").read_text()
    if "memory.watch(" in program:
        # It follows the namespace until it is stopped.
        code = re.sub(r"(console\.log\(change\..*?\);)", r"\1 break;", code)
    code = code.replace("127.0.0.1:50051", server.address).replace('"ada"', f'"{namespace}"')
    (compiled / "one.mjs").write_text(code)
    printed = run([tool("node"), "one.mjs"], compiled, timeout_s=60)
    for call, part in PRINTED.items():
        assert part in printed or call not in program


def run_go(program: str, folder: Path) -> str:
    """Runs an example with the module of this repository."""
    (folder / "main.go").write_text(program)
    return run([tool("go"), "run", str(folder / "main.go")], CLIENTS / "go", timeout_s=500)


PYTHON = list(zip(examples(PAGE, "python"), examples(PAGE, "text"), strict=True))


@pytest.mark.parametrize(("program", "printed"), PYTHON, ids=["both", "more"])
def test_an_example_in_python_prints_what_the_page_says(
    server: ServerProcess, namespace: str, tmp_path: Path, program: str, printed: str
) -> None:
    program = moved(program, server, namespace)
    assert run([sys.executable, "-c", program], tmp_path, timeout_s=60) == printed


def test_the_example_in_typescript_prints_what_the_page_says(
    server: ServerProcess, namespace: str, project: Path
) -> None:
    program = moved(example(PAGE, "ts"), server, namespace)
    assert run_typescript(program, project) == example(PAGE, "text")


def test_the_example_in_go_prints_what_the_page_says(
    server: ServerProcess, namespace: str, tmp_path: Path
) -> None:
    program = moved(example(PAGE, "go"), server, namespace)
    assert run_go(program, tmp_path) == example(PAGE, "text")
