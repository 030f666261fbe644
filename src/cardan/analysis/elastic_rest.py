"""Equilibria and small motions of mechanisms with flexible bodies: the same laws as of rigid ones, dense.

With N a basis of the motions that the joints allow, J N = 0, an equilibrium has g = Nᵀ(Q − Kη) = 0.  The stiffness
along N, with the multipliers λ of the joints held,

    K_N = Nᵀ (K + ∂(Jᵀλ)/∂z − ∂Q/∂z) N,

contains that of axial loads, through ∂(Jᵀλ)/∂z: a column buckles where K_N is singular.  Derivatives of J and Q are
differences of fourth order; K is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from cardan.analysis.elastic import assemble_elastic
from cardan.analysis.equilibrium import LARGEST_STEP, NEAR, SHORTENINGS, SMALLEST_STEP, Equilibrium, EquilibriumStatus
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import AssemblyResult
from cardan.analysis.starts import start_angles
from cardan.analysis.vibration import AT_REST, CORNER, IN_EQUILIBRIUM, LEAST_DAMPING, Linearization, with_modes
from cardan.coordinates.rates import at_origins
from cardan.dynamics.elastic import PROBE, TINY, ElasticEquations, refuse_items
from cardan.dynamics.static_forces import RATE_PROBES, SMOOTH, slope
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.formulas import drawn_at
from cardan.system.state import FloatArray

INDIFFERENT: Final = 1e-9  # of the largest stiffness: a smaller one is zero
ROUNDING: Final = 1e-9  # of the largest elastic stiffness: slopes of loads are compared with no less


class _Rest:
    """Forces and stiffness along the free motions in a pose z.

    ``corners``: by what was asked for, the largest jump of a slope, and the unit that it is compared with.
    """

    def __init__(self, e: ElasticEquations, z: FloatArray) -> None:
        self.e, self.z = e, z
        self.free = e.free_motions(z)
        self.still = np.zeros(e.scales.size)
        Q = e.applied(z, self.still)
        strain = e.elastic("stiffness") @ e.shape(z)
        J = e.jacobian(z) * e.scales
        self.multipliers = np.linalg.lstsq(J.T, (Q - strain) * e.scales, rcond=1e-13)[0]
        self.force: FloatArray = self.free.T @ (Q - strain)
        self.corners: dict[str, tuple[float, float]] = {}
        self.load = float(np.linalg.norm(Q * e.scales) + np.linalg.norm(strain * e.scales))

    def stiffness(self) -> FloatArray:
        """K_N, shape (freedoms, freedoms)."""
        e = self.e

        def rest(z: FloatArray) -> FloatArray:
            return self.free.T @ (e.applied(z, self.still) - e.jacobian(z).T @ self.multipliers)

        found = self.free.T @ e.elastic("stiffness") @ self.free
        of_loads, jump = slopes(self.free, e.scales, lambda step: rest(e.problem.retract(self.z, step)))
        unit = max(float(np.abs(of_loads).max(initial=0.0)), ROUNDING * float(np.abs(found).max(initial=0.0)))
        self.corners["coordinates"] = jump, self.load + unit
        return np.asarray(found - of_loads)

    def damping(self) -> FloatArray:
        """D_N, shape (freedoms, freedoms): by smaller probes, until friction of loads is linear in them."""
        e, of_loads, jump = self.e, np.zeros((self.free.shape[1],) * 2), np.inf
        found = self.free.T @ e.elastic("damping") @ self.free
        for probe in RATE_PROBES:
            before = of_loads
            of_loads, jump = slopes(self.free, e.scales, lambda v: self.free.T @ e.loads(self.z, v), probe)
            if np.abs(of_loads - before).max(initial=0.0) <= SMOOTH * np.abs(of_loads).max(initial=0.0):
                break
        else:
            jump = np.inf
        self.corners["rates"] = jump, max(float(np.abs(of_loads).max(initial=0.0)), LEAST_DAMPING * self.load, TINY)
        return np.asarray(found - of_loads)

    def check_smooth(self, drawing: Drawing) -> None:
        """ModelError if the slope of a force jumps."""
        for of, (jump, unit) in self.corners.items():
            if jump > CORNER * unit:
                names = [one.name for one in drawing.contents.loads.values() if one.action.function is not None]
                names += [name for name in _rough(drawing) if of == "rates"]
                raise ModelError(
                    f"the forces are not smooth functions of the {of} in this state: a slope jumps by "
                    f"{jump / unit:.2g} of the largest; look at the loads {', '.join(map(repr, names))}: a function "
                    "that jumps or has a corner there must be made smooth, or left out of a copy"
                )


def slopes(
    motions: FloatArray, scales: FloatArray, read: Callable[[FloatArray], FloatArray], probe: float = PROBE
) -> tuple[FloatArray, float]:
    """∂read/∂y at zero, for steps along motions, shape (values, motions); and the largest jump of it, if it jumps."""
    found, jump = [], 0.0
    for motion in motions.T:
        h = probe / max(float(np.abs(motion / scales).max()), TINY)
        own, corner = slope([read(k * h * motion) for k in range(-2, 3)], h)
        found.append(own)
        jump = max(jump, corner)
    return np.array(found).reshape(motions.shape[1], -1).T, jump


def _assembled(drawing: Drawing, start: Any, tolerance: float) -> AssemblyResult:
    return assemble_elastic(drawing, (), start, None, AssemblyOptions(tolerance=tolerance), (None, None))


def _rough(drawing: Drawing) -> list[str]:
    """Names of the loads with Coulomb friction."""
    loads = [(load, dict(load.parameters).get("coulomb", 0.0)) for load in drawing.contents.loads.values()]
    return [load.name for load, effort in loads if drawn_at(effort, drawing.nodes)]


def find_equilibrium(drawing: Drawing, start: Any, most: int, tolerance: float) -> Equilibrium:
    """See :meth:`cardan.Mechanism.equilibrium`.  most: steps."""
    refuse_items(drawing, "equilibrium")
    most = check.count(most, "max_iterations", 0)
    found = _assembled(drawing, start, tolerance)
    e = ElasticEquations(drawing, found.state.time)
    rough = [repr(name) for name in _rough(drawing)]
    notes = [*e.notes, *([f"friction {', '.join(rough)} has no force at rest"] if rough else [])]
    if not found.ok:
        reason = f"at t = {found.state.time:g} s: {found.text()}"
        return Equilibrium(EquilibriumStatus.NOT_ASSEMBLED, reason, None, float("inf"), 0, None, (), tuple(notes), None)
    rest, iterations, status, reason = _Rest(e, e.start(found.state, start_angles(e.system, found.state))), 0, None, ""
    while True:
        K = rest.stiffness()
        load = rest.load + float(np.abs(K).max(initial=0.0))
        residual = float(np.linalg.norm(rest.force)) / load if load > 0.0 else 0.0
        if load == 0.0:
            status = EquilibriumStatus.FOUND
            break
        if iterations >= most:
            status, reason = EquilibriumStatus.ITERATION_LIMIT, f"after {most} iterations a force is left"
            break
        after = _stepped(rest, K, residual <= NEAR)
        if after is None:
            status = EquilibriumStatus.FOUND if residual <= NEAR else EquilibriumStatus.STUCK
            reason = "" if status is EquilibriumStatus.FOUND else "no step along the force is possible"
            break
        rest, iterations = after, iterations + 1
    is_found = status is EquilibriumStatus.FOUND
    state = e.state(rest.z, rest.still)
    stable = _is_stable(K) if is_found else None
    return Equilibrium(status, reason, state, residual, iterations, stable, (), tuple(notes), None)


def _stepped(rest: _Rest, K: FloatArray, is_near: bool) -> _Rest | None:
    """The pose after a step along the force; None if there is none, or if it is rounding."""
    e, y = rest.e, _along(rest, K, is_near)
    longest = float(np.abs(rest.free @ y / e.scales).max(initial=0.0))
    if is_near and longest <= SMALLEST_STEP:
        return None
    y = y * min(1.0, LARGEST_STEP / max(longest, TINY))
    before = float(np.linalg.norm(rest.force))
    for _ in range(SHORTENINGS):
        z = e.closed(e.problem.retract(rest.z, rest.free @ y))
        if z is not None:
            after = _Rest(e, z)
            along = rest.free.T @ (e.applied(z, rest.still) - e.elastic("stiffness") @ e.shape(z))
            along = along - rest.free.T @ e.jacobian(z).T @ after.multipliers
            if np.isfinite(along).all() and ((rest.force + along) @ y > 0.0 or np.linalg.norm(after.force) < before):
                if is_near and np.linalg.norm(after.force) >= before:
                    return None
                return after
        y = 0.5 * y
    return None


def _along(rest: _Rest, K: FloatArray, is_near: bool) -> FloatArray:
    """K⁻¹ g; with |K| where K is not positive, and near a rest none along motions without stiffness: g is rounding."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    zero = INDIFFERENT * float(np.abs(values).max(initial=0.0)) + TINY
    if values.min(initial=np.inf) > zero:
        return np.asarray(np.linalg.solve(K, rest.force))
    parts = (vectors.T @ rest.force) / np.maximum(np.abs(values), zero)
    return np.asarray(vectors @ np.where(is_near & (np.abs(values) <= zero), 0.0, parts))


