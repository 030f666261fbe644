"""Of all assemblies that free parameters allow, the one of least cost.

    minimise c(v)  subject to  f(q, v) = 0,  bounds on v,

by Newton's method in the null space Z of J, in scaled unknowns.  With the multipliers λ of g + Jᵀλ = 0, g = ∂c, a step
is  −|Zᵀ H Z|⁻¹ Zᵀ g,  where H is the derivative of g + Jᵀλ, computed by differences of the exact J, and |·| has the
absolute eigenvalues; the poses are then corrected to satisfy f.  A parameter at a bound that the cost pushes outwards
is fixed there, and so is a coordinate at a limit: the row of the limit is then an equation.  Where Zᵀ g = 0 but Zᵀ H Z
is not positive definite, a smaller cost is sought along the eigenvectors without positive curvature, so that a maximum,
a saddle and an inflection are not returned.  The result is a local minimum.  [NocedalWright2006], chapter 18.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.limits import limit_rows
from cardan.constraints.expression import Scalar
from cardan.coordinates import formulations, rates
from cardan.errors import ModelError
from cardan.solvers.problem import Problem
from cardan.system import tables as layout
from cardan.system.formulas import Book, Formula, evaluated
from cardan.system.state import FloatArray
from cardan.system.system import System

NEAREST = "nearest"
MOST_STEPS = 100
LONGEST = 0.3  # scaled: of the first step, and of the rotations of every step
FURTHER = 2.0  # the bound of the next step, relative to that of an accepted step that was shortened to its bound
AWAY = 1e3  # scaled: if a parameter has moved further without a minimum, the cost has no least value
MOST_AWAY = 1e8  # scaled: where steps end
PROBE = 1e-6  # scaled: step of the differences of J
FLAT = 1e-10  # of the largest: smaller curvatures along freedoms that the cost does not depend on
MET = 1e-11  # of the gradient: a smaller component along freedoms is zero
NEARLY_MET = 1e-7  # the same, where no step decreases the cost: it is constant but for rounding
SETTLED = 1e-11  # relative to 1 and to the scaled variables: a shorter Newton step is zero
STRAIGHT = 1e-6  # of the largest curvature of all steps: a smaller one does not prove a minimum or a maximum
PROBES = (0.1, 0.01, 1e-3)  # scaled: distances at which a smaller cost is sought
LESS = 1e-11  # relative to the cost: a decrease above rounding
SAME = 1e-13  # relative to the cost: a smaller change is rounding
SHORTEST = 1e-12  # of a step: the share at which halving ends
TINY = 1e-300  # for a cost of zero
CORRECTIONS = 20
CORRECTED = 1e-15  # scaled: a correction of rounding
STALLED = 1e-12  # scaled: a correction below this that does not halve is rounding too
AT_BOUND = 1e-12  # scaled: distance from a bound
AT_EDGE = 1e-6  # of the extent: distance from a value that a joint does not allow
AT_START = 1e-10  # scaled: distance from a bound that the assembly before may leave
DENSE = 600  # unknowns that the dense null space is made for, at most

Cost = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]  # of the free variables: value, gradient, Hessian


def checked_cost(system: System, least: Any) -> Cost:
    """The cost as a function of the free variables."""
    if inspect.isfunction(least):  # of elastic energies
        return cast(Cost, least)
    if isinstance(least, str) and least == NEAREST:
        drawn = np.array([system.values[name] for name in system.variables.free])
        scales = _scales(system)

        def nearest(v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            d = (v - drawn) / scales
            return 0.5 * float(d @ d), d / scales, np.diag(1.0 / scales**2)

        return nearest
    if not isinstance(least, Formula):
        raise ModelError(f"least is {least!r}; it must be {NEAREST!r}, or a formula of parameters, such as L1 + L2")
    source = system._source
    if source.book is None or least.book.graph is not source.book.graph:
        raise ModelError(f"least is {least!r} of another mechanism; it must be a formula of this one's parameters")
    if least.book.is_removed(least.index):
        raise ModelError(f"least is {least!r}; it must be a formula of parameters that the mechanism has")
    if not least.parameters & set(system.variables.free):
        raise ModelError(f"least is {least!r}, which depends on none of the free parameters")
    own = copy.deepcopy(least.book)  # derivatives are nodes that the mechanism does not need
    return _traced_cost(own, own.graph.nodes[least.index], system)


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
        return -self._v.T @ ((self._u.T @ self.residual) / self._s)

    def multipliers(self, g: FloatArray) -> FloatArray:
        """λ of least norm that minimises |g + Jᵀλ|, scaled, shape (rows,)."""
        return -self._u @ ((self._v @ g) / self._s)


class _Unknowns(NamedTuple):
    """Places of the unknowns: ``first``, of the free variables in q; ``scales`` and bounds, shape (free,)."""

    system: System
    first: int
    scales: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def free(self) -> int:
        """Number of free variables."""
        return len(self.scales)

    def of(self, q: FloatArray) -> FloatArray:
        """The free variables in q, shape (free,)."""
        return q[self.first : self.first + self.free]

    def is_lower(self, q: FloatArray) -> NDArray[np.bool_]:
        """Whether each variable is nearer to its lower bound than to its upper one, shape (free,)."""
        v = self.of(q)
        return v - self.lower < self.upper - v

    def hold(self, q: FloatArray, held: list[int]) -> None:
        """Set some variables to their nearest bounds, in place."""
        self.of(q)[held] = np.where(self.is_lower(q), self.lower, self.upper)[held]

    def shortened(self, step: FloatArray, longest: float) -> tuple[FloatArray, bool]:
        """A scaled step with no entry beyond ``longest``, and no rotation beyond LONGEST; and whether it is shorter."""
        bodies = step[: len(step) - self.free].reshape(-1, 6)
        most = max(float(np.abs(step).max()) / longest, float(np.abs(bodies[:, 3:]).max(initial=0.0)) / LONGEST)
        return step / max(1.0, most), most > 1.0


class _Search:
    """One minimisation: the cost, the limits and variables that are held, and the point that is reached."""

    def __init__(self, unknowns: _Unknowns, problem: Problem, cost: Cost, q: FloatArray) -> None:
        self.unknowns, self.problem, self._cost = unknowns, problem, cost
        self.limits = _Limits(unknowns.system, problem)
        self.fixed: list[int] = []  # variables at a bound
        self.q = q
        self.value, self.g = self.gradient(q)
        self.most_curved = 0.0  # largest curvature of all steps
        self.is_undefined = False  # whether the cost of a trial of this step is not finite

    def gradient(self, q: FloatArray) -> tuple[float, FloatArray]:
        """The cost and its scaled gradient."""
        value, slope, _ = self._cost(self.unknowns.of(q))
        g = np.zeros(self.problem.unknowns)
        g[-self.unknowns.free :] = slope * self.unknowns.scales
        return value, g

    def curvature(self, own: _Rows, here: _At, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of Zᵀ H Z."""
        matrix = _curvature(own.problem, self.q, here, multipliers, self._cost, self.unknowns.first, self.unknowns.free)
        values, vectors = np.linalg.eigh(matrix)
        self.most_curved = max(self.most_curved, float(np.abs(values).max(initial=0.0)))
        return values, vectors

    def take(self, step: FloatArray, slope: float, least: float = 0.0) -> bool:
        """Take a scaled step if it decreases the cost by more than ``least``, or reaches a bound; whether it did.

        slope: largest component of the gradient along the freedoms; where the cost is the same but for rounding, this
        must decrease.
        """
        trial, hit, reached = _trial(self.unknowns, self.limits, self.q, step, self.fixed)
        if trial is None:
            return False
        value, g = self.gradient(trial)
        system = self.unknowns.system
        if not (np.isfinite(value) and np.isfinite(g).all()):
            self.is_undefined = True
            return False
        if not system.are_valid(trial[self.unknowns.first :][: len(system.variable_names)]):
            return False
        if not value < self.value - least:
            is_same = least == 0.0 and abs(value - self.value) <= SAME * max(abs(self.value), TINY)
            if not is_same or not (hit or reached or self._slope(trial, g) < slope):
                return False
        self.q, self.value, self.g = trial, value, g
        self.fixed += hit
        self.limits.held |= reached
        return True

    def take_share(self, step: FloatArray, slope: float) -> float:
        """Take a scaled step, halved until :meth:`take` accepts it; returns the share, 0 if none was accepted."""
        share, self.is_undefined = 1.0, False
        while share > SHORTEST:
            if self.take(share * step, slope):
                return share
            share *= 0.5
        return 0.0

    def _slope(self, q: FloatArray, g: FloatArray) -> float:
        """Largest component of a scaled gradient along the freedoms at q."""
        own = self.limits.rows(self.limits.held)
        return float(np.abs(_At(self.unknowns.system, own, q, self.fixed).null.T @ g).max(initial=0.0))

    def escape(self, z: FloatArray, values: FloatArray, vectors: FloatArray) -> bool:
        """Move along a direction without positive curvature to a smaller cost; whether there is one.

        Among directions without curvature only those that change variables are tried.
        """
        curved = STRAIGHT * self.most_curved
        directions = [z @ vectors[:, k] for k in range(len(values)) if values[k] < -curved]
        flat = z @ vectors[:, np.abs(values) <= curved]
        if flat.shape[1]:
            _, sizes, mixed = np.linalg.svd(flat[-self.unknowns.free :])
            directions += [flat @ mixed[k] for k in range(len(sizes)) if sizes[k] > STRAIGHT]
        least = LESS * abs(self.value)
        for direction in directions:
            for distance in PROBES:
                step = direction * (distance / float(np.abs(direction).max()))
                if self.take(step, 0.0, least) or self.take(-step, 0.0, least):
                    return True
        return False


