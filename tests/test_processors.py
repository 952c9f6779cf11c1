"""Compiled code runs on processors older than this one; if a part does not, `serve` says so."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from pathlib import Path

import hnswlib  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from grpc_api import SMALL_GRAPHS, Connect, eventually
from memory_service.indexes.inner_products import inner_products
from server_process import ServerProcess
from toolchain import ROOT, run, tool

OLDEST = "Nehalem-v1"
"""A processor with exactly x86-64-v2, which the wheels of numpy require."""
SERVE = ("-m", "memory_service", "serve")

only_x86_64 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="this processor has no older ones that differ in what matters here"
)


def on(cpu: str) -> tuple[str, ...]:
    """Return a command that runs this Python on an emulated processor."""
    return tool("qemu-x86_64"), "-cpu", cpu, sys.executable


@only_x86_64
def test_a_server_runs_on_the_oldest_processor(tmp_path: Path, connect: Connect) -> None:
    server = ServerProcess(tmp_path / "data", env=SMALL_GRAPHS, command=(*on(OLDEST), *SERVE))
    server.start(timeout_s=300)
    try:
        api = connect(server)
        api.add_texts("ada", *(f"note {number} about {number * number}" for number in range(128)))
        api.add("ada", text="Ada likes green tea")
        eventually(lambda: api.stats("ada").index.graph_count > 64, "the graph")
        assert api.found("ada", query_text="what does Ada drink?", limit=1) == ["Ada likes green tea"]
    finally:
        assert server.terminate() == 0


@only_x86_64
@pytest.mark.parametrize("mark", [(), ("-Wl,-z,x86-64-v3",)], ids=["unmarked", "marked"])
def test_serve_says_which_module_was_compiled_for_another_processor(
    mark: Sequence[str], module_for_a_newer_processor: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "memory_service"
    shutil.copytree(ROOT / "memory_service", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (module,) = copy.glob("indexes/inner_products.*.so")
    run(
        [tool("c++"), "-shared", *mark, str(module_for_a_newer_processor), "-o", str(module)],
        tmp_path,
        timeout_s=60,
    )
    ended = serve_on(OLDEST, tmp_path)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("Error: ")
    assert str(module) in line


@only_x86_64
def test_serve_says_that_a_processor_is_older_than_the_oldest(tmp_path: Path) -> None:
    ended = serve_on("Penryn-v1", tmp_path)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "X86_V2" in line


def serve_on(cpu: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a server that must fail to start, with the folder's package `memory_service`, if there is one."""
    return subprocess.run(
        [*on(cpu), *SERVE, "--address", "127.0.0.1:0", "--store", "memory"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def module_for_a_newer_processor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the server's modules, not linked yet, compiled like `-march=native` on a processor of 2013."""
    folder = tmp_path_factory.mktemp("newer")
    indexes = ROOT / "memory_service" / "indexes"
    code, module = folder / "inner_products.cpp", folder / "inner_products.o"
    source = str(indexes / "inner_products.pyx")
    run([sys.executable, "-m", "cython", "--cplus", source, "-o", str(code)], folder, timeout_s=60)
    included = [f"-I{sysconfig.get_path('include')}", f"-I{indexes}"]
    options = ["-O2", "-std=c++17", "-fPIC", "-march=x86-64-v3", *included]
    run([tool("c++"), "-c", *options, str(code), "-o", str(module)], folder, timeout_s=120)
    return module


@only_x86_64
@pytest.mark.parametrize("dimension", [256, 384, 1536])
def test_hnswlib_compares_vectors_with_what_this_processor_has(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    vectors = rng.normal(size=(100, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = hnswlib.Index(space="ip", dim=dimension)
    index.init_index(max_elements=len(vectors))
    index.add_items(vectors, num_threads=1)
    index.set_ef(len(vectors))
    labels, distances = index.knn_query(vectors[0], k=len(vectors), num_threads=1)
    # To the last bit: hnswlib's own code adds in another order.
    products = inner_products(vectors, labels[0].astype(np.int32), vectors[0])
    assert np.array_equal(distances[0], np.float32(1) - products)


BACKEND = """
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    wheel, about = "hnswlib-0.8.0-py3-none-any.whl", "hnswlib-0.8.0.dist-info"
    portable, options = os.environ.get("HNSWLIB_NO_NATIVE"), os.environ.get("CXXFLAGS")
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        archive.writestr("hnswlib.py", f"portable, options = {portable!r}, {options!r}")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\\nName: hnswlib\\nVersion: 0.8.0\\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel
"""
"""A build of hnswlib that records its options instead of compiling."""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def write_source(folder: Path) -> str:
    """Write a source archive of hnswlib, and return its SHA-256."""
    archive = folder / "hnswlib-0.8.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (
            ("pyproject.toml", PROJECT),
            ("backend.py", BACKEND),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: hnswlib\nVersion: 0.8.0\n"),
        ):
            about = tarfile.TarInfo(f"hnswlib-0.8.0/{name}")
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def test_make_install_takes_no_hnswlib_that_was_built_for_one_processor(tmp_path: Path) -> None:
    lock, venv = tmp_path / "lock", tmp_path / "venv"
    lock.write_text(f"hnswlib==0.8.0 \\\n    --hash=sha256:{write_source(tmp_path)}\n    # via nothing\n")
    (tmp_path / "build.lock").write_text("")
    env = {name: value for name, value in os.environ.items() if name not in {"HNSWLIB_NO_NATIVE", "CXXFLAGS"}}
    env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CACHE_DIR": str(tmp_path / "cache")}
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--no-build-isolation"]
    run([sys.executable, "-m", "venv", str(venv)], tmp_path, timeout_s=120)
    # As in an older checkout: it is installed, and in pip's cache.
    run([*pip, "--require-hashes", "-r", str(lock)], tmp_path, timeout_s=120, env=env)
    assert built(venv) == ["None", "None"]
    assert list(tmp_path.glob("cache/wheels/**/hnswlib-*.whl"))
    make = [tool("make"), f"{venv}/.hnswlib", f"PYTHON={sys.executable}", f"VENV={venv}"]
    run([*make, f"BUILD_LOCK={tmp_path / 'build.lock'}", f"DEV_LOCK={lock}"], ROOT, timeout_s=120, env=env)
    portable, options = built(venv)
    assert portable == "1"
    assert options.endswith(f"-include {ROOT}/memory_service/indexes/hnswlib_products.hpp")


def built(venv: Path) -> list[str]:
    """Return the options that the hnswlib of an environment was built with."""
    code = "import hnswlib; print(hnswlib.portable, hnswlib.options, sep='\\n')"
    return run([str(venv / "bin" / "python"), "-c", code], venv, timeout_s=60).splitlines()
