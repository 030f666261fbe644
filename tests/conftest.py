"""What all tests share: one BLAS thread, a cache of kernels that no other test writes to, layers and shards."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

pytest_plugins = ["margins"]

# Set before NumPy is loaded, and passed on to the processes that tests start.  The matrices are small: a second thread
# of BLAS only waits, and takes the core that another test runs on.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Without bytecode on disk every process compiles the tests, the library and what they import again: 15 s.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Folders whose tests wait for browsers and other processes run first: at the end, one worker alone would wait for them.
WAITING = ("view", "cad", "kernel")
LARGE = "strandbeest"  # 217 parts: as a case of a law it is long, except for its own facts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", default="1/1", metavar="K/N", help="run the K-th of N parts; a file is in one part")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    quick = set()
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        law, _, case = item.nodeid.partition("[")
        if LARGE in case and "tests/examples" not in law:
            item.add_marker("long")
        if law not in quick and not {"browser", "long", "slow"} & {mark.name for mark in item.iter_markers()}:
            item.add_marker("quick")
            quick.add(law)
    yield  # the selection by markers
    chosen = files_of_shard([str(item.path) for item in items], config.getoption("--shard"))
    config.hook.pytest_deselected(items=[item for item in items if str(item.path) not in chosen])
    items[:] = [item for item in items if str(item.path) in chosen]
    items.sort(key=lambda item: item.path.parent.name not in WAITING)


def files_of_shard(files: list[str], shard: str) -> set[str]:
    """Files of the K-th of N parts with about the same numbers of tests; every file is named once for each test."""
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--shard is {shard!r}; write it as K/N, such as 1/3, with K from 1 to N")
    loads = [0] * int(count)
    chosen = set()
    for file, tests in sorted(Counter(files).items(), key=lambda pair: (-pair[1], pair[0])):
        least = loads.index(min(loads))
        loads[least] += tests
        if least == int(number) - 1:
            chosen.add(file)
    return chosen


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    """For CARDAN_CACHE_DIR: a copy of the kernels compiled so far, for a test that looks at what is added to them."""
    from cardan.kernel import cache

    def copy(source: str, target: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
            shutil.copy2(source, target)

    directory = tmp_path / "cache"
    if cache.CACHE_DIRECTORY is not None:
        shutil.copytree(cache.CACHE_DIRECTORY, directory / cache.CACHE_DIRECTORY.name, copy_function=copy)
    return directory


@pytest.fixture(scope="module")
def needs_library() -> None:
    """The library of kernels is that of the sources; else the test is skipped, and fails where CI is set."""
    import library

    library.require()


@pytest.fixture(scope="session", autouse=True)
def kernels_are_called_as_listed() -> Generator[None]:
    """Kernels for the wheel are compiled from the list: calls with other types would fail there."""
    yield
    if "cardan.kernel.signatures" not in sys.modules and "cardan.kernel.jit" not in sys.modules:
        return
    from cardan.kernel import signatures

    unlisted = signatures.unlisted()
    assert not unlisted, f"correct src/cardan/kernel/listed.py: {unlisted}"