def minimise(
    system: System, q: FloatArray, cost: Cost, time: float, bounds: list[tuple[float, float]]
) -> tuple[FloatArray, str]:
    """Solver coordinates of least cost near q, which satisfies the equations; and "", or why there is no least cost."""
    problem = formulations.problem(system, "manifold", None, time)
    if problem.unknowns > DENSE:
        raise ModelError(f"least= is for at most {DENSE} unknowns; this mechanism has {problem.unknowns}")
    names = system.variables.free
    scales = problem.scales[problem.rows :][-len(names) :]
    lower, upper = (np.array(side) for side in zip(*bounds, strict=True))
    unknowns = _Unknowns(system, layout.POSE * len(system.names), scales, lower, upper)
    drawn = unknowns.of(q).copy()
    search = _begin(unknowns, problem, cost, q)
    if not np.isfinite(search.value) or not np.isfinite(search.g).all():
        told = ", ".join(f"{name} = {value:g}" for name, value in zip(names, drawn.tolist(), strict=True))
        raise ModelError(
            f"least is {search.value:g}, or has no finite derivatives, where the mechanism is assembled: {told}; "
            "draw other values, give bounds to the parameters, or use another cost"
        )
    longest = LONGEST
    for _ in range(MOST_STEPS):
        own = search.limits.rows(search.limits.held)
        here = _At(system, own, search.q, search.fixed)
        multipliers = here.multipliers(search.g)
        z = here.null
        slope = z.T @ search.g
        steepest = float(np.abs(slope).max(initial=0.0))
        values, vectors = search.curvature(own, here, multipliers)
        newton, is_convex = _newton_step(z, slope, values, vectors)
        v = unknowns.of(search.q)
        is_settled = is_convex and float(np.abs(newton).max()) <= SETTLED * max(1.0, float(np.abs(v / scales).max()))
        if is_settled or steepest <= MET * float(np.abs(search.g).max()):
            if is_settled:
                search.take(newton, steepest)
            forces = multipliers[len(multipliers) - len(search.fixed) :]
            released = _released(search.fixed, forces, unknowns.is_lower(search.q))
            if released is not None:
                search.fixed = released
            elif not _release_limit(search.limits, multipliers) and not search.escape(z, values, vectors):
                return search.q, ""
            continue
        if not is_convex:  # no minimum is near: as long as a step may be
            newton *= max(1.0, longest / float(np.abs(newton).max()))
        step, is_shorter = unknowns.shortened(newton, longest)
        share = search.take_share(step, steepest)
        if share == 0.0:
            if steepest <= NEARLY_MET * float(np.abs(search.g).max()):
                return search.q, ""
            break
        if share == 1.0:
            longest = longest * FURTHER if is_shorter or not is_convex else longest
        else:
            longest = max(LONGEST, share * longest)
        if np.abs((unknowns.of(search.q) - drawn) / scales).max() > MOST_AWAY:
            break
    k = int(np.argmax(np.abs(unknowns.of(search.q) - drawn) / scales))
    is_away = abs(unknowns.of(search.q)[k] - drawn[k]) / scales[k] > AWAY
    return q if is_away else search.q, _reason(search, names[k], k, float(drawn[k]), bool(is_away))


