"""Poses where a mechanism rests: joints closed, no velocities, and no force along any free motion.

A step is y = K⁻¹ g, with the force g along the free motions and its stiffness K
(:mod:`cardan.dynamics.static_forces`).  If K is not positive definite, it is y = (K + σ)⁻¹ g with a σ that makes it so:
then a step follows the force, downhill for loads with a potential, and does not lead to a maximum.  [MoreSorensen1983]
A step is shortened until the force does work on its way. A limit that is reached holds while it pushes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np

from cardan.analysis.assemble import assemble
from cardan.analysis.contact_record import Energy
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import AssemblyResult
from cardan.analysis.simulate import principal_pose
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.calls import explains
from cardan.coordinates import verdict
from cardan.coordinates.rates import at_origins
from cardan.dynamics.build import connections, equations_of
from cardan.dynamics.equations import Equations
from cardan.dynamics.reactions import Reaction
from cardan.dynamics.static_forces import AT_REST, AtRest
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.formulas import drawn_at
from cardan.system.parts import Body
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_dense = LazyModule("cardan.math._dense")

EXACT: Final = 1e-13  # of loads and stiffness: a smaller force along the free motions is rounding
NEAR: Final = 1e-9  # likewise: a smaller force is accepted where no step changes the pose any more
SMALLEST_STEP: Final = 1e-12  # [rad], lengths in L
LARGEST_STEP: Final = 0.3  # likewise
GROWTH: Final = 8.0  # of σ, from one trial to the next
SYMMETRIC: Final = 1e-9  # of the loads and the largest stiffness: a smaller difference is rounding
NEARLY_SINGULAR: Final = 1e-3  # of the largest singular value of the scaled J: a smaller one is told
SHORTENINGS: Final = 30  # of one step, by halves
TINY: Final = 1e-300  # against division by zero
INDIFFERENT: Final = 1e-8  # of the loads and the largest stiffness: a smaller stiffness is zero


class EquilibriumStatus(StrEnum):
    """How the search for an equilibrium ended."""

    FOUND = "found"
    NOT_ASSEMBLED = "not assembled"  # no assembly at the start
    ITERATION_LIMIT = "iteration limit"  # forces along the free motions are left
    STUCK = "stuck"  # the joints do not allow a step along the force


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium(Saved):
    """A pose at rest.

    ``ok``: no force along the free motions is left.  ``status`` and ``reason``: how the search ended, and why.
    ``state``: the last pose, with zero velocities, None if it was not assembled.  ``residual``: the force that is left,
    relative to the loads and their stiffness.  ``iterations``: number of steps.
    ``stable``: True if every small displacement along the free motions is driven back, False if one is not, None if
    one of them meets no force (a pose beside it is an equilibrium, too), if the pose is none, if it is singular, or
    with rate rows, which allow only some of the displacements: then see :meth:`cardan.Mechanism.linearize`.
    ``holding``: names of the limits that hold.  ``notes``: what was assumed about masses, and contacts that
    pull, or that were drawn apart or on the other side.
    """

    status: EquilibriumStatus
    reason: str
    state: State | None
    residual: float
    iterations: int
    stable: bool | None
    holding: tuple[str, ...]
    notes: tuple[str, ...]
    _instant: Simulation | None = field(repr=False)

    @property
    def ok(self) -> bool:
        """No force along the free motions is left."""
        return self.status is EquilibriumStatus.FOUND

    def coordinate(self, joint: str | Joint | Coordinate, of: str | None = None) -> float:
        """A coordinate of a joint [m, rad]; see :meth:`Simulation.coordinate`."""
        return float(self._at_rest().coordinate(joint, of)[0])

    def reaction(self, joint: str | Joint, on: str | Body = "b", axes: str = "world") -> Reaction:
        """Force and torque of a joint, shape (3,) each, with the arguments of :meth:`cardan.Simulation.reaction`."""
        return self._at_rest().reaction(joint, on, axes).at(0)

    def effort(self, driver: str | Joint) -> float:
        """Torque [N m] or force [N] of a driver, a limit or a load on a coordinate; see :meth:`Simulation.effort`."""
        return float(self._at_rest().effort(driver)[0])

    @property
    def energy(self) -> Energy:
        """Energies [J], shape (1,) each."""
        return self._at_rest().energy

    def _at_rest(self) -> Simulation:
        if self._instant is None and self.state is not None:
            raise ModelError("reactions, efforts and energies of mechanisms with flexible bodies are not computed yet")
        if self._instant is None:
            raise ModelError(f"there is no pose, and so no forces: {self.status} {self.reason}")
        return self._instant

    def text(self) -> str:
        """The outcome in words."""
        rows = self._instant._equations.rate_rows if self._instant is not None else ()
        unknown = f"stability not examined, because of {', '.join(map(repr, rows))}; linearize tells"
        words = {True: "stable", False: "unstable", None: unknown if rows else "indifferent"}
        lines = [f"equilibrium {self.status}: residual {self.residual:.1e} of the loads, {self.iterations} iterations"]
        lines += [f"  {words[self.stable]}"] if self.ok else [f"  {self.reason}"]
        lines += [f"  limit {name!r} holds" for name in self.holding]
        return "\n".join([*lines, *[f"  note: {note}" for note in self.notes]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equilibrium) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # a state is not hashable

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        words = ("status", "reason", "residual", "iterations", "stable", "holding", "notes")
        state = None if self.state is None else self.state.to_dict()
        return {"ok": self.ok, **{word: getattr(self, word) for word in words}, "state": state}


def find_equilibrium(drawing: Drawing, start: Any, most: int, tolerance: float) -> Equilibrium:
    """See :meth:`cardan.Mechanism.equilibrium`.  most: steps."""
    equations, notes = equations_of(drawing)
    loads = [(load, dict(load.parameters).get("coulomb", 0.0)) for load in drawing.contents.loads.values()]
    rough = [repr(load.name) for load, effort in loads if drawn_at(effort, drawing.nodes)]
    if rough:
        notes.append(f"friction {', '.join(rough)} has no force at rest: it holds no parts in equilibrium")
    most = check.count(most, "max_iterations", 0)
    found = assembled(drawing.system, start, tolerance)
    if not found.ok:
        reason = f"at t = {found.state.time:g} s: {found.text()}"
        return Equilibrium(EquilibriumStatus.NOT_ASSEMBLED, reason, None, float("inf"), 0, None, (), tuple(notes), None)
    rest = released(equations, found.state, start)
    status, reason, iterations = EquilibriumStatus.ITERATION_LIMIT, "", 0
    beside = None  # limits that hold and number of free motions in the pose before
    while True:
        free = rest.free_motions()
        g = rest.force(free)
        K = rest.stiffness(free)
        load = rest.load() + float(np.abs(K).max(initial=0.0))  # springs that balance each other cancel in a load
        residual = float(np.linalg.norm(g)) / load if load > 0.0 else 0.0
        held = tuple(rest.holding)
        if residual > NEAR and beside is not None and beside[0] == held and beside[1] < g.size:  # K is rounding there
            rise = f"{g.size} free motions, and the pose before it {beside[1]}"
            reason = f"the pose is singular: it has {rise}; {_moving(rest, free, g)}"
        beside = held, g.size
        if residual <= EXACT:
            status, reason = EquilibriumStatus.FOUND, ""
            break
        if equations.rate_rows:
            names = ", ".join(map(repr, equations.rate_rows))
            raise ModelError(
                f"the start is not an equilibrium, and a search of poses would bypass {names}; simulate with dampers "
                "instead, until the mechanism rests"
            )
        if reason:
            status = EquilibriumStatus.STUCK
            break
        if iterations >= most:
            reason = f"after {most} iterations {_moving(rest, free, g)}"
            break
        step = _step(K, g)
        if residual <= NEAR and rest.size(_along(free, step)) <= SMALLEST_STEP:
            status = EquilibriumStatus.FOUND
            break
        if not _go(rest, free, g, step):
            status = EquilibriumStatus.FOUND if residual <= NEAR else EquilibriumStatus.STUCK
            if status is EquilibriumStatus.STUCK:
                least = rest.least_singular_value()
                near = "the pose is near to a singular one: " if least < NEARLY_SINGULAR else ""
                reason = f"{near}no step along the force is possible, or a load jumps; {_moving(rest, free, g)}"
            break
        iterations += 1
    is_judged = status is EquilibriumStatus.FOUND and not equations.rate_rows
    if is_judged and rest.is_singular(free):
        is_judged = False
        notes.append("the pose is singular: not all free motions can be continued, and its stability was not examined")
    stable = _is_stable(K, load) if is_judged else None
    instant = Simulation(equations, rest.row[None], SimulationStatus.DONE, "", redundant=rest.is_redundant)
    instant._connections = connections(drawing)
    holding = tuple(rest.holding)
    told = (*notes, *found.notes, *instant.notes)
    return Equilibrium(status, reason, instant.state, residual, iterations, stable, holding, told, instant)


def assembled(system: System, start: Any, tolerance: float) -> AssemblyResult:
    """The assembly from a start; ModelError if its data fit each other only within the tolerance."""
    time = getattr(start, "time", None)
    found = assemble(system, start, time, AssemblyOptions(tolerance=tolerance))
    if not found.ok or tolerance <= verdict.TOLERANCE:
        return found
    exact = assemble(system, found.state, time, AssemblyOptions(restarts=0))
    if not exact.ok:
        names = ", ".join(dict.fromkeys(repr(violation.name) for violation in exact.worst))
        raise ModelError(
            f"the joints fit each other only within the tolerance {tolerance:g}: {names}; give exact data: forces need "
            "closed joints"
        )
    return exact


def released(equations: Equations, found: State, start: Any) -> AtRest:
    """The mechanism at rest in an assembled state, with the limits that hold; ModelError if it must move there."""
    rest = AtRest(equations, principal_pose(equations.system, found, start), found.time)
    if not rest.settle():
        names = ", ".join(map(repr, rest.undefined_loads()))
        why = f"{names} has no finite force" if names else "the pose is singular, or a contact ends in it"
        raise ModelError(
            f"there are no accelerations from rest at t = {found.time:g} s: {why}; start from another pose"
        )
    if rest.size(rest.v) > AT_REST:
        names = ", ".join(map(repr, equations.rate_rows))
        raise ModelError(f"the constraints of velocities {names} do not allow rest at t = {found.time:g} s")
    return rest


def _step(stiffness: FloatArray, g: FloatArray) -> FloatArray:
    """K⁻¹ g, or if K is not positive definite (K + σ)⁻¹ g, with a σ that makes it so and the step moderate."""
    size = math.sqrt(float(np.einsum("ij,ij->", stiffness, stiffness)))  # without the threads of BLAS
    most = LARGEST_STEP * math.sqrt(g.size)
    found = _solved(stiffness, -INDIFFERENT * size, g)
    if found is not None:
        exact = _solved(stiffness, 0.0, g) if _is_symmetric(stiffness, size) else np.linalg.solve(stiffness, g)
        return np.asarray(exact, dtype=np.float64)
    sigma, enough = INDIFFERENT * size, size + float(np.linalg.norm(g)) / most
    while 0.0 < sigma < enough:
        found = _solved(stiffness, sigma, g)
        if found is not None and np.linalg.norm(found) <= most:
            return found
        sigma *= GROWTH
    return g / enough


def _solved(stiffness: FloatArray, sigma: float, g: FloatArray) -> FloatArray | None:
    """(K + σ)⁻¹ g with the symmetric part of K; None if it is not positive definite."""
    found = np.empty_like(g)
    symmetric = (0.5 * (stiffness + stiffness.T)).ravel()
    return found if _dense.solve_definite(g.size, symmetric, sigma, g, found) else None


def _is_symmetric(stiffness: FloatArray, size: float) -> bool:
    """Whether loads have a potential."""
    return bool(np.abs(stiffness - stiffness.T).max(initial=0.0) <= SYMMETRIC * size)


def _along(free: FloatArray, step: FloatArray) -> FloatArray:
    """N y; without the threads of BLAS, as in :func:`cardan.dynamics.tangent.on_one_thread`."""
    return np.asarray(np.einsum("ij,j->i", free, step), dtype=np.float64)


def _go(rest: AtRest, free: FloatArray, g: FloatArray, step: FloatArray) -> bool:
    """Take a step, shortened until the force does work; False, in the old pose, if no part of it is possible."""
    here = rest.q.copy()
    step = step * min(1.0, LARGEST_STEP / max(rest.size(_along(free, step)), TINY))
    for _ in range(SHORTENINGS):
        way = _along(free, step)
        if rest.place(rest.equations.problem.retract(here, way)):
            part, stop = rest.hold_passed(here)
            if stop >= 0:  # to the limit, which holds from now on
                if rest.place(rest.equations.problem.retract(here, part * way)):
                    return rest.settle()
                rest.release(stop)
            else:
                after = rest.force(free)
                if (g + after) @ step > 0.0 or np.linalg.norm(after) < np.linalg.norm(g):
                    return rest.settle()
        step = 0.5 * step
    rest.place(here)
    return False


def _is_stable(stiffness: FloatArray, load: float) -> bool | None:
    zero = max(INDIFFERENT * load, TINY)
    if _is_symmetric(stiffness, load):
        none = np.zeros(len(stiffness))
        if _solved(stiffness, zero, none) is None:
            return False
        return None if _solved(stiffness, -zero, none) is None else True
    least = float(np.linalg.eigvals(stiffness).real.min(initial=np.inf))
    if least < -zero:
        return False
    return None if least <= zero else True


def _moving(rest: AtRest, free: FloatArray, g: FloatArray) -> str:
    """The body that the force g accelerates most, in words; that on which most force is left, if M is singular."""
    system = rest.equations.system
    if rest.equations.is_massless:
        pushed = np.abs(free @ g / rest.columns).reshape(len(system.names), -1).max(axis=1)
        return f"a force along the free motions of {system.names[int(pushed.argmax())]!r} is left"
    root = rest.mass_root(free)
    along = free @ np.linalg.solve(root, np.linalg.solve(root.T, g))
    a = np.abs(at_origins(system, rest.q, along, along)[0])
    k = int(np.argmax(np.maximum(a[:, :3].max(axis=1) / system.judged_length, a[:, 3:].max(axis=1))))
    linear, angular = float(a[k, :3].max()), float(a[k, 3:].max())
    return f"{system.names[k]!r} is still accelerated by {linear:.3g} m/s² and {angular:.3g} rad/s²"
