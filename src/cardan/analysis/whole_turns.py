"""Whole turns before a solve: those that drivers, what is coupled to them, and limits ask for are counted at once.

A pose tells an angle but for whole turns, θ = θ₀ + 2πn.  A solver turns a body by a radian at a time, which takes it
thousands of steps to where a motor is after a thousand seconds, in a pose that it may have had all along.  So the n of
a driven angle is taken from its driver,  n = round(−f/Δf)  with the change Δf of its residual f in one turn; those of
angles that are coupled to it follow, one after the other; and an angle that is turns away from its limits is brought
within one turn of them.

That is done only where every angle that an equation reads gets its count so.  The wheels of an epicyclic train turn on
a carrier that turns, a nut is kept from turning by a slide: how often they do follows from the parts in between, and
only making the turns tells.  There the drivers are led to their values in stages, each an assembly by itself.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.lazy import LazyModule
from cardan.solvers import abi
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_whole_turns = LazyModule("cardan.analysis._whole_turns")

STAGE: Final = 1.0  # rad: a solver makes it in one step
MOST_STAGES: Final = 20_000  # some three thousand turns, and a second


class Reader(NamedTuple):
    """A row that reads angles: their numbers, and whether it is a driver's or a limit's."""

    row: int
    angles: tuple[int, ...]
    is_driver: bool
    is_limit: bool


Level = dict[int, Reader]  # by the number of an angle, the row that says how often it has turned


def table(system: System) -> IntArray:
    """Which rows ask for turns, as the kernels read it; empty levels where none does.  Made once."""
    found: IntArray = system.cached("turns to count", lambda: _table(_levels(_readers(system))))
    return found


def _table(levels: list[Level]) -> IntArray:
    out = [len(levels)]
    for level in levels:
        out.append(len(level))
        for angle, reader in level.items():
            out += (angle, reader.row, int(reader.is_limit))
    return np.array(out, dtype=np.int64)


def with_whole_turns(system: System, q: FloatArray, length: float, time: float) -> FloatArray:
    """q with the whole turns that drivers, what is coupled to them, and limits ask for; its poses as they are.

    length [m]: that lengths are measured in.  time [s]: of the drivers.
    """
    if not system.counted_angles:
        return q
    asking = table(system)
    if not asking[0]:
        return q
    p = formulations.problem(system, "manifold", length, time)
    first, moved = layout.POSE * len(system.names), q.copy()
    spare, before = np.empty_like(q), np.empty(len(system.counted_angles))
    rows, work = np.empty(p.rows), np.empty(int(p.structure[abi.WORK]))
    _whole_turns.update_turns(p.table(), asking, first, moved, spare, before, rows, work)
    return moved


def stages(system: System, q: FloatArray, length: float, time: float) -> list[list[tuple[int, float]]]:
    """Values that lead driven angles to where they belong, one list after the other, each with its place in the floats.

    Empty where none is more than half a turn away, and where there are too many turns to make.
    """
    drivers = _drivers(system)
    if not drivers:
        return []
    f = formulations.problem(system, "manifold", length, time).residual(q)
    short = _short(drivers, f)
    if not math.pi < short <= MOST_STAGES * STAGE:
        return []
    places = {signal.name: place for place, signal in system.signals}
    names = {row.start: row.constraint for row in system.rows}
    floats = system.floats_at(time)
    count = math.ceil(short / STAGE)
    targets = [(places[names[reader.row]], float(f[reader.row])) for reader in drivers]
    return [[(place, float(floats[place]) + miss * (1.0 - k / count)) for place, miss in targets] for k in range(count)]


def has_too_many_turns(system: System, q: FloatArray, length: float, time: float) -> bool:
    """Whether drivers ask for more turns from q than are made."""
    f = formulations.problem(system, "manifold", length, time).residual(q)
    return _short(_drivers(system), f) > MOST_STAGES * STAGE


def driven_rows(system: System) -> list[int]:
    """Rows of the drivers of angles."""
    return [reader.row for reader in _drivers(system)]


def _drivers(system: System) -> list[Reader]:
    return [reader for reader in _readers(system) if reader.is_driver]


def _short(drivers: list[Reader], f: FloatArray) -> float:
    """How far the angle that is farthest from what its driver asks for is from it [rad]."""
    return max((abs(float(f[reader.row])) for reader in drivers), default=0.0)


def _levels(readers: list[Reader]) -> list[Level]:
    """Angles in the order in which their turns follow: driven ones, those coupled to them, …, limited ones.

    None where an equation reads an angle that no driver settles.
    """
    levels: list[Level] = []
    settled: set[int] = set()
    level = {reader.angles[0]: reader for reader in readers if reader.is_driver}
    while level:
        levels.append(level)
        settled |= level.keys()
        level = {}
        for reader in readers:
            left = [angle for angle in reader.angles if angle not in settled]
            if len(left) == 1 < len(reader.angles) and not reader.is_limit:
                level.setdefault(left[0], reader)
    if any(angle not in settled for reader in readers if not reader.is_limit for angle in reader.angles):
        return []
    limited = {reader.angles[0]: reader for reader in readers if reader.is_limit and reader.angles[0] not in settled}
    return [*levels, limited] if limited else levels


def _readers(system: System) -> list[Reader]:
    """Rows that read counted angles."""
    if not system.counted_angles:
        return []
    drivers = {signal.name for _, signal in system.signals}
    found = []
    for at, (name, primitive, start) in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        record = system.ints[at : system.ints[at + layout.NEXT]].tolist()
        features = record[layout.RECORD + record[layout.SLOTS] :]
        places = range(0, len(features), layout.FEATURE)
        angles = {features[k + layout.SOURCE]: None for k in places if features[k + layout.KIND] == layout.ANGLE}
        if angles:
            sorts = name in drivers, not primitive.equations
            found += [Reader(start + i, tuple(angles), *sorts) for i in range(primitive.rows)]
    return found
