"""Whole turns before a solve: set the number of turns of angles that have drivers, couplings to them, or limits.

A pose determines an angle only up to whole turns, θ = θ₀ + 2πn.  A solver rotates a body by about one radian per
iteration; to reach the angle of a motor after a thousand seconds would take thousands of iterations, although the pose
may hardly change.  So n of a driven angle is computed from its driver,  n = round(−f/Δf)  with the change Δf of its
residual f per turn.  Then n is computed for the angles coupled to it, one after the other.  An angle beyond its
limits gets the turns with which it is between them, or else the least beyond them: the body is moved no more than
necessary.

This is done only if it determines every angle that an equation reads.  In an epicyclic train the wheels rotate about a
moving carrier, and a slide can prevent a nut from rotating: there the number of turns follows from other constraints,
and the turns must be made.  Then the drivers are moved to their values in stages, each of them an assembly.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.lazy import LazyModule
from cardan.solvers.tables import Structure
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_whole_turns = LazyModule("cardan.analysis._whole_turns")

STAGE: Final = 1.0  # [rad] a solver needs about one step for it
MOST_STAGES: Final = 20_000  # about 3000 turns, computed in about a second


class Reader(NamedTuple):
    """A row that reads angles: their numbers, and whether it belongs to a driver or a limit."""

    row: int
    angles: tuple[int, ...]
    is_driver: bool
    is_limit: bool


Level = dict[int, Reader]  # maps the number of an angle to the row that determines its turns


def table(system: System) -> IntArray:
    """The rows that determine turns, in the form that the kernels read; no levels if there are none.  Cached."""
    return system.cached("turns to count", lambda: _table(_levels(_readers(system))))


def _table(levels: list[Level]) -> IntArray:
    out = [len(levels)]
    for level in levels:
        out.append(len(level))
        for angle, reader in level.items():
            out += (angle, reader.row, int(reader.is_limit))
    return np.array(out, dtype=np.int64)


def with_whole_turns(system: System, q: FloatArray, length: float, time: float) -> FloatArray:
    """q with the whole turns that drivers, couplings to them, and limits require; its poses are unchanged.

    length [m]: unit of length.  time [s]: of the drivers.
    """
    if not system.counted_angles:
        return q
    turn_rows = table(system)
    if not turn_rows[0]:
        return q
    p = formulations.problem(system, "manifold", length, time)
    first, moved = layout.POSE * len(system.names) + len(system.variable_names), q.copy()
    spare, before = np.empty_like(q), np.empty(len(system.counted_angles))
    rows, work = np.empty(p.rows), np.empty(int(Structure(p.structure).work))
    _whole_turns.update_turns(p.table(), turn_rows, first, moved, spare, before, rows, work)
    return moved


def stages(system: System, q: FloatArray, length: float, time: float) -> list[list[tuple[int, float]]]:
    """Stages of the drivers of angles: for each stage, (position in the floats, value) of every driver.

    Empty if no angle is more than half a turn away from its driver, or if there are too many turns.
    """
    drivers = _drivers(system)
    if not drivers:
        return []
    f = formulations.problem(system, "manifold", length, time).residual(q)
    error = _largest_error(drivers, f)
    if not math.pi < error <= MOST_STAGES * STAGE:
        return []
    places = {signal.name: place for place, signal in system.signals}
    names = {row.start: row.constraint for row in system.rows}
    floats = system.floats_at(time)
    count = math.ceil(error / STAGE)
    targets = [(places[names[reader.row]], float(f[reader.row])) for reader in drivers]
    return [[(place, float(floats[place]) + f_i * (1.0 - k / count)) for place, f_i in targets] for k in range(count)]


def has_too_many_turns(system: System, q: FloatArray, length: float, time: float) -> bool:
    """Whether the drivers require more turns from q than stages can make."""
    f = formulations.problem(system, "manifold", length, time).residual(q)
    return _largest_error(_drivers(system), f) > MOST_STAGES * STAGE


def driven_rows(system: System) -> list[int]:
    """Rows of the drivers of angles."""
    return [reader.row for reader in _drivers(system)]


def _drivers(system: System) -> list[Reader]:
    def find() -> list[Reader]:
        return [reader for reader in _readers(system) if reader.is_driver]

    return system.cached("drivers of angles", find)


def _largest_error(drivers: list[Reader], f: FloatArray) -> float:
    """Largest deviation of a driven angle from the value of its driver [rad]."""
    return max((abs(float(f[reader.row])) for reader in drivers), default=0.0)


def _levels(readers: list[Reader]) -> list[Level]:
    """Angles in the order in which their turns are determined: driven ones, those coupled to them, …, limited ones.

    Empty if an equation reads an angle that no driver determines.
    """
    levels: list[Level] = []
    known: set[int] = set()
    level = {reader.angles[0]: reader for reader in readers if reader.is_driver}
    while level:
        levels.append(level)
        known |= level.keys()
        level = {}
        for reader in readers:
            left = [angle for angle in reader.angles if angle not in known]
            if len(left) == 1 < len(reader.angles) and not reader.is_limit:
                level.setdefault(left[0], reader)
    if any(angle not in known for reader in readers if not reader.is_limit for angle in reader.angles):
        return []
    limited = {reader.angles[0]: reader for reader in readers if reader.is_limit and reader.angles[0] not in known}
    return [*levels, limited] if limited else levels


def _readers(system: System) -> list[Reader]:
    """Rows that read counted angles."""
    if not system.counted_angles:
        return []
    drivers = {signal.name for _, signal in system.signals}
    ints = system.ints.tolist()
    found = []
    for at, (name, primitive, start) in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        if primitive.is_contact:
            continue
        angles = {one.source: None for one in reading.features(ints, at) if one.kind == layout.ANGLE}
        if angles:
            sorts = name in drivers, not primitive.equations
            found += [Reader(start + i, tuple(angles), *sorts) for i in range(primitive.rows)]
    return found
