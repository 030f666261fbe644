"""Time steps of Moreau and Jean: bodies that collide, all contacts of a step as one problem.  [Moreau1988] [Jean1999]

    M (v' − v) = h Q + J_cᵀ r,   J v' = ġ,   u = J_c v'
    K ∋ r ⊥ u + (μ|u_t| + e u⁻ + gap/h) n ∈ K*,   q' = q ⊕ h v'

Joints are eliminated exactly: W = M⁻¹ J_cᵀ on the velocities that they allow, G = J_c W.  A contact that is open by gap
may approach by gap/h, so that it ends the step closed; its approach speed u⁻ is kept, and the next step gives it the
restitution.  Gaps that are rounding count as zero, so that nothing creeps.  A body that no contact is near moves with
the mean of both velocities, so that a free fall is a parabola.  Then the pose is projected, in the metric of M, onto
the joints and onto the gaps that became negative.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan import collide
from cardan.coordinates import formulations, rates
from cardan.dynamics import impacts, joint_inertias, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.generalized_alpha import SAME_TIME, GeneralizedAlpha
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.state import FloatArray

_cone = LazyModule("cardan.math._cone")

CLOSED: Final = 1e-12  # of the extent: a smaller gap is zero
TOLERANCE: Final = 1e-13  # of a contact problem, relative
SWEEPS: Final = 400.0  # at the most
HIT: Final = 1e-6  # of the extent per second: a slower approach is no hit
PROJECTIONS: Final = 12  # of a pose, at the most
EXACT: Final = 1e-14  # of the extent, or rad: a smaller shift is rounding
START: Final = 1e-9  # of the extent: a larger overlap at the start is refused
DEEP: Final = 1e-13  # of the extent: an overlap that is projected
RANK: Final = 1e-10  # of the largest singular value
MOST_NAMED: Final = 3  # pairs of bodies in a message
UNSOLVED: Final = 1e-8  # of the largest impulse or speed: a contact problem with a larger error ends the run
MOST_POINTS: Final = 400  # of contacts in a step: the problem is dense
MOST_JOINTED: Final = 600  # unknowns of a mechanism with joints, likewise


class UnsolvedContactsError(Exception):
    """The contacts of a step have no solution that is exact enough; the message says which, and by how much."""


class Touch(NamedTuple):
    """A contact point: its key, its pair of names, numbers of bodies, gap [m], rows J_c, μ, e."""

    key: Any
    names: tuple[str, str]
    bodies: tuple[int, int]
    gap: float
    rows: FloatArray
    friction: tuple[float, float]
    restitution: float


class SteppedRun(GeneralizedAlpha):
    """A run of constant steps, with the bodies that collide."""

    def __init__(self, equations: Any, *given: Any, colliding: Any, **options: Any) -> None:
        """given, options: of Integration.  colliding: a :class:`cardan.joints.gaps.Colliding`."""
        self.colliding = colliding
        self._forces: dict[Any, FloatArray] = {}  # impulses of the last step, by the keys of points
        self._approach: dict[Any, tuple[float, int]] = {}  # speeds before a hit, and the number of its event
        self._slipping: set[Any] = set()
        self.lost: list[tuple[float, float, float]] = []  # time; energies that hits and friction took in a step [J]
        self.penetration, self.contact_error = 0.0, 0.0
        super().__init__(equations, *given, **options)

    def _refuse(self, equations: Any) -> None:
        if equations.stops:
            names = ", ".join(repr(stop.name) for stop in equations.stops)
            raise ModelError(f"contacts 'steps' do not stop at the limits {names}; remove them, or m.collide")
        if equations.rate_rows:
            names = ", ".join(map(repr, equations.rate_rows))
            raise ModelError(f"contacts 'steps' do not consider the rate rows {names}; remove them, or m.collide")
        unknowns = WIDTH * len(equations.system.names)
        if equations.equations.size and unknowns > MOST_JOINTED:
            raise ModelError(
                f"contacts 'steps' are for up to {MOST_JOINTED // WIDTH} bodies with joints, and there are "
                f"{unknowns // WIDTH}; simulate a part of them"
            )

    def begin(self, released: int = -1) -> int:
        """See :meth:`Integration.begin`; ModelError if bodies overlap at the start."""
        unit = self.equations.system.unit
        for touch in self.touches(self.q, CLOSED * unit):
            if touch.gap < -START * unit:
                a, b = touch.names
                raise ModelError(
                    f"bodies {a!r} and {b!r} overlap by {-touch.gap:.3g} m at the start; use m.assemble first"
                )
        return super().begin(released)

    def _poses(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Poses of the bodies' origins, and of their principal frames, in world; shapes (bodies, 7)."""
        system = self.equations.system
        origins = formulations.from_reference(system, q)
        own = q[: origins.size].reshape(-1, 7).copy()
        own[:, :3] += system.origin
        own[:, 3:] /= np.linalg.norm(own[:, 3:], axis=1)[:, None]
        return origins, own

    def touches(self, q: FloatArray, within: float) -> list[Touch]:
        """Contact points whose gap is less than ``within`` [m]."""
        c = self.colliding
        origins, own = self._poses(q)
        poses = c.poses(origins)
        own = np.concatenate([own, [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]])
        found = []
        most = within + max((one.margin for one, *_ in c._sets), default=0.0)
        for i, j in np.asarray(collide.candidates(c.solids, poses, margin=most)).tolist():
            margin = c.moving_margin(c.owners[i], c.owners[j])
            if margin is None:
                continue
            e, friction = c.impact(c.owners[i], c.owners[j])
            for one in collide.contact_points(c.solids[i], poses[i], c.solids[j], poses[j], within=margin + within):
                a, b = int(c._bodies[i]), int(c._bodies[j])
                rows = _rows(np.asarray(one.normal), one.points, own[a], own[b])
                key = (i, j, tuple(one.features))
                names = (c.owners[i], c.owners[j])
                found.append(Touch(key, names, (a, b), one.gap - margin, rows, friction, e))
        return found

    def _reach(self, h: float, v: FloatArray) -> float:
        """How far points of two bodies may approach in a step [m]."""
        c, w = self.colliding, v.reshape(-1, WIDTH)
        sizes = np.zeros(len(w) + 1)
        for k, body in enumerate(c._bodies.tolist()):
            if np.isfinite(c.solids[k].reach):
                reach = c.solids[k].reach + float(np.linalg.norm(c._places[k, :3]))
                sizes[body] = max(sizes[body], reach)
        speeds = np.linalg.norm(w[:, :3], axis=1) + np.linalg.norm(w[:, 3:], axis=1) * sizes[:-1]
        return float(2.0 * h * speeds.max(initial=0.0))

    def _step(self, h: float, time: float, is_refused: bool = False) -> int:
        """One step to a time; returns a status of tables."""
        e, c = self.equations, self.control
        unit = e.system.unit
        force = self._force(self.time, self.q, self.v)
        if not np.isfinite(force).all():
            c.ask_time = self.time
            return tables.NOT_FINITE
        problem = e.problem.with_floats(e.floats_at(time))
        has_joints = bool(self._rows.size)
        jacobian = problem.jacobian(self.q)[1] if e.problem.rows else np.zeros((0, self.v.size))
        rate = rates.driver_rates(e.system, e.problem, time, self.q)[0][self._rows] if has_joints else np.zeros(0)
        free = self.v + self._accelerated(jacobian, h * force)
        if has_joints:
            free = self._projected(problem, self.q, free, rate)
        reach = self._reach(h, np.maximum(np.abs(free), np.abs(self.v)))
        near = self.touches(self.q, reach + CLOSED * unit)
        if len(near) > MOST_POINTS:
            raise ModelError(
                f"{len(near)} contact points at t = {self.time:g} s are too many (up to {MOST_POINTS}); "
                "simulate fewer bodies"
            )
        impulses, response = self._solved_contacts(near, free, h, jacobian)
        v = free + response @ impulses.ravel() if near else free
        if not np.isfinite(v).all():
            return tables.NOT_FINITE
        q = problem.retract(self.q, h * self._moving(near, v, has_joints))
        q, depth, closed = self._closed_pose(problem, q, reach, has_joints)
        if not closed:
            return tables.NOT_CLOSED
        if depth > START * unit:
            raise UnsolvedContactsError(f"{_told(near)} leave an overlap of {depth:.1g} m at t = {time:g} s")
        self._keep(near, impulses, v, time)
        self.penetration = max(self.penetration, depth)
        acceleration = (v - self.v) / h
        multipliers = self._multipliers_of(jacobian, force, near, impulses / h, acceleration)
        self.q[:], self.v[:] = q, v
        self._last_acceleration()[:] = acceleration
        c.time = time
        k = self.reached
        if k < len(self.times) and abs(float(self.times[k]) - time) <= SAME_TIME * (abs(time) + h):
            self.results[k] = np.concatenate([[time], self.q, self.v, acceleration, multipliers])
            c.sample += 1.0
        return tables.RUNNING

    def _accelerated(self, jacobian: FloatArray, impulse: FloatArray) -> FloatArray:
        """M⁻¹ times an impulse, without joints."""
        e = self.equations
        if e.inertias or e.is_massless:
            mass = joint_inertias.mass_times(e, self.q, np.eye(impulse.size), e.metric)
            return np.asarray(np.linalg.solve(mass, impulse), dtype=np.float64)
        return impulse / e.masses.ravel()

    def _solved_contacts(
        self, near: list[Touch], free: FloatArray, h: float, jacobian: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Impulses r, shape (points, 3), and W."""
        e, m = self.equations, len(near)
        if not near:
            return np.zeros((0, 3)), np.zeros((free.size, 0))
        rows = np.zeros((3 * m, free.size + WIDTH))
        for k, touch in enumerate(near):
            for side, body in enumerate(touch.bodies):
                at = WIDTH * body if body >= 0 else free.size
                rows[3 * k : 3 * k + 3, at : at + WIDTH] += touch.rows[:, WIDTH * side : WIDTH * side + WIDTH]
        rows = rows[:, : free.size]
        if self._rows.size or e.inertias or e.is_massless:
            response = impacts.responses(e, jacobian, self.active, rows)
        else:
            response = rows.T / e.masses.ravel()[:, None]
        G, b, now = rows @ response, rows @ free, rows @ self.v
        mu, bar = np.zeros(m), CLOSED * e.system.unit
        speeds = float(max(np.abs(b).max(), np.abs(now).max(), max(touch.gap for touch in near) / h))
        for k, touch in enumerate(near):
            mu[k] = touch.friction[1 if touch.key in self._slipping else 0]
            if touch.gap > bar:
                b[3 * k] += touch.gap / h
            elif touch.restitution:
                speed = max(self._approach.get(touch.key, (0.0, 0))[0], -now[3 * k])
                if speed > HIT * e.system.unit:
                    b[3 * k] -= touch.restitution * speed
        r = np.concatenate([self._forces.get(touch.key, np.zeros(3)) for touch in near])
        cone = _cone.Cone.new(tolerance=TOLERANCE, most=SWEEPS)
        work = np.zeros(_cone.work_size(m))
        matrix = np.ascontiguousarray(0.5 * (G + G.T)).ravel()
        _cone.solve(_cone.SOLVE, m, np.zeros(1, np.int64), matrix, b, mu, r, cone.as_floats, work)
        if speeds > 0.0:  # not the sum of a speed and gap/h, which may cancel
            error = float(cone.error) / speeds
            if not error <= UNSOLVED:
                raise UnsolvedContactsError(f"{_told(near)} leave an error of {error:.1g} at t = {self.time:g} s")
            self.contact_error = max(self.contact_error, error)
        return r.reshape(m, 3), response

    def _moving(self, near: list[Touch], v: FloatArray, has_joints: bool) -> FloatArray:
        """The velocity of the pose in a step: v', or the mean of v and v' of bodies that no contact is near."""
        mean = 0.5 * (self.v + v)
        if not near:
            return mean
        if has_joints:
            return v
        moving = mean.reshape(-1, WIDTH)
        for touch in near:
            for body in touch.bodies:
                if body >= 0:
                    moving[body] = v[WIDTH * body : WIDTH * body + WIDTH]
        return moving.ravel()

    def _closed_pose(
        self, problem: Any, q: FloatArray, reach: float, has_joints: bool
    ) -> tuple[FloatArray, float, bool]:
        """The nearest pose in the metric of M without open joints and overlaps; the depth that is left [m]."""
        e, unit = self.equations, self.equations.system.unit
        depth, before = 0.0, np.inf
        for _ in range(PROJECTIONS):
            inverse = self._inverse_root(q) if has_joints or e.inertias or e.is_massless else None
            deep = [touch for touch in self.touches(q, CLOSED * unit) if touch.gap < -DEEP * unit]
            depth = max((-touch.gap for touch in deep), default=0.0)
            f, jacobian = problem.jacobian(q) if has_joints else (np.zeros(0), np.zeros((0, self.v.size)))
            f, jacobian = (f[self._rows], jacobian[self._rows]) if has_joints else (f, jacobian)
            gaps = np.array([_full(touch, self.v.size) for touch in deep]).reshape(len(deep), self.v.size)
            missing = -np.concatenate([f, [touch.gap for touch in deep]])
            if not missing.size or not np.abs(missing).max() > EXACT * unit:
                return q, depth, True
            rows = np.vstack([jacobian, gaps])
            roots = 1.0 / np.sqrt(e.metric.ravel())
            weighted = rows @ inverse if inverse is not None else rows * roots
            lengths = np.maximum(np.linalg.norm(weighted, axis=1), 1e-300)
            least = np.linalg.lstsq(weighted / lengths[:, None], missing / lengths, rcond=RANK)[0]
            shift = inverse @ least if inverse is not None else roots * least
            size = float(np.abs(shift).max())
            if not np.isfinite(size):
                return q, depth, False
            if size >= 0.5 * before and size <= 1e3 * EXACT * unit:
                break  # rounding
            q, before = problem.retract(q, shift), size
        if has_joints:
            f = problem.jacobian(q)[0][self._rows]
            if not np.abs(f).max(initial=0.0) <= CLOSED * unit:
                return q, depth, False
        return q, depth, True

    def _keep(self, near: list[Touch], impulses: FloatArray, v: FloatArray, time: float) -> None:
        """Impulses for the next step, hits, and the energies that were lost."""
        e, bar = self.equations, CLOSED * self.equations.system.unit
        normal = friction = 0.0
        approach: dict[Any, tuple[float, int]] = {}
        self._slipping = set()
        for touch, r in zip(near, impulses, strict=True):
            before, after = touch.rows @ _of(touch, self.v), touch.rows @ _of(touch, v)
            normal -= float(r[0] * 0.5 * (before[0] + after[0]))
            friction -= float(r[1:] @ (0.5 * (before[1:] + after[1:])))
            if r[0] > 0.0 and np.hypot(r[1], r[2]) >= touch.friction[1] * r[0] * (1.0 - 1e-9):
                self._slipping.add(touch.key)
            speed = -float(before[0])
            if r[0] > 0.0 and touch.key not in self._forces and speed > HIT * e.system.unit:
                name = " and ".join(touch.names)
                self.events.append(ContactEvent(time, name, ContactEventKind.HIT, speed, float(r[0])))
                if touch.gap > bar:
                    approach[touch.key] = speed, len(self.events) - 1
            elif touch.key in self._approach and r[0] > 0.0:
                _, number = self._approach[touch.key]
                event: Any = self.events[number]
                self.events[number] = event._replace(impulse=event.impulse + float(r[0]))
        self._approach = approach
        self._forces = {touch.key: r for touch, r in zip(near, impulses, strict=True) if r[0] > 0.0}
        self.lost.append((time, normal, friction))

    def _multipliers_of(
        self, jacobian: FloatArray, force: FloatArray, near: list[Touch], forces: FloatArray, acceleration: FloatArray
    ) -> FloatArray:
        """λ of the joints with M v̇ + Jᵀλ = Q + J_cᵀ r/h."""
        e = self.equations
        found = np.zeros(e.equations.size)
        if self._rows.size:
            rest = force - joint_inertias.mass_times(e, self.q, acceleration)
            for touch, r in zip(near, forces, strict=True):
                for side, body in enumerate(touch.bodies):
                    if body >= 0:
                        own = touch.rows[:, WIDTH * side : WIDTH * side + WIDTH]
                        rest[WIDTH * body : WIDTH * body + WIDTH] += r @ own
            roots = 1.0 / np.sqrt(e.metric.ravel())
            found[self._hard] = np.linalg.lstsq((jacobian[self._rows] * roots).T, rest * roots, rcond=RANK)[0]
        return found

    def losses(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Energies [J] that hits and friction took until each time."""
        rows = np.array(self.lost).reshape(-1, 3)
        ends = np.searchsorted(rows[:, 0], times * (1.0 + SAME_TIME) + SAME_TIME, side="right")
        sums = np.vstack([np.zeros(2), np.cumsum(rows[:, 1:], axis=0)])[ends]
        return sums[:, 0], sums[:, 1]


def _told(near: list[Touch]) -> str:
    """The pairs of contacts, in words."""
    pairs = list(dict.fromkeys(touch.names for touch in near))
    named = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:MOST_NAMED])
    more = f" and {len(pairs) - MOST_NAMED} more pairs" if len(pairs) > MOST_NAMED else ""
    return f"the contacts of {named}{more}"


