"""The equations of motion of a mechanism with flexible bodies, in one pose: dense, from masses in points.

    M(z) v̇ + h(z, v) + Jᵀλ = Q(z, v, t),   J v̇ = γ,   v = (ṙ, ω of the reference frame of each body, η̇).

A mass m of a flexible body is at a = u(s) − s₀ from the reference point s₀ of its body, in body axes.  With
G = ∂u/∂η = Φ + Hη its velocity and the part of its acceleration without v̇ are, in body axes,

    Aᵀṙ + ω × a + G η̇,     b = ω × (ω × a) + 2 ω × G η̇ + η̇ᵀH η̇,

so that M is the sum of m (I, −ã, G)ᵀ(I, −ã, G), h that of m (I, −ã, G)ᵀ b, and gravity m (I, −ã, G)ᵀ Aᵀg.  As H is in
G and in b, a rotating beam becomes stiffer.  The elastic forces are −Kη − Dη̇.  A rigid body is one mass, and its
inertia.  γ = −J̇ v by differences of fourth order of the exact J.  [Kane1987], [Shabana2005]
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations, rates
from cardan.dynamics.build import new_equations
from cardan.elastic.modes import MassPoints, Modes
from cardan.errors import ModelError
from cardan.joints import Role
from cardan.math import euler
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State
from cardan.system.system import System

WIDTH: Final = 6  # unknowns of a body
PROBE: Final = 1e-3  # scaled: largest change from one sample of the differences to the next
WEIGHTS: Final = ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0))  # of f(k h), over 12 h
CLOSED: Final = 1e-15  # scaled: a correction of rounding
CORRECTIONS: Final = 20
NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # components of a cross product
TINY: Final = 1e-300  # against division by zero


class _Flexible(NamedTuple):
    """A flexible body: its number, the numbers of its elastic coordinates among the unknowns, and its modes."""

    body: int
    columns: slice
    modes: Modes


class _Moved(NamedTuple):
    """The masses of a flexible body in a pose: a, (k, 3), and G, (k, 3, n), in body axes."""

    arms: FloatArray
    slopes: FloatArray


def refuse_items(drawing: Drawing, what: str) -> None:
    """ModelError for items that ``what`` does not consider with flexible bodies yet."""
    c = drawing.contents
    of = f"with flexible bodies ({', '.join(repr(one.body) for one in c.flexible)})"
    limits = [joint.name for joint in c.joints.values() if joint.kind.role is Role.LIMIT]
    timed = [name for name, joint in c.joints.items() if any(one.is_timed for one in joint.relations)]
    found = (
        ("collisions", list(c.collisions)),
        ("contacts that open", [joint.name for joint in c.opening]),
        ("constraints of velocities", list(c.rate_rows)),
        ("limits", limits),
        ("inertias of joints", list(c.inertias)),
        ("friction of joints", list(c.frictions)),
        ("parameters that are functions of time", timed),
        ("contacts and paths", list(drawing.system.contacts) if drawing.system.has_contacts else []),
    )
    for word, names in found:
        if names:
            raise ModelError(
                f"{what} {of} does not consider {word} yet: {', '.join(map(repr, names))}; use a copy without"
            )
    flexible = {one.body for one in c.flexible}
    for load in c.loads.values():
        on = flexible & {body.name for body in load.bodies}
        if on:
            raise ModelError(
                f"{what} does not consider loads on flexible bodies yet, and {load.kind.name} {load.name!r} acts on "
                f"{min(on)!r}; let it act on a body that is fixed to a frame of it"
            )


class ElasticEquations:
    """M, h, Q and J of a drawing at solver coordinates z of its system with free elastic coordinates.

    ``system``, ``problem``; ``scales`` of the unknowns: the extent, 1, or that of a variable.  ``notes``: on masses.
    """

    def __init__(self, drawing: Drawing, time: float) -> None:
        names = [one.name for elastic in drawing.contents.flexible for one in elastic.coordinates]
        self.system: System = drawing.with_free(names)
        self.time, self.gravity = time, np.array(drawing.gravity)
        self.problem = formulations.problem(self.system, "manifold", time=time)
        self.scales: FloatArray = self.problem.scales[self.problem.rows :]
        self.rows = rates.weights(self.system, self.problem)  # zero for guards
        self.count = len(self.system.names)
        self.first = WIDTH * self.count  # of the elastic coordinates
        first, own = self.first, []
        for elastic in drawing.contents.flexible:
            n = len(elastic.coordinates)
            own.append(_Flexible(self.system.index[elastic.body], slice(first, first + n), elastic.modes))
            first += n
        self.flexible = tuple(own)
        rigid = [k for k in range(self.count) if k not in {one.body for one in own}]
        records = drawing.records
        self._rigid = [(k, records[k].mass, np.array(records[k].center), _inertia(records[k])) for k in rigid]
        self._loaded, self.notes = new_equations(drawing, follow=False)

    def set_time(self, time: float) -> None:
        """Let the drivers have their values of another time [s]."""
        if time != self.time:
            self.time = time
            if self.system.signals:
                self.problem = formulations.problem(self.system, "manifold", time=time)

    # -- coordinates ---------------------------------------------------------------------------------------------------

    def start(self, state: State, tail: FloatArray) -> FloatArray:
        """z of a state; tail: variables and counted angles."""
        return formulations.to_reference(self.system, state.coordinates, tail)

    def state(self, z: FloatArray, v: FloatArray | None = None) -> State:
        """The state, with velocities if v is given."""
        found = self.system.state(
            formulations.from_reference(self.system, z), formulations.angles(self.system, z), self.time
        )
        if v is None:
            return found
        at_origins, _ = rates.at_origins(self.system, z, v[: self.first], np.zeros(self.first))
        return found.with_rates(at_origins)

    def velocities(self, state: State) -> FloatArray:
        """v of a state, whose deformation rests, shape (unknowns,)."""
        found = np.zeros(self.scales.size)
        if state.velocities is not None:
            own = np.array(state.velocities)
            own[:, :3] += euler.rotate(state.quaternions, _cross(own[:, 3:], self.system.reference_points))
            found[: self.first] = own.ravel()
        return found

    def eta(self, z: FloatArray) -> FloatArray:
        """The elastic coordinates, shape (n,)."""
        first = layout.POSE * self.count
        return z[first : first + self.scales.size - self.first]

    def _turns(self, z: FloatArray) -> FloatArray:
        return np.asarray(euler.matrix(z[: layout.POSE * self.count].reshape(-1, layout.POSE)[:, 3:])).reshape(-1, 3, 3)

    def _moved(self, one: _Flexible, z: FloatArray) -> _Moved:
        P, eta = one.modes.points, self.eta(z)[one.columns.start - self.first : one.columns.stop - self.first]
        bent = np.einsum("kinm,m->kin", P.second, eta)
        arms = P.places + P.displacement @ eta + 0.5 * bent @ eta - self.system.reference_points[one.body]
        return _Moved(arms, P.displacement + bent)

    # -- inertia and forces --------------------------------------------------------------------------------------------

    def mass(self, z: FloatArray) -> FloatArray:
        """M, shape (unknowns, unknowns)."""
        M, A = np.zeros((self.scales.size,) * 2), self._turns(z)
        for k, m, c, J in self._rigid:
            d = c - self.system.reference_points[k]
            r, w = slice(WIDTH * k, WIDTH * k + 3), slice(WIDTH * k + 3, WIDTH * k + 6)
            M[r, r] = m * np.eye(3)
            M[r, w] = -m * A[k] @ euler.tilde(d)
            M[w, r] = M[r, w].T
            M[w, w] = J + m * (d @ d * np.eye(3) - np.outer(d, d))
        for one in self.flexible:
            P, (a, G) = one.modes.points, self._moved(one, z)
            r = slice(WIDTH * one.body, WIDTH * one.body + 3)
            w, e = slice(r.stop, r.stop + 3), one.columns
            about = _about(P)
            M[r, r] = P.masses.sum() * np.eye(3)
            M[r, w] = -A[one.body] @ euler.tilde(P.masses @ a)
            M[r, e] = A[one.body] @ np.einsum("k,kin->in", P.masses, G)
            M[w, w] = np.einsum(
                "k,kij->ij", P.masses, np.einsum("kl,kl,ij->kij", a, a, np.eye(3)) - a[:, :, None] * a[:, None]
            )
            M[w, w] += np.einsum("k,ki,kj->ij", P.moments, P.axes, P.axes)
            M[w, e] = np.einsum("k,kij,kjn->in", P.masses, euler.tilde(a), G) + np.einsum(
                "k,ki,kn->in", P.moments, P.axes, about
            )
            M[e, e] = np.einsum("k,kin,kim->nm", P.masses, G, G) + np.einsum("k,kn,km->nm", P.moments, about, about)
            M[w, r], M[e, r], M[e, w] = M[r, w].T, M[r, e].T, M[w, e].T
        return M

    def bias(self, z: FloatArray, v: FloatArray) -> FloatArray:
        """h, shape (unknowns,)."""
        h, A = np.zeros_like(v), self._turns(z)
        for k, m, c, J in self._rigid:
            d, w = c - self.system.reference_points[k], v[WIDTH * k + 3 : WIDTH * k + 6]
            b = _cross(w, _cross(w, d))
            h[WIDTH * k : WIDTH * k + 3] = m * A[k] @ b
            h[WIDTH * k + 3 : WIDTH * k + 6] = _cross(w, J @ w) + m * _cross(d, b)
        for one in self.flexible:
            P, (a, G) = one.modes.points, self._moved(one, z)
            at, speed = WIDTH * one.body, v[one.columns]
            w = v[at + 3 : at + 6]
            b = _cross(w, _cross(w, a) + 2.0 * G @ speed) + np.einsum("kinm,n,m->ki", P.second, speed, speed)
            h[at : at + 3] = A[one.body] @ (P.masses @ b)
            spin = P.moments * (P.axes @ w + _about(P) @ speed)
            h[at + 3 : at + 6] = P.masses @ _cross(a, b) + _cross(w, spin @ P.axes)
            h[one.columns] = np.einsum("k,kin,ki->n", P.masses, G, b)
        return h

    def applied(self, z: FloatArray, v: FloatArray) -> FloatArray:
        """Gravity and loads, without elastic forces, shape (unknowns,)."""
        Q, A = np.zeros_like(v), self._turns(z)
        g = np.einsum("bji,j->bi", A, self.gravity)  # in body axes
        for k, m, c, _ in self._rigid:
            Q[WIDTH * k : WIDTH * k + 3] = m * self.gravity
            Q[WIDTH * k + 3 : WIDTH * k + 6] = m * _cross(c - self.system.reference_points[k], g[k])
        for one in self.flexible:
            P, (a, G) = one.modes.points, self._moved(one, z)
            at = WIDTH * one.body
            Q[at : at + 3] = P.masses.sum() * self.gravity
            Q[at + 3 : at + 6] = _cross(P.masses @ a, g[one.body])
            Q[one.columns] = np.einsum("k,kin,i->n", P.masses, G, g[one.body])
        if self._loaded.forces is not None:
            Q[: self.first] += self._loads(z, v, A)
        return Q

    def loads(self, z: FloatArray, v: FloatArray) -> FloatArray:
        """Loads without gravity, beside which small ones would be rounded, shape (unknowns,)."""
        found = np.zeros_like(v)
        if self._loaded.forces is not None:
            found[: self.first] = self._loads(z, v, self._turns(z))
        return found

    def _loads(self, z: FloatArray, v: FloatArray, A: FloatArray) -> FloatArray:
        """Forces of loads, from the centres of mass and principal axes to the reference frames."""
        e = self._loaded
        assert e.forces is not None and e.system.reference_axes is not None
        state = self.state(z, v)
        assert state.velocities is not None
        force = e.forces.total(
            self.time, self._solver_pose(state), rates.from_origins(e.system, state, np.asarray(state.velocities))
        )
        own = force.reshape(-1, WIDTH).copy()
        arms = e.system.reference_points - self.system.reference_points
        own[:, 3:] = euler.rotate(e.system.reference_axes, own[:, 3:])
        own[:, 3:] += _cross(arms, np.einsum("bji,bj->bi", A, own[:, :3]))
        return own.ravel()

    def _solver_pose(self, state: State) -> FloatArray:
        """Solver coordinates of the loads."""
        own = self._loaded.system
        near = np.array([state.angles.get(key, 0.0) for key in own.counted_angles])
        return formulations.to_reference(own, state.coordinates, near)

    def potential(self, z: FloatArray) -> float:
        """Energy of gravity and loads [J], without that of deformation."""
        A, found = self._turns(z), 0.0
        at = formulations.from_reference(self.system, z)[:, :3]  # of the origins
        for k, m, c, _ in self._rigid:
            found -= m * float(self.gravity @ (at[k] + A[k] @ c))
        for one in self.flexible:
            masses, (a, _) = one.modes.points.masses, self._moved(one, z)
            centre = at[one.body] + A[one.body] @ self.system.reference_points[one.body]
            found -= float(self.gravity @ (masses.sum() * centre + A[one.body] @ (masses @ a)))
        if self._loaded.forces is not None:
            found += self._loaded.forces.potential(self._solver_pose(self.state(z)))
        return found

    def elastic(self, of: str) -> FloatArray:
        """K ("stiffness") or D ("damping") of all unknowns, shape (unknowns, unknowns)."""
        found = np.zeros((self.scales.size,) * 2)
        for one in self.flexible:
            found[one.columns, one.columns] = getattr(one.modes, of)
        return found

    def shape(self, z: FloatArray) -> FloatArray:
        """The elastic coordinates in places of the unknowns, zero elsewhere."""
        found = np.zeros(self.scales.size)
        found[self.first :] = self.eta(z)
        return found

    # -- constraints ---------------------------------------------------------------------------------------------------

    def jacobian(self, z: FloatArray) -> FloatArray:
        """J of the equations, shape (rows, unknowns), in radians and lengths over L; guards are rows of zeros."""
        return np.asarray(self.problem.jacobian(z)[1] * self.rows[:, None])

    def gamma(self, z: FloatArray, v: FloatArray) -> FloatArray:
        """γ = −J̇ v of these rows, and of drivers, shape (rows,)."""
        _, driven = rates.driver_rates(self.system, self.problem, self.time, z)
        found = self.rows * driven
        size = float(np.abs(v / self.scales).max(initial=0.0))
        if size > 0.0:
            h = PROBE / size
            for k, weight in WEIGHTS:
                found = found - weight / (12.0 * h) * (self.jacobian(self.problem.retract(z, k * h * v)) @ v)
        return found

    def free_motions(self, z: FloatArray) -> FloatArray:
        """N with J N = 0, orthonormal in scaled unknowns, shape (unknowns, freedoms)."""
        scaled = self.jacobian(z) * self.scales
        _, s, v = np.linalg.svd(scaled)
        rank = int((s > rates.RANK_RTOL * s.max(initial=0.0)).sum())
        return np.asarray(self.scales[:, None] * v[rank:].T)

    def closed(self, z: FloatArray) -> FloatArray | None:
        """z corrected by the least step onto the constraints; None if they cannot be met there."""
        for k in range(CORRECTIONS):
            residual = self.problem.residual(z) * self.rows
            step = -np.linalg.pinv(self.jacobian(z) * self.scales, rcond=rates.RANK_RTOL) @ residual
            size = float(np.abs(step).max(initial=0.0))
            if not np.isfinite(size):
                return None
            if size <= CLOSED:
                return z
            z = self.problem.retract(z, step * self.scales)
            if k > 2 and size <= 1e-13:
                return z
        return None


def _about(P: MassPoints) -> FloatArray:
    """aᵀΨ of the moments of inertia, shape (k, n)."""
    return np.asarray(np.einsum("ki,kin->kn", P.axes, P.rotation))


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """a × b of vectors or rows; the function of NumPy takes three times as long."""
    return np.asarray(a[..., NEXT] * b[..., LAST] - a[..., LAST] * b[..., NEXT])


def _inertia(record: object) -> FloatArray:
    given = getattr(record, "inertia", None)
    return np.zeros((3, 3)) if given is None else np.array(given)
