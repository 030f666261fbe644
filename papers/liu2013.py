"""The examples and Algorithm 1 of [Liu2013], with the misprints corrected.

Two bodies have a common, fixed origin; one of them can rotate.  A point P = r + A s^P of such a body is a vector A s^P
from the origin.  The only unknowns are the four Euler parameters of the movable body (or its rotation on the manifold):
equations (21) and (22) of the paper, with q = p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

import numpy as np

from cardan.analysis.chunks import Progress, run_chunks, worker_count
from cardan.constraints import primitives
from cardan.constraints.registry import FeatureKind
from cardan.coordinates import formulations
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.mechanism import Mechanism
from cardan.solvers import methods
from cardan.solvers.problem import Job, Problem
from cardan.solvers.tables import LU_FIRST, PSEUDO_ALWAYS, Control, Outcome
from cardan.system import check
from cardan.system.parts import Body, Feature
from cardan.system.relations import Bundle, Relation
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_algorithm_1 = LazyModule("papers._algorithm_1")

Inverse = Literal["lu", "pseudo"]
Vector = tuple[float, float, float]

N = 100  # iterations; with 200, Peng's formula converges from nearly all starts
MOST_N = 10**9
EPSILON = 1e-14  # on ‖Φ‖
CHUNK = 250  # starts per chunk, about 10 ms

INVERSES: dict[str, float] = {"lu": LU_FIRST, "pseudo": PSEUDO_ALWAYS}


@dataclass(frozen=True, slots=True)
class Equation:
    """One constraint between body 1 and body 2, named as in the paper; vectors and points in body axes.

    ``dot_1``: u·v.  ``dot_2``: u·(Q − P).  ``angle``: u·v − cos value.  ``distance``: |Q − P|² − value².
    u and P are on body 1, v and Q on body 2.
    """

    kind: Literal["dot_1", "dot_2", "angle", "distance"]
    u: Vector = (0.0, 0.0, 0.0)
    p: Vector = (0.0, 0.0, 0.0)
    v: Vector = (0.0, 0.0, 0.0)
    q: Vector = (0.0, 0.0, 0.0)
    value: float = 0.0


def _unit(*v: float) -> Vector:
    x, y, z = (np.array(v, dtype=float) / math.hypot(*v)).tolist()
    return x, y, z


X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)

# Table 1, except v₁′ of Example 1, which is printed as (1, 1, 1)/√5: the worked matrix requires (1, 1, 1)/√3.
EXAMPLES: dict[int, tuple[Equation, ...]] = {
    1: (
        Equation("dot_2", u=_unit(1, 1, 1), p=(4, 4, -2), q=(0, 5, 1)),
        Equation("dot_2", u=_unit(0, 2, 1), p=(10, 0, 7), q=(3, 1, -1)),
        Equation("dot_2", u=_unit(1, 1, 0), p=(0, 3, 10), q=(1, 2, 2)),
    ),
    2: (
        Equation("distance", p=(0, 0, 0), q=(0, 0, 1), value=1.0),
        Equation("distance", p=(1, 0, 0), q=(2, 1, 0), value=math.sqrt(6.0)),
        Equation("distance", p=(0, 1, 0), q=(1, 0, 2), value=math.sqrt(5.0)),
    ),
    3: (
        Equation("dot_1", u=X, v=X),
        Equation("dot_1", u=Y, v=Y),
        Equation("dot_2", u=_unit(1, 1, 1), p=(0, 1, 1), q=(1, 0, 2)),
    ),
    4: (
        Equation("angle", u=X, v=X, value=math.pi / 6.0),
        Equation("angle", u=Y, v=Y, value=math.pi / 3.0),
        Equation("distance", p=(1, -1, 0), q=(0, 1, 2), value=2.0),
    ),
}


def _check_example(example: Any, movable: Any) -> None:
    if isinstance(example, bool) or example not in EXAMPLES:
        raise ModelError(f"the example is {example!r}; it must be one of {', '.join(map(str, EXAMPLES))}")
    if isinstance(movable, bool) or movable not in (1, 2):
        raise ModelError(f"the movable body is {movable!r}; it must be 1 or 2")


def _bodies(mechanism: Mechanism, movable: int) -> tuple[Body, Body, Body]:
    """Body 1, body 2, and the movable one of them; the other is the ground."""
    rotating = mechanism.body(f"body_{movable}")
    one, two = (rotating, mechanism.ground) if movable == 1 else (mechanism.ground, rotating)
    return one, two, rotating


def system(example: int, movable: int, equations: tuple[Equation, ...] | None = None) -> System:
    """The example with points as vectors from the fixed origin: rows as in the paper, independent of r."""
    _check_example(example, movable)
    one, two, rotating = _bodies(Mechanism(f"liu2013_{example}"), movable)

    def vector(body: Body, value: Vector) -> Feature:
        return Feature(FeatureKind.VECTOR, body, tuple(map(float, value)))

    bundles = []
    for k, e in enumerate(EXAMPLES[example] if equations is None else equations):
        if e.kind == "dot_1":
            relation = Relation(primitives.dot_1, (vector(one, e.u), vector(two, e.v)))
        elif e.kind == "dot_2":
            relation = Relation(primitives.dot_2, (vector(one, e.u), vector(one, e.p), vector(two, e.q)), (0.0,))
        elif e.kind == "angle":
            relation = Relation(primitives.angle_cosine, (vector(one, e.u), vector(two, e.v)), (e.value,))
        else:
            relation = Relation(primitives.distance_squared, (vector(one, e.p), vector(two, e.q)), (e.value,))
        bundles.append(Bundle(f"{e.kind}_{k + 1}", [relation]))
    return System([rotating._record], bundles)


def mechanism(example: int, movable: int) -> Mechanism:
    """The example as a mechanism: a spherical joint at the common origin and the library's own constraints."""
    _check_example(example, movable)
    m = Mechanism(f"liu2013_{example}")
    one, two, rotating = _bodies(m, movable)
    m.spherical("origin", m.ground.point(), rotating.point())
    for k, e in enumerate(EXAMPLES[example]):
        name = f"{e.kind}_{k + 1}"
        if e.kind == "dot_1":
            m.perpendicular(name, one.frame(z=e.u), two.frame(z=e.v))
        elif e.kind == "dot_2":
            m.point_in_plane(name, two.point(e.q), one.frame(e.p, z=e.u))
        elif e.kind == "angle":
            m.angle(name, one.frame(z=e.u), two.frame(z=e.v), e.value)
        else:
            m.distance(name, one.point(e.p), two.point(e.q), e.value)
    return m


