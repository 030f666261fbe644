"""Tests of the library of kernels need one that is built of these sources."""

from __future__ import annotations

import os

import pytest

from cardan.kernel import built, memory

MODULES = ["cardan.analysis._policy", "cardan.constraints._generated", "cardan.math._dense"]


def require() -> None:
    """Skip a test where the library is missing or stale; where CI is set, it fails, since nothing else would tell."""
    if memory.JIT_DISABLED or built.CHOICE == "numba":
        pytest.skip("kernels of this process are not those of the library")
    if not built.is_current(MODULES):
        reason = "kernels are not built of these sources: make kernels"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
