"""Kernels index pointers without checks.  In these tests all their arrays have guards, which must not be overwritten.

Uninitialised arrays are filled with NaN or invalid indices: a kernel that reads an element before writing it gives
another result, or crashes.  The pieces of a workspace have no guards between them: without the JIT each is an array of
its own size, and access beyond its end raises an error.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.starts import start_coordinates
from cardan.coordinates import formulations, parallel_springs, relative
from cardan.coordinates.tables import TreeWork
from cardan.examples import REGISTRY, random_start
from cardan.kernel.memory import JIT_DISABLED
from cardan.solvers import linear, methods
from cardan.solvers.problem import Algebra, Budget, Problem
from cardan.system.state import Pose
from layers import sampled
from papers import descent, liu2013, parallel

SMALL = ("rsur", "planar_4r", "stewart_distance", "lead_screw", "planetary_gear", "folding_table")
GUARD = 64  # elements on either side
MARK = -77


class Guards:
    """Replaces NumPy's empty, zeros and empty_like by versions with guards on both sides of the array."""

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

    @staticmethod
    def make_like(plain, empty):
        return lambda prototype, **options: plain(prototype, **options) if options else empty(*_form(prototype))

    @contextmanager
    def standing(self):
        plain = np.empty, np.zeros, np.empty_like
        np.empty = self.make(np.empty, {"d": np.nan, "l": 1 << 40})
        np.zeros = self.make(np.zeros, {"d": 0.0, "l": 0})
        np.empty_like = self.make_like(np.empty_like, np.empty)
        try:
            yield
        finally:
            np.empty, np.zeros, np.empty_like = plain
        for whole in self.whole:
            assert (whole[:GUARD] == MARK).all(), f"before an array of {whole.size - 2 * GUARD}"
            assert (whole[-GUARD:] == MARK).all(), f"after an array of {whole.size - 2 * GUARD}"


def _form(array):
    return np.shape(array), np.asarray(array).dtype


def compare(run):
    """run() returns the same array with and without guards.  The run with guards is first: it fails without a crash."""
    guards = Guards()
    with guards.standing():
        guarded = run()
    assert len(guards.whole) >= 2
    assert np.array_equal(guarded, run(), equal_nan=True)


@pytest.mark.parametrize("method", ["auto", *methods.REGISTRY])
@pytest.mark.parametrize("formulation", formulations.CHOICES)
@sampled("name", SMALL)
def test_no_solver_exceeds_its_workspace(name, formulation, method):
    def run():
        m = REGISTRY[name].build()
        start = random_start(m, 3)
        return m.assemble(start, formulation=formulation, method=method, max_iterations=60).state.coordinates

    compare(run)


@cd.primitive(i="point", j="point", k="point", l="point")
def even(i, j, k, l):
    """Three rows of twelve components: the constraint with the most rows and the most components."""
    return (j - i) - (l - k)


def own():
    """A driven crank, an arm with limits, and a user's constraint that keeps the arm parallel."""
    m = cd.Mechanism()
    crank, arm = m.body("crank"), m.body("arm", position=(0.1, 1.9, 0), orientation=(0.9, 0, 0, 0.1))
    hinge = m.revolute("hinge", m.ground.frame(), crank.frame())
    pivot = m.revolute("pivot", m.ground.frame((0, 2, 0)), arm.frame())
    ends = {"i": crank.point((1, 0, 0)), "j": arm.point((1, 0, 0))}
    m.constrain("parallel", even, **ends, k=m.ground.point(), l=m.ground.point((0, 2, 0)))
    m.drive("motor", hinge, lambda t: 0.3 + 0.5 * t)
    m.limit("stops", pivot, lower=-0.5, upper=1.2)
    return m


def contradictory():
    """Two rods between the same points, one longer than the other."""
    m = cd.Mechanism()
    a, b = m.body("a", position=(0.3, 0, 0)), m.body("b", position=(1, 0.2, 0))
    m.spherical("ball", m.ground.point(), a.point((-1, 0, 0)))
    for name, length in (("long", 1.0), ("short", 0.9)):
        m.distance(name, a.point((1, 0, 0)), b.point((0, 1, 0)), length)
    return m


