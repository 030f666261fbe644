"""The spring iteration by blocks equals the iteration on the whole chain, for any number of threads."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.study import parallel
from cardan.study.parallel import Springs
from cardan.system.state import Pose


def whole(poses, iterations):
    """The iteration on the undivided chain, by dense linear algebra; returns poses and the last residual."""
    system = parallel.chain(len(poses)).system
    problem = formulations.problem(system, "manifold", 1.0)
    q = formulations.to_reference(system, poses)
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    for _ in range(iterations):
        r, J = problem.jacobian(q)
        r, J = rows * r, rows[:, None] * J * columns
        residual = np.abs(r).max()
        q = problem.retract(q, -parallel.GAIN * columns * (J.T @ r))
    return formulations.from_reference(system, q), residual


@pytest.mark.parametrize("links", [1, 2, 3, 25, 26, 60])
@pytest.mark.parametrize("block", [1, 2, 7, 25, 100])
def test_blocks_give_the_same_result_as_the_whole(links, block):
    poses = parallel.scattered(links, links)
    springs = Springs(poses, block)
    residual = springs.run(4)
    expected, expected_residual = whole(poses, 4)
    assert np.abs(springs.poses - expected).max() <= 1e-13
    assert residual == pytest.approx(expected_residual, rel=1e-12)


@pytest.mark.nojit
def test_blocks_give_the_same_result_in_pure_python():
    poses = parallel.scattered(5, 3)
    springs = Springs(poses, 2)
    springs.run(2)
    assert np.abs(springs.poses - whole(poses, 2)[0]).max() <= 1e-13


@pytest.mark.nojit
@pytest.mark.parametrize("link", [0, 3, 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_nan_pose_has_a_nan_residual(link, threads):
    poses = parallel.scattered(8, 3)
    poses[link, 4] = np.nan
    assert np.isnan(Springs(poses, 2).run(1, threads))


@pytest.mark.nojit
def test_poses_may_have_any_memory_layout():
    poses = parallel.scattered(5, 1)
    expected = Springs(poses, 2)
    residual = expected.run(2)
    for other in (np.asfortranarray(poses), poses[::-1].copy()[::-1], poses.tolist()):
        springs = Springs(other, 2)
        assert springs.run(2) == residual
        assert np.array_equal(springs.poses, expected.poses)
    whole_numbers = Springs(np.round(poses).astype(int), 2)
    whole_numbers.run(1)
    assert whole_numbers.poses.dtype == np.float64


@pytest.mark.nojit
@pytest.mark.parametrize("shape", [(0, 7), (5, 6), (5, 8), (35,), (1, 5, 7)])
def test_poses_of_another_shape_are_refused(shape):
    with pytest.raises(ModelError, match=r"it must be \(links, 7\)"):
        Springs(np.ones(shape))


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_results_are_bitwise_equal_for_any_number_of_threads(threads):
    poses = parallel.scattered(90, 1)
    one, many = Springs(poses, 8), Springs(poses, 8)
    assert one.run(7) == many.run(7, threads)
    assert np.array_equal(one.poses, many.poses)


def test_more_threads_than_blocks_give_the_same_result():
    poses = parallel.scattered(5, 1)
    one, many = Springs(poses), Springs(poses)
    one.run(3)
    many.run(3, 4)
    assert np.array_equal(one.poses, many.poses)


def test_the_zigzag_is_assembled_and_does_not_move():
    springs = Springs(parallel.zigzag(40), 9)
    assert springs.run(3) <= 1e-14
    assert np.abs(springs.poses - parallel.zigzag(40)).max() <= 1e-14
    assert parallel.chain(7).assemble().iterations == 0


def test_residuals_decrease_for_any_number_of_links():
    for links in (5, 40, 300):
        springs = Springs(parallel.scattered(links, 2))
        residuals = [springs.run(20) for _ in range(12)]
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
    poses = parallel.scattered(40, 0)
    springs, seen = Springs(poses, 5), []
    springs.run(4, threads, lambda: seen.append(springs.poses.copy()))
    for k, found in enumerate(seen):
        expected = Springs(poses, 5)
        expected.run(k + 1)
        assert np.array_equal(found, expected.poses)
    assert len(seen) == 4


def test_jobs_in_step_wait_for_each_other():
    done, seen = [0, 0, 0], []

    def job(k):
        def work():
            done[k] += 1
            time.sleep(0.002 * k)

        return work

    parallel.in_step([job(k) for k in range(3)], 5, lambda: seen.append(tuple(done)))
    assert seen == [(k, k, k) for k in range(1, 6)]


def test_identical_blocks_share_their_tables():
    small, large = Springs(parallel.scattered(1000, 0), 100), Springs(parallel.scattered(100_000, 0), 100)
    assert large.block_count == 1000
    size = [sum(t.nbytes for t in s._tables if isinstance(t, np.ndarray)) for s in (small, large)]
    assert size[1] - size[0] == 16 * (1000 - 10)  # two integers for each additional block


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


def test_an_error_in_a_thread_reaches_the_caller():
    springs = Springs(parallel.scattered(50, 0), 5)
    springs._kernel = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        springs.run(3, 2)
