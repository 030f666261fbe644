"""A mechanism that is held at rest in a pose, and released: forces along its free motions, and how they change.

With N a basis of the free motions, J N = 0, and v̇ the acceleration from rest, M v̇ + Jᵀλ = Q,

    g(y) = NᵀM v̇ = Nᵀ(Q − Jᵀλ)     in the pose q ⊕ N y, projected onto the constraints,
    K = −∂g/∂y = Nᵀ (D(Jᵀλ) − DQ) N.

M contains the inertias of joints.  N is that of y = 0, so that the change of λ has no part: NᵀJᵀ = 0.  D(Jᵀλ) with
constant λ is the stiffness of the reactions, which turn with the parts (:mod:`cardan.dynamics.tangent`).  Differences
of fourth order give what has no formula: functions that Python calls, inclinations near 0 or π, and the rows of rates.
N is orthonormal in radians and lengths over the extent L: g and K [J] depend on masses by weights alone.  Drivers,
and parameters that are functions of time, keep the values of one time.  Where M is singular, it is replaced by a
metric here, but not in weights: statics needs no masses, and λ and K in an equilibrium do not depend on the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Final

import numpy as np

from cardan.coordinates import rates
from cardan.dynamics import tables
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import STAGE_EXACT, Integration
from cardan.dynamics.joint_inertias import mass_root, mass_times
from cardan.dynamics.tangent import Curvature, LoadTangent, Rows
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray

_blocks = LazyModule("cardan.solvers._blocks")
_null_space = LazyModule("cardan.math._null_space")

PROBE: Final = 5e-4  # [rad], lengths in L: largest motion of a body from one sample of the differences to the next
RATE_PROBES: Final = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)  # the same per second; friction is linear in small rates alone
SMOOTH: Final = 1e-6  # relative: derivatives by two probes that differ by more need smaller probes
DEPENDENT, INDEPENDENT = 1e-10, 1e-5  # of the longest row: a row of which less is left, and more, after reflections
TINY: Final = 1e-300  # against division by zero
EXCLUDED: Final = 1e-6  # [1], of a self-stress of size one: a smaller form is rounding
SEED: Final = 0
AT_REST: Final = 1e-12  # [rad/s], lengths in L


class AtRest(Integration):
    """One pose at a time, without velocities.  ``q``: the pose, on the constraints."""

    def __init__(self, equations: Equations, q: FloatArray, time: float) -> None:
        later = np.array([time + 1.0])  # no output is reached
        at_rest = np.zeros(tables.WIDTH * len(equations.system.names))
        super().__init__(equations, q, at_rest, time, later, end=time + 1.0)
        self.control.exact = STAGE_EXACT
        self.columns: FloatArray = equations.problem.scales[equations.problem.rows :]  # L or 1 of each unknown

    @property
    def _mass_values(self) -> FloatArray:
        e = self.equations
        return e.mass_values(e.metric) if e.is_massless else e.values

    @property
    def _is_singular(self) -> bool:
        return False

    def _fill_drivers(self) -> None:
        super()._fill_drivers()
        self.drive[:, 1:] = 0.0  # rates and accelerations

    def place(self, q: FloatArray) -> bool:
        """Move to a pose, projected onto the constraints and the stops that hold; False if it is not possible."""
        self.q[:], self.v[:] = q, 0.0
        return self._begin() == tables.RUNNING and bool(np.isfinite(self._last_acceleration()).all())

    def settle(self) -> bool:
        """Let the stops hold that are reached and push, and release those that would pull; False as of place."""
        self.v[:] = 0.0
        return self.begin() == tables.RUNNING

    def hold_passed(self, before: FloatArray) -> tuple[float, int]:
        """Let the stop hold that is passed first on the way from a pose ``before`` to this one.

        Returns the part of the way to it and its number, or 1 and −1 if none is passed.
        """
        if not self.equations.stops:
            return 1.0, -1
        here, values = self.q.copy(), self._stop_coordinates()[0]
        self.q[:] = before
        old = self._stop_coordinates()[0]
        self.q[:] = here
        first = (1.0, -1, 0.0)
        for k, (lower, upper, _, side, *_) in enumerate(self.bounds.tolist()):
            for bound, sign in ((lower, -1.0), (upper, 1.0)):
                if side == 0.0 and sign * (values[k] - bound) > 0.0:
                    way = float((bound - old[k]) / (values[k] - old[k])) if values[k] != old[k] else 0.0
                    first = min(first, (max(0.0, way), k, sign))
        if first[1] >= 0:
            self._set_side(first[1], first[2])
        return first[:2]

    def release(self, stop: int) -> None:
        """Let a stop hold no more."""
        self._set_side(stop, 0.0)

    @property
    def row(self) -> FloatArray:
        """Time, q, v, v̇ and λ of this pose, a row of results."""
        self._keep_tried()
        assert self._tried is not None
        return self._tried

    @property
    def is_redundant(self) -> bool:
        """Whether equations are redundant."""
        return bool(self.control.redundant)

    @property
    def holding(self) -> list[str]:
        """Names of the limits that hold."""
        return [stop.name for stop, side in zip(self.equations.stops, self.bounds["side"], strict=True) if side]

    def free_motions(self, with_rate_rows: bool = True) -> FloatArray:
        """N in this pose, orthonormal in radians and lengths over L, shape (6 · bodies, freedoms)."""
        free: FloatArray = self.columns[:, None] * null_space(self._scaled_jacobian(with_rate_rows))
        return free

    def _scaled_jacobian(self, with_rate_rows: bool) -> FloatArray:
        """J of the equations that hold, lengths over L, long rows shortened."""
        e, p = self.equations, self.equations.problem
        rows = e.weights * self.active
        scaled: FloatArray = p.with_floats(self.floats).jacobian(self.q)[1][e.equations] * rows[:, None] * self.columns
        if e.poses is not None and not with_rate_rows:
            scaled = scaled[e.poses.equations]
        shortened: FloatArray = scaled * rates.shortening(scaled)[:, None]
        return shortened

    def least_singular_value(self) -> float:
        """Of J, relative to the largest; 1 without equations.  Those of redundant equations are left out."""
        sigma = np.linalg.svd(self._scaled_jacobian(with_rate_rows=True), compute_uv=False)
        relative = sigma / max(float(sigma.max(initial=0.0)), TINY)
        return float(relative[relative > rates.RANK_RTOL].min(initial=1.0))

    def is_singular(self, poses: FloatArray) -> bool:
        """Whether second order excludes some of the free motions, as where branches of the motion cross.

        λ with Jᵀλ = 0 is a self-stress.  Along a finite motion λ·f = 0, and so λ·S(u, u) = 0 for each of its rates u.
        poses: N without rate rows.
        """
        if not self.is_redundant:
            return False
        e, p = self.equations, self.equations.problem
        scaled = self._scaled_jacobian(with_rate_rows=False)
        stresses = null_space(scaled.T)
        chosen = slice(None) if e.poses is None else e.poses.equations
        numbers = e.equations[chosen]
        stress = stresses @ np.random.default_rng(SEED).standard_normal(stresses.shape[1])
        weights = np.zeros(p.rows)
        of_rows = (e.weights * self.active)[chosen]  # zero for limits that do not hold, and for inertias of joints
        weights[numbers] = of_rows * rates.shortening(scaled) * stress
        own = self._curvature().between(weights, poses, poses)
        return bool(np.abs(own + own.T).max(initial=0.0) > EXCLUDED * max(float(np.linalg.norm(stress)), TINY))

    def without(self, idle: FloatArray, free: FloatArray) -> FloatArray:
        """Those free motions that are orthogonal to idle ones, shape (6 · bodies, motions), both as free_motions."""
        if not idle.size:
            return free
        _, _, v = np.linalg.svd(idle.T @ (free / self.columns[:, None]))
        kept: FloatArray = free @ v[idle.shape[1] :].T
        return kept

    def mass_root(self, free: FloatArray) -> FloatArray:
        """T with NᵀM N = TᵀT, so that N T⁻¹ is a basis of the same motions with the unit matrix as its masses."""
        return np.asarray(np.linalg.qr(mass_root(self.equations, self.q) @ free, mode="r"), dtype=np.float64)

    def size(self, motion: FloatArray) -> float:
        """The largest change of a body in a motion, in radians or relative to the extent."""
        return float(np.abs(motion / self.columns).max(initial=0.0))

    def force(self, free: FloatArray) -> FloatArray:
        """g = NᵀM v̇, shape (freedoms,), of the pose that was placed last."""
        e = self.equations
        found: FloatArray = np.einsum("ij,i->j", free, mass_times(e, self.q, self._last_acceleration(), e.metric))
        return found

    def load(self) -> float:
        """Weights and loads in this pose [J], times L where they are forces: what g is compared with."""
        e, still = self.equations, np.zeros_like(self.v)
        weights = (e.masses[:, :3] * e.gravity).ravel() * self.columns.reshape(-1, tables.WIDTH)[:, :3].ravel()
        loads = 0.0 if e.forces is None else self.columns * e.forces.total(self.time, self.q, still)
        return float(np.linalg.norm(weights) + np.linalg.norm(loads))

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self.equations.problem, self.columns)

    @cached_property
    def _load_rows(self) -> Rows:
        assert self.equations.forces is not None
        return Rows(self.equations.forces.coordinates, self.columns)

    def _curvature(self) -> Curvature:
        """DJ of the constraints in this pose."""
        return Curvature(self.equations.problem.with_floats(self.floats), self._rows, self.q)

    def stiffness(self, free: FloatArray, poses: FloatArray | None = None) -> FloatArray:
        """K, shape (freedoms, freedoms of poses).  poses: N without rate rows, if there are some."""
        e, right = self.equations, free if poses is None else poses
        weights = np.zeros(e.problem.rows)
        weights[e.equations] = self._end_multipliers()
        weights[e.joint_inertias.rows] = 0.0  # forces of inertia
        of_rates = np.zeros(e.problem.rows)
        for row in e.system.rows:
            if row.primitive.of_rates:
                own = slice(row.start, row.start + row.primitive.rows)
                of_rates[own], weights[own] = weights[own], 0.0
        found = self._curvature().between(weights, free, right)
        left_out: list[tuple[int, int]] = []
        if e.forces is not None:
            loads = LoadTangent(e.forces, self._load_rows, self.time, self.q, np.zeros_like(self.v))
            left_out = loads.left_out
            found += loads.stiffness(free, right)
        if left_out or of_rates.any() or (e.forces is not None and e.forces.asks):
            force = partial(self._without_formula, left_out, of_rates)
            found -= self._slopes(free, right, force)[0]
        return found

    def _without_formula(self, left_out: list[tuple[int, int]], of_rates: FloatArray, q: FloatArray) -> FloatArray:
        """Forces in a pose of functions that Python calls, of the laws left out, and of the rows of rates with λ."""
        e, still = self.equations, np.zeros_like(self.v)
        out, weighted = np.zeros_like(self.v), []
        if e.forces is not None and e.forces.asks:
            e.forces.extra(self.time, q, still, out)
        if e.forces is not None and left_out:
            efforts = np.zeros(e.forces.coordinates.rows)
            found = e.forces.readings(self.time, q, still)["effort"]
            for law, row in left_out:
                efforts[row] = found[law]
            weighted.append((e.forces.coordinates, efforts))
        if of_rates.any():
            weighted.append((e.problem.with_floats(self.floats), -of_rates))
        for problem, weights in weighted:
            force, entries = np.empty_like(out), problem.entries(q)[1]
            _blocks.apply_transposed(problem.structure, np.where(np.isfinite(entries), entries, 0.0), weights, force)
            out += force
        return out

    def _slopes(
        self, free: FloatArray, motions: FloatArray, force: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, float]:
        """Nᵀ ∂force/∂q along motions by differences, and the largest jump of a slope; poses are not projected."""
        slopes, retract = [], self.equations.problem.retract
        for motion in motions.T:
            h = PROBE / self.size(motion)
            slopes.append(slope([free.T @ force(retract(self.q, k * h * motion)) for k in range(-2, 3)], h))
        found = np.array([a for a, _ in slopes]).reshape(len(slopes), free.shape[1]).T
        return found, max([b for _, b in slopes], default=0.0)

    def corner(self, free: FloatArray, poses: FloatArray) -> float:
        """The largest jump of a slope of g in this pose: of users' functions, and of curves and surfaces."""
        e, still, found = self.equations, np.zeros_like(self.v), 0.0
        forces = e.forces
        if forces is not None and any(function is not None for function in forces.functions):
            found = self._slopes(free, poses, lambda q: forces.total(self.time, q, still))[1]
        if e.system.contacts or any(row.primitive.text for row in e.system.rows):
            found = max(found, self.differences(free, poses)[1])
        return found

    def differences(self, free: FloatArray, poses: FloatArray) -> tuple[FloatArray, float]:
        """K by differences of g in poses that are projected, and the largest jump of a slope."""
        here, g = self.q.copy(), self.force(free)
        slopes = []

        def moved(shift: FloatArray) -> FloatArray:
            if not self.place(self.equations.problem.retract(here, shift)):
                self.place(here)
                raise ModelError(
                    "the joints cannot be kept closed where the mechanism is displaced along its free motions by "
                    f"{2 * PROBE:g} rad or extents; the pose is singular, or at the end of a contact"
                )
            return self.force(free)

        for motion in poses.T:
            h = PROBE / self.size(motion)
            slopes.append(slope([moved(k * h * motion) if k else g for k in range(-2, 3)], h))
        self.place(here)
        found = -np.array([a for a, _ in slopes]).reshape(len(slopes), g.size).T
        return found, max([b for _, b in slopes], default=0.0)

    def damping(self, free: FloatArray) -> tuple[FloatArray, float]:
        """−Nᵀ ∂Q/∂v N, shape (freedoms, freedoms), and the largest jump of a slope at rest."""
        forces = self.equations.forces
        found, corner = np.zeros((free.shape[1], free.shape[1])), 0.0
        if forces is None:
            return found, corner
        for probe in RATE_PROBES:
            before, slopes = found, []
            for motion in free.T:
                h = probe / self.size(motion)
                rates_of = [k * h * motion for k in range(-2, 3)]
                slopes.append(slope([free.T @ forces.total(self.time, self.q, v) for v in rates_of], h))
            found = -np.array([a for a, _ in slopes]).reshape(found.shape).T
            corner = max([b for _, b in slopes], default=0.0)
            if np.abs(found - before).max(initial=0.0) <= SMOOTH * np.abs(found).max(initial=0.0):
                return found, corner
        return found, np.inf


