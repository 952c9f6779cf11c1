"""The Python client as a new user installs it: into an empty environment, beside older packages.

These tests install packages from pip's configured registry.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server_process import ServerProcess

CLIENT = Path(__file__).parents[1] / "clients" / "python"
OLDEST = ("grpcio==1.71.2", "protobuf==5.29.*")


def run(*command: str | Path, folder: Path) -> str:
    """Run a program that must succeed; return its output."""
    ended = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False, timeout=150
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the client and the oldest packages that it supports."""
    folder = tmp_path_factory.mktemp("newcomer")
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    # A wheel, as a registry would deliver it: a file that is missing from it is missing here. It is built
    # from a copy, because the build leaves files beside the sources.
    shutil.copytree(CLIENT, folder / "client", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    build = (python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps")
    run(*build, folder / "client", "--wheel-dir", folder, folder=folder)
    (wheel,) = folder.glob("memory_client-*.whl")
    install = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*install, wheel, *OLDEST, folder=folder)
    return python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project, outside the checkout."""
    return tmp_path


def test_the_first_example_of_the_readme_runs_there(
    python: Path, project: Path, server: ServerProcess, namespace: str
) -> None:
    example = re.findall(r"```python\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)[0]
    assert "127.0.0.1:50051" in example and '"ada"' in example
    code = example.replace("127.0.0.1:50051", server.address).replace('"ada"', repr(namespace))
    (project / "main.py").write_text(code)
    # Warnings are errors, so that deprecation warnings of other packages are noticed.
    assert run(python, "-W", "error", "main.py", folder=project) == "Ada likes tea\n"


def test_errors_and_the_asynchronous_client_work_there(
    python: Path, project: Path, server: ServerProcess, namespace: str
) -> None:
    code = f"""
import asyncio
from memory_client import AsyncMemoryClient, InvalidArgument, NotFound, chat_message
import grpc, google.protobuf

async def main():
    async with AsyncMemoryClient({server.address!r}, namespace={namespace!r}) as memory:
        added = await memory.batch_add(["a", chat_message("user", "b")])
        print([item.text async for item in memory.list_items(page_size=1)])
        try:
            await memory.get("none")
        except NotFound as error:
            print(error.reason, dict(error.metadata)["id"])
        try:
            await memory.add("x", id="\\n")
        except InvalidArgument as error:
            print(error.field)
        print(await memory.health())

asyncio.run(main())
print(grpc.__version__, google.protobuf.__version__.rsplit(".", 1)[0])
"""
    (project / "main.py").write_text(code)
    printed = run(python, "-W", "error", "main.py", folder=project).splitlines()
    assert printed == ["['a', 'b']", "ITEM_NOT_FOUND none", "item.id", "serving", "1.71.2 5.29"]


def test_nothing_else_is_installed_and_the_types_come_along(python: Path, project: Path) -> None:
    listed = run(python, "-m", "pip", "list", "--format", "freeze", folder=project)
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert names - {"pip", "setuptools"} == {"grpcio", "memory-client", "protobuf"}
    where = "import memory_client, pathlib; print(pathlib.Path(memory_client.__file__).parent)"
    package = Path(run(python, "-c", where, folder=project).strip())
    assert python.parents[1] in package.parents
    assert (package / "py.typed").exists()
    assert not list(package.glob("*sync.py"))