def _newton_step(z: FloatArray, slope: FloatArray, values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, bool]:
    """The scaled step −Z |Zᵀ H Z|⁻¹ Zᵀ g, and whether the curvature along it is positive.

    slope: Zᵀ g; values, vectors: of Zᵀ H Z.
    """
    most = float(np.abs(values).max(initial=0.0))
    divisors = np.maximum(np.abs(values), FLAT * most if most > 0.0 else 1.0)
    step: FloatArray = z @ -(vectors @ ((vectors.T @ slope) / divisors))
    return step, float(values @ (vectors.T @ (z.T @ step)) ** 2) > STRAIGHT * most * float(step @ step)


def _begin(unknowns: _Unknowns, problem: Problem, cost: Cost, q: FloatArray) -> _Search:
    """The search from q; variables that q has at a bound, or beyond by the tolerance of its verdict, are held there."""
    v, slack = unknowns.of(q), AT_START * unknowns.scales
    held = np.flatnonzero((v <= unknowns.lower + slack) | (v >= unknowns.upper - slack)).tolist()
    if held:
        trial = q.copy()
        unknowns.hold(trial, held)
        corrected = _corrected(unknowns, _Limits(unknowns.system, problem).rows({}), trial, held)
        if corrected is not None:
            search = _Search(unknowns, problem, cost, corrected)
            search.fixed = held
            return search
    return _Search(unknowns, problem, cost, q)


