"""Motions without mass, ker M ∩ ker J: which are idle spins, and which make the equations of motion ill posed.

Along such a motion no mass and no constraint determines the acceleration.  M is diagonal, so that these are the n with
J₀ n = 0, where J₀ has the columns of J without mass.

A spin is idle if nothing else depends on it: that of one body with a mass about its own centre, or that of a massless
rod about the line through its joints.  While no torque acts on it, its angular velocity is kept.  All other motions
without mass are refused by name.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates.rates import RANK_RTOL
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import Integration
from cardan.dynamics.reactions import applied
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.math import euler
from cardan.solvers.linear import constraints
from cardan.solvers.tables import LONG_ROW
from cardan.system.state import FloatArray
from cardan.system.system import IntArray
from cardan.system.tables import POSE

DENSE: Final = 100  # columns of a part without mass: of larger ones the least singular value alone is computed
MOST_EXAMINED: Final = 1200  # columns of J₀: in larger mechanisms a force along a motion without mass is not looked for
LEAST: Final = 1e-7  # of entries of order one: a smaller singular value of a large part is zero
TAKES_PART: Final = 0.1  # of the largest component of a motion: a body with less is not named
NEARLY: Final = 1e-3  # a singular value of J₀ below it: a motion that is nearly without mass
ACTS: Final = 1e-9  # of the largest force: less is rounding
MOST_NAMED: Final = 8  # bodies
WAY_OUT: Final = "give mass= and inertia= to m.body, a shape with density=, or a joint that holds it"


class Idle(NamedTuple):
    """Idle spins: ``notes`` in words; ``basis``, shape (unknowns, spins), orthonormal in radians and lengths over L."""

    notes: tuple[str, ...]
    basis: FloatArray


class Lost(NamedTuple):
    """A motion that has lost its mass.  ``is_pushed``: whether a force acts on it."""

    bodies: list[str]
    is_pushed: bool

    @property
    def text(self) -> str:
        """In words."""
        if self.is_pushed:
            return f"a force acts on {quoted(self.bodies)} along a motion without mass (0 kg, 0 kg m²)"
        return f"{quoted(self.bodies)} can move without moving any mass (0 kg, 0 kg m²)"


class _Massless:
    """J₀ in a pose.  ``columns``: numbers of the columns without mass; ``bodies``: of each of them."""

    def __init__(self, equations: Equations, q: FloatArray, floats: FloatArray, active: FloatArray) -> None:
        self.equations, self.q = equations, q
        self.columns: IntArray = np.flatnonzero(equations.masses.ravel() == 0.0)
        self.bodies = self.columns // WIDTH
        p = equations.problem.with_floats(floats)
        self.unit: FloatArray = p.scales[p.rows :]  # L or 1 of each unknown
        whole = _sparse(p, q)[equations.equations].multiply(self.unit[None, :]).tocsr()
        weights = p.scales[: p.rows][equations.equations] * (active == 1.0)
        lengths = weights * np.sqrt(np.asarray(whole.multiply(whole).sum(axis=1)).ravel())
        weights = weights * LONG_ROW / np.maximum(lengths, LONG_ROW)
        self.matrix = whole.multiply(weights[:, None]).tocsc()[:, self.columns]

    def own_motions(self, body: int) -> FloatArray:
        """Motions of one body alone, shape (its columns, motions), orthonormal."""
        own = self.of_body(body)
        own = own[np.unique(own.indices)].toarray()
        _, sigma, v = np.linalg.svd(own)
        rank = int((sigma > RANK_RTOL * max(1.0, sigma.max(initial=0.0))).sum())
        found: FloatArray = v[rank:].T
        return found

    def of_body(self, body: int) -> Any:
        """The columns of a body."""
        first, end = np.searchsorted(self.bodies, [body, body + 1]).tolist()
        return self.matrix[:, first:end]

    def holders(self, body: int) -> set[str]:
        """Names of the constraints on a body."""
        numbers = set(self.of_body(body).nonzero()[0].tolist())
        rows = {int(self.equations.equations[k]) for k in numbers}
        every = self.equations.system.rows
        return {row.constraint for row in every if rows.intersection(range(row.start, row.start + row.primitive.rows))}

    def is_rotation(self, body: int, twist: FloatArray) -> bool:
        """Whether a motion of a massless body, δr/L in world and δθ in principal axes, rotates it about an axis."""
        if twist.size != WIDTH:
            return False
        about = euler.rotate(self.q[POSE * body : POSE * (body + 1)][3:], twist[3:])
        return bool(abs(twist[:3] @ about) <= RANK_RTOL and np.abs(about).max() > RANK_RTOL)

    def common_motion(self, pins: Any) -> FloatArray | None:
        """A motion of several bodies, shape (columns,), in which the own motions, rows of pins, do not take part."""
        from scipy.sparse import bmat, vstack
        from scipy.sparse.csgraph import connected_components
        from scipy.sparse.linalg import eigsh

        pinned = vstack([self.matrix, pins]).tocsc()
        rows = pinned.shape[0]
        _, part = connected_components(bmat([[None, pinned], [pinned.T, None]]), directed=False)
        of_column = part[rows:]
        for number in np.unique(of_column):
            own = np.flatnonzero(of_column == number)
            if np.unique(self.bodies[own]).size == 1:
                continue
            block = pinned[:, own].tocsr()
            block = block[np.diff(block.indptr) > 0]
            found = np.zeros(self.columns.size)
            if own.size <= DENSE:
                _, sigma, v = np.linalg.svd(block.toarray())
                if sigma.size == own.size and sigma[-1] > RANK_RTOL * max(1.0, sigma[0]):
                    continue
                found[own] = v[-1]
            else:
                least, v = eigsh((block.T @ block).tocsc(), k=1, sigma=-(LEAST**2), which="LM")
                if least[0] > LEAST**2:
                    continue
                found[own] = v[:, 0]
            return found
        return None

    def without_own(self, motion: FloatArray) -> FloatArray:
        """A motion less what are motions of one body alone, such as idle spins."""
        rest = motion.copy()
        for body in np.unique(self.bodies):
            own, places = self.own_motions(body), self.bodies == body
            rest[places] -= own @ (own.T @ motion[places])
        return rest

    def bodies_in(self, motion: FloatArray) -> list[str]:
        """Names of the bodies that take part in a motion."""
        every = self.equations.system.names
        sizes = np.zeros(len(every))
        np.maximum.at(sizes, self.bodies, np.abs(motion))
        return [every[k] for k in np.flatnonzero(sizes > TAKES_PART * sizes.max())]


def examine(run: Integration) -> Idle:
    """The idle spins of a run in its pose; ModelError, with names, if other motions have no mass."""
    e = run.equations
    nothing: FloatArray = np.empty((e.masses.size, 0))
    if not e.is_massless:
        return Idle((), nothing)
    seen = _Massless(e, run.q, run.floats, run.active)
    names = e.system.names
    freely: list[str] = []
    about_axis: list[str] = []
    anyhow: list[str] = []
    basis: list[FloatArray] = []
    pins = []
    for body in np.unique(seen.bodies).tolist():
        own = seen.own_motions(body)
        if not own.shape[1]:
            continue
        places = np.flatnonzero(seen.bodies == body)
        motions = np.zeros((seen.columns.size, own.shape[1]))
        motions[places] = own
        pins.append(motions)
        has_mass = e.masses[body, 0] > 0.0
        if has_mass or (own.shape[1] == 1 and seen.is_rotation(body, own[:, 0]) and len(seen.holders(body)) > 1):
            (about_axis if own.shape[1] == 1 else anyhow).append(names[body])
            whole = np.zeros((e.masses.size, own.shape[1]))
            whole[seen.columns] = motions
            basis.append(whole)
        else:
            freely.append(names[body])
    if freely:
        verb, it = ("has", "its") if len(freely) == 1 else ("have", "their")
        raise ModelError(
            f"{quoted(freely)} {verb} no mass (0 kg), and joints and drivers do not determine {it} motion: "
            f"accelerations do not exist; {WAY_OUT}"
        )
    from scipy.sparse import csr_matrix

    common = seen.common_motion(csr_matrix(np.hstack(pins).T if pins else np.empty((0, seen.columns.size))))
    if common is not None:
        raise ModelError(
            f"{quoted(seen.bodies_in(common))} can move without moving any mass (0 kg, 0 kg m²), and joints and "
            f"drivers do not determine this motion: accelerations do not exist; {WAY_OUT}"
        )
    told = {
        "the rotation of {} is not determined: no inertia (0 kg m²), and no joint holds it; its angular velocity is "
        "kept": anyhow,
        "the rotation of {} about one axis is not determined: no inertia (0 kg m²), and no joint holds it; its angular "
        "velocity is kept": about_axis,
    }
    notes = tuple([text.format(quoted(bodies)) for text, bodies in told.items() if bodies])
    return Idle(notes, np.hstack(basis) if basis else nothing)


def idle_twists(run: Integration) -> tuple[dict[int, FloatArray], tuple[str, ...]]:
    """Idle spins by the number of the body, shape (spins, 6) each, [m] and [rad] in principal axes; and the notes."""
    idle, e = examine(run), run.equations
    poses = run.q[: POSE * len(e.system.names)].reshape(-1, POSE)
    found: dict[int, list[FloatArray]] = {}
    for spin in (idle.basis * e.problem.scales[e.problem.rows :][:, None]).T:
        twists = spin.reshape(-1, WIDTH)
        body = int(np.abs(twists).max(axis=1).argmax())
        moved = euler.rotate(euler.conjugate(poses[body, 3:]), twists[body, :3])
        found.setdefault(body, []).append(np.concatenate([moved, twists[body, 3:]]))
    return {body: np.array(twists) for body, twists in found.items()}, idle.notes


def lost_mass(run: Integration) -> Lost | None:
    """Whether a run ended near a pose where a motion of bodies has no mass, while a force acts on it or it goes on.

    Examined are the pose that was evaluated last, and the last one of the run.
    """
    e = run.equations
    if not e.is_massless or np.count_nonzero(e.masses == 0.0) > MOST_EXAMINED:
        return None
    for time, q, v in (run._asked_state(), (run.time, run.q, run.v)):
        force = applied(e, time, q, v)
        if not (np.isfinite(force).all() and np.isfinite(q).all() and np.isfinite(v).all()):
            continue
        seen = _Massless(e, q, run.floats, run.active)
        _, sigma, motions = np.linalg.svd(seen.matrix.toarray())
        light = motions[int((sigma > NEARLY).sum()) :]
        scaled = seen.unit * force
        along = light.T @ (light @ scaled[seen.columns])
        if np.abs(along).max(initial=0.0) > ACTS * np.abs(scaled).max():
            return Lost(seen.bodies_in(along), is_pushed=True)
        moved = v / seen.unit
        along = seen.without_own(light.T @ (light @ moved[seen.columns]))
        if np.abs(along).max(initial=0.0) > TAKES_PART * np.abs(moved).max():
            return Lost(seen.bodies_in(along), is_pushed=False)
    return None


def quoted(names: list[str]) -> str:
    """Names, the first of them if there are many."""
    return ", ".join(map(repr, names[:MOST_NAMED])) + (" …" if len(names) > MOST_NAMED else "")


def _sparse(problem: Any, q: FloatArray) -> Any:
    """J, unscaled, in compressed rows."""
    from scipy.sparse import csr_matrix

    entries = problem.entries(q)[1]
    shape = problem.rows, problem.unknowns
    columns, counts = [np.empty(0, dtype=np.int64)], np.zeros(problem.rows + 1, dtype=np.int64)
    for one in constraints(problem.structure):
        numbers = (WIDTH * one.blocks[:, None] + np.arange(WIDTH)).ravel()
        columns.append(np.tile(numbers, one.rows))
        counts[one.first + 1 : one.first + 1 + one.rows] = numbers.size
    return csr_matrix((entries, np.concatenate(columns), np.cumsum(counts)), shape=shape)