def problem(example: int, movable: int, formulation: Formulation) -> Problem:
    """Φ and J of the paper, unscaled, with r fixed; in Euler parameters the row ``pᵀp − 1`` is last, not first."""
    check.choice(formulation, "formulation", formulations.REGISTRY)
    return _fixed(formulations.problem(system(example, movable), formulation))


def _fixed(found: Problem) -> Problem:
    scales = np.ones_like(found.scales)
    scales[found.rows : found.rows + 3] = 0.0
    return Problem(found.evaluate, found.ints, found.floats, found.structure, scales, found.algebra)


def coordinates(p: Any) -> FloatArray:
    """Solver coordinates (0, p), shape (n, 7), of Euler parameters, shape (n, 4)."""
    try:
        quaternions = np.atleast_2d(np.asarray(p, dtype=np.float64))
    except (TypeError, ValueError):
        raise ModelError(f"the starts are {p!r:.100}; they must be finite numbers, shape (n, 4)") from None
    if quaternions.ndim != 2 or quaternions.shape[1] != 4 or not np.isfinite(quaternions).all() or not quaternions.size:
        raise ModelError(f"the starts have shape {quaternions.shape}; they must be finite numbers, shape (n, 4)")
    out: FloatArray = np.zeros((len(quaternions), 7))
    out[:, 3:] = quaternions
    return out


def _first_iterates(formulation: Formulation, starts: Any) -> FloatArray:
    """Solver coordinates of the starts p, normalised if the formulation has no row for |p| = 1."""
    table = coordinates(starts)
    if not formulations.REGISTRY[formulation].normalised:
        table[:, 3:] /= np.linalg.norm(table[:, 3:], axis=1, keepdims=True)
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """Results of Algorithm 1 for each start: success, iterations, final ‖Φ‖; each of shape (n,)."""

    ok: np.ndarray[Any, np.dtype[np.bool_]]
    iterations: IntArray
    norms: FloatArray

    @property
    def count(self) -> int:
        """Number of convergent cases."""
        return int(self.ok.sum())

    @property
    def mean_iterations(self) -> float:
        """Mean over the convergent cases; NaN if there is none."""
        return float(self.iterations[self.ok].mean()) if self.ok.any() else math.nan


