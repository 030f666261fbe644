"""The list of bars that tests meet by less than a factor of 3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import numpy as np
import pytest


def test_near():
    assert 0.5 < 1.0
    value = 0.5
    assert value < 1.0 and 0.4 <= value <= 0.75
    assert all(part < 0.9 for part in (0.2, value))
    assert value == pytest.approx(0.6, abs=0.2)
    assert {"a": 1.0} == pytest.approx({"a": 1.1}, rel=0.1)
    np.testing.assert_allclose([1.0, value], [1.1, value], rtol=0, atol=0.125)
    assert (np.array([0.1, value]) < 0.6).all(), "a message"


def test_far():
    value = 0.1
    assert value < 1.0 and value > 0.05 and not value > 0.15
    assert np.array([value])[np.array([value]) < 0.2].sum() < 0.5 and np.where(value < 0.2, 0.0, 1.0) < 1.0
    assert len("abc") < 4 and value == pytest.approx(0.11, abs=0.1) and value != pytest.approx(0.2)


@pytest.mark.xfail(reason="what fails has no margin")
def test_fails():
    value = 0.5
    assert value < 1.0
    assert value < 0.4
"""
NEAR = {9: 1.5, 10: 1.8, 11: 2.0, 12: 1.1, 13: 1.25, 14: 1.2}  # lines, and the least bar/value in them


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_bars_within_a_factor_of_3_are_listed_by_line(tmp_path, options):
    (tmp_path / "test_them.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "margins", "-p", "no:cacheprovider", *options, "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for more in ((), ("--margins", "margins.txt"), ()):  # before and after, modules are compiled without the calls
        done = subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 passed, 1 xfailed" in done.stdout
    rows = [line.split("  ") for line in (tmp_path / "margins.txt").read_text().splitlines()]
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    found = {int(row[2].removeprefix("test_them.py:")): float(row[0]) for row in rows}
    assert found == NEAR
    assert "0.5 of 0.6  test_them.py:14  assert (np.array([0.1, value]) < 0.6).all()" in "\n".join(map("  ".join, rows))
