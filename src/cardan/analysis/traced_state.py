"""A state whose numbers are symbols, and what their values and their derivatives are over the steps of a run.

A function of a state becomes a graph (:mod:`cardan.constraints.expression`) whose variables are components of leaves:

======== =============================================== =====================
point    r + A s of a point on a body [m]                by time: order 0 to 2
vector   A s of a direction                              by time: order 0 to 2
spin     A ω of a body [rad/s]                           by time: order 0, 1
time     t [s]
near     the counted angle of a joint, which only chooses the whole turns
effort   −λ of the equation of a driver [N or N m]
======== =============================================== =====================

The graph is evaluated and differentiated for all steps at once.  The derivative of a cost by a leaf is then that by
the tangent of q, by v and by v̇ of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.analysis.costs import Cost
from cardan.analysis.ownership import chosen_coordinate
from cardan.constraints import adjoints
from cardan.constraints.expression import Graph, Scalar, TracingError, Vector
from cardan.constraints.registry import KINDS, FeatureKind
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.math import euler
from cardan.system import check
from cardan.system.formulas import _OF_ARRAYS as OF_ARRAYS
from cardan.system.formulas import Formula, bindings
from cardan.system.parts import Frame, Point
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

POINT, VECTOR, SPIN = "point", "vector", "spin"


class Leaf(NamedTuple):
    """What a variable belongs to: a kind, the number of its body (−1: the ground), the point or vector in body axes,
    the order of the derivative by time, and the joint whose coordinate reads it, if there is one."""

    kind: str
    body: int
    local: tuple[float, ...]
    order: int
    joint: str = ""


class TracedState:
    """What the function of a cost is given; named like :class:`cardan.State`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._system = simulation._equations.system
        self.graph = Graph()
        self._of_leaves: dict[Leaf, Vector] = {}
        self._nears: dict[str, tuple[Scalar, Coordinate]] = {}
        self._efforts: dict[str, tuple[Scalar, int]] = {}
        self._time: Scalar | None = None
        self._formulas: dict[Leaf, tuple[tuple[int, int], ...]] = {}
        self._count = 0

    @property
    def leaves(self) -> Mapping[Leaf, Vector]:
        """The variables of each leaf."""
        return self._of_leaves

    @property
    def time(self) -> Scalar:
        """[s]"""
        if self._time is None:
            self._time = self._variable()
        return self._time

    def _variable(self) -> Scalar:
        self._count += 1
        return self.graph.variable(f"x{self._count - 1}")

    def leaf(self, kind: str, body: int, local: Any, order: int, joint: str = "") -> Vector:
        """The symbols of a leaf."""
        key = Leaf(kind, body, tuple(map(float, local)), order, joint)
        if key not in self._of_leaves:
            self._of_leaves[key] = Vector(self._variable(), self._variable(), self._variable())
        return self._of_leaves[key]

    def _keep_formulas(self, kind: str, body: int, value: Any, given: Any, joint: str) -> None:
        for order in range(3):
            self._formulas[Leaf(kind, body, tuple(map(float, value)), order, joint)] = bindings(given)

    def __getitem__(self, body: Any) -> TracedPose:
        if getattr(body, "is_ground", False) or body == "ground":
            return TracedPose(self, -1)
        return TracedPose(self, self._simulation._index("a cost", body))

    def coordinate(self, joint: Any, of: str | None = None) -> Scalar:
        """A coordinate of a joint: [m], or [rad] with whole turns."""
        return self._coordinate("coordinate", joint, of)

    def rate(self, joint: Any, of: str | None = None) -> Scalar:
        """Its rate: [m/s] or [rad/s]."""
        return self._derivative(self._coordinate("rate", joint, of), 1)

    def acceleration(self, joint: Any, of: str | None = None) -> Scalar:
        """Its acceleration: [m/s²] or [rad/s²]."""
        return self._derivative(self._coordinate("acceleration", joint, of), 2)

    def effort(self, driver: Any) -> Scalar:
        """Torque [N m] or force [N] of a driver."""
        equations, name = self._simulation._equations, getattr(driver, "name", driver)
        drivers = [signal.name for _, signal in equations.system.signals]
        if name not in drivers:
            if equations.forces is not None and name in equations.forces.named:
                raise ModelError(f"the effort of load {name!r} cannot be in a cost yet; write it as an expression")
            raise check.unknown(name, "driver of this run", drivers)
        if self._simulation._redundant and self._simulation._forces.is_shared(name):
            raise ModelError(
                f"the effort of {name!r} is not unique, because equations are redundant: it has no gradient"
            )
        if name not in self._efforts:
            self._efforts[name] = self._variable(), int(equations.drivers[2 * drivers.index(name) + 1])
        return self._efforts[name][0]

    def _coordinate(self, what: str, joint: Joint | Coordinate | str, of: str | None) -> Scalar:
        simulation = self._simulation
        chosen = chosen_coordinate(what, joint, of, simulation._source, simulation._system)
        features: list[Any] = []
        for feature in chosen.features:
            value = feature.at(self._system.values)
            kind = POINT if feature.kind is FeatureKind.POINT else VECTOR
            body: Any = feature.body
            number = -1 if body.is_ground else self._system.index[body.name]
            features.append(self.leaf(kind, number, value, 0, chosen.joint))
            self._keep_formulas(kind, number, value, feature.value, chosen.joint)
        if chosen.kind == "angle":
            key = repr([(feature.kind, str(feature.body), feature.value) for feature in chosen.features])
            if key not in self._nears:
                self._nears[key] = self._variable(), chosen
            features.append(self._nears[key][0])
        traced: Scalar = KINDS[chosen.kind].trace(*features)  # type: ignore[assignment]
        return traced

    def _derivative(self, of: Scalar, order: int) -> Scalar:
        """The derivative by time of an expression of leaves."""
        for k in range(order):
            seeds: dict[Scalar, Scalar] = {}
            for leaf, vector in list(self._of_leaves.items()):
                if leaf.order <= k and leaf.body >= 0:
                    rates = self.leaf(leaf.kind, leaf.body, leaf.local, leaf.order + 1, leaf.joint)
                    seeds |= dict(zip(vector.components, rates.components, strict=True))
            of = self.graph.derivative(of, seeds, {})
        return of

    # -- values --------------------------------------------------------------------------------------------------------

    def values(self, run: Course) -> dict[int, Any]:
        """Values of all variables over the steps, by the number of the node; shape (steps,) each."""
        found: dict[int, Any] = {}
        if self._time is not None:
            found[self._time.index] = run.times
        for node, coordinate in self._nears.values():
            found[node.index] = run.simulation.coordinate(coordinate)
        for node, equation in self._efforts.values():
            found[node.index] = -run.multipliers[:, equation]
        for leaf, vector in self._of_leaves.items():
            value = run.value(leaf)
            for i, node in enumerate(vector.components):
                found[node.index] = value[:, i]
        return found


