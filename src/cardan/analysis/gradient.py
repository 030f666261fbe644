"""The gradient of a cost of a run, by the numbers of the model.

The reverse sweep (:mod:`cardan.dynamics.adjoint`) gives the derivatives by the numbers of packed tables, in principal
frames, and by the pose and velocity at the start.  Here they become those by what a model is made of.  With the
principal axes R and the centre c of a body, s = Rᵀ(p − c):

    ∂/∂p = R s̄,   ∂/∂c = −R Σ s̄ + parts of the start,   ∂/∂I = R Ī Rᵀ (symmetric).

A start is assembled.  If points of joints change, it moves by the least change Δ that keeps the joints closed,

    J Δ = −∂f,   Δ = −W Jᵀ(J W Jᵀ)⁻¹ ∂f,

with the metric W of an assembly, as simulate() moves a given state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cardan.analysis import costs, traced_state
from cardan.analysis.by_parameters import by_parameters
from cardan.analysis.costs import Cost
from cardan.analysis.differentiable import MISMATCH, check_run
from cardan.analysis.simulate import _outputs
from cardan.analysis.simulation import Simulation
from cardan.calls import explains
from cardan.dynamics import tables
from cardan.dynamics.adjoint import Raw, Sweep, constant_orders, recorded
from cardan.dynamics.integrate import ESTIMATE, Integration, Settings
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.formulas import Parameter
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

DEPENDENT: Final = 1e-10  # of the largest singular value: smaller ones are of redundant equations
FOLLOWS: Final = 1e-7  # of ∂f: a larger rest that no motion removes means that a change locks the joints
SMALL: Final = 1e-4  # a change of floats, for differences
ROUNDED: Final = 1e-9  # of a change of floats: what their differences leave
SAME_TIME: Final = 1e-9  # of a step
MANY: Final = 1 << 40  # steps
NUMBERS: Final = ("constant", "stiffness", "rest", "damping", "coulomb", "speed")  # of a LINEAR law


@explains()
@dataclass(frozen=True, slots=True)
class BodyGradient:
    """Derivatives by the numbers of a body.

    ``mass`` [1/kg], with the same inertia and centre.  ``inertia`` [1/(kg m²)], shape (3, 3), symmetric: the change of
    the cost is Σ inertia_ij ΔI_ij, for the inertia about the centre of mass in body axes.  ``center`` [1/m], shape
    (3,), in body axes, with the same inertia about it.
    """

    mass: float
    inertia: FloatArray
    center: FloatArray


@explains()
@dataclass(frozen=True, slots=True)
class JointGradient:
    """Derivatives by the numbers of a joint.

    ``points`` [1/m], shape (2, 3): by the points of its ends a and b, in the axes of their bodies.  NaN where equations
    are redundant, and a change of the point would lock the joints.
    """

    points: FloatArray


@explains()
class LoadGradient:
    """Derivatives by the numbers of a load, by the names of its arguments: ``stiffness``, ``rest``, ``damping``, …

    ``point`` and ``vector``, shape (3,), of a force or torque.  ``constants``: of a function, its numbers in the order
    in which they are recorded.
    """

    def __init__(self, name: str, numbers: Mapping[str, Any]) -> None:
        self._name, self._numbers = name, dict(numbers)

    def __getattr__(self, word: str) -> Any:
        if word.startswith("_") or word not in self._numbers:
            if word.startswith("__"):
                raise AttributeError(word)
            raise AttributeError(f"the gradient by load {self._name!r} has {', '.join(self._numbers)}, and no {word!r}")
        return self._numbers[word]

    def __dir__(self) -> list[str]:
        return list(self._numbers)

    def __repr__(self) -> str:
        return f"LoadGradient({', '.join(f'{word}={value!r}' for word, value in self._numbers.items())})"


@explains()
@dataclass(frozen=True, slots=True)
class StartGradient:
    """Derivatives by the start of a body, before it is projected onto the joints; shape (3,) each.

    ``position`` [1/m] of its origin and ``velocity`` [s/m] in world axes; ``rotation`` [1/rad]: by small rotations
    about its own axes; ``angular_velocity`` [s/rad] in body axes.
    """

    position: FloatArray
    rotation: FloatArray
    velocity: FloatArray
    angular_velocity: FloatArray


@explains()
class Gradient:
    """Derivatives of a cost of a run, exact up to rounding: those of the steps that were made.

    ``value``: the cost.  ``gravity``, shape (3,).  ``start[body]``: by the pose and velocity at the start.
    ``of(item)``: by the numbers of a body, joint or load.  ``g["k"]``: by a design parameter; ``parameters``: by all.

    The gradient is known of steps of Adams' method with joints, drivers that are functions of time, and loads that
    only compute.  Limits that act, contacts, constraints of rates, inertias and friction of joints, and massless bodies
    are refused by name.
    """

    def __init__(self, value: float, simulation: Simulation, raw: Raw, course: traced_state.Course) -> None:
        self.value = value
        self._simulation, self._raw, self._course = simulation, raw, course
        self._system = simulation._equations.system
        self._pulled: FloatArray | None = None
        self._drawing = simulation._drawing
        self._chosen: tuple[str, ...] | None = None
        self._by_name: dict[str, float] | None = None

    def __getitem__(self, parameter: Any) -> float:
        """``g["k"]``: the derivative by a design parameter, or by the one of that name."""
        if self._drawing is None:
            raise ModelError("the parameters of this run are not known, as after pickling; simulate again")
        name = self._drawing.contents.parameter_name(parameter)
        if self._chosen is not None and name not in self._chosen:
            raise ModelError(f"the gradient was taken by {', '.join(map(repr, self._chosen))}, and not by {name!r}")
        if self._by_name is None:
            self._by_name = by_parameters(self, self._drawing)
        found = self._by_name[name]
        if not np.isfinite(found):
            user = "a change of it locks the joints, or it gives a number that is not differentiated yet"
            raise ModelError(f"the gradient by parameter {name!r} is not known: {user}")
        return found

    @property
    def parameters(self) -> dict[str, float]:
        """By all design parameters that were asked for, by name."""
        names = self._chosen if self._chosen is not None else tuple(self._drawing.drawn if self._drawing else ())
        return {name: self[name] for name in names}

    @property
    def gravity(self) -> FloatArray:
        """By the acceleration of gravity [s²/m], shape (3,)."""
        return self._raw.gravity.copy()

    @property
    def start(self) -> Mapping[str, StartGradient]:
        """By the start of each body, by its name."""
        return {name: self._start_of(k) for name, k in self._system.index.items()}

    def of(self, item: Any) -> Any:
        """The derivatives by the numbers of a body, joint or load, or of its name: :class:`BodyGradient`, …"""
        contents = self._system.index.contents
        name = getattr(item, "name", item)
        if isinstance(name, str):
            if name in self._system.index:
                return self._of_body(self._system.index[name])
            if name in contents.loads:
                return self._of_load(name)
            if name in contents.joints:
                return self._of_joint(contents.joints[name])
        names = [*self._system.names, *contents.joints, *contents.loads]
        raise check.unknown(name, "body, joint or load of this run", names)

    def __repr__(self) -> str:
        return f"<Gradient of a cost of {self.value:g}>"

    # -- what formulas of parameters give ------------------------------------------------------------------------------

    def law_numbers(self, name: str) -> FloatArray:
        """By the numbers of the law of a load."""
        e, at = self._simulation._equations, 0
        for law in e.forces.laws if e.forces is not None else ():
            if law.name == name:
                break
            at += len(law.numbers)
        else:
            raise ModelError(f"{name!r} has no law")
        return self._raw.load_numbers[at : at + len(law.numbers)]

    def tables(self) -> list[tuple[Any, FloatArray]]:
        """The packed systems and the derivatives by their floats."""
        e = self._simulation._equations
        own = [(e.system, self._with_start())]
        return own if e.forces is None else [*own, (e.forces._packed, self._raw.load_floats)]

    def principal_axes(self, body: int) -> FloatArray:
        """The quaternion body ← principal axes."""
        found: FloatArray = self._system.reference_frames[body, 3:]
        return found

    @property
    def read_by_cost(self) -> list[tuple[int, float]]:
        """Nodes of formulas in points and directions that the cost reads, and the derivatives by them."""
        course = self._course
        pairs = [(leaf, k, node) for leaf, own in course.formulas.items() for k, node in own]
        return [(node, float(course.local_bars[leaf][k])) for leaf, k, node in pairs if leaf in course.local_bars]

    # -- bodies --------------------------------------------------------------------------------------------------------

    def _start_of(self, k: int) -> StartGradient:
        course, raw = self._course, self._raw
        w = self._first_velocity()[k, 3:]
        A, R, c = course.first_A[k], course.R[k], course.c[k]
        force, push = A.T @ raw.q[k, :3], A.T @ raw.v[k, :3]  # in principal axes
        arm = R.T @ c
        turn = raw.q[k, 3:] + np.cross(arm, force) + np.cross(np.cross(w, arm), push)
        spin = raw.v[k, 3:] + np.cross(arm, push)
        return StartGradient(raw.q[k, :3].copy(), R @ turn, raw.v[k, :3].copy(), R @ spin)

    def _first_velocity(self) -> FloatArray:
        assert self._simulation._start is not None
        return self._simulation._start[1].reshape(-1, WIDTH)

    def _of_body(self, k: int) -> BodyGradient:
        course, raw = self._course, self._raw
        R, A = course.R[k], course.first_A[k]
        points = [bar for leaf, bar in course.local_bars.items() if leaf.body == k and leaf.kind == traced_state.POINT]
        own = np.sum([np.zeros(3), *points], axis=0)
        local = self._point_bars(k) - R.T @ own
        w = self._first_velocity()[k, 3:]
        local += A.T @ raw.q[k, :3] + np.cross(A.T @ raw.v[k, :3], w)
        inertia = R @ (0.5 * (raw.inertias[k] + raw.inertias[k].T)) @ R.T
        return BodyGradient(float(raw.masses[k]), inertia, R @ local)

    def _point_bars(self, k: int) -> FloatArray:
        """−Σ s̄ of all points on a body, in principal axes."""
        e, raw = self._simulation._equations, self._raw
        total = np.zeros(3)
        for place, body in _points(e.system):
            if body == k:
                total -= raw.floats[place : place + 3]
        if e.forces is not None:
            for place, body in _points(e.forces._packed):
                if body == k:
                    total -= raw.load_floats[place : place + 3]
            at = sum(len(law.numbers) for law in e.forces.laws)
            for wrench in e.forces.wrenches:
                if wrench.body == k:
                    total -= raw.load_numbers[at : at + 3]
                at += len(wrench.numbers)
        return total

    # -- joints --------------------------------------------------------------------------------------------------------

    def _with_start(self) -> FloatArray:
        """Derivatives by the floats of the system; the start is assembled again."""
        if self._pulled is None:
            self._pulled = self._raw.floats + _of_assembly(self._simulation, self._raw)
        return self._pulled

    def _of_joint(self, joint: Any) -> JointGradient:
        ends = joint.ends
        if any([hasattr(end, "a") for end in ends]) or len(ends) != 2:
            raise ModelError(f"{joint.kind.name} {joint.name!r} has no points of its own; ask for those of its joints")
        e, floats, course = self._simulation._equations, self._with_start(), self._course
        index = {end.body.name: number for number, end in enumerate(ends)}
        found = np.zeros((2, 3))
        rows = {row.start for row in e.system.rows if row.constraint == joint.name}
        names = dict(enumerate(self._system.names)) | {-1: "ground"}
        for place, body in _points(e.system, rows):
            number = index[names[body]]
            found[number] += course.R[body] @ floats[place : place + 3] if body >= 0 else floats[place : place + 3]
        for leaf, bar in course.local_bars.items():
            if leaf.joint == joint.name and leaf.kind == traced_state.POINT:
                found[index[names[leaf.body]]] += bar
        if self._simulation._redundant:
            found[self._locking(joint, index)] = np.nan
        return JointGradient(found)

    def _locking(self, joint: Any, index: Mapping[str, int]) -> Any:
        """Which changes of the points of a joint contradict its other equations, or those of other joints."""
        e, R = self._simulation._equations, self._course.R
        q, spare = self._first_pose(), self._raw.sweep.floats
        holding = self._raw.holding
        jacobian = e.problem.jacobian(q)[1][holding]
        own = np.linalg.svd(jacobian, full_matrices=False)
        left = own[0][:, own[1] > FOLLOWS * own[1][0]]
        names = dict(enumerate(self._system.names)) | {-1: "ground"}
        rows = {row.start for row in e.system.rows if row.constraint == joint.name}
        locking = np.zeros((2, 3), dtype=bool)
        for end, axis in np.ndindex(2, 3):
            change = np.zeros(holding.size)
            for sign in (1.0, -1.0):
                floats = spare.copy()
                for place, body in _points(e.system, rows):
                    if index[names[body]] == end:
                        floats[place : place + 3] += sign * (R[body].T[:, axis] if body >= 0 else np.eye(3)[axis])
                change += 0.5 * sign * e.problem.with_floats(floats).jacobian(q)[0][holding]
            rest = change - left @ (left.T @ change)
            locking[end, axis] = np.linalg.norm(rest) > FOLLOWS * np.linalg.norm(change)
        return locking

    def _is_locking(self, direction: FloatArray) -> bool:
        """Whether a change of the floats of the system contradicts its equations at the start."""
        largest = float(np.abs(direction).max(initial=0.0))
        if not largest > 0.0:
            return False
        e, q, holding = self._simulation._equations, self._first_pose(), self._raw.holding
        own = np.linalg.svd(e.problem.jacobian(q)[1][holding], full_matrices=False)
        left = own[0][:, own[1] > FOLLOWS * own[1][0]]
        sides = [self._raw.sweep.floats + sign * SMALL / largest * direction for sign in (0.5, -0.5)]
        f = [e.problem.with_floats(floats).jacobian(q)[0][holding] for floats in sides]
        change = (f[0] - f[1]) / SMALL
        rest = float(np.linalg.norm(change - left @ (left.T @ change)))
        return rest > max(FOLLOWS * float(np.linalg.norm(change)), ROUNDED)

    def _first_pose(self) -> FloatArray:
        return self._simulation._results[0, 1 : 1 + int(self._simulation._equations.coordinates)].copy()

    # -- loads ---------------------------------------------------------------------------------------------------------

    def _of_load(self, name: str) -> LoadGradient:
        e, raw = self._simulation._equations, self._raw
        assert e.forces is not None
        at = 0
        for law in e.forces.laws:
            own = raw.load_numbers[at : at + len(law.numbers)]
            at += len(law.numbers)
            if law.name == name:
                return LoadGradient(name, _named(law.code, own))
        loads = [load for load in self._system.index.contents.loads.values() if load.action.wrench is not None]
        for load, wrench in zip(loads, e.forces.wrenches, strict=True):
            own = raw.load_numbers[at : at + 6]
            at += len(wrench.numbers)
            if load.name == name:
                R = self._course.R[wrench.body]
                vector = R @ own[3:] if wrench.in_body else own[3:].copy()
                return LoadGradient(
                    name, {"vector": vector} if wrench.is_torque else {"point": R @ own[:3], "vector": vector}
                )
        raise check.unknown(name, "load of this run", [load.name for load in loads])


def _named(code: int, own: FloatArray) -> dict[str, Any]:
    """The numbers of a law by their names."""
    if code == tables.LINEAR:
        found = dict(zip(NUMBERS, own.tolist(), strict=True))
        return {**found, "viscous": found["damping"]}
    if code == tables.MATRIX:
        n = int(np.sqrt(len(own) / 2))
        return {"stiffness": own[: n * n].reshape(n, n).copy(), "damping": own[n * n :].reshape(n, n).copy()}
    return {"constants": own.copy()}


def _points(system: Any, rows: Any = None) -> list[tuple[int, int]]:
    """The place of every point among the floats, and its body; rows: first rows of the constraints that are meant."""
    found = []
    for start in system.starts[:-1].tolist():
        record = system.ints[start : int(system.ints[start + layout.NEXT])].tolist()
        if rows is not None and record[layout.ROW] not in rows:
            continue
        for at in range(layout.RECORD + record[layout.SLOTS], len(record), layout.FEATURE):
            if record[at + layout.KIND] == layout.POINT:
                found.append((record[at + layout.SOURCE], record[at + layout.BODY]))
    return found


def _of_assembly(simulation: Simulation, raw: Raw) -> FloatArray:
    """Derivatives by the floats of the system, because the start is assembled: −(∂f)ᵀ (J W Jᵀ)⁻¹ J W q̄."""
    e = simulation._equations
    assert simulation._start is not None and simulation._run is not None
    q = simulation._start[0]
    jacobian = e.problem.jacobian(q)[1]
    bodies = len(e.system.names)
    frames = e.system.reference_frames
    metric = e.problem.scales[e.problem.rows :].reshape(bodies, WIDTH)
    to_assembly = np.zeros((bodies, WIDTH, WIDTH))  # the tangent at the centroids of points, in body axes
    A = euler.matrix(q[: layout.POSE * bodies].reshape(bodies, layout.POSE)[:, 3:])
    R = euler.matrix(frames[:, 3:])
    own = simulation._system.centroids if simulation._system.names == e.system.names else e.system.centroids
    for k in range(bodies):
        arm = R[k].T @ (own[k] - frames[k, :3])
        to_assembly[k, :3, :3] = np.eye(3)
        to_assembly[k, :3, 3:] = -A[k] @ euler.tilde(arm)
        to_assembly[k, 3:, 3:] = R[k]
    back = np.linalg.inv(to_assembly)
    roots = back * metric[:, None, :]  # T⁻¹ D
    scaled = np.einsum("rbi,bij->rbj", jacobian.reshape(len(jacobian), bodies, WIDTH), roots).reshape(len(jacobian), -1)
    bars = raw.q.copy()  # velocities are given at the origins of bodies, so that those of centres turn with the pose
    for k, v in enumerate(simulation._start[1].reshape(bodies, WIDTH)):
        bars[k, 3:] += np.cross(np.cross(v[3:], R[k].T @ frames[k, :3]), A[k].T @ raw.v[k, :3])
    right = np.einsum("bij,bi->bj", roots, bars).ravel()
    weights = np.zeros(len(jacobian))
    rows = raw.holding
    weights[rows] = np.linalg.lstsq(scaled[rows].T, right, rcond=DEPENDENT)[0]
    return raw.pull(q, -weights)


def gradient(simulation: Simulation, cost: Any, parameters: Iterable[Any] | None = None) -> Gradient:
    """See :meth:`Simulation.gradient`."""
    if not isinstance(cost, Cost):
        raise ModelError(f"the cost is {cost!r}; it must be made of {costs.MADE_OF}")
    if isinstance(parameters, str | Parameter):
        raise ModelError(f"parameters is {parameters!r}; it must be a list of parameters or their names")
    run = check_run(simulation)
    full, orders = _with_all_steps(simulation, run)
    value, of_rows, course = _of_cost(full, cost)
    assert simulation._start is not None  # checked
    sweep = Sweep(_fresh(full, run), full._results, orders, simulation._start, simulation._redundant)
    raw = sweep.gradient(of_rows)
    if not raw.mismatch <= max(MISMATCH, float(run.control.rtol)):
        raise ModelError(
            f"this run has no gradient: its steps could not be made again (they differ by {raw.mismatch:.1g}); a part "
            "of it is not known to the gradient"
        )
    numbers = (raw.q, raw.v, raw.masses, raw.inertias, raw.gravity, raw.floats, raw.load_floats, raw.load_numbers)
    if not all([np.isfinite(array).all() for array in numbers]):
        raise ModelError("the gradient is not finite: a function of the cost or a load has no derivative in some state")
    made = Gradient(value, full, raw, course)
    if parameters is not None:
        if made._drawing is None:
            raise ModelError("the parameters of this run are not known, as after pickling; simulate again")
        made._chosen = tuple(dict.fromkeys(map(made._drawing.contents.parameter_name, parameters)))
    return made


def _fresh(simulation: Simulation, run: Integration, times: FloatArray | None = None) -> Integration:
    """A run with the same equations and steps from the same start."""
    assert simulation._start is not None and simulation._run is not None
    q, v = simulation._start
    times = simulation.times if times is None else times
    rtol = float(run.control.rtol) / ESTIMATE
    settings = Settings(run.method, None if rtol else run.step, rtol or None, float(run.control.most_step))
    return Integration(run.equations, q, v, run.first, times, end=simulation._run[1], settings=settings)


def _with_all_steps(simulation: Simulation, run: Integration) -> tuple[Simulation, IntArray]:
    """The simulation with an output at every step, and the orders of the steps; else it is made again."""
    assert simulation._run is not None
    end = simulation._run[1]
    if run.control.rtol > 0.0:
        rows, orders, code = recorded(_fresh(simulation, run, np.array([end])), end)
        if code != tables.DONE or (np.diff(orders[: len(orders)]) < 0).any():
            raise ModelError("this run has no gradient yet: it was begun again near a singular pose; use other steps")
        return _like(simulation, run, rows), orders
    grid = _outputs(run.first, end - run.first, run.step)
    times = simulation.times
    if len(times) == len(grid) and np.abs(times - grid).max() <= SAME_TIME * run.step:
        return simulation, constant_orders(len(times))
    again = _fresh(simulation, run, grid)
    code = again.begin()
    while code == tables.RUNNING:
        code = again.advance(end, MANY)
    if code != tables.DONE:
        raise ModelError("this run has no gradient: it could not be repeated")
    return _like(simulation, run, again.results), constant_orders(len(grid))


def _like(simulation: Simulation, run: Integration, rows: FloatArray) -> Simulation:
    """The same simulation with other outputs."""
    full = Simulation(run.equations, rows, simulation.status, simulation.reason, steps=len(rows) - 1)
    full._source, full._start, full._run = simulation._source, simulation._start, simulation._run
    full._drawing = simulation._drawing
    full._connections = simulation._connections
    return full


def cost_of(simulation: Simulation, cost: Cost) -> float:
    """The value of a cost, without its gradient; the simulation has an output at every step."""
    value, _, _ = _of_cost(simulation, cost)
    return value


def _of_cost(simulation: Simulation, cost: Cost) -> tuple[float, FloatArray, traced_state.Course]:
    """The value, its derivatives by all rows, and what the functions read."""
    course = traced_state.Course(simulation)
    times = simulation.times
    weights = costs.quadrature(times)
    traced = {one: traced_state.traced(one, simulation) for one in cost.functionals}
    known: dict[Cost, float] = {}
    slopes: dict[Cost, FloatArray] = {}
    read = {one: state.values(course) for one, (state, _) in traced.items()}
    for one, (state, row) in traced.items():
        (values,) = traced_state.evaluated(state.graph, [row], read[one], len(times))
        known[one], slopes[one] = costs.reduced(one, values, times, weights)
    value = cost.evaluated(known)
    if not np.isfinite(value):
        raise ModelError(f"the cost is {value}: one of its functions has no value in some state of the run")
    factors: dict[Cost, float] = {}
    cost.slopes(known, 1.0, factors)
    for one, factor in factors.items():
        traced_state.add_cost(course, traced[one], read[one], factor * slopes[one])
    bars = [bar.reshape(len(times), -1) for bar in (course.q_bar, course.v_bar, course.a_bar)]
    return value, np.hstack([*bars, course.multiplier_bar]), course
