"""The spring iteration by blocks equals the iteration on the whole chain, for any number of threads."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations, parallel_springs
from cardan.errors import ModelError
from cardan.system.state import Pose
from papers import parallel
from papers.parallel import Springs


def whole(poses, iterations):
    """The iteration with lengths in links, by dense linear algebra; returns poses and the last residual."""
    system = parallel.chain(len(poses)).system
    problem = formulations.problem(system, "manifold", 1.0)
    q = formulations.to_reference(system, poses)
    for _ in range(iterations):
        r, J = problem.jacobian(q)
        q = problem.retract(q, -parallel.GAIN * (J.T @ r))
    return formulations.from_reference(system, q), np.abs(problem.residual(q)).max()


@pytest.mark.parametrize("links", [1, 2, 3, 60, 300])
def test_the_iteration_is_that_of_the_papers_with_lengths_in_links(links):
    """k = 0.1 is within the bound, and every trial is accepted."""
    poses = parallel.scattered(links, links)
    springs = Springs(poses)
    found = springs.run(4)
    expected, residual = whole(poses, 4)
    assert np.abs(springs.poses - expected).max() <= 1e-12
    assert found.residual * springs.length == pytest.approx(residual, rel=1e-9)


@pytest.mark.nojit
def test_the_iteration_is_the_same_in_pure_python():
    poses = parallel.scattered(5, 3)
    springs = Springs(poses)
    springs.run(2)
    assert np.abs(springs.poses - whole(poses, 2)[0]).max() <= 1e-13


@pytest.mark.nojit
@pytest.mark.parametrize("link", [0, 3, 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_nan_pose_has_a_nan_residual(link, threads):
    poses = parallel.scattered(8, 3)
    poses[link, 4] = np.nan
    assert np.isnan(Springs(poses).run(1, threads).residual)


@pytest.mark.nojit
def test_poses_may_have_any_memory_layout():
    poses = parallel.scattered(5, 1)
    expected = Springs(poses)
    residual = expected.run(2).residual
    for other in (np.asfortranarray(poses), poses[::-1].copy()[::-1], poses.tolist()):
        springs = Springs(other)
        assert springs.run(2).residual == residual
        assert np.array_equal(springs.poses, expected.poses)


@pytest.mark.nojit
@pytest.mark.parametrize("shape", [(0, 7), (5, 6), (5, 8), (35,), (1, 5, 7)])
def test_poses_of_another_shape_are_refused(shape):
    with pytest.raises(ModelError, match=r"it must be \(links, 7\)"):
        Springs(np.ones(shape))


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("links", [5, 400])
def test_results_are_bitwise_equal_for_any_number_of_threads(links, threads):
    poses = parallel.scattered(links, 1)
    one, many = Springs(poses), Springs(poses)
    assert one.run(7) == many.run(7, threads)
    assert np.array_equal(one.poses, many.poses)


def test_the_zigzag_is_assembled_and_does_not_move():
    springs = Springs(parallel.zigzag(40))
    assert springs.run(3).residual <= 1e-14
    assert np.abs(springs.poses - parallel.zigzag(40)).max() <= 1e-14
    assert parallel.chain(7).assemble().iterations == 0


def test_residuals_decrease_for_any_number_of_links():
    for links in (5, 40, 300):
        springs = Springs(parallel.scattered(links, 2))
        residuals = [springs.run(20).residual for _ in range(12)]
        assert residuals[-1] < 0.2 * residuals[0]
        assert np.abs(np.linalg.norm(springs.poses[:, 3:], axis=1) - 1).max() <= 1e-14


def test_the_gain_lies_within_the_bound_of_stability():
    """k < 2/λ_max(JᵀJ), and ‖J‖₁‖J‖_∞ ≥ λ_max is at most 6.9 in any pose."""
    system = parallel.chain(12).system
    problem = formulations.problem(system, "manifold", 1.0)
    for seed in range(20):
        _, J = problem.jacobian(formulations.to_reference(system, parallel.scattered(12, seed)))
        J = problem.scales[: problem.rows, None] * J * problem.scales[problem.rows :]
        bound = np.abs(J).sum(axis=0).max() * np.abs(J).sum(axis=1).max()
        assert np.linalg.norm(J, 2) ** 2 <= bound <= 6.9
        assert 1.0 / bound > parallel.GAIN


def test_iterations_grow_with_the_length_of_a_compressed_chain():
    short, long = parallel.growth(40), parallel.growth(160)
    assert 0.5 < long.scattered / short.scattered < 2.0
    assert long.compressed > 6 * short.compressed
    assert 1.3 < parallel.exponent([40, 160], [short.compressed, long.compressed]) < 2.2


def test_a_compressed_chain_overlaps_at_its_joints_and_has_their_sum_as_gap_at_its_far_pin():
    links = 30
    poses = parallel.compressed(links)
    ends = np.array([[Pose(p[:3], p[3:]).point((x, 0, 0)) for x in (-0.5, 0.5)] for p in poses])
    overlap = (1 - parallel.STRETCH) * parallel.ALONG
    assert np.abs(ends[:-1, 1] - ends[1:, 0] - [overlap, 0, 0]).max() <= 1e-14
    assert np.abs(ends[0, 0] + [overlap / 2, 0, 0]).max() <= 1e-14
    assert np.abs(parallel.far_end(links) - ends[-1, 1] - [overlap * (links - 0.5), 0, 0]).max() <= 1e-13


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_timing_has_every_thread_count(threads):
    timing = parallel.measure(300, threads, seconds=0.02)
    assert set(timing.seconds) == set(timing.medians) == {1, threads}
    assert all(0.0 < timing.seconds[count] <= timing.medians[count] < 1.0 for count in (1, threads))
    assert timing.speed_up(1) == timing.median_speed_up(1) == 1.0
    assert 0.02 < timing.separate < 4.0 * threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_clock_is_called_after_every_iteration(threads):
    springs, ticks = Springs(parallel.scattered(40, 0)), []
    springs.run(4, threads, lambda: ticks.append(time.perf_counter()))
    assert len(ticks) == 4
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("sizes", "threads", "seconds", "message"),
    [
        ([0], [2], 1.0, "a number of bodies is 0; it must be a whole number from 1 on"),
        ([], [2], 1.0, "give a number of bodies"),
        ([10], [0], 1.0, "a number of threads is 0"),
        ([10], [2], 0.0, r"the time of a measurement \[s\] is 0.0; it must be above zero"),
        ([10], [2], float("inf"), "it must be finite"),
    ],
)
def test_wrong_inputs_are_named(sizes, threads, seconds, message):
    with pytest.raises(cd.ModelError, match=message):
        parallel.check_inputs(sizes, threads, seconds)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    springs = Springs(parallel.scattered(50, 0))

    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(parallel_springs._shares, "move_groups", fail)
    with pytest.raises(ZeroDivisionError):
        springs.run(3, 2)


def test_iterations_grow_in_trees_and_chains_of_hinges():
    """From scattered links; in chains of balls they hardly do."""
    balls = [parallel.iterations(parallel.chain(links), 1) for links in (20, 80)]
    trees = [parallel.iterations(parallel.tree(links), 1) for links in (20, 80)]
    assert balls[1] < 1.5 * balls[0]
    assert trees[0] > 3 * balls[0]
    assert trees[1] > 2 * trees[0]
    assert parallel.iterations(parallel.hinge_chain(20), 1, 5 * balls[0]) is None
    assert parallel.iterations(parallel.hinge_chain(20), 1) > 10 * balls[0]