class TracedPose:
    """A body of a :class:`TracedState`; named like :class:`cardan.Pose`."""

    def __init__(self, state: TracedState, body: int) -> None:
        self._state = state
        self._body = body

    def _leaf(self, kind: str, local: Any, order: int) -> Vector:
        graph = self._state.graph
        if self._body >= 0:
            return self._state.leaf(kind, self._body, local, order)
        is_still = order > 0 or kind == SPIN
        return Vector(*[graph.constant(0.0 if is_still else float(c)) for c in local])

    def _local(self, given: Any) -> tuple[float, ...]:
        """Numbers in body axes; a point or frame must be on this body."""
        if isinstance(given, Point | Frame):
            own = self._state._system.index.get(given.body.name, -1)
            if own != self._body:
                raise ModelError(f"a cost was given {given!r}, which is on another body")
            place = given.position if isinstance(given, Point) else given.origin
            values = self._state._system.values
            value = tuple(float(c.at(values) if isinstance(c, Formula) else c) for c in place)
            self._state._keep_formulas(POINT, self._body, value, place, "")
            return value
        return check.vector(given, "a point or vector in body axes")

    @property
    def position(self) -> Vector:
        """r of the origin [m]."""
        return self._leaf(POINT, (0.0, 0.0, 0.0), 0)

    @property
    def velocity(self) -> Vector:
        """ṙ of the origin [m/s] in world axes."""
        return self._leaf(POINT, (0.0, 0.0, 0.0), 1)

    @property
    def acceleration(self) -> Vector:
        """r̈ of the origin [m/s²] in world axes."""
        return self._leaf(POINT, (0.0, 0.0, 0.0), 2)

    @property
    def angular_velocity(self) -> Vector:
        """ω [rad/s] in world axes."""
        return self._leaf(SPIN, (0.0, 0.0, 0.0), 0)

    @property
    def angular_acceleration(self) -> Vector:
        """ω̇ [rad/s²] in world axes."""
        return self._leaf(SPIN, (0.0, 0.0, 0.0), 1)

    def point(self, local: Any) -> Vector:
        """World position [m] of a point given in body axes."""
        return self._leaf(POINT, self._local(local), 0)

    def vector(self, local: Any) -> Vector:
        """World components of a vector given in body axes."""
        return self._leaf(VECTOR, self._local(local), 0)

    def velocity_of(self, local: Any) -> Vector:
        """Velocity [m/s] in world axes of a point given in body axes."""
        return self._leaf(POINT, self._local(local), 1)

    def acceleration_of(self, local: Any) -> Vector:
        """Acceleration [m/s²] in world axes of a point given in body axes."""
        return self._leaf(POINT, self._local(local), 2)


