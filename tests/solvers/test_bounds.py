"""Kernels index bare pointers: here all that they are given lies between guards, which must survive.

What is handed out uninitialised is full of NaN, and of indices that lie nowhere: whoever read it before writing it
would change the answer, or crash.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from cardan.coordinates import formulations
from cardan.examples import REGISTRY, random_start
from cardan.solvers import methods
from cardan.study import liu2013, parallel
from cardan.system.state import Pose

SMALL = ("rsur", "planar_4r", "stewart_distance", "lead_screw", "planetary_gear", "folding_table")
GUARD = 64  # elements on either side
MARK = -77


class Guards:
    """NumPy's empty and zeros, with guards on both sides of what they return."""

    def __init__(self):
        self.whole = []

    def make(self, plain, rest):
        def new(shape, dtype=np.float64, **options):
            if options or np.dtype(dtype) not in (np.float64, np.int64):
                return plain(shape, dtype, **options)
            size = int(np.prod(shape))
            whole = np.full(size + 2 * GUARD, MARK, dtype=dtype)
            self.whole.append(whole)
            mine = whole[GUARD : GUARD + size]
            mine[:] = rest[np.dtype(dtype).char]
            return mine.reshape(shape)

        return new

    @contextmanager
    def standing(self):
        plain = np.empty, np.zeros
        np.empty = self.make(np.empty, {"d": np.nan, "l": 1 << 40})
        np.zeros = self.make(np.zeros, {"d": 0.0, "l": 0})
        try:
            yield
        finally:
            np.empty, np.zeros = plain
        for whole in self.whole:
            assert (whole[:GUARD] == MARK).all(), f"before an array of {whole.size - 2 * GUARD}"
            assert (whole[-GUARD:] == MARK).all(), f"behind an array of {whole.size - 2 * GUARD}"


def compare(run):
    """The same answer, an array, with guards and without; with them first, or a fault would take the tests down."""
    guards = Guards()
    with guards.standing():
        guarded = run()
    assert len(guards.whole) >= 2
    assert np.array_equal(guarded, run(), equal_nan=True)


@pytest.mark.parametrize("method", ["auto", *methods.REGISTRY])
@pytest.mark.parametrize("formulation", formulations.CHOICES)
@pytest.mark.parametrize("name", SMALL)
def test_no_solver_leaves_its_workspace(name, formulation, method):
    def run():
        m = REGISTRY[name].build()
        start = random_start(m, 3)
        return m.assemble(start, formulation=formulation, method=method, max_iterations=60).state.coordinates

    compare(run)


@pytest.mark.parametrize("formulation", formulations.CHOICES)
@pytest.mark.parametrize("name", SMALL)
def test_many_starts_keep_to_their_workspaces(name, formulation):
    def run():
        m = REGISTRY[name].build()
        starts = [random_start(m, seed) for seed in range(6)]
        return m.assemble_many(starts, formulation=formulation, restarts=2, workers=2).coordinates

    compare(run)


@pytest.mark.parametrize("method", ["auto", "newton", "gradient"])
@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "relative"])
def test_nor_does_the_linear_algebra_of_large_systems(formulation, method):
    def run():
        m = parallel.chain(150)
        start = {f"link_{k + 1}": Pose(p[:3], p[3:]) for k, p in enumerate(parallel.scattered(150, 1))}
        return m.assemble(start, formulation=formulation, method=method, max_iterations=30).state.coordinates

    compare(run)


@pytest.mark.parametrize("inverse", liu2013.INVERSES)
@pytest.mark.parametrize("formulation", formulations.REGISTRY)
def test_nor_does_algorithm_1(formulation, inverse):
    starts = np.random.default_rng(1).uniform(-1, 1, (30, 4))
    settings = liu2013.Settings(inverse=inverse)
    compare(lambda: liu2013.algorithm_1(2, 2, formulation, starts, settings).norms)


@pytest.mark.parametrize("links", [1, 2, 30])
def test_nor_does_the_spring_iteration(links):
    def run():
        springs = parallel.Springs(parallel.scattered(links, 0), 7)
        springs.run(3, 2)
        return springs.poses

    compare(run)


def test_guards_fall_where_something_is_written_beyond():
    guards = Guards()
    with pytest.raises(AssertionError, match="behind an array of 5"), guards.standing():
        np.empty(5)
        guards.whole[0][GUARD + 5] = 0.0
    assert np.empty.__module__ == "numpy"