def _is_stable(K: FloatArray) -> bool | None:
    values = np.linalg.eigvalsh(0.5 * (K + K.T))
    zero = INDIFFERENT * float(np.abs(values).max(initial=0.0))
    if values.min(initial=np.inf) < -zero:
        return False
    return None if values.min(initial=np.inf) <= zero else True


def linearize(drawing: Drawing, start: Any, tolerance: float) -> Linearization:
    """See :meth:`cardan.Mechanism.linearize`."""
    refuse_items(drawing, "linearize")
    velocities = getattr(start, "velocities", None)
    if velocities is not None and not np.abs(velocities).max(initial=0.0) <= AT_REST:
        raise ModelError("linearize needs a state at rest; pass m.equilibrium(state).state")
    variables = getattr(start, "variables", None)
    if variables is None:
        start = _assembled(drawing, start, tolerance).state
    e = ElasticEquations(drawing, start.time)
    z = e.closed(e.start(start, start_angles(e.system, start)))
    if z is None:
        raise ModelError("linearize needs an assembled state; pass m.equilibrium(state).state")
    rest = _Rest(e, z)
    K, D, M = rest.stiffness(), rest.damping(), rest.free.T @ e.mass(z) @ rest.free
    away = float(np.abs(rest.free @ _along(rest, K, False) / e.scales).max(initial=0.0))
    if away > IN_EQUILIBRIUM and float(np.linalg.norm(rest.force)) > NEAR * rest.load:
        raise ModelError(
            f"the state is not an equilibrium: that is about {away:.2g} rad, or of the extent, away; pass "
            "m.equilibrium(state).state"
        )
    rest.check_smooth(drawing)
    y = len(K)
    least = (
        np.linalg.eigvalsh(M / np.sqrt(np.outer(np.diag(M), np.diag(M)))).min(initial=1.0)
        if (np.diag(M) > 0).all()
        else 0.0
    )
    if least <= 1e-14:
        raise ModelError("linearize with flexible bodies needs masses for all that moves; give masses to the bodies")
    T = np.linalg.cholesky(M).T
    back = np.linalg.inv(T)
    A = np.zeros((2 * y, 2 * y))
    A[:y, y:] = np.eye(y)
    A[y:, :y], A[y:, y:] = -back.T @ K @ back, -back.T @ D @ back
    basis = rest.free @ back
    none = np.zeros(e.first)
    motions = np.array([at_origins(e.system, z, motion[: e.first], none)[0] for motion in basis.T])
    stable = _is_stable(K)
    shapes = motions.reshape(y, e.count, 6)
    found = with_modes(e.state(z, rest.still), A, shapes, e.system.judged_length, stable is True)
    return replace(found, notes=tuple(e.notes))
