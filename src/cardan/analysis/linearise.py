"""The constraint equations in public: value, Jacobian and γ, and Jacobians of points and frames.

The Jacobians that users read are those of the solvers, with the origins of the bodies in place of their reference
points: with r_ref = r + A s,  δr_ref = δr + A (δθ × s), and  r̈_ref = r̈ + A (ω̇ × s + ω × (ω × s)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations, rates
from cardan.errors import ModelError
from cardan.joints.ownership import check_body, check_own, named_body
from cardan.joints.registry import Joint
from cardan.math import euler
from cardan.solvers.linear import constraints
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.parts import Body, Frame, Point
from cardan.system.state import FloatArray, State
from cardan.system.system import System

DENSE_ENTRIES: Final = 1_000_000  # of a Jacobian: a larger one is sparse
WIDTH: Final = 6  # columns of a body
ORIGIN: Final = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # a reference frame that is the body's own
UNDETERMINED: Final = 1e-6  # of a unit motion that the drivers leave free: a point that moves less is determined
COORDINATES: Final = {"manifold": WIDTH, "euler_parameters": 7}  # the forms of equations, and columns of a body
UNMET: Final = 1e-8  # of a unit rate of a driver: a larger residual of the joints means that it is locked


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintEquations:
    """The equations C(q, t) = 0 of a mechanism or of one joint, and A(q) v = b(t) of rate rows, linearised in a state.

    ``value`` C [m or rad], shape (rows,); of rate rows A v − b [m/s or rad/s], nan if the state has no velocities.
    ``jacobian`` C_q or A, shape (rows, 6·bodies): an array, or a scipy.sparse array where it is large.  For each body,
    in the order of ``bodies``: three columns for δr [m] of its origin in world axes, and three for δθ [rad] in body
    axes, p ← p ⊗ exp(δθ/2).  ``rate`` = −C_t or b: velocities (ṙ in world, ω in body axes) obey  C_q v = rate.
    ``gamma``: accelerations obey  C_q v̇ = gamma, which contains −C_tt; None if the state has no velocities.
    ``rows``: of each row its constraint, its primitive, its number in the primitive, and its unit.
    ``guards``, shape (rows,): rows that only exclude wrong solutions or are limits, and no equations.
    ``of_rates``, shape (rows,): rows of velocities alone.

    ``coordinates``: "manifold", as above; or "euler_parameters": seven columns per body, for ṙ and ṗ, as the derivative
    by p of any length (A(p) is quadratic in p), and γ for r̈ and p̈.  Behind the rows of all constraints is then a row
    pᵀp − 1 for each body, with the body as its constraint.
    """

    value: FloatArray
    jacobian: Any
    rate: FloatArray
    gamma: FloatArray | None
    rows: tuple[tuple[str, str, int, str], ...]
    guards: NDArray[np.bool_]
    bodies: tuple[str, ...]
    of_rates: NDArray[np.bool_]
    coordinates: str = "manifold"

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.jacobian, np.ndarray) else "sparse"
        return f"<ConstraintEquations: {len(self.rows)} rows, {self.jacobian.shape[1]} columns, {kind}>"


def constraint_equations(
    drawing: Drawing, given: State | None, joint: Any, sparse: bool | None, coordinates: Any = "manifold"
) -> ConstraintEquations:
    """See :meth:`cardan.Mechanism.constraint_equations`."""
    state = drawing.checked_state("constraint_equations", given)
    check_own(drawing.contents, "constraint_equations", joint)
    check_coordinates("constraint_equations", coordinates)
    system = drawing.at(state).system.rated
    named = [
        (row.constraint, row.primitive.name, k, row.primitive.units[k] + ("/s" if row.primitive.of_rates else ""))
        for row in system.rows
        for k in range(row.primitive.rows)
    ]
    kinds = [
        (k in row.primitive.guards, row.primitive.of_rates) for row in system.rows for k in range(row.primitive.rows)
    ]
    guards, of_rates = np.array(kinds, dtype=bool).reshape(-1, 2).T
    linearised = _on_manifold if coordinates == "manifold" else _in_euler_parameters
    value, jacobian, rate, gamma, v = linearised(system, state)
    value[: len(named)][of_rates] = np.nan if v is None else (jacobian @ v - rate)[: len(named)][of_rates]
    chosen = _rows_of(system, joint, named)
    if joint is None and value.size > len(named):
        named += [(name, "unit_quaternion", 0, "1") for name in system.names]
        chosen = list(range(len(named)))
        guards, of_rates = (np.append(flags, np.zeros(len(system.names), dtype=bool)) for flags in (guards, of_rates))
    entries = jacobian.shape[0] * jacobian.shape[1]
    is_sparse = entries > DENSE_ENTRIES if sparse is None else check.flag(sparse, "sparse")
    if len(chosen) < value.size:
        jacobian = jacobian[chosen]
    return ConstraintEquations(
        value[chosen],
        jacobian if is_sparse else jacobian.toarray(),
        rate[chosen],
        None if gamma is None else gamma[chosen],
        tuple([named[k] for k in chosen]),
        guards[chosen],
        system.names,
        of_rates[chosen],
        coordinates,
    )


def check_coordinates(what: str, coordinates: Any) -> None:
    """ModelError if equations are asked for in unknown coordinates."""
    if not isinstance(coordinates, str) or coordinates not in COORDINATES:
        raise ModelError(
            f"{what} was given coordinates={coordinates!r}; it must be {' or '.join(map(repr, COORDINATES))}"
        )


class _Linearised(NamedTuple):
    """C, C_q in compressed rows, −C_t, γ and the velocities; the last two are None if the state has no velocities."""

    value: FloatArray
    jacobian: Any
    rate: FloatArray
    gamma: FloatArray | None
    v: FloatArray | None


def _on_manifold(system: System, state: State) -> _Linearised:
    """In columns of δr of the origins and δθ."""
    q = _solver_coordinates(system, state)
    problem = formulations.problem(system, "manifold", time=state.time)
    value, entries = problem.entries(q)
    rate, driven = rates.driver_rates(system, problem, state.time, q)
    jacobian = _at_origins(system, problem, q, entries)
    if state.velocities is None:
        return _Linearised(value, jacobian, rate, None, None)
    v = np.array(state.velocities)
    arms, turned = _arms(system, q)
    swung = np.cross(v[:, 3:], arms)
    centripetal = np.einsum("kij,kj->ki", turned, np.cross(v[:, 3:], swung))
    v[:, :3] += np.einsum("kij,kj->ki", turned, swung)
    shift = np.zeros_like(v)
    shift[:, :3] = centripetal
    gamma = rates.gamma_at(system, q, v.ravel(), state.time) + driven
    gamma -= jacobian @ shift.ravel()  # only the columns of δr are used, and these are the solvers' own
    return _Linearised(value, jacobian, rate, gamma, np.array(state.velocities).ravel())


def _in_euler_parameters(system: System, state: State) -> _Linearised:
    """In columns of ṙ of the origins and ṗ, with a row pᵀp − 1 for each body at the end."""
    form, count = "euler_parameters", len(system.names)
    here: System = system.cached("at origins", lambda: system.with_references(np.tile(ORIGIN, (count, 1))))
    q = _solver_coordinates(here, state)
    problem = formulations.problem(here, form, time=state.time)
    value, entries = problem.entries(q)
    plain = formulations.problem(here, "manifold", time=state.time)
    rate, driven = (np.append(one, np.zeros(count)) for one in rates.driver_rates(here, plain, state.time, q))
    jacobian = _compressed(problem, entries, COORDINATES[form])
    if state.velocities is None:
        return _Linearised(value, jacobian, rate, None, None)
    p = q[: layout.POSE * count].reshape(count, layout.POSE)[:, 3:]
    dp = euler.rate_from_body(p, np.asarray(state.velocities)[:, 3:])
    v = np.concatenate([np.asarray(state.velocities)[:, :3], dp], axis=1).ravel()
    gamma = formulations.gamma(here, form, q, v, here.floats_at(state.time) if here.timed else None)
    return _Linearised(value, jacobian, rate, gamma + driven, v)


def _rows_of(system: System, joint: Any, named: Sequence[tuple[str, str, int, str]]) -> list[int]:
    if joint is None:
        return list(range(len(named)))
    name = joint.name if isinstance(joint, Joint) else joint
    if not isinstance(name, str) or name not in system.constraints:
        raise check.unknown(name, "constraint", dict.fromkeys(system.constraints))
    return [k for k, row in enumerate(named) if row[0] == name]


def _solver_coordinates(system: System, state: State) -> FloatArray:
    near = np.array([state.angles.get(key, 0.0) for key in system.counted_angles])
    return formulations.to_reference(system, state.coordinates, near)


def _arms(system: System, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """s of every body, origin to reference point in body axes, shape (bodies, 3), and A, shape (bodies, 3, 3)."""
    poses = q[: layout.POSE * len(system.names)].reshape(-1, layout.POSE)
    return system.reference_points, np.asarray(euler.matrix(poses[:, 3:]))


def _at_origins(system: System, problem: Problem, q: FloatArray, entries: FloatArray) -> Any:
    """The Jacobian with respect to the origins of the bodies, in compressed rows."""
    arms, turned = _arms(system, q)
    return _compressed(problem, entries, WIDTH, -turned @ euler.tilde(arms))  # δr_ref = δr + lever δθ


def _compressed(problem: Problem, entries: FloatArray, width: int, lever: FloatArray | None = None) -> Any:
    """The Jacobian in compressed rows, with that many columns per body; lever, shape (bodies, 3, 3): of δθ on δr."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

    data: list[FloatArray] = []
    columns: list[NDArray[np.int64]] = []
    counts = np.zeros(problem.rows + 1, dtype=np.int64)
    for constraint in constraints(problem.structure):
        size = constraint.rows * width * len(constraint.blocks)
        own = entries[constraint.start : constraint.start + size].reshape(constraint.rows, -1, width).copy()
        if lever is not None:
            own[:, :, 3:] += np.einsum("rbi,bij->rbj", own[:, :, :3], lever[constraint.blocks])
        numbers = (width * constraint.blocks[:, None] + np.arange(width)).ravel()
        data.append(own.ravel())
        columns.append(np.tile(numbers, constraint.rows))
        counts[constraint.first + 1 : constraint.first + 1 + constraint.rows] = numbers.size
    shape = problem.rows, problem.unknowns
    if not data:
        return csr_array(shape)
    return csr_array((np.concatenate(data), np.concatenate(columns), np.cumsum(counts)), shape=shape)