@dataclass(frozen=True, slots=True)
class Settings:
    """Inputs of Algorithm 1: N, ε and how J is inverted.

    ``lu``: J⁻¹ by LU, or J⁺ if a pivot does not exceed n × 2.2e-16 × max|J_ij|, where n is the number of free unknowns,
    here four (three on the manifold and in Euler angles).  ``pseudo``: J⁺ in every step.
    """

    iterations: int = N
    epsilon: float = EPSILON
    inverse: Inverse = "lu"

    def __post_init__(self) -> None:
        check.count(self.iterations, "N", 1, MOST_N)
        check.positive(self.epsilon, "ε")
        check.choice(self.inverse, "inverse", INVERSES)


def algorithm_1(
    example: int,
    movable: int,
    formulation: Formulation,
    starts: Any,
    settings: Settings | None = None,
    *,
    workers: int | None = 1,
    progress: Progress | None = None,
) -> Convergence:
    """Algorithm 1 from every start p, shape (n, 4); ``euler_parameters`` is eq. 8, ``virtual_rotation`` Peng's eq. 6b.

    On the manifold and in Euler angles a start is a rotation: p is normalised first.
    """
    settings = settings or Settings()
    threads = worker_count(workers)
    p = problem(example, movable, formulation)
    table = _first_iterates(formulation, starts)
    count = len(table)
    flat = table.reshape(-1)
    ends: FloatArray = np.zeros((count, _algorithm_1.End.size))

    def make_worker(_: Event) -> Callable[[int, int], None]:
        job = _job(p, settings)
        Control(job.control).chunk = settings.iterations
        q = np.empty(7)

        def worker(first: int, last: int) -> None:
            _algorithm_1.run_many(job.table, flat, first, last, job.control, job.work, q, ends.reshape(-1))

        return worker

    run_chunks(count, CHUNK, make_worker, threads, progress)
    iterations = ends[:, _algorithm_1.End.iterations.first].astype(np.int64)
    # "if n == N return Failed", even if the last step converged
    ok = (ends[:, _algorithm_1.End.outcome.first] == int(Outcome.CONVERGED)) & (iterations < settings.iterations)
    return Convergence(ok, iterations, ends[:, _algorithm_1.End.norm.first].copy())


def _job(p: Problem, settings: Settings) -> Job:
    """Algorithm 1 on a problem, initialised for a run."""
    job = Job(p, methods.load("_algorithm_1"), {"inverse": INVERSES[settings.inverse]})
    job.start(settings.epsilon)
    return job


def trace(
    example: int, movable: int, formulation: Formulation, start: Any, settings: Settings | None = None
) -> tuple[FloatArray, FloatArray]:
    """The iterates p, shape (n + 1, 4), and ‖Φ‖ at each, shape (n + 1,), of :func:`algorithm_1` from one start."""
    settings = settings or Settings()
    p = problem(example, movable, formulation)
    q = _first_iterates(formulation, start)[0]
    job = _job(p, settings)
    iterates, norms = [q[3:].copy()], [float(np.linalg.norm(p.residual(q)))]
    while len(norms) <= settings.iterations and norms[-1] > settings.epsilon:
        job.iterate(q, 1)
        iterates.append(q[3:].copy())
        norms.append(math.sqrt(2.0 * Control(job.control).cost))
        if not math.isfinite(norms[-1]):
            break
    return np.array(iterates), np.array(norms)


@dataclass(frozen=True, slots=True, eq=False)
class Worked:
    """The worked iteration of Example 1, body 1 movable, Peng's formula: q₀, A(q₀), the matrix (22), q₁, A(q₁)."""

    q_0: FloatArray
    matrix_0: FloatArray
    jacobian: FloatArray
    q_1: FloatArray
    matrix_1: FloatArray

    def text(self) -> str:
        """The matrices as printed, with four decimals."""

        def row(values: FloatArray) -> str:
            return "  ".join(f"{value:z8.4f}" for value in values)

        lines = ["q₀ = " + row(self.q_0), "matrix (22):"]
        lines += ["     " + row(line) for line in self.jacobian]
        lines += ["q₁ = " + row(self.q_1), "A(q₁), no longer orthogonal:"]
        lines += ["     " + row(line) for line in self.matrix_1]
        return "\n".join(lines)


WORKED_START = (0.5, -0.5, -0.5, 0.5)


def worked_iteration() -> Worked:
    """The first step from q₀ = (½, −½, −½, ½), rows in the paper's order: normalisation first."""
    from cardan.math import euler

    found = problem(1, 1, "virtual_rotation")
    q = coordinates(WORKED_START)[0]
    jacobian = np.roll(found.jacobian(q)[1][:, 3:], 1, axis=0)
    iterates, _ = trace(1, 1, "virtual_rotation", WORKED_START, Settings(iterations=1))
    return Worked(iterates[0], euler.matrix(iterates[0]), jacobian, iterates[1], euler.matrix(iterates[1]))
