"""The spring step: its measure of length, its bound, its options, and the same bits on any number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations, parallel_springs
from cardan.examples import REGISTRY, random_start
from cardan.solvers import methods
from cardan.solvers.problem import Job
from cardan.solvers.tables import Control
from cardan.system.state import Pose
from papers import minima, parallel

LONGEST = cd.SpringOptions(gain=math.inf)


def scattered(links, seed):
    poses = parallel.scattered(links, seed)
    return {f"link_{k + 1}": Pose(p[:3], p[3:]) for k, p in enumerate(poses)}


@pytest.mark.slow
@pytest.mark.parametrize("options", [cd.SpringOptions(), LONGEST], ids=["k = 0.1", "longest"])
def test_iterations_depend_little_on_the_number_of_links(options):
    """Median of five starts each, to gaps of 1e-3 links, through assemble."""
    medians = []
    for links in (20, 80, 320, 1280):
        m = parallel.chain(links)
        limits = {"method": "gradient", "tolerance": 1e-3 / m.system.length, "spring": options}
        found = [m.assemble(scattered(links, seed), **limits) for seed in range(5)]
        assert all(result.ok for result in found)
        medians.append(np.median([result.iterations for result in found]))
    assert max(medians) < 2.0 * min(medians), medians
    assert max(medians) < 600


def squared_rod():
    """A body near the point from which it shall have a distance of 1: the gradient of d² − 1 is almost zero."""
    m = cd.Mechanism()
    body = m.body("body", position=(0.001, 0, 0))
    m.distance("rod", m.ground.point(), body.point(), 1.0, squared=True)
    return m


def geared():
    """A stiff gear: λ_max of JᵀJ is about 1600."""
    m = cd.Mechanism()
    hinges = []
    for k, x in enumerate((0.0, 3.0)):
        wheel = m.body(f"wheel_{k}", position=(x, 0.2, 0.1), orientation=(np.cos(0.1 + k), 0, 0, np.sin(0.1 + k)))
        hinges.append(m.revolute(f"hinge_{k}", m.ground.frame((x, 0, 0), x=(1, 0, 0)), wheel.frame(x=(1, 0, 0))))
    m.gear("mesh", *hinges, ratio=40.0)
    return m


def costs(m, start, gain, steps, formulation="manifold"):
    """½|C|² after each iteration, in the measure of the spring step, by NumPy from the poses."""
    system = m.system
    length = system.judged_length
    plain = formulations.problem(system, formulation, length, 0.0)
    problem = formulations.with_springs(system, formulation, plain, length)
    q = formulations.to_reference(system, m.state.moved(start).coordinates if start else system.authored)
    job = Job(problem, methods.load("_gradient"), {"step_gain": gain})
    job.start(0.0)
    found = []
    for _ in range(steps):
        r = problem.springs[: problem.rows] * problem.residual(q)
        found.append(0.5 * float(r @ r))
        if job.iterate(q, 1):
            break
    return np.array(found), q


@pytest.mark.parametrize("gain", [0.1, math.inf])
@pytest.mark.parametrize("name", ["squared rod", "stiff gear", "rsur", "stewart_distance", "planetary_gear"])
def test_the_cost_never_rises_by_more_than_rounding(name, gain):
    own = {"squared rod": squared_rod, "stiff gear": geared}
    m = own[name]() if name in own else REGISTRY[name].build()
    start = None if name in own else random_start(m, 2)
    found, _ = costs(m, start, gain, 400)
    assert (np.diff(found) <= 1e-14 * np.sqrt(found[:-1])).all()
    assert found[-1] < 0.9 * found[0]


@pytest.mark.parametrize("options", [cd.SpringOptions(), LONGEST])
def test_a_squared_distance_is_met_from_a_point_with_almost_no_gradient(options):
    found = squared_rod().assemble(method="gradient", spring=options)
    assert found.ok
    assert np.abs(found.state["body"].position - [1, 0, 0]).max() <= 1e-11


def majorant(J, groups, constraints):
    """D of each group: Σ over constraints of the product of bounds on norms, by NumPy."""

    def norm(block):
        S = block.T @ block
        n, t = len(S), np.trace(S)
        return np.sqrt(t / n + np.sqrt(max(0.0, (1 - 1 / n) * ((S * S).sum() - t * t / n))))

    found = np.zeros(len(groups))
    for rows in constraints:
        norms = np.array([norm(J[rows][:, group]) for group in groups])
        found += norms * norms.sum()
    return found


@pytest.mark.parametrize("name", ["rsur", "stewart_ups", "planetary_gear"])
def test_the_step_is_that_of_the_formulas(name):
    """One step against NumPy: κ_b = min(k, 1/D_b), and JᵀJ is at most the diagonal of D."""
    m = REGISTRY[name].build()
    system = m.system
    length = system.judged_length
    problem = formulations.with_springs(system, "manifold", formulations.problem(system, "manifold", None, 0.0), length)
    rows, unknowns = problem.rows, problem.unknowns
    q = formulations.to_reference(system, m.state.moved(random_start(m, 4)).coordinates)
    r, J = problem.jacobian(q)
    r, J = problem.springs[:rows] * r, problem.springs[:rows, None] * J * problem.springs[rows : rows + unknowns]
    groups = [np.arange(k, k + 3) for k in range(0, unknowns, 3)]
    constraints = [slice(row.start, row.start + row.primitive.rows) for row in system.rows]
    D = majorant(J, groups, constraints)
    assert np.linalg.eigvalsh(np.diag(np.repeat(D, 3)) - J.T @ J).min() >= -1e-9 * D.max()
    gain = np.minimum(0.1, 1.0 / D.reshape(-1, 2).max(axis=1))
    step = -np.repeat(gain, 6) * (J.T @ r) * problem.springs[rows : rows + unknowns]
    expected = problem.retract(q, step)
    job = Job(problem, methods.load("_gradient"), {"step_gain": 0.1})
    job.start(0.0)
    moved = q.copy()
    job.iterate(moved, 1)
    assert Control(job.control).steps == 1.0  # the first trial is accepted
    assert np.abs(moved - expected).max() <= 1e-12 * max(1.0, np.abs(q).max())


def test_lengths_are_measured_in_the_bodies():
    """Twice the largest distance of a joint point from their centroid; links of a chain have the length of a link."""
    for links in (3, 30):
        assert formulations.body_extents(parallel.chain(links).system) == pytest.approx(1.0)


def test_the_step_does_not_depend_on_the_unit_of_length():
    ends = []
    for unit in (1.0, 1000.0):
        m = cd.Mechanism()
        body = m.body("body", position=(0.3 * unit, 0.1 * unit, 0), orientation=(0.9, 0.1, 0.2, 0.3))
        for k, corner in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
            point = np.array(corner) * unit
            m.distance(f"rod_{k}", m.ground.point(2 * point), body.point(point), 1.2 * unit)
        found = m.assemble(method="gradient", tolerance=1e-6)
        ends.append((found.iterations, found.state["body"].position / unit))
    assert ends[0][0] == ends[1][0]
    assert np.abs(ends[0][1] - ends[1][1]).max() <= 1e-12


def same(first, second):
    return (
        np.array_equal(first.state.coordinates, second.state.coordinates)
        and (first.iterations, first.residual, first.status) == (second.iterations, second.residual, second.status)
        and first.state.angles == second.state.angles
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gradient", "hybrid"])
@pytest.mark.parametrize("name", ["strandbeest", "rsur", "planetary_gear", "lead_screw", "folding_table"])
def test_results_are_bitwise_equal_for_any_number_of_workers(name, method):
    m = REGISTRY[name].build()
    start = random_start(m, 1)
    limits = {"method": method, "max_iterations": 16}
    one = m.assemble(start, **limits)
    for workers in (2, 3):
        assert same(one, m.assemble(start, workers=workers, **limits))
    assert np.array_equal(one.state.coordinates, m.assemble_many([start], **limits).coordinates[0])


@pytest.mark.parametrize("options", [cd.SpringOptions(stop="norm"), LONGEST])
def test_a_long_chain_is_bitwise_equal_for_any_number_of_workers(options):
    """Several groups of constraints and of bodies; also with rejected trials, which a longer step brings."""
    m = parallel.chain(700)
    limits = {"method": "gradient", "tolerance": 1e-3 / m.system.length, "max_iterations": 24, "spring": options}
    one = m.assemble(scattered(700, 3), **limits)
    assert parallel_springs.Tables(m.system, formulations.problem(m.system, "manifold")).evaluations > 4
    for workers in (2, 3):
        assert same(one, m.assemble(scattered(700, 3), workers=workers, **limits))


def test_all_formulations_are_bitwise_equal_for_any_number_of_workers():
    m = REGISTRY["rsur"].build()
    start = random_start(m, 5)
    for formulation in formulations.CHOICES:
        limits = {"method": "gradient", "formulation": formulation, "max_iterations": 20}
        one = m.assemble(start, **limits)
        assert same(one, m.assemble(start, workers=1, **limits)), formulation
        if formulation in ("manifold", "euler_angles"):
            assert same(one, m.assemble(start, workers=2, **limits)), formulation
            continue
        with pytest.raises(cd.ModelError, match=f"one thread makes the spring steps of formulation '{formulation}'"):
            m.assemble(start, workers=2, **limits)


def test_workers_with_a_free_parameter_are_refused_by_name():
    m = cd.Mechanism()
    rod = m.parameter("rod", 1.0)
    m.distance("d", m.ground.point(), m.body("b", position=(1, 0, 0)).point(), rod)
    assert m.assemble(method="gradient", free=["rod"], workers=1).ok
    with pytest.raises(cd.ModelError, match="one thread makes spring steps with free 'rod'"):
        m.assemble(method="gradient", free=["rod"], workers=2)


def test_the_rule_of_the_papers_bounds_the_norm():
    """‖C‖ < ε: the norm is larger than the largest residual, so the run ends later, and the verdict is met."""
    m = parallel.chain(60)
    limits = {"method": "gradient", "tolerance": 1e-3 / m.system.length}
    largest = m.assemble(scattered(60, 0), **limits)
    norm = m.assemble(scattered(60, 0), spring=cd.SpringOptions(stop="norm"), **limits)
    assert largest.ok and norm.ok
    assert norm.iterations > largest.iterations
    system = m.system
    r = formulations.problem(system, "manifold").residual(formulations.to_reference(system, norm.state.coordinates))
    assert np.linalg.norm(r / system.length) <= 0.25 * limits["tolerance"]  # solvers aim at a quarter


def test_hybrid_reaches_the_solution_within_its_budget():
    """Half of the iterations are left for Newton, and the spring steps end where they make no progress."""
    solved = 0
    for seed in range(20):
        m = REGISTRY["rsur"].build()
        found = m.assemble(random_start(m, seed), method="hybrid", max_iterations=300)
        solved += found.ok
        assert found.iterations <= 300
    assert solved >= 18
    chain = parallel.chain(200).assemble(scattered(200, 1), method="hybrid")
    assert chain.ok


def test_hybrid_does_not_spend_its_spring_steps_without_getting_near():
    """Newton takes over where the present rate would not lead to the switch."""
    mechanism = REGISTRY["rsur"].build()
    poses = minima.starting_poses(mechanism, 30, 0)
    starts = [{name: (p[:3], p[3:]) for name, p in zip(mechanism.bodies, own, strict=True)} for own in poses]
    found = [mechanism.assemble(start, method="hybrid") for start in starts]
    assert sum(result.ok for result in found) >= 29
    assert sum(result.iterations >= 500 for result in found) <= 1
    batch = mechanism.assemble_many(starts, method="hybrid")
    assert batch.iterations.tolist() == [result.iterations for result in found]


def test_options_change_the_run():
    m = parallel.chain(20)
    limits = {"method": "gradient", "tolerance": 1e-3 / m.system.length}
    runs = {
        name: m.assemble(scattered(20, 0), spring=cd.SpringOptions(**options), **limits).iterations
        for name, options in {
            "k": {"gain": 0.1},
            "small": {"gain": 0.02},
            "bound": {"gain": math.inf, "bound": 0.1},
        }.items()
    }
    assert runs["small"] > 3 * runs["k"]
    assert runs["bound"] > 2 * m.assemble(scattered(20, 0), spring=LONGEST, **limits).iterations
    early = m.assemble(scattered(20, 0), method="hybrid", spring=cd.SpringOptions(switch_steps=3))
    assert early.ok and early.iterations < 40
    assert m.assemble(scattered(20, 0), method="hybrid", spring=cd.SpringOptions(switch_residual=1e-4)).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gain": 0.0}, "the gain k of the spring step is 0.0"),
        ({"bound": 2.0}, "the bound of the spring step is 2.0; it must be at most 1"),
        ({"stop": "sum"}, "stop"),
        ({"switch_steps": -1}, "switch_steps is -1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(cd.ModelError, match=message):
        cd.SpringOptions(**options)


def test_other_methods_have_no_spring_steps():
    m = REGISTRY["rsur"].build()
    with pytest.raises(cd.ModelError, match="has no spring steps"):
        m.assemble(spring=cd.SpringOptions())
    with pytest.raises(cd.ModelError, match="workers is 2, but method 'auto' uses one thread"):
        m.assemble(workers=2)
    with pytest.raises(cd.ModelError, match=r"it must be a cardan\.SpringOptions"):
        m.assemble(method="gradient", spring=0.1)
    with pytest.raises(cd.ModelError, match="workers is 0"):
        m.assemble(method="gradient", workers=0)