def _rows(n: FloatArray, points: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """J_c of a point, shape (3, 12): normal and two tangential rows, for body a, then b; poses of principal frames."""
    t = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    t /= np.linalg.norm(t)
    axes = np.stack([n, t, np.cross(n, t)])
    found = np.empty((3, 2 * WIDTH))
    for at, pose, point, sign in ((0, a, points[0], -1.0), (WIDTH, b, points[1], 1.0)):
        arms = np.cross(np.asarray(point) - pose[:3], axes)
        found[:, at : at + 3] = sign * axes
        found[:, at + 3 : at + WIDTH] = sign * (arms @ euler.matrix(pose[3:]))
    return found


def _of(touch: Touch, v: FloatArray) -> FloatArray:
    """Velocities of both bodies of a contact, 12 numbers."""
    zero = np.zeros(WIDTH)
    return np.concatenate([v[WIDTH * k : WIDTH * k + WIDTH] if k >= 0 else zero for k in touch.bodies])


def _full(touch: Touch, size: int) -> FloatArray:
    """The normal row of a contact over all unknowns."""
    row = np.zeros(size)
    for side, body in enumerate(touch.bodies):
        if body >= 0:
            row[WIDTH * body : WIDTH * body + WIDTH] += touch.rows[0, WIDTH * side : WIDTH * side + WIDTH]
    return row