def _reason(search: _Search, name: str, k: int, drawn: float, is_away: bool) -> str:
    """Why there is no least cost: the parameter that moved most, and the way out."""
    last = float(search.unknowns.of(search.q)[k])
    word, side = ("decreases", "a lower") if last < drawn else ("increases", "an upper")
    if is_away:
        return (
            f"the cost has no least value: it decreases as long as parameter {name!r} {word} ({last:.3g} was reached); "
            f"give {name!r} {side} bound, or use another cost"
        )
    edge = _edge(search)
    if edge:
        return f"the cost has no least value: it decreases towards values that are not valid: {edge}"
    if search.is_undefined:
        return (
            f"the cost has no least value: it decreases as parameter {name!r} {word} to {last:.6g}, and beyond this it "
            f"is not defined; give {name!r} {side} bound before it, or use another cost"
        )
    return (
        f"no least value of the cost was found: it still decreases where parameter {name!r} is {last:.6g} and {word}; "
        f"assemble again from this state, give {name!r} {side} bound, or use another cost"
    )


def _edge(search: _Search) -> str:
    """A condition that is nearly violated, such as a length above zero, and the way out; "" if there is none."""
    system = search.unknowns.system
    book = system._source.book
    assert book is not None
    free = system.variables.free
    found = dict(zip(free, search.unknowns.of(search.q).tolist(), strict=True))
    values = book.evaluate({**book.drawn(), **system.values, **found})
    for condition in book.conditions_of(system.nodes()):
        value = values[condition.node]
        if min(abs(value - condition.lower), abs(value - condition.upper)) <= AT_EDGE * system.judged_length:
            names = " or ".join(map(repr, sorted(book.parameters_of([condition.node]) & set(free))))
            return f"{condition.told(value)}; give {names} a bound before it, or use another cost"
    return ""


def _release_limit(limits: _Limits, multipliers: FloatArray) -> bool:
    """Release a limit that the cost moves its coordinate away from; whether there was one."""
    for k in limits.held:
        force = multipliers[limits.row(k)]
        if force < 0.0 if limits.is_upper(k) else force > 0.0:
            del limits.held[k]
            return True
    return False


