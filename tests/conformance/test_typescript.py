"""The adapters of the TypeScript client, under Node's test runner."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from repositories import ROOT
from toolchain import leave_out, run, tool

FOLDER = ROOT / "clients" / "typescript" / "conformance"


@pytest.mark.timeout(400)
def test_its_adapters_pass_their_tests(tmp_path: Path) -> None:
    npm = tool("npm")
    if not (FOLDER / "node_modules").is_dir() or not (FOLDER.parent / "node_modules").is_dir():
        leave_out("the packages of the TypeScript client are not installed: run make conformance")
    command = tmp_path / "memory-service"
    python = os.environ.get("SERVER_PYTHON", sys.executable)
    path = f"{ROOT}:{ROOT / 'clients' / 'python'}"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{python}" -m memory_service "$@"\n')
    command.chmod(0o755)
    run([npm, "test"], FOLDER, timeout_s=390, env={"MEMORY_SERVICE_COMMAND": str(command)})