class Course:
    """The rows of a run in principal frames, and the bars of q (tangent), v and v̇ of every row.

    ``local_bars``: derivative of the costs by the points that they read, in body axes.
    """

    def __init__(self, simulation: Simulation) -> None:
        system = simulation._equations.system
        self.simulation, self.times = simulation, simulation.times
        poses = simulation._poses()
        self.r, self.A = poses[:, :, :3] + system.origin, euler.matrix(poses[:, :, 3:])
        self.v, self.a = simulation._rates(0), simulation._rates(1)
        self.R = euler.matrix(system.reference_frames[:, 3:])
        self.c = system.reference_points
        self.first_A = euler.matrix(simulation._first_poses()[:, 3:])
        shape = self.v.shape
        self.q_bar, self.v_bar, self.a_bar = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.multipliers = simulation._multipliers()
        self.multiplier_bar: FloatArray = np.zeros(self.multipliers.shape)
        self.formulas: dict[Leaf, tuple[tuple[int, int], ...]] = {}  # of their numbers: position and node
        self.local_bars: dict[Leaf, FloatArray] = {}

    def _local(self, leaf: Leaf) -> FloatArray:
        """s in principal axes."""
        local = np.array(leaf.local)
        found: FloatArray = self.R[leaf.body].T @ (local - self.c[leaf.body] if leaf.kind == POINT else local)
        return found

    def value(self, leaf: Leaf) -> FloatArray:
        """Of a leaf, shape (steps, 3)."""
        b = leaf.body
        if b < 0:
            return np.broadcast_to(np.array(leaf.local), (len(self.times), 3))
        A, w, dw = self.A[:, b], self.v[:, b, 3:], self.a[:, b, 3:]
        is_point = leaf.kind == POINT
        if leaf.kind == SPIN:
            return _rotated(A, dw if leaf.order else w)
        s = self._local(leaf)
        if leaf.order == 0:
            return A @ s + (self.r[:, b] if is_point else 0.0)
        if leaf.order == 1:
            return _rotated(A, _cross(w, s)) + (self.v[:, b, :3] if is_point else 0.0)
        second = _cross(dw, s) + _cross(w, _cross(w, s))
        return _rotated(A, second) + (self.a[:, b, :3] if is_point else 0.0)

    def add_bars(self, leaf: Leaf, bar: FloatArray) -> None:
        """Bars += those of a leaf, shape (steps, 3)."""
        b = leaf.body
        if b < 0:
            self._keep(leaf, bar)
            return
        A, w, dw = self.A[:, b], self.v[:, b, 3:], self.a[:, b, 3:]
        h = _rotated(np.swapaxes(A, 1, 2), bar)
        theta, w_bar, dw_bar = self.q_bar[:, b, 3:], self.v_bar[:, b, 3:], self.a_bar[:, b, 3:]
        if leaf.kind == SPIN:
            theta += _cross(dw if leaf.order else w, h)
            (dw_bar if leaf.order else w_bar)[:] += h
            return
        s = np.broadcast_to(self._local(leaf), h.shape)
        if leaf.kind == POINT:
            (self.q_bar, self.v_bar, self.a_bar)[leaf.order][:, b, :3] += bar
        if leaf.order == 0:
            theta += _cross(s, h)
            own = h
        elif leaf.order == 1:
            theta += _cross(_cross(w, s), h)
            w_bar += _cross(s, h)
            own = _cross(h, w)
        else:
            first = _cross(w, s)
            theta += _cross(_cross(dw, s) + _cross(w, first), h)
            dw_bar += _cross(s, h)
            back = _cross(h, w)
            w_bar += _cross(first, h) + _cross(s, back)
            own = _cross(h, dw) + _cross(back, w)
        self._keep(leaf, own @ self.R[b].T)

    def _keep(self, leaf: Leaf, own: FloatArray) -> None:
        if leaf.kind != SPIN:
            self.local_bars[leaf] = self.local_bars.get(leaf, 0.0) + own.sum(axis=0)


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """np.cross of rows, without its overhead; one of them may be a single vector."""
    (a0, a1, a2), (b0, b1, b2) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def _rotated(A: FloatArray, x: FloatArray) -> FloatArray:
    found: FloatArray = np.einsum("tij,tj->ti", A, x)
    return found


