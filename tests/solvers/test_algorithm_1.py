"""Algorithm 1 of [Liu2013]: its inverse, N and ε, compared with NumPy step by step."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.examples import REGISTRY, random_start
from cardan.solvers import methods
from cardan.solvers.problem import Budget
from cardan.solvers.tables import Outcome
from papers import liu2013
from papers.liu2013 import Settings


def numpy_newton(example, movable, formulation, p, iterations, epsilon, inverse):
    """The loop of the paper in NumPy, with > in place of the printed <; yields p and ‖Φ‖."""
    problem = liu2013.problem(example, movable, formulation)
    q = liu2013.coordinates(p)[0]
    n = 0
    while True:
        f, J = problem.jacobian(q)
        yield q[3:].copy(), np.linalg.norm(f)
        if not (n < iterations and np.linalg.norm(f) > epsilon):
            return
        J = J[:, 3:]
        if inverse == "lu" and J.shape[0] == J.shape[1] and np.linalg.cond(J) < 1e13:
            step = np.linalg.solve(J, f)
        else:
            step = np.linalg.pinv(J, rcond=1e-8) @ f
        q = problem.retract(q, np.concatenate([np.zeros(3), -step]))
        n += 1


STARTS = [(0.5, -0.5, -0.5, 0.5), (0.9, 0.1, 0.3, 0.2), (0.2, 0.7, -0.1, 0.6)]


@pytest.mark.parametrize("inverse", ["lu", "pseudo"])
@pytest.mark.parametrize("formulation", ["euler_parameters", "virtual_rotation", "manifold"])
@pytest.mark.parametrize("example", [1, 3, 4])
def test_the_first_steps_are_those_of_numpy(example, formulation, inverse):
    for start in STARTS:
        start = np.array(start) / np.linalg.norm(start)
        settings = Settings(iterations=4, inverse=inverse)
        found, norms = liu2013.trace(example, 2, formulation, start, settings)
        expected = list(numpy_newton(example, 2, formulation, start, 4, 1e-14, inverse))
        assert len(found) == len(expected)
        for p, norm, (p_0, norm_0) in zip(found, norms, expected, strict=True):
            assert np.abs(p - p_0).max() <= 1e-8 * max(1.0, np.abs(p_0).max())
            assert abs(norm - norm_0) <= 1e-8 * max(1.0, norm_0)


@pytest.mark.nojit
def test_where_j_is_singular_the_step_is_that_of_the_pseudo_inverse():
    """Example 2 is singular everywhere: J of rank 3, and LU finds no fourth pivot at q₀ = (½, ½, ½, ½)."""
    start = np.full(4, 0.5)
    by_lu, _ = liu2013.trace(2, 2, "euler_parameters", start, Settings(iterations=1, inverse="lu"))
    by_pseudo, _ = liu2013.trace(2, 2, "euler_parameters", start, Settings(iterations=1, inverse="pseudo"))
    (_, _), (p, _) = numpy_newton(2, 2, "euler_parameters", start, 1, 1e-14, "pseudo")
    assert np.abs(by_pseudo[1] - p).max() <= 1e-12
    assert np.array_equal(by_lu, by_pseudo)


def test_the_loop_ends_at_n_or_below_epsilon_whichever_comes_first():
    start = STARTS[1] / np.linalg.norm(STARTS[1])
    _, norms = liu2013.trace(1, 2, "euler_parameters", start)
    taken = len(norms) - 1
    assert norms[-1] <= 1e-14 < norms[-2]
    for most in (1, taken - 1, taken, taken + 1):
        found = liu2013.algorithm_1(1, 2, "euler_parameters", start, Settings(iterations=most))
        assert found.iterations[0] == min(most, taken)
        assert found.ok[0] == (taken < most)  # n == N is a failure, as in the paper, even if the last step converged
    for epsilon in norms[1:-1]:
        loose = liu2013.algorithm_1(1, 2, "euler_parameters", start, Settings(epsilon=float(epsilon)))
        assert loose.iterations[0] == np.argmax(norms <= epsilon)
        assert loose.norms[0] <= epsilon


def test_many_starts_give_what_one_gives_on_any_number_of_threads():
    rng = np.random.default_rng(3)
    starts = rng.uniform(-1, 1, (1100, 4))
    seen = []
    one = liu2013.algorithm_1(4, 2, "virtual_rotation", starts, workers=1, progress=lambda d, n: seen.append((d, n)))
    assert seen[-1] == (1100, 1100)
    two = liu2013.algorithm_1(4, 2, "virtual_rotation", starts, workers=2)
    for name in ("ok", "iterations", "norms"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
    for k in (0, 17, 999):
        _, norms = liu2013.trace(4, 2, "virtual_rotation", starts[k])
        assert one.iterations[k] == len(norms) - 1
        assert one.norms[k] == pytest.approx(norms[-1], rel=1e-6, abs=1e-15)


def test_on_the_manifold_a_start_of_any_length_is_its_rotation():
    starts = np.random.default_rng(4).uniform(-1, 1, (50, 4))
    long = liu2013.algorithm_1(3, 2, "manifold", 8.0 * starts)
    short = liu2013.algorithm_1(3, 2, "manifold", starts)
    assert np.array_equal(long.iterations, short.iterations)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Settings(iterations=0), "N is 0; it must be a whole number from 1 on"),
        (lambda: Settings(iterations=True), "N is True"),
        (lambda: Settings(epsilon=-1.0), "ε is -1.0; it must be above zero"),
        (lambda: Settings(epsilon=float("nan")), "ε is nan; it must be finite"),
        (lambda: Settings(inverse="magic"), "inverse is 'magic'; it must be one of 'lu', 'pseudo'"),
        (lambda: liu2013.system(5, 2), "the example is 5; it must be one of 1, 2, 3, 4"),
        (lambda: liu2013.mechanism(1, 3), "the movable body is 3; it must be 1 or 2"),
        (lambda: liu2013.algorithm_1(1, 1, "quaternion", STARTS), "formulation is 'quaternion'"),
        (lambda: liu2013.algorithm_1(1, 1, "manifold", [[1, 2, 3]]), r"shape \(1, 3\)"),
        (lambda: liu2013.algorithm_1(1, 1, "manifold", [[1, 2, 3, np.inf]]), "must be finite"),
        (lambda: liu2013.algorithm_1(1, 1, "manifold", STARTS, workers=0), "workers is 0"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(cd.ModelError, match=message):
        call()


# -- as a method of assembly -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(REGISTRY))
def test_newton_lu_assembles_the_gallery_or_reports_a_too_large_system(name):
    mechanism = REGISTRY[name].build()
    problem = formulations.problem(mechanism.system, "manifold")
    if problem.rows * problem.unknowns > methods.DENSE_LU:
        with pytest.raises(cd.ModelError, match=r"needs a dense J, here of .* use method='newton'"):
            mechanism.assemble(method="newton_lu")
        return
    result = mechanism.assemble(method="newton_lu")
    assert result.ok
    assert result.method == "newton_lu"


def test_where_j_is_regular_newton_lu_and_newton_take_the_same_steps():
    mechanism = REGISTRY["stewart_distance"].build()
    for seed in range(5):
        start = random_start(mechanism, seed)
        for most in (1, 2, 3):
            a, b = (mechanism.assemble(start, method=m, max_iterations=most) for m in ("newton", "newton_lu"))
            assert np.abs(a.state.coordinates - b.state.coordinates).max() <= 1e-9


def test_an_unknown_with_the_scale_zero_is_fixed():
    system = REGISTRY["stewart_distance"].build().system
    problem = formulations.problem(system, "manifold")
    q = formulations.to_reference(system, system.authored)
    before = q.copy()
    problem.scales = problem.scales.copy()
    problem.scales[problem.rows : problem.rows + 2] = 0.0  # x and y of the platform
    run = methods.REGISTRY["newton_lu"].run(problem, q, 1e-12, Budget(5))
    assert run.outcome is Outcome.RUNNING  # four unknowns cannot satisfy six lengths
    assert np.array_equal(q[:2], before[:2])
    assert abs(q[2] - before[2]) > 1e-3


def test_newton_lu_rejects_a_too_large_system():
    m = cd.Mechanism()
    end = m.ground.point()
    for k in range(200):
        link = m.body(f"link_{k}", position=(k, 0, 0))
        m.spherical(f"ball_{k}", end, link.point((-0.5, 0, 0)))
        end = link.point((0.5, 0, 0))
    for call in (m.assemble, lambda **options: m.assemble_many([m.state], **options)):
        with pytest.raises(cd.ModelError, match="600 × 1200 entries; it must have at most 250000: use method='newton'"):
            call(method="newton_lu")
