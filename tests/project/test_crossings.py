"""Few calls of Python, and few between packages, from a verb to the kernels: what a small mechanism waits for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from cardan import checkout
from cardan.lazy import TieredModule

# calls of Python functions, and those between packages, at the most
MOST = {"first assemble": (118, 34), "again": (69, 24), "first simulate": (550, 212), "first drag": (606, 221)}
MOST_CROSSINGS = 295  # of all verbs


@pytest.fixture(scope="module")
def rows():
    patience, TieredModule.patience = TieredModule.patience, 0  # kernels that are interpreted would count
    try:
        return runpy.run_path(str(Path(checkout.ROOT, "benchmarks", "crossings.py")))["rows"]()
    finally:
        TieredModule.patience = patience


@pytest.mark.parametrize("verb", MOST)
def test_a_verb_makes_few_calls(rows, verb):
    calls, crossings = rows[verb]
    assert calls <= MOST[verb][0] and crossings <= MOST[verb][1]


def test_verbs_seldom_cross_between_packages(rows):
    assert sum(crossings for _, crossings in rows.values()) <= MOST_CROSSINGS
