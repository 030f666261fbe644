"""A mechanism that is held at rest in a pose, and released: forces along its free motions, and how they change.

With N a basis of the free motions, J N = 0, and v̇ the acceleration from rest, M v̇ + Jᵀλ = Q,

    g(y) = NᵀM v̇ = Nᵀ(Q − Jᵀλ)     in the pose q ⊕ N y, projected onto the constraints,
    K = −∂g/∂y,      by central differences of fourth order.

N is that of y = 0.  So K contains the stiffness of the loads and that of the reactions, which turn with the parts.
N is orthonormal in radians and lengths over the extent L: g and K [J] depend on masses by weights alone.  Drivers,
and parameters that are functions of time, keep the values of one time.  Where M is singular, it is replaced by a
metric here, but not in weights: statics needs no masses, and λ and K in an equilibrium do not depend on the metric.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.coordinates import rates
from cardan.dynamics import tables
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import STAGE_EXACT, Integration
from cardan.errors import ModelError
from cardan.system.state import FloatArray

PROBE: Final = 5e-4  # [rad], lengths in L: largest motion of a body from one sample of the differences to the next
RATE_PROBES: Final = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)  # the same per second; friction is linear in small rates alone
SMOOTH: Final = 1e-6  # relative: derivatives by two probes that differ by more need smaller probes
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
        table = self.drive.reshape(-1, 3)
        table[:, 1:] = 0.0  # rates and accelerations

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
        e, p = self.equations, self.equations.problem
        rows = p.scales[: p.rows][e.equations] * self.active
        scaled: FloatArray = p.with_floats(self.floats).jacobian(self.q)[1][e.equations] * rows[:, None] * self.columns
        if e.poses is not None and not with_rate_rows:
            scaled = scaled[e.poses.equations]
        _, sigma, v = np.linalg.svd(scaled * rates.shortening(scaled)[:, None])
        rank = int((sigma > rates.RANK_RTOL * sigma.max(initial=0.0)).sum())
        free: FloatArray = self.columns[:, None] * v[rank:].T
        return free

    def without(self, idle: FloatArray, free: FloatArray) -> FloatArray:
        """Those free motions that are orthogonal to idle ones, shape (6 · bodies, motions), both as free_motions."""
        if not idle.size:
            return free
        _, _, v = np.linalg.svd(idle.T @ (free / self.columns[:, None]))
        kept: FloatArray = free @ v[idle.shape[1] :].T
        return kept

    def mass_root(self, free: FloatArray) -> FloatArray:
        """T with NᵀM N = TᵀT, so that N T⁻¹ is a basis of the same motions with the unit matrix as its masses."""
        roots = np.sqrt(self.equations.masses.ravel())[:, None]
        return np.asarray(np.linalg.qr(roots * free, mode="r"), dtype=np.float64)

    def size(self, motion: FloatArray) -> float:
        """The largest change of a body in a motion, in radians or relative to the extent."""
        return float(np.abs(motion / self.columns).max(initial=0.0))

    def force(self, free: FloatArray) -> FloatArray:
        """g = NᵀM v̇, shape (freedoms,), of the pose that was placed last."""
        found: FloatArray = free.T @ (self.equations.metric.ravel() * self._last_acceleration())
        return found

    def load(self) -> float:
        """Weights and loads in this pose [J], times L where they are forces: what g is compared with."""
        e, still = self.equations, np.zeros_like(self.v)
        weights = (e.masses[:, :3] * e.gravity).ravel() * self.columns.reshape(-1, tables.WIDTH)[:, :3].ravel()
        loads = 0.0 if e.forces is None else self.columns * e.forces.total(self.time, self.q, still)
        return float(np.linalg.norm(weights) + np.linalg.norm(loads))

    def stiffness(self, free: FloatArray, poses: FloatArray | None = None) -> tuple[FloatArray, float]:
        """K, shape (freedoms, freedoms of poses), and the largest jump of a slope in this pose.

        poses: N without rate rows, if there are some.
        """
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

        for motion in (free if poses is None else poses).T:
            h = PROBE / self.size(motion)
            slopes.append(_slope([moved(k * h * motion) if k else g for k in range(-2, 3)], h))
        self.place(here)
        return -np.array([a for a, _ in slopes]).reshape(len(slopes), g.size).T, max(
            [b for _, b in slopes], default=0.0
        )

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
                slopes.append(_slope([free.T @ forces.total(self.time, self.q, v) for v in rates_of], h))
            found = -np.array([a for a, _ in slopes]).reshape(found.shape).T
            corner = max([b for _, b in slopes], default=0.0)
            if np.abs(found - before).max(initial=0.0) <= SMOOTH * np.abs(found).max(initial=0.0):
                return found, corner
        return found, np.inf


def _slope(values: list[FloatArray], h: float) -> tuple[FloatArray, float]:
    """Derivative of fourth order from values at −2h … 2h; and the jump of the derivative, if there is a corner at 0.

    With s₁, s₂ the second differences over h and 2h, 2 s₁ − s₂/2 vanishes for a smooth function.
    """
    a, b, c, d, e = values
    slope: FloatArray = (8.0 * (d - b) - (e - a)) / (12.0 * h)
    corner = np.abs(2.0 * (d + b - 2.0 * c) - 0.5 * (e + a - 2.0 * c)) / h
    return slope, float(corner.max(initial=0.0))
