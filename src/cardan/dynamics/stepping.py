"""Time steps of Moreau and Jean: bodies that collide, all contacts of a step as one problem.  [Moreau1988] [Jean1999]

    M (v' − v) = h Q + J_cᵀ r,   J v' = ġ,   u = J_c v'
    K ∋ r ⊥ u + (μ|u_t| + e u⁻ + gap/h) n ∈ K*,   q' = q ⊕ h v'

Free bodies have one sparse problem (contact_problem.py).  Joints are eliminated exactly: W = M⁻¹ J_cᵀ on the velocities
that they allow, G = J_c W, dense.  A contact that is open by gap may approach by gap/h, so that it ends the step
closed; its approach speed u⁻ is kept, and the next step gives it the restitution.  Gaps that are rounding count as
zero, and so do velocities that are rounding of the impulses that cancel each other in them: what rests does not creep.
A state that repeats itself, under forces that do not depend on time, is not computed again.  A body that no contact is
near moves with the mean of both velocities, so that a free fall is a parabola.  Then the pose is projected, in the
metric of M, onto the joints and onto gaps ≥ 0.

Energy: impulses do the work r·(u + u')/2.  Where a body moves with v', and not with the mean velocity, the work
of its weight differs from the change of its potential energy by h Q·(v' − v)/2, of first order in h.  Both are in the
losses.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.collide.manifolds import ManifoldFinder
from cardan.coordinates import formulations, rates
from cardan.dynamics import impacts, joint_inertias, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.contact_problem import ROUNDED, ContactProblem
from cardan.dynamics.generalized_alpha import SAME_TIME, GeneralizedAlpha
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler, smoothed_cones
from cardan.system.state import FloatArray

_cone = LazyModule("cardan.math._cone")

IntArray = NDArray[np.int64]

CLOSED: Final = 1e-12  # of the extent: a smaller gap is zero
TOLERANCE: Final = 1e-13  # of a contact problem, relative
SWEEPS: Final = 400.0  # at the most, with joints
HIT: Final = 1e-6  # of the extent per second: a slower approach is no hit
PROJECTIONS: Final = 12  # of a pose, at the most
EXACT: Final = 1e-14  # of the extent, or rad: a smaller shift is rounding
START: Final = 1e-9  # of the extent: a larger overlap at the start is refused
DEEP: Final = 1e-13  # of the extent: an overlap that is projected
RANK: Final = 1e-10  # of the largest singular value
MOST_NAMED: Final = 3  # pairs of bodies in a message
UNSOLVED: Final = 1e-8  # of the largest impulse or speed: a contact problem with a larger error ends the run
STILL: Final = 1e-12  # of the impulses on a body: what they leave of its velocity below this is rounding
RESTING: Final = 1e-8  # likewise, of a body at rest: where all its points are exactly on their cones, errors of the
# problem become velocities by their square root; so friction holds up to this share of its force
AHEAD: Final = 1.5  # contact points of the next step are found within this times the reach of the last one
MOST_POINTS: Final = 400  # of contacts in a step of a mechanism with joints: their problem is dense
MOST_JOINTED: Final = 600  # unknowns of a mechanism with joints, likewise


class UnsolvedContactsError(Exception):
    """The contacts of a step have no solution that is exact enough; the message says which, and by how much."""


class Touches(NamedTuple):
    """Contact points: keys, names of their two bodies, numbers of bodies (−1: fixed), shape (n, 2), gaps [m], rows J_c
    of both bodies, shape (n, 2, 3, 6), μ (static, kinetic), shape (n, 2), and e."""

    keys: IntArray
    names: NDArray[Any]
    bodies: IntArray
    gaps: FloatArray
    rows: FloatArray
    friction: FloatArray
    restitution: FloatArray

    def only(self, chosen: Any) -> Touches:
        """Those of them that are chosen, by a mask."""
        return self if chosen.all() else Touches(*(column[chosen] for column in self))

    def dense(self, size: int) -> FloatArray:
        """J_c over all unknowns, shape (3 n, size)."""
        found = np.zeros((len(self.keys), 3, size + WIDTH))
        for side in range(2):
            body = self.bodies[:, side]
            columns = np.where(body < 0, size, WIDTH * body)[:, None, None] + np.arange(WIDTH)
            places = np.arange(len(body))[:, None, None], np.arange(3)[:, None], columns
            found[places] += self.rows[:, side]
        return found[:, :, :size].reshape(-1, size)

    def speeds(self, v: FloatArray) -> FloatArray:
        """u = J_c v, shape (n, 3)."""
        own = np.append(v, np.zeros(WIDTH)).reshape(-1, WIDTH)[self.bodies]
        return np.asarray(np.einsum("ksij,ksj->ki", self.rows, own))

    def moved(self, impulses: FloatArray, rows: FloatArray, bodies: int) -> FloatArray:
        """J_cᵀ r with rows in place of those of J_c, shape (bodies, 6)."""
        own = np.einsum("ksij,ki->ksj", rows, impulses).reshape(-1, WIDTH)
        found = np.zeros((bodies + 1, WIDTH))
        np.add.at(found, self.bodies.ravel(), own)
        return found[:-1]


class SteppedRun(GeneralizedAlpha):
    """A run of constant steps, with the bodies that collide."""

    def __init__(self, equations: Any, *given: Any, colliding: Any, **options: Any) -> None:
        """given, options: of Integration.  colliding: a :class:`cardan.joints.gaps.Colliding`."""
        c = self.colliding = colliding
        self._finder = ManifoldFinder(c.solids, lambda i, j: c.moving_margin(c.owners[i], c.owners[j]))
        self._pairs: tuple[int, Any] = (-1, None)  # version of the list of pairs, and what is known of them
        self._nearby: tuple[Any, float, Any] = (None, 0.0, None)  # pose, distance and contact points there
        self._forces = _Kept(np.zeros((0, 3)))  # impulses of the last step
        self._approach: dict[int, tuple[float, int]] = {}  # speeds before a hit, and the number of its event
        self._slipping: IntArray = np.empty(0, dtype=np.int64)
        self.lost: list[tuple[float, float, float, float]] = []  # time; energies of a step [J]: hits, friction, scheme
        self.penetration, self.contact_error = 0.0, 0.0
        super().__init__(equations, *given, **options)
        e = self.equations
        self._is_free = not (self._rows.size or e.inertias or e.is_massless)
        self._problem = ContactProblem(np.sqrt(e.metric)) if self._is_free else None
        self._is_constant = self._is_free and e.forces is None  # forces do not depend on time
        self._rests = False  # the last step has repeated the state
        self._last_h, self._resting_multipliers = 0.0, np.zeros(e.equations.size)

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
        found = self.touches(self.q, CLOSED * unit)
        for k in np.flatnonzero(found.gaps < -START * unit)[:1].tolist():
            a, b = found.names[k]
            raise ModelError(
                f"bodies {a!r} and {b!r} overlap by {-found.gaps[k]:.3g} m at the start; use m.assemble first"
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

    def touches(self, q: FloatArray, within: float) -> Touches:
        """Contact points whose gap is less than ``within`` [m]."""
        before, far, found = self._nearby
        if before is None or far < within or not np.array_equal(before, q):
            found = self._found(q, within)
            self._nearby = q.copy(), within, found
        return found.only(found.gaps < within)

    def _found(self, q: FloatArray, within: float) -> Touches:
        c = self.colliding
        origins, own = self._poses(q)
        made = self._finder.find(c.poses(origins), within)
        if self._pairs[0] != self._finder.version:
            self._pairs = self._finder.version, self._of_pairs()
        names, bodies, friction, restitution, margins = (column[made.pairs] for column in self._pairs[1])
        own = np.concatenate([own, [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]])
        rows = _rows(made.normals, made.points, own[bodies])
        return Touches(made.keys, names, bodies, made.gaps - margins, rows, friction, restitution)

    def _of_pairs(self) -> tuple[Any, ...]:
        """Of the pairs of the list: names, bodies, μ, e, margins."""
        c, pairs = self.colliding, self._finder.pairs
        names = np.array([(c.owners[i], c.owners[j]) for i, j in pairs.tolist()], dtype=object).reshape(-1, 2)
        laws = [c.impact(a, b) for a, b in names]
        friction = np.array([mu for _, mu in laws], dtype=np.float64).reshape(-1, 2)
        return names, c._bodies[pairs], friction, np.array([e for e, _ in laws]), self._finder.margins

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
        c = self.control
        if self._rests and h == self._last_h:
            self._end(h, time, np.zeros_like(self.v), self._resting_multipliers)
            return tables.RUNNING
        e, unit = self.equations, self.equations.system.unit
        force = self._force(self.time, self.q, self.v)
        if not np.isfinite(force).all():
            c.ask_time = self.time
            return tables.NOT_FINITE
        problem = e.problem.with_floats(e.floats_at(time))
        has_joints = bool(self._rows.size)
        jacobian = problem.jacobian(self.q)[1] if e.problem.rows else np.zeros((0, self.v.size))
        rate = rates.driver_rates(e.system, e.problem, time, self.q)[0][self._rows] if has_joints else np.zeros(0)
        change = self._accelerated(jacobian, h * force)
        free = self.v + change
        if has_joints:
            free = self._projected(problem, self.q, free, rate)
        reach = self._reach(h, np.maximum(np.abs(free), np.abs(self.v)))
        near = self.touches(self.q, reach + CLOSED * unit)
        if not self._is_free and len(near.keys) > MOST_POINTS:
            raise ModelError(
                f"{len(near.keys)} contact points at t = {self.time:g} s are too many for a mechanism with joints (up "
                f"to {MOST_POINTS}); simulate fewer bodies"
            )
        impulses, v = self._solved_contacts(near, free, h, jacobian)
        if self._is_free and len(near.keys):
            v = self._without_rounding(near, impulses, v, change)
        if not np.isfinite(v).all():
            return tables.NOT_FINITE
        moving = self._moving(near, v, has_joints)
        q = problem.retract(self.q, h * moving) if moving.any() else self.q.copy()
        q, depth, closed = self._closed_pose(problem, q, AHEAD * reach + CLOSED * unit, has_joints)
        if not closed:
            return tables.NOT_CLOSED
        if depth > START * unit:
            raise UnsolvedContactsError(f"{_told(near)} leave an overlap of {depth:.1g} m at t = {time:g} s")
        last = self._forces.values
        self._keep(near, impulses, v, q, time, h)
        self.penetration = max(self.penetration, depth)
        acceleration = (v - self.v) / h
        multipliers = self._multipliers_of(jacobian, force, near, impulses / h, acceleration)
        is_still = self._is_constant and not v.any() and not self.v.any() and np.array_equal(q, self.q)
        self._rests = is_still and not self._approach and np.array_equal(last, self._forces.values)
        self._last_h, self._resting_multipliers = h, multipliers
        self.q[:], self.v[:] = q, v
        self._end(h, time, acceleration, multipliers)
        return tables.RUNNING

    def _end(self, h: float, time: float, acceleration: FloatArray, multipliers: FloatArray) -> None:
        """A step ends at a time; its output, if one is due."""
        c = self.control
        self._last_acceleration()[:] = acceleration
        c.time = time
        k = self.reached
        if k < len(self.times) and abs(float(self.times[k]) - time) <= SAME_TIME * (abs(time) + h):
            self.results[k] = np.concatenate([[time], self.q, self.v, acceleration, multipliers])
            c.sample += 1.0

    def _accelerated(self, jacobian: FloatArray, impulse: FloatArray) -> FloatArray:
        """M⁻¹ times an impulse, without joints."""
        e = self.equations
        if e.inertias or e.is_massless:
            mass = joint_inertias.mass_times(e, self.q, np.eye(impulse.size), e.metric)
            return np.asarray(np.linalg.solve(mass, impulse), dtype=np.float64)
        return impulse / e.masses.ravel()

    def _solved_contacts(
        self, near: Touches, free: FloatArray, h: float, jacobian: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Impulses r, shape (points, 3), and velocities."""
        e, m, bar = self.equations, len(near.keys), CLOSED * self.equations.system.unit
        if not m:
            return np.zeros((0, 3)), free
        before, now = near.speeds(free), near.speeds(self.v)
        is_open = near.gaps > bar
        bias = np.zeros((m, 3))
        bias[is_open, 0] = near.gaps[is_open] / h
        for k in np.flatnonzero(~is_open & (near.restitution > 0.0)).tolist():
            speed = max(self._approach.get(int(near.keys[k]), (0.0, 0))[0], -float(now[k, 0]))
            if speed > HIT * e.system.unit:
                bias[k, 0] = -near.restitution[k] * speed
        slips = np.isin(near.keys, self._slipping)
        mu = np.ascontiguousarray(np.where(slips, near.friction[:, 1], near.friction[:, 0]))
        start = self._forces.of(near.keys)
        # not the sum of a speed and gap/h, which may cancel
        speeds = float(max(np.abs(before).max(), np.abs(now).max(), near.gaps.max() / h))
        if self._problem is not None:
            found = self._problem.solve(near.bodies, near.rows, free, bias, mu, start, TOLERANCE * speeds)
            r, v, error = found.impulses, found.velocities, found.error
        else:
            rows = near.dense(free.size)
            response = impacts.responses(e, jacobian, self.active, rows)
            G, b = rows @ response, (before + bias).ravel()
            cone = _cone.Cone.new(tolerance=TOLERANCE, most=SWEEPS)
            work, flat = np.zeros(_cone.work_size(m)), start.ravel()
            matrix = np.ascontiguousarray(0.5 * (G + G.T)).ravel()
            _cone.solve(_cone.SOLVE, m, np.zeros(1, np.int64), matrix, b, mu, flat, cone.as_floats, work)
            r, error = flat.reshape(m, 3), float(cone.error)
            if not error <= ROUNDED * speeds:
                tried, least = smoothed_cones.follow_dense(matrix.reshape(3 * m, 3 * m), b, mu, 0.1 * ROUNDED * speeds)
                r, error = (tried, least) if least < error else (r, error)
            v = free + response @ r.ravel()
        if speeds > 0.0:
            if not error / speeds <= UNSOLVED:
                raise UnsolvedContactsError(
                    f"{_told(near)} leave an error of {error / speeds:.1g} at t = {self.time:g} s"
                )
            self.contact_error = max(self.contact_error, error / speeds)
        return r, v

    def _without_rounding(self, near: Touches, r: FloatArray, v: FloatArray, change: FloatArray) -> FloatArray:
        """Velocities, zero where they are rounding of what cancels in them."""
        roots = np.sqrt(self.equations.masses)
        parts = near.moved(np.abs(r), np.abs(near.rows), len(roots)) / roots
        size = (parts + roots * np.abs(self.v.reshape(-1, WIDTH)) + roots * np.abs(change.reshape(-1, WIDTH))).max(
            axis=1
        )
        found = v.reshape(-1, WIDTH).copy()
        left = np.abs(roots * found).max(axis=1)
        rested = ~self.v.reshape(-1, WIDTH).any(axis=1)
        still = left <= np.where(rested, RESTING, STILL) * size
        found[still] = 0.0
        if still.any():
            self.contact_error = max(self.contact_error, float((left[still] / np.maximum(size[still], 1e-300)).max()))
        return found.ravel()

    def _moving(self, near: Touches, v: FloatArray, has_joints: bool) -> FloatArray:
        """The velocity of the pose in a step: v', or the mean of v and v' of bodies that no contact is near."""
        if has_joints and len(near.keys):
            return v
        moving = (0.5 * (self.v + v)).reshape(-1, WIDTH)
        touched = np.unique(near.bodies[near.bodies >= 0])
        moving[touched] = v.reshape(-1, WIDTH)[touched]
        return moving.ravel()

    def _closed_pose(
        self, problem: Any, q: FloatArray, reach: float, has_joints: bool
    ) -> tuple[FloatArray, float, bool]:
        """The nearest pose in the metric of M without open joints and overlaps; the depth that is left [m]."""
        if self._problem is not None:
            return self._parted_pose(problem, q, reach)
        unit = self.equations.system.unit
        depth, before = 0.0, np.inf
        for _ in range(PROJECTIONS):
            inverse = self._inverse_root(q)
            found = self.touches(q, CLOSED * unit)
            deep = found.only(found.gaps < -DEEP * unit)
            depth = max(0.0, -float(deep.gaps.min(initial=0.0)))
            f, jacobian = problem.jacobian(q) if has_joints else (np.zeros(0), np.zeros((0, self.v.size)))
            f, jacobian = (f[self._rows], jacobian[self._rows]) if has_joints else (f, jacobian)
            missing = -np.concatenate([f, deep.gaps])
            if not missing.size or not np.abs(missing).max() > EXACT * unit:
                return q, depth, True
            weighted = np.vstack([jacobian, deep.dense(self.v.size)[::3]]) @ inverse
            lengths = np.maximum(np.linalg.norm(weighted, axis=1), 1e-300)
            least = np.linalg.lstsq(weighted / lengths[:, None], missing / lengths, rcond=RANK)[0]
            shift = inverse @ least
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

    def _parted_pose(self, problem: Any, q: FloatArray, reach: float) -> tuple[FloatArray, float, bool]:
        """The same of free bodies: the contact problem without friction whose velocities are shifts."""
        unit = self.equations.system.unit
        depth = 0.0
        for _ in range(PROJECTIONS):
            found = self.touches(q, reach)
            depth = max(0.0, -float(found.gaps.min(initial=0.0)))
            if depth <= DEEP * unit:
                return q, depth, True
            near = found.only(found.gaps < 2.0 * depth)
            m = len(near.keys)
            bias = np.zeros((m, 3))
            bias[:, 0] = near.gaps
            assert self._problem is not None
            solved = self._problem.solve(near.bodies, near.rows, np.zeros(self.v.size), bias, np.zeros(m),
                                         np.zeros((m, 3)), 1e-3 * DEEP * unit)  # fmt: skip
            if not np.isfinite(solved.velocities).all():
                return q, depth, False
            q = problem.retract(q, solved.velocities)
        return q, depth, True

    def _keep(self, near: Touches, impulses: FloatArray, v: FloatArray, q: FloatArray, time: float, h: float) -> None:
        """Impulses for the next step, hits, and the energies that were lost."""
        e, bar = self.equations, CLOSED * self.equations.system.unit
        before, after = near.speeds(self.v), near.speeds(v)
        work = -0.5 * impulses * (before + after)
        is_pressed = impulses[:, 0] > 0.0
        traction = np.hypot(impulses[:, 1], impulses[:, 2])
        slips = is_pressed & (traction >= near.friction[:, 1] * impulses[:, 0] * (1.0 - 1e-9))
        self._slipping = near.keys[slips]
        is_new = is_pressed & ~np.isin(near.keys, self._forces.keys) & (before[:, 0] < -HIT * e.system.unit)
        approach: dict[int, tuple[float, int]] = {}
        for k in np.flatnonzero(is_new).tolist():
            name, speed = " and ".join(near.names[k]), -float(before[k, 0])
            self.events.append(ContactEvent(time, name, ContactEventKind.HIT, speed, float(impulses[k, 0])))
            if near.gaps[k] > bar:
                approach[int(near.keys[k])] = speed, len(self.events) - 1
        if self._approach:
            known = np.isin(near.keys, np.fromiter(self._approach, dtype=np.int64))
            for k in np.flatnonzero(known & is_pressed & ~is_new).tolist():
                _, number = self._approach[int(near.keys[k])]
                event: Any = self.events[number]
                self.events[number] = event._replace(impulse=event.impulse + float(impulses[k, 0]))
        self._approach = approach
        self._forces = _Kept(impulses[is_pressed], near.keys[is_pressed])
        self.lost.append((time, float(work[:, 0].sum()), float(work[:, 1:].sum()), self._scheme_loss(v, q, h)))

    def _scheme_loss(self, v: FloatArray, q: FloatArray, h: float) -> float:
        """What weights and gyroscopic torques did less than the potential energy has lost [J]."""
        e = self.equations
        mean = 0.5 * (self.v + v).reshape(-1, WIDTH)
        own = np.zeros_like(mean)
        own[:, :3] = e.masses[:, :3] * e.gravity
        w = self.v.reshape(-1, WIDTH)[:, 3:]
        own[:, 3:] = -np.cross(w, e.masses[:, 3:] * w)
        way = (q - self.q)[: 7 * len(mean)].reshape(-1, 7)[:, :3]
        return float((own[:, :3] * way).sum() - (own * mean).sum() * h)

    def _multipliers_of(
        self, jacobian: FloatArray, force: FloatArray, near: Touches, forces: FloatArray, acceleration: FloatArray
    ) -> FloatArray:
        """λ of the joints with M v̇ + Jᵀλ = Q + J_cᵀ r/h."""
        e = self.equations
        found = np.zeros(e.equations.size)
        if self._rows.size:
            rest = force - joint_inertias.mass_times(e, self.q, acceleration)
            rest = rest + near.moved(forces, near.rows, rest.size // WIDTH).ravel()
            roots = 1.0 / np.sqrt(e.metric.ravel())
            found[self._hard] = np.linalg.lstsq((jacobian[self._rows] * roots).T, rest * roots, rcond=RANK)[0]
        return found

    def losses(self, times: FloatArray) -> FloatArray:
        """Energies [J] that hits, friction and the scheme took until each time, shape (3, times)."""
        rows = np.array(self.lost).reshape(-1, 4)
        ends = np.searchsorted(rows[:, 0], times * (1.0 + SAME_TIME) + SAME_TIME, side="right")
        sums = np.vstack([np.zeros(3), np.cumsum(rows[:, 1:], axis=0)])[ends]
        return np.asarray(sums.T)


class _Kept:
    """Values of contact points from one step to the next, by their keys."""

    def __init__(self, values: FloatArray, keys: IntArray | None = None) -> None:
        self.keys: IntArray = np.empty(0, dtype=np.int64) if keys is None else keys
        self.values = values
        self._order = np.argsort(self.keys, kind="stable")

    def of(self, keys: IntArray) -> FloatArray:
        """Those of other keys; zeros where there are none."""
        found = np.zeros((len(keys), self.values.shape[1]))
        if len(self.keys):
            ordered = self.keys[self._order]
            at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
            same = ordered[at] == keys
            found[same] = self.values[self._order[at[same]]]
        return found


def _told(near: Touches) -> str:
    """The pairs of contacts, in words."""
    pairs = list(dict.fromkeys(map(tuple, near.names.tolist())))
    named = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:MOST_NAMED])
    more = f" and {len(pairs) - MOST_NAMED} more pairs" if len(pairs) > MOST_NAMED else ""
    return f"the contacts of {named}{more}"


def _rows(n: FloatArray, points: FloatArray, poses: FloatArray) -> FloatArray:
    """J_c of points, shape (n, 2, 3, 6): normal and two tangential rows, for both bodies; poses of principal frames,
    shape (n, 2, 7)."""
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n), axis=1)])
    t /= np.linalg.norm(t, axis=1)[:, None]
    axes = np.stack([n, t, np.cross(n, t)], axis=1)[:, None]  # points, sides, axes, components
    found = np.empty((len(n), 2, 3, WIDTH))
    found[..., :3] = axes * np.array([-1.0, 1.0])[:, None, None]
    arms = np.cross((points - poses[..., :3])[:, :, None], found[..., :3])
    found[..., 3:] = np.einsum("ksij,ksjl->ksil", arms, np.asarray(euler.matrix(poses[..., 3:])))
    return found
