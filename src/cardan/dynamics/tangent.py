"""Derivatives of forces by poses and velocities: the stiffness of loads and of reactions.

DJ[u] is the derivative of J along a motion u (δr in world, δθ in principal axes of each body).  γ(v) = −DJ[v] v is
quadratic in v, and its values for sums of two motions give the symmetric part of DJ without differences:

    S(u, w) = ½ (γ(u) + γ(w) − γ(u + w)) = ½ (DJ[u] w + DJ[w] u).

Motions do not commute: rows that are derivatives of functions have DJ[u] w − DJ[w] u = J (u × w), with the cross
products of the rotations δθ of each body.  So the derivative of forces Jᵀλ with constant λ is

    wᵀ D(Jᵀλ)[u] = λ·S(u, w) + ½ τ·(u × w),   τ: the torques in Jᵀλ.

Rows depend on few bodies.  Bodies that no row connects have one colour, and all motions of a colour are evaluated at
once: for chains and most loops two or three colours are enough, however many bodies there are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.dynamics import tables
from cardan.dynamics.forces import Forces
from cardan.dynamics.tables import WIDTH
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.solvers.tables import GAMMA, Constraint, Structure
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_blocks = LazyModule("cardan.solvers._blocks")

SMALL_PRODUCT: Final = 200_000  # multiplications
STRAIGHT: Final = 1e-3  # [rad]: an inclination that is nearer to 0 or π has no gradient that could be differentiated


class Group(NamedTuple):
    """Constraints with equal numbers of rows and of bodies: their numbers, rows and entries of J, and unknowns.

    ``rows``, shape (constraints, rows).  ``entries``, shape (constraints, rows, unknowns).  ``places``, shape
    (constraints, unknowns): of the unknowns among all.  ``motions``, likewise: the motions that contain them.
    """

    numbers: IntArray
    rows: IntArray
    entries: IntArray
    places: IntArray
    motions: IntArray


class Rows:
    """The rows of a problem on the manifold, by groups, and motions of single unknowns that no row couples.

    ``motions``, shape (motions, unknowns).
    """

    def __init__(self, problem: Problem, units: FloatArray) -> None:
        """units: of the unknowns [m or rad]."""
        table, at = problem.structure.tolist(), Structure.size
        fields = [getattr(Constraint, name).first for name in ("row", "rows", "entry", "slots")]
        records = []
        for _ in range(table[Structure.constraints.first]):
            row, rows, entry, slots = (table[at + k] for k in fields)
            records.append((row, rows, entry, tuple(table[at + Constraint.size : at + Constraint.size + slots])))
            at += Constraint.size + slots
        self.firsts: IntArray = np.array([row for row, *_ in records], dtype=np.int64)
        colours = _colours(len(units) // WIDTH, [bodies for *_, bodies in records])
        count = WIDTH * (int(colours.max(initial=-1)) + 1)
        of_unknown = (WIDTH * colours[:, None] + np.arange(WIDTH)).ravel()
        self.motions: FloatArray = np.zeros((count, len(units)))
        self.motions[of_unknown, np.arange(len(units))] = units
        kinds: dict[tuple[int, int], list[int]] = {}
        for number, (_, rows, _, bodies) in enumerate(records):
            if rows and bodies:
                kinds.setdefault((rows, len(bodies)), []).append(number)
        self.groups = []
        for (rows, slots), numbers in kinds.items():
            members = [records[k] for k in numbers]
            first, entry = np.array([one[0] for one in members]), np.array([one[2] for one in members])
            width = WIDTH * slots
            joined = np.array([one[3] for one in members])
            places = (WIDTH * joined[:, :, None] + np.arange(WIDTH)).reshape(len(members), width)
            entries = entry[:, None, None] + np.arange(rows * width).reshape(rows, width)
            self.groups.append(
                Group(np.array(numbers), first[:, None] + np.arange(rows), entries, places, of_unknown[places])
            )

    def product(self, rows: int, entries: FloatArray, motions: FloatArray) -> FloatArray:
        """J times the columns of a matrix, shape (rows, columns)."""
        out = np.zeros((rows, motions.shape[1]))
        for group in self.groups:
            out[group.rows] = entries[group.entries] @ motions[group.places]
        return out


def _colours(count: int, sets: list[tuple[int, ...]]) -> IntArray:
    """Numbers of bodies, so that those of each set differ; by the bodies' order, the least that is free."""
    beside: list[set[int]] = [set() for _ in range(count)]
    for bodies in set(sets):
        for body in bodies:
            beside[body].update(bodies)
    colours = np.full(count, -1, dtype=np.int64)
    for body, others in enumerate(beside):
        taken = {int(colours[other]) for other in others}
        colours[body] = next(k for k in range(count) if k not in taken)
    return colours


