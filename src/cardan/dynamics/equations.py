"""The equations of motion of a packed system as tables for the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import abi
from cardan.lazy import LazyModule
from cardan.solvers import linear
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_dual = LazyModule("cardan.dynamics._dual")

WIDTH = 6


class Equations:
    """Masses, gravity, constraints and linear algebra of a system whose reference frames are the principal frames.

    ``masses``, shape (bodies, 6): the diagonal of M [kg, kg m²].  ``gravity`` [m/s²].  Threads may share it.
    """

    def __init__(self, system: System, masses: FloatArray, gravity: Any) -> None:
        self.system = system
        self.problem = formulations.motion_problem(system, "manifold")
        self.equations, self.pattern = _dense_pattern(system, self.problem.structure)
        roots = np.sqrt(masses.ravel())
        self.masses = masses
        self.gravity: FloatArray = np.array(gravity, dtype=np.float64)
        self.coordinates = self.problem.sizes[3]
        self.values = np.concatenate([masses.ravel(), roots, 1.0 / roots, self.gravity])
        rows = {row.constraint: row.start for row in system.rows}
        number = {int(row): k for k, row in enumerate(self.equations)}
        places = [(position, number[rows[signal.name]]) for position, signal in system.signals]
        self.drivers: IntArray = np.array(places, dtype=np.int64).reshape(-1)
        self.algebra: int = _dual.ALGEBRA
        self.matrix: int = _dual.matrix_size(self.pattern)  # floats of its factor

    def __reduce__(self) -> tuple[Any, ...]:
        return Equations, (self.system, self.masses, self.gravity)

    def floats_at(self, time: float) -> FloatArray:
        """The evaluator's floats with the values of all drivers at a time."""
        return self.system.floats_at(time)


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