def jacobian(drawing: Drawing, of: Any, given: State | None, by: Any, sparse: bool | None) -> Any:
    """See :meth:`cardan.Mechanism.jacobian`."""
    state = drawing.checked_state("jacobian", given)
    if isinstance(of, str):
        of = named_body(drawing.contents, "jacobian", of)
    place = of if isinstance(of, Body) else getattr(of, "body", None)
    if place is not None:
        check_body(drawing.contents, "jacobian", place)
    by = by if isinstance(by, str | Joint) or not isinstance(by, Iterable) else list(by)
    for driver in by if isinstance(by, list) else [by]:
        check_own(drawing.contents, "jacobian", driver)
    system = drawing.at(state).system
    own = _of_bodies(system, of, state)
    if isinstance(by, str) and by == "bodies":
        is_sparse = own.shape[1] * 6 > DENSE_ENTRIES if sparse is None else check.flag(sparse, "sparse")
        return own if is_sparse else own.toarray()
    names = list(rates.driver_rows(system))
    if isinstance(by, str) and by == "drivers":
        if not names:
            raise ModelError(
                "jacobian was asked for by='drivers', but the mechanism has none; add one with m.drive(…), or take "
                "by='bodies'"
            )
        by = names
    wanted = [by] if isinstance(by, str | Joint) else list(by)
    drivers = [one.name if isinstance(one, Joint) else one for one in wanted]
    for name in drivers:
        if name not in names:
            raise check.unknown(name, "driver", names)
    return np.column_stack([own @ _motion(system, state, own, name) for name in drivers]) if drivers else own[:, :0]