BUILDERS = {**{name: REGISTRY[name].build for name in SMALL}, "own": own, "contradictory": contradictory}


def many(name, formulation, count=6, **options):
    """assemble_many from random starts; the last start is the authored pose."""
    m = BUILDERS[name]()
    starts = [*(random_start(m, seed) for seed in range(count - 1)), m.state]
    found = m.assemble_many(starts, formulation=formulation, workers=2, **options)
    numbers = (found.coordinates, found.angles, found.residual, found.iterations, found.restarts)
    return np.concatenate([np.asarray(part, dtype=float).ravel() for part in numbers])


@pytest.mark.parametrize("method", ["auto", "newton_lu", "hybrid", "gradient"])
@pytest.mark.parametrize("formulation", formulations.CHOICES)
@sampled("name", ["own", *SMALL], 1)
def test_many_starts_do_not_exceed_their_workspaces(name, formulation, method):
    options = {"restarts": 2} if method == "auto" else {"method": method, "max_iterations": 60}
    compare(lambda: many(name, formulation, **options))


@pytest.mark.parametrize("formulation", formulations.CHOICES)
@pytest.mark.parametrize(
    "name, options",
    [
        ("stewart_distance", {"restarts": 3, "max_iterations": 4}),  # every attempt fails; the cost of each is compared
        ("contradictory", {"restarts": 4}),
        ("contradictory", {"restarts": 20}),  # the contradiction is detected
        ("folding_table", {"restarts": 3, "max_iterations": 3}),
        ("lead_screw", {"restarts": 3, "max_iterations": 3}),  # whole turns are counted again
        ("rsur", {"restarts": 3, "tolerance": 1e-15}),  # ends near the solution, where the verdict decides
        ("own", {"restarts": 3, "tolerance": 1e-15}),
    ],
)
def test_failed_attempts_do_not_exceed_their_workspaces(name, options, formulation):
    compare(lambda: many(name, formulation, **options))


@sampled("method", ["auto", "newton", "gradient"], 1)
@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "relative"])
def test_linear_algebra_of_large_systems_does_not_exceed_its_workspace(formulation, method):
    def run():
        m = parallel.chain(150)
        start = {f"link_{k + 1}": Pose(p[:3], p[3:]) for k, p in enumerate(parallel.scattered(150, 1))}
        return m.assemble(start, formulation=formulation, method=method, max_iterations=30).state.coordinates

    compare(run)


@pytest.mark.parametrize("inverse", liu2013.INVERSES)
@pytest.mark.parametrize("formulation", formulations.REGISTRY)
def test_algorithm_1_does_not_exceed_its_workspace(formulation, inverse):
    starts = np.random.default_rng(1).uniform(-1, 1, (30, 4))
    settings = liu2013.Settings(inverse=inverse)
    compare(lambda: liu2013.algorithm_1(2, 2, formulation, starts, settings).norms)


@pytest.mark.parametrize("links", [1, 2, 300])
def test_the_spring_iteration_does_not_exceed_its_workspace(links):
    def run():
        springs = parallel.Springs(parallel.scattered(links, 0))
        springs.run(3, 2)
        return springs.poses

    compare(run)


@pytest.mark.parametrize("formulation", formulations.CHOICES)
@sampled("name", [*SMALL, "own"])
def test_single_steps_do_not_exceed_their_workspace(name, formulation):
    def run():
        m = BUILDERS[name]()
        session = m.session(random_start(m, 3), closed=False, formulation=formulation)
        for _ in range(15):
            session.step()
        return np.append(session.state.coordinates, session.residual)

    compare(run)


