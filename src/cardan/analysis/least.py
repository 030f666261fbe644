"""Of all assemblies that free parameters allow, the one of least cost.

    minimise c(v)  subject to  f(q, v) = 0,  bounds on v,

by Newton's method in the null space Z of J, in scaled unknowns.  With the multipliers λ of g + Jᵀλ = 0, g = ∂c, a step
is  −(Zᵀ H Z)⁻¹ Zᵀ g,  where H is the derivative of g + Jᵀλ, computed by differences of the exact J; the poses are then
corrected to satisfy f.  A parameter at a bound that the cost pushes outwards is fixed there, and so is a coordinate at
a limit: the row of the limit is then an equation.  [NocedalWright2006], chapter 18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cardan.analysis.limits import limit_rows
from cardan.constraints.expression import Scalar
from cardan.coordinates import formulations, rates
from cardan.errors import ModelError
from cardan.solvers.problem import Problem
from cardan.system import layout
from cardan.system.formulas import Book, Formula, evaluated
from cardan.system.state import FloatArray
from cardan.system.system import System

NEAREST = "nearest"
MOST_STEPS = 100
LONGEST = 0.3  # scaled: of one step
PROBE = 1e-6  # scaled: step of the differences of J
FLAT = 1e-10  # of the largest: smaller curvatures along freedoms that the cost does not depend on
MET = 1e-11  # of the gradient: a smaller component along freedoms is zero
CORRECTIONS = 20
AT_BOUND = 1e-12  # scaled: distance from a bound
DENSE = 600  # unknowns that the dense null space is made for, at most

Cost = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]  # of the free variables: value, gradient, Hessian


def checked_cost(system: System, least: Any) -> Cost:
    """The cost as a function of the free variables."""
    if least == NEAREST:
        drawn = np.array([system.values[name] for name in system.variables.free])
        scales = _scales(system)

        def nearest(v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            d = (v - drawn) / scales
            return 0.5 * float(d @ d), d / scales, np.diag(1.0 / scales**2)

        return nearest
    if not isinstance(least, Formula):
        raise ModelError(f"least is {least!r}; it must be {NEAREST!r}, or a formula of parameters, such as L1 + L2")
    source = system._source
    if least.book is not source.book:
        raise ModelError(f"least is {least!r} of another mechanism; it must be a formula of this one's parameters")
    if not least.parameters & set(system.variables.free):
        raise ModelError(f"least is {least!r}, which depends on none of the free parameters")
    return _traced_cost(least.book, least.node, system)


def _traced_cost(book: Book, node: Scalar, system: System) -> Cost:
    graph, names = book.graph, system.variables.free
    places = [book.names.index(name) for name in names]
    seeds = [graph.nodes[book.nodes[k]] for k in places]
    one = graph.constant(1.0)
    first = [graph.derivative(node, {seed: one}, {}) for seed in seeds]
    second = [[graph.derivative(d, {seed: one}, {}) for seed in seeds] for d in first]

    def cost(v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        given = {**system.values, **dict(zip(names, v.tolist(), strict=True))}
        values: list[float] = []
        for this in graph.nodes:
            if this.operation == "variable":
                values.append(given.get(book.names[int(str(this.value)[1:])] or "", np.nan))
            else:
                values.append(evaluated(this, values))
        gradient = np.array([values[d.index] for d in first])
        return values[node.index], gradient, np.array([[values[d.index] for d in row] for row in second])

    return cost


def _scales(system: System) -> FloatArray:
    assert system.variable_scales is not None
    return system.variable_scales.at(system.judged_length)


class _Rows(NamedTuple):
    """A problem, the weights of its rows, and what is added to its residuals [m, rad], both of shape (rows,)."""

    problem: Problem
    weights: FloatArray
    added: FloatArray


class _Limits:
    """The limits of a system, some of which hold: ``held`` maps the number of a limit to its bound."""

    def __init__(self, system: System, problem: Problem) -> None:
        self._rows = [(row.start, par) for row, par in limit_rows(system)]
        self._free = problem
        self._weights = rates.weights(system, problem)
        for row, _ in self._rows:
            self._weights[row] = 0.0
        self.held: dict[int, float] = {}

    def rows(self, held: dict[int, float]) -> _Rows:
        """The rows where these limits are equations, x − bound; other limits have no weight.

        A limit has no derivative within its bounds.  So its lower bound is moved up by one unit of length or angle, and
        ``added`` adds this unit to the residual again.
        """
        floats, weights, added = self._free.floats.copy(), self._weights.copy(), np.zeros(self._free.rows)
        for k, bound in held.items():
            row, par = self._rows[k]
            weights[row] = self._free.scales[row]
            added[row] = 1.0 / self._free.scales[row]
            floats[par : par + 2] = bound + added[row], np.inf
        return _Rows(self._free.with_floats(floats), weights, added)

    def violated(self, q: FloatArray) -> dict[int, float]:
        """Limits that a pose exceeds, and the bounds."""
        if not self._rows:
            return {}
        beyond = self._free.residual(q) * self._free.scales[: self._free.rows]
        found = {}
        for k, (row, par) in enumerate(self._rows):
            if abs(beyond[row]) > AT_BOUND:
                found[k] = float(self._free.floats[par + 1 if beyond[row] > 0.0 else par])
        return found

    def row(self, k: int) -> int:
        """The row of a limit."""
        return self._rows[k][0]

    def is_upper(self, k: int) -> bool:
        """Whether a limit holds at its upper bound."""
        return self.held[k] == float(self._free.floats[self._rows[k][1] + 1])


class _At:
    """The linearised equations at q, without guards and limits that do not hold; variables in ``fixed`` do not move."""

    def __init__(self, system: System, own: _Rows, q: FloatArray, fixed: list[int]) -> None:
        self.weights = own.weights
        self.columns: FloatArray = own.problem.scales[own.problem.rows :]
        residual, jacobian = own.problem.jacobian(q)
        residual += own.added
        free = len(system.variables.free)
        rows = np.zeros((len(fixed), jacobian.shape[1]))
        for k, number in enumerate(fixed):
            rows[k, jacobian.shape[1] - free + number] = 1.0
        self.matrix: FloatArray = np.vstack([jacobian * self.weights[:, None] * self.columns, rows])
        self.residual: FloatArray = np.concatenate([residual * self.weights, np.zeros(len(fixed))])
        u, s, v = np.linalg.svd(self.matrix)
        rank = int((s > rates.RANK_RTOL * s[0]).sum()) if s.size else 0
        self.null: FloatArray = v[rank:].T
        self._u, self._s, self._v = u[:, :rank], s[:rank], v[:rank]

    def correction(self) -> FloatArray:
        """The least step that removes the residual, scaled."""
        found: FloatArray = -self._v.T @ ((self._u.T @ self.residual) / self._s)
        return found

    def multipliers(self, g: FloatArray) -> FloatArray:
        """λ of least norm that minimises |g + Jᵀλ|, scaled, shape (rows,)."""
        found: FloatArray = -self._u @ ((self._v @ g) / self._s)
        return found


def minimise(
    system: System, q: FloatArray, cost: Cost, time: float, bounds: list[tuple[float, float]]
) -> tuple[FloatArray, bool]:
    """Solver coordinates of least cost near q, which satisfies the equations; and whether the steps converged."""
    problem = formulations.problem(system, "manifold", None, time)
    if problem.unknowns > DENSE:
        raise ModelError(f"least= is for at most {DENSE} unknowns; this mechanism has {problem.unknowns}")
    first = layout.POSE * len(system.names)
    free = len(system.variables.free)
    scales = problem.scales[problem.rows :][-free:]
    lower, upper = (np.array(side) for side in zip(*bounds, strict=True))

    def gradient(at: FloatArray) -> tuple[float, FloatArray]:
        value, slope, _ = cost(at[first : first + free])
        g = np.zeros(problem.unknowns)
        g[-free:] = slope * scales
        return value, g

    fixed: list[int] = []
    limits = _Limits(system, problem)
    for _ in range(MOST_STEPS):
        own = limits.rows(limits.held)
        here = _At(system, own, q, fixed)
        value, g = gradient(q)
        multipliers = here.multipliers(g)
        z = here.null
        slope = z.T @ g
        size = float(np.abs(g).max(initial=0.0))
        if np.abs(slope).max(initial=0.0) <= MET * size:
            released = _released(fixed, multipliers[len(multipliers) - len(fixed) :], q[first:], lower)
            if released is not None:
                fixed = released
            elif not _release_limit(limits, multipliers):
                return q, True
            continue
        curvature = _curvature(own.problem, q, here, multipliers, cost, first, free)
        values, vectors = np.linalg.eigh(curvature)
        most = float(np.abs(values).max(initial=0.0))
        values = np.maximum(np.abs(values), FLAT * most if most > 0.0 else 1.0)
        step = z @ -(vectors @ ((vectors.T @ slope) / values))
        step *= min(1.0, LONGEST / float(np.abs(step).max()))
        share, moved = 1.0, False
        while share > 1e-12:
            trial, hit, reached = _trial(system, limits, q, share * step, fixed, first, lower, upper, scales)
            if trial is not None:
                new, g_new = gradient(trial)
                is_less = new < value or (
                    abs(new - value) <= 1e-13 * max(abs(value), 1e-300)
                    and np.abs(_At(system, own, trial, fixed).null.T @ g_new).max(initial=0.0) < np.abs(slope).max()
                )
                if is_less or hit or reached:
                    q, moved = trial, True
                    fixed = [*fixed, *hit]
                    limits.held |= reached
                    break
            share *= 0.5
        if not moved:
            return q, bool(np.abs(slope).max() <= 1e-7 * size)
    return q, False


def _release_limit(limits: _Limits, multipliers: FloatArray) -> bool:
    """Release a limit that the cost moves its coordinate away from; whether there was one."""
    for k in limits.held:
        force = multipliers[limits.row(k)]
        if force < 0.0 if limits.is_upper(k) else force > 0.0:
            del limits.held[k]
            return True
    return False


def _released(fixed: list[int], forces: FloatArray, v: FloatArray, lower: FloatArray) -> list[int] | None:
    """Without the variable whose bound the cost pushes it away from; None if there is none."""
    for k, force in zip(fixed, forces, strict=True):
        inward = force < 0.0 if v[k] <= lower[k] else force > 0.0
        if inward and abs(force) > 0.0:
            continue
        if abs(force) > 0.0:
            return [other for other in fixed if other != k]
    return None


def _curvature(
    problem: Problem, q: FloatArray, here: _At, multipliers: FloatArray, cost: Cost, first: int, free: int
) -> FloatArray:
    """Zᵀ H Z, symmetric."""
    z, columns = here.null, here.columns
    own = multipliers[: here.weights.size] * here.weights
    _, _, hessian = cost(q[first : first + free])
    scales = columns[-free:]
    found = z[-free:].T @ (hessian * np.outer(scales, scales)) @ z[-free:]
    for k in range(z.shape[1]):
        sides = [problem.jacobian(problem.retract(q, sign * PROBE * z[:, k] * columns))[1] for sign in (1.0, -1.0)]
        found[:, k] += z.T @ (columns * ((sides[0] - sides[1]).T @ own)) / (2.0 * PROBE)
    return 0.5 * (found + found.T)


def _trial(
    system: System,
    limits: _Limits,
    q: FloatArray,
    step: FloatArray,
    fixed: list[int],
    first: int,
    lower: FloatArray,
    upper: FloatArray,
    scales: FloatArray,
) -> tuple[FloatArray | None, list[int], dict[int, float]]:
    """q moved by a scaled step, shortened at the first bound, and corrected.

    Also the variables that reached a bound, and the limits that were reached.
    """
    free = len(scales)
    v, change = q[first : first + free], step[-free:] * scales
    share, hit = 1.0, []
    for k in range(free):
        limit = upper[k] if change[k] > 0.0 else lower[k]
        if k in fixed or change[k] == 0.0 or not np.isfinite(limit):
            continue
        if (v[k] + share * change[k] - limit) * np.sign(change[k]) >= 0.0:
            share, hit = max(0.0, (limit - v[k]) / change[k]), [k]
    own = limits.rows(limits.held)
    columns = own.problem.scales[own.problem.rows :]
    trial: FloatArray | None = own.problem.retract(q, share * step * columns)
    assert trial is not None
    for k in hit:
        trial[first + k] = upper[k] if change[k] > 0.0 else lower[k]
    held = [*fixed, *hit]
    reached: dict[int, float] = {}
    while True:  # each time with more limits
        trial = _corrected(system, own, trial, held, first, lower, upper, scales)
        if trial is None:
            return None, [], {}
        beyond = {k: bound for k, bound in limits.violated(trial).items() if k not in reached and k not in limits.held}
        if not beyond:
            return trial, hit, reached
        reached |= beyond
        own = limits.rows({**limits.held, **reached})


def _corrected(
    system: System,
    own: _Rows,
    trial: FloatArray,
    held: list[int],
    first: int,
    lower: FloatArray,
    upper: FloatArray,
    scales: FloatArray,
) -> FloatArray | None:
    """Coordinates nearby that satisfy the equations, with variables held at their bounds; None if none are found."""
    free, columns, before = len(scales), own.problem.scales[own.problem.rows :], np.inf
    for _ in range(CORRECTIONS):
        correction = _At(system, own, trial, held).correction()
        size = float(np.abs(correction).max(initial=0.0))
        if size <= 1e-15 or (size < 1e-12 and size >= 0.5 * before):
            inside = (trial[first : first + free] >= lower - AT_BOUND * scales) & (
                trial[first : first + free] <= upper + AT_BOUND * scales
            )
            return trial if inside.all() else None
        if not size < 2.0 * before or not np.isfinite(size):
            return None
        before = size
        trial = own.problem.retract(trial, correction * columns)
        for k in held:
            trial[first + k] = min(max(trial[first + k], lower[k]), upper[k])
    return None
