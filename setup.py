"""What pyproject.toml cannot say yet: the modules that are compiled."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

COMPILED = sorted(Path("memory_service").rglob("*.pyx"))
HEADERS = sorted(map(str, Path("memory_service").rglob("*.hpp")))

setup(
    # As many at a time as there are processors.
    options={"build_ext": {"parallel": True}},
    ext_modules=cythonize(
        [
            Extension(
                ".".join(path.with_suffix("").parts),
                [str(path)],
                depends=HEADERS,
                extra_compile_args=["-O3", "-std=c++17"],
            )
            for path in COMPILED
        ]
    ),
)