@pytest.mark.parametrize("name", ["slider_crank", "planetary_gear", "lead_screw", "folding_table", "own"])
def test_a_motion_does_not_exceed_its_workspace(name):
    def run():
        m = own() if name == "own" else REGISTRY[name].build()
        states = m.move(np.linspace(0.0, 0.4, 4)).states
        assert states
        parts = [(state.coordinates.ravel(), state.velocities, state.accelerations) for state in states]
        return np.concatenate([np.ravel(number) for part in parts for number in part])

    compare(run)


@pytest.mark.parametrize("name", [*SMALL, "own", "contradictory"])
def test_a_diagnosis_does_not_exceed_its_workspace(name):
    def run():
        m = BUILDERS[name]()
        found = m.diagnose(m.assemble(restarts=1).state)
        numbers = [found.dof, found.rank, found.residual, *found.singular_values]
        return np.array([*numbers, *(violation.residual for violation in found.residuals)])

    compare(run)


@pytest.mark.parametrize("formulation", formulations.CHOICES)
@sampled("name", [*SMALL, "own"])
def test_single_evaluations_do_not_exceed_their_workspace(name, formulation):
    """f, J, J x, a retraction, residuals along steps; γ if the formulation has velocities of bodies."""

    def run():
        m = BUILDERS[name]()
        p, poses = formulations.problem(m.system, formulation), formulations.to_reference(m.system, m.system.authored)
        q = formulations.enter(m.system, formulation, poses)
        x = np.linspace(-0.1, 0.2, p.unknowns)
        ways = p.residuals(q, np.outer([0.5, 1.0], x), np.empty(0, dtype=np.int64), np.empty((2, 0)))
        parts = [p.residual(q), *p.jacobian(q), p.product(q, x), p.retract(q, x), ways]
        if formulation in formulations.REGISTRY:
            parts.append(formulations.gamma(m.system, formulation, poses, x))
        return np.concatenate([np.ravel(part) for part in parts])

    compare(run)


@pytest.mark.parametrize("formulation", formulations.REGISTRY)
@pytest.mark.parametrize("name", ["rsur", "planetary_gear", "own"])
def test_a_descent_does_not_exceed_its_workspace(name, formulation):
    def run():
        m = BUILDERS[name]()
        starts = np.array([start_coordinates(m.system, random_start(m, seed)) for seed in range(3)])
        found = descent.descend(m.system, formulation, starts, 1e-2, 40, threads=2)
        return np.concatenate([found.coordinates.ravel(), found.found.ravel(), found.iterations])

    compare(run)


# --- pieces of a workspace --------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("method", ["levenberg_marquardt", "newton", "newton_lu", "gradient"])
@pytest.mark.parametrize("formulation", formulations.CHOICES)
@sampled("name", ["planar_4r", "stewart_distance", "lead_screw", "own"], 2)
def test_no_piece_of_a_workspace_overflows_into_another(name, formulation, method):
    """Without the JIT every piece is an array of its own size."""

    def run():
        m = BUILDERS[name]()
        options = {"formulation": formulation, "method": method, "max_iterations": 2}
        return m.assemble(random_start(m, 3), **options).state.coordinates

    compare(run)


ALGEBRAS = {"dense": linear._dense, "sparse": linear.sparse, "dual": linear.dual}


def solve_with(algebra, formulation, method, short=0):
    """Three iterations with linear algebra whose matrices have ``short`` floats too few."""
    m = own()
    p = formulations.problem(m.system, formulation)
    found = algebra(p.structure)
    found = Algebra(found.address, found.pattern, found.work - short, found.cost)
    p = Problem(p.evaluate, p.ints, p.floats, p.structure, p.scales, found)
    q = formulations.enter(m.system, formulation, formulations.to_reference(m.system, m.system.authored))
    methods.REGISTRY[method].run(p, q, 1e-12, Budget(3))
    return q


