"""What holds a gradient descent: a minimum, or the unknowns it is made in."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.examples import REGISTRY
from cardan.study import minima
from cardan.study.minima import Inputs


@pytest.fixture(scope="module")
def found():
    return minima.minima(Inputs(("stewart_distance", "rsur"), 20, 6000, 1e-2, 1))


def test_every_start_is_met_or_held_by_something(found):
    assert len(found) == 2 * 3
    for row in found:
        assert row.met + row.minimum + row.trapped + row.slow == row.starts == 20
        assert row.iterations.size == row.met
        assert row.iterations.max(initial=0) <= 6000
        assert row.residuals.size == row.minimum


def test_minima_do_not_depend_on_the_chart(found):
    """The six-rod platform has true local minima, and every chart finds the same few residuals."""
    rows = [row for row in found if row.mechanism == "stewart_distance"]
    assert all(row.minimum > 0 for row in rows)
    known = np.unique(np.round(rows[2].residuals, 3))  # on the manifold
    for row in rows[:2]:
        assert all(np.abs(known - r).min() <= 2e-3 for r in np.round(row.residuals, 3)[:1])


def test_the_spatial_four_bar_has_none(found):
    for row in found:
        if row.mechanism == "rsur":
            assert row.minimum == 0
            assert row.met >= 17


def test_the_slope_vanishes_at_a_local_minimum_and_not_elsewhere():
    """Two distances that cannot both be met: the least |r| is half way between them."""
    m = cd.Mechanism()
    body = m.body("body", position=(2, 0, 0))
    m.distance("short", m.ground.point(), body.point(), 1.0)
    m.distance("long", m.ground.point(), body.point(), 3.0)
    problem = formulations.problem(m.system, "manifold")
    for x, least in ((2.0, True), (1.5, False)):
        slope = minima.slope(problem, formulations.to_reference(m.system, np.array([[x, 0, 0, 1, 0, 0, 0]])))
        assert (slope <= 1e-12) == least
    met = formulations.to_reference(m.system, np.array([[0.0, 0, 0, 1, 0, 0, 0]]))
    assert np.isfinite(minima.slope(problem, met))


def test_zxz_angles_are_held_at_their_poles():
    """A body whose axis must turn about y, with θ = 0 at the start: the manifold turns it, the angles cannot."""
    m = cd.Mechanism()
    body = m.body("body")
    m.spherical("pivot", m.ground.point(), body.point())
    m.angle("tilt", m.ground.frame(z=(1, 0, 0)), body.frame(z=(0, 0, 1)), 1.0)
    angles = m.assemble(formulation="euler_angles", method="gradient", tolerance=1e-3)
    free = m.assemble(formulation="manifold", method="gradient", tolerance=1e-3)
    assert free.ok
    assert angles.status == cd.Status.STALLED
    slopes = [
        minima.slope(formulations.problem(m.system, kind), formulations.to_reference(m.system, m.system.authored))
        for kind in ("euler_angles", "manifold")
    ]
    assert slopes[0] == 0.0 < 0.1 < slopes[1]


def test_the_sequence_ends_assembled():
    steps = minima.sequence(Inputs(iterations=8000, tolerance=1e-2), frames=(0, 10, 100))
    assert steps.iterations[:3] == (0, 10, 100)
    assert len(steps.states) == len(steps.iterations) == 4
    assert steps.mechanism.name == "bent_chain"

    def gap(state):
        """Largest opening of a swivel [m], from the frames alone."""
        return max(
            np.linalg.norm(state[j.a.body].point(j.a.origin) - state[j.b.body].point(j.b.origin))
            for j in steps.mechanism.joints.values()
        )

    gaps = [gap(state) for state in steps.states]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.1 < 1.0 < gaps[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanisms": ()}, "there is nothing to do"),
        ({"mechanisms": ("rsurr",)}, "no example is named 'rsurr'; did you mean 'rsur'"),
        ({"starts": 0}, "the number of starts is 0"),
        ({"iterations": 0}, "the number of iterations is 0"),
        ({"seed": -1}, "the seed is -1"),
        ({"tolerance": 0.0}, "the tolerance is 0.0; it must be above zero"),
        ({"tolerance": 2.0}, "the tolerance is 2.0; it must be below 1"),
    ],
)
def test_wrong_inputs_are_named(options, message):
    with pytest.raises(cd.ModelError, match=message):
        Inputs(**options)


def test_starts_know_nothing_of_the_answer_and_repeat():
    mechanism = REGISTRY["rsur"].build()
    first, again, other = (minima.starting_poses(mechanism, 5, seed) for seed in (0, 0, 1))
    assert first.shape == (5, 3, 7)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
