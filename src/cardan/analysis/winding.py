"""Whole turns before a solve: those that drivers, couplings and limits ask for are counted at once.

A pose tells an angle but for whole turns, θ = θ₀ + 2πn.  A solver turns a body by some radians at a time, which takes
it a thousand steps to where a motor is after a thousand seconds, in a pose that it may have had all along.  So the n of
a driven angle is taken from its driver,  n = round(−f/Δf)  with the change Δf of its residual f in one turn; those of
angles that are coupled to it follow, one after the other; and an angle that is turns away from its limits is brought
within one turn of them.  Angles that nothing drives keep their count.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from cardan.solvers.problem import Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import System

TURN: Final = 2.0 * math.pi
MET: Final = 1e-6  # in the unit of a row, lengths in L: a residual below it asks for no turn


class Reader(NamedTuple):
    """A row that reads angles: their numbers, and whether it is a driver's or a limit's."""

    row: int
    turns: tuple[int, ...]
    is_driver: bool
    is_limit: bool


def wound(system: System, problem: Problem, q: FloatArray) -> FloatArray:
    """q with the whole turns that drivers, what is coupled to them, and limits ask for; its poses as they are."""
    readers: list[Reader] = system.cached("readers", lambda: _readers(system))
    if not readers:
        return q
    scales = problem.scales
    f = problem.residual(q)
    if all(abs(f[reader.row]) * scales[reader.row] <= MET for reader in readers):
        return q
    q = q.copy()
    settled: set[int] = set()
    for limits in (False, True):
        first = [reader for reader in readers if (reader.is_limit if limits else reader.is_driver)]
        asked = {reader.turns[0]: reader for reader in first if reader.turns[0] not in settled}
        while asked:
            _wind(system, problem, q, asked)
            settled |= asked.keys()
            asked = {}
            for reader in readers:
                left = [turn for turn in reader.turns if turn not in settled]
                if len(left) == 1 < len(reader.turns):
                    asked.setdefault(left[0], reader)
    return q


def _wind(system: System, problem: Problem, q: FloatArray, asked: dict[int, Reader]) -> None:
    """q ← with those turns wound as one row each asks for; a row that would be none the nearer asks in vain."""
    first = layout.POSE * len(system.names)
    places = [first + turn for turn in asked]
    rows = [reader.row for reader in asked.values()]
    f = problem.residual(q)[rows]
    moved = q.copy()
    moved[places] += TURN
    slopes = problem.residual(moved)[rows] - f
    for k, reader in enumerate(asked.values()):
        if reader.is_limit:
            moved[places[k]] = q[places[k]] - TURN * math.trunc(f[k] / TURN)
        else:
            moved[places[k]] = q[places[k]] + TURN * round(-f[k] / slopes[k]) if slopes[k] else q[places[k]]
    nearer = np.abs(problem.residual(moved)[rows]) < np.abs(f)
    q[places] = np.where(nearer, moved[places], q[places])


def _readers(system: System) -> list[Reader]:
    drivers = {signal.name for _, signal in system.signals}
    found = []
    for at, (name, primitive, start) in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        record = system.ints[at : system.ints[at + layout.NEXT]].tolist()
        features = record[layout.RECORD + record[layout.SLOTS] :]
        places = range(0, len(features), layout.FEATURE)
        turns = {features[k + layout.SOURCE]: None for k in places if features[k + layout.KIND] == layout.TURN}
        if turns:
            sorts = name in drivers, not primitive.equations
            found += [Reader(start + i, tuple(turns), *sorts) for i in range(primitive.rows)]
    return found