def null_space(matrix: FloatArray) -> FloatArray:
    """Orthonormal columns x with A x = 0.

    Reflections of the rows decide the rank.  If what is left of a row is neither small nor large, singular values do.
    """
    rows, columns = matrix.shape
    vectors, taus, sizes = matrix.copy().ravel(), np.empty(rows), np.empty(rows)
    bounds, is_pivot = np.empty(2 * rows, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    largest = float(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)).max(initial=0.0))
    _null_space.reflect(rows, columns, vectors, DEPENDENT * largest, taus, sizes, bounds, is_pivot)
    if ((sizes > DEPENDENT * largest) & (sizes < INDEPENDENT * largest)).any():
        _, sigma, right = np.linalg.svd(matrix)
        return np.asarray(right[int((sigma > rates.RANK_RTOL * sigma.max()).sum()) :].T)
    left = np.flatnonzero(is_pivot == 0)
    basis = np.zeros((columns, left.size))
    basis[left, np.arange(left.size)] = 1.0
    _null_space.expand(rows, columns, left.size, vectors, taus, bounds, basis.reshape(-1), np.empty(left.size))
    return basis


def slope(values: list[FloatArray], h: float) -> tuple[FloatArray, float]:
    """Derivative of fourth order from values at −2h … 2h; and the jump of the derivative, if there is a corner at 0.

    With s₁, s₂ the second differences over h and 2h, 2 s₁ − s₂/2 vanishes for a smooth function.
    """
    a, b, c, d, e = values
    slope: FloatArray = (8.0 * (d - b) - (e - a)) / (12.0 * h)
    corner = np.abs(2.0 * (d + b - 2.0 * c) - 0.5 * (e + a - 2.0 * c)) / h
    return slope, float(corner.max(initial=0.0))