class Curvature:
    """DJ of the rows of a problem in a pose."""

    def __init__(self, problem: Problem, rows: Rows, q: FloatArray) -> None:
        self._problem, self._rows, self._q = problem, rows, q
        self.entries: FloatArray = problem.entries(q)[1]
        n = len(rows.motions)
        alone = self._gammas(rows.motions)
        first, second = np.triu_indices(n, 1)
        pairs = self._gammas(rows.motions[first] + rows.motions[second])
        forms = np.empty((n, n, problem.rows))
        forms[first, second] = forms[second, first] = 0.5 * (alone[first] + alone[second] - pairs)
        forms[np.arange(n), np.arange(n)] = -alone
        self._forms, self._alone = forms, alone

    def _gammas(self, velocities: FloatArray) -> FloatArray:
        """γ of the rows for each velocity, shape (velocities, rows)."""
        p = self._problem
        out, work = np.empty((len(velocities), p.rows)), np.empty(p.sizes.work)
        for v, row in zip(velocities, out, strict=True):
            _blocks.call_at(p.evaluate, GAMMA, p.ints, p.floats, self._q, v, row, row, work)
        return out

    def blocks(self, weights: FloatArray) -> list[tuple[IntArray, FloatArray]]:
        """D(Jᵀλ), by groups: places of the unknowns, shape (constraints, unknowns), and a matrix for each constraint.

        weights: λ, shape (rows,).  The element (i, j) is that of the force along i by the motion along j.
        """
        of_rows = np.where(weights != 0.0, self._forms, 0.0) * weights  # rows without weight may be undefined
        sums = np.add.reduceat(of_rows, self._rows.firsts, axis=2) if of_rows.size else of_rows
        units = self._rows.motions.sum(axis=0)
        blocks = []
        for group in self._rows.groups:
            places, motions = group.places, group.motions
            block = sums[motions[:, :, None], motions[:, None, :], group.numbers[:, None, None]]
            block = block / (units[places][:, :, None] * units[places][:, None, :])
            forces = np.einsum("nr,nri->ni", weights[group.rows], self.entries[group.entries])
            for at in range(3, places.shape[1], WIDTH):
                block[:, at : at + 3, at : at + 3] += 0.5 * _crosses(forces[:, at : at + 3])
            blocks.append((places, block))
        return blocks

    def between(self, weights: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """leftᵀ D(Jᵀλ) right; left and right: motions as columns."""
        along = np.zeros((len(right), right.shape[1]))
        for places, block in self.blocks(weights):
            np.add.at(along, places, block @ right[places])
        return on_one_thread(left.T, along)

    def rates(self, v: FloatArray) -> FloatArray:
        """D(J v) for a constant v, shape (rows, unknowns)."""
        p, rows = self._problem, self._rows
        symmetric = 0.5 * (self._alone + self._gammas(v[None]) - self._gammas(rows.motions + v))
        units, matrix = rows.motions.sum(axis=0), np.zeros((p.rows, v.size))
        turns = np.zeros((v.size, v.size))  # columns: u × v, for u along each unknown
        for at in range(3, v.size, WIDTH):
            turns[at : at + 3, at : at + 3] = -_crosses(v[None, at : at + 3])[0]
        for group in rows.groups:
            entries = symmetric[group.motions[:, None, :], group.rows[:, :, None]] / units[group.places][:, None, :]
            matrix[group.rows[:, :, None], group.places[:, None, :]] = entries
        return matrix + 0.5 * rows.product(p.rows, self.entries, turns)


def on_one_thread(a: FloatArray, b: FloatArray) -> FloatArray:
    """a @ b in products that are too small for threads of BLAS, whose idle threads use a processor each."""
    step = max(1, SMALL_PRODUCT // max(1, a.size))
    product = np.empty((len(a), b.shape[1]))
    for k in range(0, b.shape[1], step):
        np.einsum("ij,jk->ik", a, b[:, k : k + 1], out=product[:, k : k + 1]) if step == 1 else np.matmul(
            a, b[:, k : k + step], out=product[:, k : k + step]
        )
    return product


def _crosses(vectors: FloatArray) -> FloatArray:
    """Matrices of v ×, shape (vectors, 3, 3)."""
    found: FloatArray = np.cross(vectors[:, None, :], np.eye(3)).transpose(0, 2, 1)
    return found


class LoadTangent:
    """−∂Q/∂q and −∂Q/∂v of loads at an instant, but for functions that Python calls and axes that are nearly parallel.

    ``left_out``: number and row of the laws of the latter, whose forces must be differenced.
    ``of_rates``: whether a law acts on rows of rates, as a damper does.  These are not derivatives of functions, so
    their stiffness is computed at rest only, where it is zero.
    """

    def __init__(self, forces: Forces, rows: Rows, t: float, q: FloatArray, v: FloatArray) -> None:
        self._forces, self._rows, self._v, self._q = forces, rows, v, q
        p = forces.coordinates
        self.of_rates = forces.has_rates
        x, entries = p.entries(q)
        rates: FloatArray = rows.product(p.rows, entries, v[:, None])[:, 0]
        readings = forces.readings(t, q, v)
        self._efforts: FloatArray = np.zeros(p.rows)
        self._laws: list[tuple[slice, FloatArray, FloatArray]] = []  # rows, ∂e/∂x and ∂e/∂ẋ
        self.left_out: list[tuple[int, int]] = []
        row = 0
        for k, (law, reading) in enumerate(zip(forces.laws, readings, strict=True)):
            span = slice(row, row + law.rows)
            row += law.rows
            if law.sort == tables.INCLINED and abs(np.sin(float(reading["coordinate"]))) < STRAIGHT:
                self.left_out.append((k, span.start))
            elif law.code == tables.MATRIX:
                by_x, by_rate = -np.array(law.numbers).reshape(2, law.rows, law.rows)
                self._efforts[span] = by_x @ x[span] + by_rate @ rates[span]
                self._laws.append((span, by_x, by_rate))
            elif law.code != tables.CALLED:
                e, by_x, by_rate = _effort(law.sort, reading, x[span], rates[span])
                self._efforts[span] = e
                self._laws.append((span, by_x, by_rate))
        self._curvature = Curvature(p, rows, q) if self._laws else None

    def stiffness(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """−leftᵀ ∂Q/∂q right; left and right: motions as columns."""
        assert not (self.of_rates and self._v.any()), "rows of rates have a stiffness at rest only"
        reduced = np.zeros((left.shape[1], right.shape[1]))
        if self._curvature is not None:
            reduced -= self._curvature.between(self._efforts, left, right)
            of_rates = self._curvature.rates(self._v) @ right if self._v.any() else None
            reduced -= self._along(left).T @ self._by_law(self._along(right), of_rates)
        for places, block in _wrench_blocks(self._forces, self._q):
            reduced -= left[places].T @ block @ right[places]
        return reduced

    def damping(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """−leftᵀ ∂Q/∂v right."""
        if self._curvature is None:
            return np.zeros((left.shape[1], right.shape[1]))
        along = self._along(right)
        found: FloatArray = -self._along(left).T @ self._by_law(np.zeros_like(along), along)
        return found

    def _along(self, motions: FloatArray) -> FloatArray:
        """J times motions."""
        assert self._curvature is not None
        return self._rows.product(self._efforts.size, self._curvature.entries, motions)

    def _by_law(self, x: FloatArray, rates: FloatArray | None) -> FloatArray:
        """Changes of the efforts by changes of the coordinates and of their rates, as columns."""
        efforts = np.zeros_like(x)
        for span, by_x, by_rate in self._laws:
            efforts[span] = by_x @ x[span]
            if rates is not None:
                efforts[span] += by_rate @ rates[span]
        return efforts


def _effort(sort: int, reading: Any, x: FloatArray, rates: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Efforts of the rows of a law of one coordinate, and their derivatives by the rows and by their rates.

    Between two points with the distance d the rows are those of the vector d n, and the effort e acts along n.
    """
    e, slope, rate_slope = (float(reading[word]) for word in ("effort", "slope", "rate_slope"))
    d = float(reading["coordinate"])
    if sort != tables.APART:
        return np.array([e]), np.array([[slope]]), np.array([[rate_slope]])
    if d == 0.0:  # e = 0 there, or else it has no direction
        return np.zeros(3), slope * np.eye(3), rate_slope * np.eye(3)
    n = x / d
    across = (np.eye(3) - np.outer(n, n)) / d
    by_x = slope * np.outer(n, n) + rate_slope * np.outer(n, across @ rates) + e * across
    return e * n, by_x, rate_slope * np.outer(n, n)


def _wrench_blocks(forces: Forces, q: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """∂Q/∂q of wrenches with constant vectors: places of the unknowns of a body, and a matrix.

    A force f at the point p of a body with the axes R has the torque p × Rᵀf; a turn δθ changes Rᵀf by Rᵀf × δθ.
    """
    blocks = []
    for wrench in forces.wrenches:
        if wrench.function is not None:
            continue
        numbers = np.array(wrench.numbers)
        point, vector = numbers[:3], numbers[3:]
        R = euler.matrix(q[layout.POSE * wrench.body :][3 : layout.POSE])
        block = np.zeros((WIDTH, WIDTH))
        turned = _crosses((vector if wrench.in_body else R.T @ vector)[None])[0]
        if wrench.is_torque:
            block[3:, 3:] = 0.0 if wrench.in_body else turned
        elif wrench.in_body:
            block[:3, 3:] = -R @ turned
        else:
            block[3:, 3:] = _crosses(point[None])[0] @ turned
        blocks.append((np.arange(WIDTH * wrench.body, WIDTH * wrench.body + WIDTH), block))
    return blocks