def _released(fixed: list[int], forces: FloatArray, is_lower: NDArray[np.bool_]) -> list[int] | None:
    """The fixed variables without one that the cost pushes away from its bound; None if there is no such variable."""
    for k, force in zip(fixed, forces, strict=True):
        if force > 0.0 if is_lower[k] else force < 0.0:
            return [other for other in fixed if other != k]
    return None


def _curvature(
    problem: Problem, q: FloatArray, here: _At, multipliers: FloatArray, cost: Cost, first: int, free: int
) -> FloatArray:
    """Zᵀ H Z, symmetric."""
    z, columns = here.null, here.columns
    of_rows = multipliers[: here.weights.size] * here.weights  # without those of bounds and limits
    _, _, hessian = cost(q[first : first + free])
    scales = columns[-free:]
    found = z[-free:].T @ (hessian * np.outer(scales, scales)) @ z[-free:]
    for k in range(z.shape[1]):
        sides = [problem.jacobian(problem.retract(q, sign * PROBE * z[:, k] * columns))[1] for sign in (1.0, -1.0)]
        found[:, k] += z.T @ (columns * ((sides[0] - sides[1]).T @ of_rows)) / (2.0 * PROBE)
    return 0.5 * (found + found.T)


def _trial(
    unknowns: _Unknowns, limits: _Limits, q: FloatArray, step: FloatArray, fixed: list[int]
) -> tuple[FloatArray | None, list[int], dict[int, float]]:
    """q moved by a scaled step, shortened at the first bound, and corrected.

    Also the variables that reached a bound, and the limits that were reached.
    """
    first, lower, upper = unknowns.first, unknowns.lower, unknowns.upper
    v, change = unknowns.of(q), step[-unknowns.free :] * unknowns.scales
    goals = np.where(change > 0.0, upper, lower)
    moves = np.abs(change) > 0.0
    moves[fixed] = False
    change = np.where(moves, change, 1.0)  # of any size: what does not move reaches no bound
    # the share of the step at which each variable reaches its bound
    shares = np.where(moves, np.maximum(0.0, (goals - v) / change), np.inf)
    share = min(1.0, float(shares.min()))
    hit = np.flatnonzero((shares - share) * np.abs(change) <= AT_BOUND * unknowns.scales).tolist()
    own = limits.rows(limits.held)
    columns = own.problem.scales[own.problem.rows :]
    trial: FloatArray | None = own.problem.retract(q, share * step * columns)
    assert trial is not None
    for k in hit:
        trial[first + k] = goals[k]
    held = [*fixed, *hit]
    reached: dict[int, float] = {}
    while True:  # each time with more limits
        trial = _corrected(unknowns, own, trial, held)
        if trial is None:
            return None, [], {}
        beyond = {k: bound for k, bound in limits.violated(trial).items() if k not in reached and k not in limits.held}
        if not beyond:
            return trial, hit, reached
        reached |= beyond
        own = limits.rows({**limits.held, **reached})


def _corrected(unknowns: _Unknowns, own: _Rows, trial: FloatArray, held: list[int]) -> FloatArray | None:
    """Coordinates nearby that satisfy the equations, with variables held at their bounds; None if none are found."""
    lower, upper = unknowns.lower, unknowns.upper
    columns, before = own.problem.scales[own.problem.rows :], np.inf
    slack = AT_BOUND * unknowns.scales
    for _ in range(CORRECTIONS):
        if not np.isfinite(own.problem.residual(trial)).all():
            return None
        correction = _At(unknowns.system, own, trial, held).correction()
        size = float(np.abs(correction).max(initial=0.0))
        if size <= CORRECTED or (size < STALLED and size >= 0.5 * before):
            v = unknowns.of(trial)
            return trial if ((v >= lower - slack) & (v <= upper + slack)).all() else None
        if not size < 2.0 * before or not np.isfinite(size):
            return None
        before = size
        trial = own.problem.retract(trial, correction * columns)
        unknowns.hold(trial, held)
    return None
