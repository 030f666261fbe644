"""A part of a system that is a conflict by itself: some bodies, and all constraints between them and the ground.

If no pose satisfies a part, none satisfies the whole.  A large mechanism with a small contradiction has many local
minima, so its attempts do not agree; those of the part do, and each takes little time.  The part also names the cause.

The parts are those in which a contradiction can be: bodies on a closed loop of constraints.  For each pair of connected
bodies the shortest loop through both is taken, with the ground as one of the bodies.  The parts are examined from small
to large, then pairs of loops that share two bodies.  A loop can always be opened elsewhere, so other parts are not
needed to see that a chain, or two chains, do not close.

The search does not depend on a start and is made once for each system.  It is bounded by numbers of parts and of
iterations, not by time, so that its result is always the same.
"""

from __future__ import annotations

import time as clock
from collections import Counter, deque
from itertools import combinations
from typing import Final

from cardan.analysis import attempts
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.starts import start_angles, start_coordinates
from cardan.coordinates import formulations
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.system import System

GROUND: Final = -1
MOST_PAIRS: Final = 600  # of connected bodies; larger systems are not divided
MOST_PARTS: Final = 40  # of single loops, and the same number of pairs of loops
MOST_BODIES: Final = 40  # of a part
MOST_WORK: Final = 1e7  # iterations · unknowns, for all parts together

Bodies = frozenset[int]


def contradictory_part(system: System, tolerance: float, time: float, deadline: float | None = None) -> tuple[str, ...]:
    """Names of the constraints of the smallest part found that is a conflict by itself; () if none is found.

    time [s]: of the drivers.  deadline: on the clock of time.perf_counter; what is found after it is not kept.
    """
    key = "contradictory_part", tolerance, time
    found: tuple[str, ...] | None = system._cache.get(key)
    if found is None:
        found = _search(system, attempts.Task(AssemblyOptions(tolerance=tolerance), deadline, time, is_part=True))
        if deadline is None or clock.perf_counter() < deadline:
            system._cache[key] = found
    return found


def _search(system: System, task: attempts.Task) -> tuple[str, ...]:
    if system.variable_names or system.index.contacts:
        return ()
    bodies = _bodies_of_relations(system)
    work = 0.0
    joined = {(own, row.constraint) for own, row in zip(bodies, system.rows, strict=True) if len(own) == 2}
    twice = {own for own, count in Counter([own for own, _ in joined]).items() if count > 1}
    for part in _parts(bodies, twice, len(system.names)):
        chosen = [k for k, own in enumerate(bodies) if own - {GROUND} <= part]
        made = system.part(sorted(part), chosen, angles_within(system, part))
        for piece in made.pieces:
            own = piece.system
            q = formulations.to_reference(own, start_coordinates(own, None), start_angles(own, None))
            end = attempts.solve(own, q, task)
            if end.conflict:
                return tuple(dict.fromkeys([row.constraint for row in own.rows]))
            work += end.iterations * 6.0 * len(own.names)
        if work > MOST_WORK or task.is_late():
            return ()
    return ()


def _bodies_of_relations(system: System) -> list[Bodies]:
    """The bodies of every relation, with GROUND where it has a feature on the ground."""
    ints = system.ints.tolist()
    found = []
    for at in system.starts[:-1].tolist():
        features = reading.features(ints, at)
        is_on_ground = any([one.kind <= layout.ORIENTATION and one.body < 0 for one in features])
        found.append(frozenset(reading.bodies(ints, at)) | ({GROUND} if is_on_ground else set()))
    return found


def angles_within(system: System, part: Bodies) -> list[int]:
    """Numbers of the counted angles between bodies of a part, or one of them and the ground."""
    ends = reading.angle_records(system)[["a", "b"]].tolist()
    return [k for k, pair in enumerate(ends) if {body for body in pair if body >= 0} <= part]


def _parts(relations: list[Bodies], twice: set[Bodies], count: int) -> list[Bodies]:
    """Bodies of the parts to be examined, without the ground: single loops, then pairs of loops; small ones first.

    relations: bodies of each.  twice: pairs of bodies with several constraints, which are a loop.
    """
    neighbours: dict[int, set[int]] = {}
    for own in relations:
        for a, b in combinations(sorted(own), 2):
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
    pairs = [(a, b) for a in sorted(neighbours) for b in sorted(neighbours[a]) if a < b]
    if len(pairs) > MOST_PAIRS:
        return []
    loops = twice | {loop for pair in pairs if (loop := _shortest_loop(neighbours, *pair))}
    single = _ordered(loops, count)[:MOST_PARTS]
    double = {a | b for a, b in combinations([loop for loop in loops if len(loop) > 2], 2) if len(a & b) >= 2}
    parts = [*single, *_ordered(double - loops, count)[:MOST_PARTS]]
    return list(dict.fromkeys([part - {GROUND} for part in parts]))  # the ground is in every part


def _shortest_loop(neighbours: dict[int, set[int]], a: int, b: int) -> Bodies | None:
    """The bodies of the shortest path from a to b that does not use the pair itself, with both; None: there is none."""
    before = {a: a}
    todo = deque([a])
    while todo:
        here = todo.popleft()
        for other in sorted(neighbours[here]):
            if other in before or (here, other) == (a, b):
                continue
            before[other] = here
            if other == b:
                found = [b]
                while found[-1] != a:
                    found.append(before[found[-1]])
                return frozenset(found)
            todo.append(other)
    return None


def _ordered(parts: set[Bodies], count: int) -> list[Bodies]:
    """Small parts first, and in the order of their bodies; without those that are too large or the whole."""
    fitting = [part for part in parts if len(part - {GROUND}) <= min(MOST_BODIES, count - 1)]
    return sorted(fitting, key=lambda part: (len(part), sorted(part)))
