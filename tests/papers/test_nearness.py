"""Distances of solutions from their starts."""

from __future__ import annotations

import numpy as np
import pytest

from cardan.errors import ModelError
from cardan.examples import REGISTRY
from papers import nearness


def test_a_distance_is_that_of_the_displacement():
    m = REGISTRY["rsur"].build()
    state, length = m.state, m.system.judged_length
    moved = nearness.displaced(state, 0.1, length, 3)
    moves = 0.1 * np.random.default_rng(3).uniform(-1, 1, (len(state.names), 6))
    assert nearness.distance(state, moved, length) == pytest.approx(np.linalg.norm(moves), rel=1e-12)
    assert nearness.distance(state, state, length) == 0.0


def test_no_solution_is_nearer_than_the_constraints_allow_and_newton_is_nearer_than_springs():
    """From small displacements, Newton's least steps end nearer than spring steps."""
    (row,) = nearness.study(["rsur"], [0.1], 4)
    assert set(row.solved.values()) == {4}
    assert 0.1 < row.distance["newton"] < row.distance["gradient"] < 0.4
    assert row.distance["auto"] == pytest.approx(row.distance["newton"], rel=0.01)


def test_wrong_inputs_are_named():
    with pytest.raises(ModelError, match="nothing"):
        nearness.study(["nothing"])
    with pytest.raises(ModelError, match="starts"):
        nearness.study(starts=0)
