"""The equations of motion of a packed system as tables for the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations
from cardan.dynamics import abi
from cardan.dynamics.forces import Forces
from cardan.lazy import LazyModule
from cardan.solvers import linear
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_adams = LazyModule("cardan.dynamics._adams")
_dual = LazyModule("cardan.dynamics._dual")

WIDTH = 6
MOST_STAGES = 7
WEIGHTS = 8 * 7


class Equations:
    """Masses, gravity, constraints and linear algebra of a system whose reference frames are the principal frames.

    ``masses``, shape (bodies, 6): the diagonal of M [kg, kg m²].  ``gravity`` [m/s²].  ``forces``: of the loads, None
    where there are none.  Threads may share it.
    """

    def __init__(self, system: System, masses: FloatArray, gravity: Any, forces: Forces | None = None) -> None:
        self.system = system
        self.forces = forces
        self.problem = formulations.motion_problem(system, "manifold")
        self.equations, self.pattern = _dense_pattern(system, self.problem.structure)
        own = self.problem.scales[: self.problem.rows][self.equations]
        roots = np.sqrt(masses.ravel())
        self.masses = masses
        self.values = np.concatenate([masses.ravel(), roots, 1.0 / roots, own, np.asarray(gravity, dtype=float)])
        rows = {row.constraint: row.start for row in system.rows}
        number = {int(row): k for k, row in enumerate(self.equations)}
        places = [(position, number[rows[signal.name]]) for position, signal in system.signals]
        self.drivers: IntArray = np.array(places, dtype=np.int64).reshape(-1)


def _strips(system: System, structure: IntArray) -> Iterator[tuple[int, int, int, list[int]]]:
    """Runs of rows that are equations: first row, number of rows, first entry, bodies."""
    for primitive, constraint in zip(system.primitives, linear.constraints(structure), strict=True):
        stride = WIDTH * constraint.blocks.size
        rows = [i for i in range(constraint.rows) if i not in primitive.guards]
        while rows:
            count = next((k for k, i in enumerate(rows) if i != rows[0] + k), len(rows))
            first, rows = rows[0], rows[count:]
            entry = constraint.start + first * stride
            yield constraint.first + first, count, entry, constraint.blocks.tolist()


def _dense_pattern(system: System, structure: IntArray) -> tuple[IntArray, IntArray]:
    """Rows that are equations, and the pattern of :mod:`cardan.dynamics._dual`."""
    strips, equations, table = [], [], []
    for row, count, entry, bodies in _strips(system, structure):
        strips.append((len(equations), count, entry, bodies))
        table += [len(equations), row, count, entry, len(bodies), *bodies]
        equations += range(row, row + count)
    n = len(equations)
    first = np.arange(n)
    pairs = []
    at_body: dict[int, list[tuple[int, int]]] = {}
    for k, (_, _, _, bodies) in enumerate(strips):
        for slot, body in enumerate(bodies):
            at_body.setdefault(body, []).append((k, slot))
    for k, (start, count, entry, bodies) in enumerate(strips):
        for slot, body in enumerate(bodies):
            for other, other_slot in at_body[body]:
                if other <= k:
                    begin, height, at, others = strips[other]
                    strides = WIDTH * len(bodies), WIDTH * len(others)
                    pairs += [start, begin, count, height, entry + WIDTH * slot, at + WIDTH * other_slot, *strides]
                    first[start : start + count] = np.minimum(first[start : start + count], begin)
    pairs_at = abi.P_HEADER + len(table)
    size = pairs_at + len(pairs)
    header = [len(system.names), n, len(strips), pairs_at, size, size + n]
    pattern: IntArray = np.array([*header, *table, *pairs, *first], dtype=np.int64)
    return np.array(equations, dtype=np.int64), pattern


class Integration:
    """A run: the tables, the workspace and the history of an integrator at one time.  Threads must not share it."""

    def __init__(self, equations: Equations, q: FloatArray, v: FloatArray, samples: int) -> None:
        from cardan._jit import address_of

        e, p = equations, equations.problem
        self.equations = e
        rows, _, entries, coordinates, evaluation = p.sizes
        if e.forces is not None:
            evaluation = max(evaluation, e.forces.work)
        n6, n, driven = WIDTH * len(e.system.names), e.equations.size, e.drivers.size // 2
        self.n6, self.n, self.coordinates = n6, n, coordinates
        matrix = _dual.matrix_size(e.pattern)
        sizes = (evaluation, 2 * rows, entries, matrix, n6 + n, n6 + n, n6, coordinates, coordinates, n6, n6, n)
        offsets = [0, *accumulate((*sizes, WEIGHTS, (2 * MOST_STAGES + 1) * n6))]
        self.floats = p.floats.copy()
        self.drive: FloatArray = np.zeros(max(1, 3 * driven))
        self.times: FloatArray = np.zeros(1)
        self.extra: FloatArray = np.zeros(n6)
        arrays = (p.ints, self.floats)
        table = [0] * abi.PIECES + offsets
        table[abi.EVALUATOR] = p.evaluate
        table[abi.ALGEBRA] = _dual.ALGEBRA
        places = (abi.INTS, abi.FLOATS, abi.PATTERN, abi.MASSES, abi.DRIVERS, abi.DRIVE, abi.TIMES, abi.EXTRA)
        arrays = (p.ints, self.floats, e.pattern, e.values, e.drivers, self.drive, self.times, self.extra)
        for place, array in zip(places, arrays, strict=True):
            table[place] = address_of(array)
        if e.forces is not None:
            table[abi.LOADS], table[abi.ASKS] = e.forces.address, e.forces.asks
            table[abi.LOAD_INTS], table[abi.LOAD_FLOATS] = address_of(e.forces.ints), address_of(e.forces.floats)
        table[abi.BODIES], table[abi.COORDINATES], table[abi.ROWS] = len(e.system.names), coordinates, rows
        table[abi.EQUATIONS], table[abi.DRIVEN] = n, driven
        self.job: IntArray = np.array(table, dtype=np.int64)
        self.control: FloatArray = np.zeros(abi.CONTROL)
        self.control[abi.LENGTH] = e.system.judged_length
        self.work: FloatArray = np.empty(offsets[-1])
        self.history: FloatArray = np.zeros(abi.HISTORY * (n6 + 1) + 64)
        self.q, self.v = q, v