def _unit(k: int, x: Any, y: Any, z: Any) -> Any:
    n = np.sqrt(x * x + y * y + z * z)
    return np.where(n == 0.0, float(k == 0), (x, y, z)[k] / np.where(n == 0.0, 1.0, n))


def _inverse(n: Any) -> Any:
    return np.where(n == 0.0, 0.0, 1.0 / np.where(n == 0.0, 1.0, n))


def _near(s: Any, c: Any, near: Any) -> Any:
    angle = np.arctan2(s, c)
    return angle + 2.0 * np.pi * np.round((near - angle) / (2.0 * np.pi))


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **OF_ARRAYS,
    "call norm3": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    **{f"call unit3_{k}": lambda x, y, z, k=k: _unit(k, x, y, z) for k in range(3)},
    "call inverse_norm3": lambda x, y, z: _inverse(np.sqrt(x * x + y * y + z * z)),
    "call inverse_square2": lambda s, c: _inverse(s * s + c * c),
    "call unwrapped": _near,
    "call beyond": lambda a, lower, upper: a - np.clip(a, lower, upper),
    "call outside": lambda a, lower, upper: np.where((a < lower) | (a > upper), 1.0, 0.0),
}


def evaluated(graph: Graph, outputs: list[Scalar], known: Mapping[int, Any], count: int) -> list[FloatArray]:
    """Values of nodes over all steps, shape (count,) each."""
    found: dict[int, Any] = dict(known)
    needed: set[int] = set()
    stack = [*outputs]
    while stack:
        node = stack.pop()
        if node.index not in needed:
            needed.add(node.index)
            stack += node.arguments
    with np.errstate(all="ignore"):
        for index in sorted(needed):
            node = graph.nodes[index]
            if index in found:
                continue
            if node.operation == "constant":
                found[index] = node.value
            else:
                function = _FUNCTIONS.get(node.operation)
                if function is None:
                    name = node.operation.removeprefix("call ")
                    raise ModelError(f"a cost contains {name!r}, whose gradient is not known; use other functions")
                found[index] = function(*[found[argument.index] for argument in node.arguments])
    return [np.broadcast_to(np.asarray(found[node.index], dtype=np.float64), (count,)) for node in outputs]


class Traced(NamedTuple):
    """The function of a cost as a graph."""

    state: TracedState
    row: Scalar


def traced(cost: Cost, simulation: Simulation) -> Traced:
    """The graph of the function of a functional; ModelError if it cannot be recorded."""
    state, function = TracedState(simulation), cost.function
    assert function is not None
    try:
        result = function(state)
        if isinstance(result, Vector):
            raise TracingError("it returned a vector; take a component, cd.norm or cd.dot")
        return Traced(state, state.graph.lift(result))
    except TracingError as error:
        raise ModelError(f"the function of cd.{cost.operation}: {error}") from None


def add_cost(course: Course, one: Traced, known: Mapping[int, Any], factors: FloatArray) -> None:
    """Add the bars of a functional to those of a course.

    known: values of the variables.  factors: derivatives by the values of e at the steps.
    """
    state, row = one
    count = len(course.times)
    leaves = list(state.leaves.items())
    variables = [node for _, vector in leaves for node in vector.components]
    efforts = list(state._efforts.values())
    try:
        bars = adjoints.gradient(state.graph, row, [*variables, *[node for node, _ in efforts]])
    except (KeyError, AssertionError) as error:
        raise ModelError(f"the function of a cost has no derivative: {error}; use other functions") from None
    found = evaluated(state.graph, bars, known, count)
    course.formulas |= {leaf: state._formulas[leaf] for leaf, _ in leaves if state._formulas.get(leaf)}
    for k, (leaf, _) in enumerate(leaves):
        course.add_bars(leaf, np.stack(found[3 * k : 3 * k + 3], axis=1) * factors[:, None])
    for (_, equation), bar in zip(efforts, found[len(variables) :], strict=True):
        course.multiplier_bar[:, equation] -= bar * factors