@pytest.mark.nojit
@pytest.mark.parametrize("algebra", ALGEBRAS.values(), ids=ALGEBRAS)
@pytest.mark.parametrize("formulation", ["manifold", "relative"])
@pytest.mark.parametrize("method", ["levenberg_marquardt", "newton"])
def test_no_piece_of_the_linear_algebra_overflows_into_another(algebra, formulation, method, monkeypatch):
    monkeypatch.setattr(methods.load("_newton"), "DENSE", 0)
    compare(lambda: solve_with(algebra, formulation, method))


def one_short(sizes):
    return lambda *arguments: sizes(*arguments) - 1


only_without_the_jit = pytest.mark.skipif(not JIT_DISABLED, reason="compiled kernels do not check bounds")


@pytest.mark.nojit
@only_without_the_jit
@pytest.mark.parametrize("method", ["levenberg_marquardt", "newton", "gradient", "newton_lu"])
def test_no_piece_of_a_workspace_can_be_shorter(method, monkeypatch):
    """If any piece is one element shorter, the kernel writes beyond its end."""
    module = methods.load(methods.REGISTRY[method].stages[0].kernel)
    whole = module.pieces
    m = own()
    problem = formulations.problem(m.system, "manifold")
    pieces = whole(problem.sizes, problem.algebra.work)
    assert [*module.Work.pieces][-len(pieces) :] == [*pieces]
    for short in pieces:
        monkeypatch.setattr(module, "pieces", lambda *p, k=short: {n: size - (n == k) for n, size in whole(*p).items()})
        with pytest.raises((IndexError, ValueError)), monkeypatch.context() as sparse:
            m.assemble(random_start(m, 3), method=method, max_iterations=12)
            sparse.setattr(module, "DENSE", 0, raising=False)  # Newton's other linear algebra has pieces of its own
            m.assemble(random_start(m, 3), method=method, max_iterations=12)


@pytest.mark.nojit
@only_without_the_jit
@pytest.mark.parametrize("formulation", formulations.CHOICES)
def test_the_workspace_of_an_evaluator_cannot_be_shorter(formulation, monkeypatch):
    def shortened(ints, plan=formulations._records.plan_workspace):
        return plan(ints)._replace(size=plan(ints).size - 1)

    for module in (formulations._records, relative._records):
        monkeypatch.setattr(module, "plan_workspace", shortened)
    with pytest.raises(IndexError):
        own().assemble(method="newton", formulation=formulation, max_iterations=2)


@pytest.mark.nojit
@only_without_the_jit
@pytest.mark.parametrize("part", TreeWork.pieces)
def test_no_part_of_the_workspace_in_joint_coordinates_can_be_shorter(part, monkeypatch):
    whole = TreeWork.plan
    monkeypatch.setattr(TreeWork, "plan", lambda **sizes: whole(**{**sizes, part: sizes[part] - 1}))
    with pytest.raises(IndexError):
        own().assemble(method="newton", formulation="relative", max_iterations=2)


@pytest.mark.nojit
@only_without_the_jit
@pytest.mark.parametrize("algebra", ALGEBRAS.values(), ids=ALGEBRAS)
def test_the_matrices_of_linear_algebra_cannot_be_shorter(algebra):
    with pytest.raises(IndexError):
        solve_with(algebra, "manifold", "levenberg_marquardt", short=1)


@pytest.mark.nojit
@only_without_the_jit
def test_the_workspace_of_springs_cannot_be_shorter(monkeypatch):
    whole = parallel_springs.Tables.__init__
    spare = 9  # of 3 × 9: the constraint with the most components has fewer rows than the tallest, which has 3 × 6

    def shortened(self, *given):
        whole(self, *given)
        self.work -= spare + 1

    monkeypatch.setattr(parallel_springs.Tables, "__init__", shortened)
    with pytest.raises(IndexError):
        parallel.Springs(parallel.scattered(5, 0)).run(1, threads=2)


def test_guards_detect_a_write_beyond_the_end():
    guards = Guards()
    with pytest.raises(AssertionError, match="after an array of 5"), guards.standing():
        np.empty(5)
        guards.whole[0][GUARD + 5] = 0.0
    assert np.empty.__module__ == "numpy"
