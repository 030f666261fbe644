"""What all tests share: one BLAS thread, and a cache of kernels that no other test writes to."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

pytest_plugins = ["margins"]

# Set before NumPy is loaded, and passed on to the processes that tests start.  The matrices are small: a second thread
# of BLAS only waits, and takes the core that another test runs on.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    """For CARDAN_CACHE_DIR: a copy of the kernels compiled so far, for a test that looks at what is added to them."""
    from cardan import _jit

    def copy(source: str, target: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
            shutil.copy2(source, target)

    directory = tmp_path / "cache"
    if _jit.CACHE_DIRECTORY is not None:
        shutil.copytree(_jit.CACHE_DIRECTORY, directory / _jit.CACHE_DIRECTORY.name, copy_function=copy)
    return directory
