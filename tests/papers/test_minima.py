"""The causes that stop a gradient descent: a local minimum or the chart."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations, verdict
from cardan.examples import REGISTRY
from papers import minima
from papers.descent import descend
from papers.minima import Inputs


@pytest.fixture(scope="module")
def found():
    return minima.minima(Inputs(("stewart_distance", "rsur"), 20, 6000, 1e-2, 1))


def test_every_start_is_met_or_has_a_cause_of_failure(found):
    assert len(found) == 2 * 3
    for row in found:
        assert row.met + row.minimum + row.by_chart + row.slow == row.starts == 20
        assert row.iterations.size == row.met
        assert row.iterations.max(initial=0) <= 6000
        assert row.residuals.size == row.minimum
        assert row.left.size == row.by_chart


def test_iterations_are_the_first_that_meet_the_tolerance():
    """A run with one step less does not meet it; the solver's stricter target is not used."""
    mechanism = REGISTRY["rsur"].build()
    system = mechanism.system
    starts = minima.starting_poses(mechanism, 6, 0)
    for chart in minima.CHARTS:
        whole = descend(system, chart, starts, 1e-2, 10_000)
        assert whole.met.sum() >= 5
        for k in np.flatnonzero(whole.met):
            last = int(whole.iterations[k])
            for most, met in ((last, True), (last - 1, False), (last // 2, False)):
                other = descend(system, chart, starts[k : k + 1], 1e-2, most)
                assert (other.met[0], other.iterations[0]) == (met, most)
            found, bound = verdict.judge(system, whole.coordinates[k], 1e-2)
            assert found <= bound == 1e-2
            assert found >= 0.9e-2  # a spring step is short


def test_a_run_that_meets_the_tolerance_at_the_limit_counts():
    mechanism = REGISTRY["rsur"].build()
    starts = minima.starting_poses(mechanism, 1, 0)
    last = int(descend(mechanism.system, "manifold", starts, 1e-2, 10_000).iterations[0])
    (row,) = [r for r in minima.minima(Inputs(("rsur",), 1, last, 1e-2, 0)) if r.chart == "manifold"]
    assert (row.met, row.iterations.tolist()) == (1, [last])
    (row,) = [r for r in minima.minima(Inputs(("rsur",), 1, last - 1, 1e-2, 0)) if r.chart == "manifold"]
    assert (row.met, row.slow) == (0, 1)


def test_the_number_of_threads_changes_nothing():
    system = REGISTRY["stewart_distance"].build().system
    starts = minima.starting_poses(REGISTRY["stewart_distance"].build(), 8, 2)
    one, two = (descend(system, "euler_angles", starts, 1e-2, 500, threads=threads) for threads in (1, 2))
    for field in ("met", "iterations", "coordinates", "found"):
        assert np.array_equal(getattr(one, field), getattr(two, field)), field


def test_counted_angles_are_supported():
    mechanism = REGISTRY["planetary_gear"].build()
    assert mechanism.system.counted_angles
    found = descend(mechanism.system, "manifold", minima.starting_poses(mechanism, 2, 0), 0.1, 3000)
    assert np.isfinite(found.residual).all()
    assert descend(mechanism.system, "manifold", mechanism.assemble().state.coordinates[None], 1e-2, 5).met[0]


def test_minima_do_not_depend_on_the_chart(found):
    """The six-rod platform has true local minima, and every chart finds the same few residuals."""
    rows = [row for row in found if row.mechanism == "stewart_distance"]
    assert all(row.minimum > 0 for row in rows)
    known = rows[2].residuals  # on the manifold
    apart = np.diff(np.sort(known)) / known.min()
    assert (apart > 1e-2).sum() >= 2  # at least three minima
    assert ((apart < 1e-3) | (apart > 1e-2)).all()  # minima are clearly separated
    for row in rows[:2]:
        assert all(np.abs(known / r - 1.0).min() <= 1e-3 for r in row.residuals)


def descent_of(mechanism, chart, iterations, starts=None):
    """Result of the descent of one mechanism from its authored poses or from given starts."""
    poses = mechanism.state.coordinates[None] if starts is None else starts
    return minima._descend(mechanism, chart, poses, Inputs(("rsur",), 1, iterations, 1e-3), 1, None)


def contradictory():
    """Two contradictory distances: |r| has its minimum half way between them."""
    m = cd.Mechanism()
    body = m.body("body", position=(1.7, 0, 0))
    m.distance("short", m.ground.point(), body.point(), 1.0)
    m.distance("long", m.ground.point(), body.point(), 3.0)
    return m


def at_the_pole(tilt=0.0):
    """A body that must rotate about y, with θ = tilt at the start: ZXZ angles cannot start this rotation at θ = 0."""
    m = cd.Mechanism()
    body = m.body("body", orientation=(np.cos(tilt / 2), np.sin(tilt / 2), 0, 0))
    m.spherical("pivot", m.ground.point(), body.point())
    m.angle("tilt", m.ground.frame(z=(1, 0, 0)), body.frame(z=(0, 0, 1)), 1.0)
    return m


@pytest.mark.parametrize("chart", minima.CHARTS)
def test_a_contradiction_ends_in_a_minimum_in_every_chart(chart):
    row = descent_of(contradictory(), chart, 2000)
    assert (row.met, row.minimum, row.by_chart, row.slow) == (0, 1, 0, 0)


@pytest.mark.parametrize("chart", minima.CHARTS)
def test_an_unfinished_descent_is_slow(chart):
    """It is not in a minimum: its gradient is large."""
    mechanism = REGISTRY["rsur"].build()
    row = descent_of(mechanism, chart, 5, minima.starting_poses(mechanism, 4, 0))
    assert (row.met, row.minimum, row.by_chart, row.slow) == (0, 0, 0, 4)


def test_a_pole_stops_angles_and_no_other_chart():
    for chart in minima.CHARTS:
        row = descent_of(at_the_pole(), chart, 2000)
        stopped = int(chart == "euler_angles")
        assert (row.met, row.minimum, row.by_chart, row.slow) == (1 - stopped, 0, stopped, 0)
        assert row.left.tolist() == [0.0] * stopped
        assert row.median_left == (0.0 if stopped else None)


def test_near_a_pole_little_of_the_gradient_is_left():
    """The descent is slow there but not stuck: with more iterations it converges."""
    tilted = at_the_pole(1e-3)
    free = descend(tilted.system, "manifold", tilted.state.coordinates[None], 1e-3, 1000)
    few = int(free.iterations[0]) + 5
    row = descent_of(tilted, "euler_angles", few)
    assert (row.by_chart, row.slow) == (1, 0)
    assert 0.0 < row.left[0] < 0.1
    assert descend(tilted.system, "euler_angles", tilted.state.coordinates[None], 1e-3, 20 * few).met[0]


def test_a_larger_k_takes_fewer_iterations_to_the_same_ends():
    """k is clipped to the largest stable value."""
    mechanism = REGISTRY["rsur"].build()
    starts = minima.starting_poses(mechanism, 5, 0)
    small, full, beyond = (
        descend(mechanism.system, "manifold", starts, 1e-2, 10_000, gain=gain) for gain in (0.1, np.inf, 1e9)
    )
    assert small.met.all() and full.met.all()
    assert (full.iterations < 0.8 * small.iterations).all()
    assert np.median(full.iterations / small.iterations) < 0.65
    assert np.array_equal(full.iterations, beyond.iterations)


def test_the_spatial_four_bar_has_no_minima(found):
    for row in found:
        if row.mechanism == "rsur":
            assert row.minimum == 0
            assert row.met >= 17


def test_the_slope_vanishes_at_a_local_minimum_and_not_elsewhere():
    m = contradictory()
    problem = formulations.problem(m.system, "manifold")
    for x, least in ((2.0, True), (1.5, False)):
        slope = minima.slope(problem, formulations.to_reference(m.system, np.array([[x, 0, 0, 1, 0, 0, 0]])))
        assert (slope <= 1e-12) == least
    met = formulations.to_reference(m.system, np.array([[0.0, 0, 0, 1, 0, 0, 0]]))
    assert np.isfinite(minima.slope(problem, met))


def test_zxz_angles_stall_at_their_poles():
    m = at_the_pole()
    angles = m.assemble(formulation="euler_angles", method="gradient", tolerance=1e-3)
    free = m.assemble(formulation="manifold", method="gradient", tolerance=1e-3)
    assert free.ok
    assert angles.status == cd.Status.STALLED
    slopes = [
        minima.slope(formulations.problem(m.system, kind), formulations.to_reference(m.system, m.system.authored))
        for kind in ("euler_angles", "manifold")
    ]
    assert slopes[0] == 0.0 < 0.1 < slopes[1]


def gap(mechanism, state):
    """Largest gap of a joint [m], computed from the frames."""
    return max(
        np.linalg.norm(state[j.a.body].point(j.a.origin) - state[j.b.body].point(j.b.origin))
        for j in mechanism.joints.values()
    )


def test_the_sequence_ends_where_the_tolerance_is_met():
    inputs = Inputs(starts=10, iterations=8000, tolerance=1e-2)
    steps = minima.sequence(inputs, frames=(10, 100))
    assert steps.iterations[:3] == (0, 10, 100)
    assert len(steps.states) == len(steps.iterations) == 4
    assert steps.mechanism.name == "bent_chain"
    gaps = [gap(steps.mechanism, state) for state in steps.states]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= np.sqrt(3) * 1e-2 * steps.mechanism.system.length < 1.0 < gaps[0]  # 1 % along each axis
    assert 100 < steps.iterations[-1] < 8000
    assert steps.met and steps.residual <= 1e-2
    starts = minima.starting_poses(steps.mechanism, 10, 0)  # it is a start of the study
    assert any(np.array_equal(steps.states[0].coordinates, start) for start in starts)


def test_a_sequence_that_does_not_converge_is_not_met():
    steps = minima.sequence(Inputs(("rsur",), starts=2, iterations=20))
    assert steps.mechanism.name == "rsur"
    assert (steps.iterations, steps.met) == ((0, 10, 20), False)
    assert steps.residual > 1e-2


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
        ({"gain": 0.0}, "k of the spring step is 0.0; it must be above zero"),
        ({"gain": float("nan")}, "k of the spring step is nan"),
    ],
)
def test_wrong_inputs_are_named(options, message):
    with pytest.raises(cd.ModelError, match=message):
        Inputs(**options)


def test_starts_are_random_and_reproducible():
    mechanism = REGISTRY["rsur"].build()
    first, again, other = (minima.starting_poses(mechanism, 5, seed) for seed in (0, 0, 1))
    assert first.shape == (5, 3, 7)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