def _of_bodies(system: System, of: Any, state: State) -> Any:
    """∂(position, orientation)/∂(bodies): rows [m] in world, and for a frame [rad] in world axes."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

    if isinstance(of, Body):
        of = of.frame()
    if not isinstance(of, Point | Frame):
        raise ModelError(f"jacobian was given {of!r}; it must be a point, a frame or a body: body.point(…)")
    rows = 3 if isinstance(of, Point) else 6
    shape = rows, WIDTH * len(system.names)
    if of.body.is_ground:
        return csr_array(shape)
    if of.body.name not in system.index:
        raise check.unknown(of.body.name, "movable body", system.names)
    A = state[of.body].matrix
    block = np.zeros((rows, WIDTH))
    block[:3, :3] = np.eye(3)
    block[:3, 3:] = -A @ euler.tilde(np.array(of.feature().at(state.variables)))
    if rows == 6:
        block[3:, 3:] = A
    first = WIDTH * system.index[of.body.name]
    at = np.tile(np.arange(first, first + WIDTH), rows)
    return csr_array((block.ravel(), at, WIDTH * np.arange(rows + 1)), shape=shape)


def _motion(system: System, state: State, own: Any, driver: str) -> FloatArray:
    """Velocities of the bodies, flat, at a unit rate of one driver, the others at rest."""
    q = _solver_coordinates(system, state)
    problem = formulations.problem(system, "manifold", time=state.time)
    known = rates.linearize(system, problem, q)
    demanded = np.zeros(problem.rows)
    demanded[rates.driver_rows(system)[driver]] = 1.0
    v = known.solve(demanded)
    weights = rates.weights(system, problem)
    if np.abs(weights * (problem.product(q, v) - demanded)).max() > UNMET * weights.max():
        raise ModelError(f"driver {driver!r} cannot move in this state: the joints or other drivers lock it")
    columns = problem.scales[problem.rows :]
    if known.is_free:
        for w in known.free_motions():
            free, _ = rates.at_origins(system, q, columns * w, 0.0 * w)
            if np.abs(own @ free.ravel()).max() > UNDETERMINED * columns.max():
                raise ModelError("the drivers leave this point or frame free to move; drive the other freedoms too")
    found, _ = rates.at_origins(system, q, v, 0.0 * v)
    return found.ravel()
