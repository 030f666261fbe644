"""Driven motions of parts that must not overlap: they end where two parts meet.

The drivers determine the motion, whatever is in the way.  So it is first computed without collisions, from a pose in
which nothing overlaps, and :mod:`cardan.analysis.clashes` finds when parts would overlap, also between the times and
within steps.  The motion is then followed again to the first of these times, where it ends.  If the search is stopped,
the states before the first undecided time are kept.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable
from typing import Any

from cardan.analysis.apart import LEAST_SECONDS, assemble_apart, colliding
from cardan.analysis.clashes import clashes
from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.move import _check_times, move
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.starts import Start
from cardan.system.drawing import Drawing


def move_apart(
    drawing: Drawing,
    mechanism: Any,
    times: Iterable[float],
    start: Start,
    *,
    tolerance: float,
    max_seconds: float | None,
    progress: Callable[[float], None] | None,
) -> Motion:
    """See :meth:`cardan.Mechanism.move`, of a mechanism with collisions."""
    system = drawing.system
    wanted = _check_times(times).tolist()
    began = clock.perf_counter()
    options = AssemblyOptions(tolerance=tolerance, max_seconds=max_seconds)

    def seconds_left() -> float | None:
        return None if max_seconds is None else max(LEAST_SECONDS, max_seconds - (clock.perf_counter() - began))

    first = assemble_apart(drawing, (), start, wanted[0], options)
    if not first.ok:
        return Motion(system, [], MotionStatus.NOT_ASSEMBLED, f"at t = {wanted[0]:g} s: {first.text()}")
    found = move(system, wanted, first.state, tolerance=tolerance, max_seconds=seconds_left(), progress=progress)
    if len(found.states) < 2 and found.state in (None, *found.states):
        return found
    met = _first_meeting(drawing, mechanism, found, seconds_left)
    if met is None:
        return found
    time, status, reason = met
    sign = 1.0 if wanted[-1] >= wanted[0] else -1.0
    kept = [t for t in wanted if sign * t < sign * time]
    if status in (MotionStatus.TIME_LIMIT, MotionStatus.INTERRUPTED):
        compared = found.states[: max(len(kept), 1)]
        told = (found.steps, found._rotation[: len(compared) - 1], found.undriven, found._notes)
        return Motion(system, list(compared), status, reason, None, *told)
    again = move(system, [*kept, time], first.state, tolerance=tolerance, max_seconds=seconds_left(), progress=None)
    if not again.ok:
        return again
    *states, last = again.states
    rest = (last, again.steps, again._rotation[: max(len(states) - 1, 0)], again.undriven, again._notes)
    return Motion(system, states or [last], status, reason, *rest)


def _first_meeting(
    drawing: Drawing, mechanism: Any, motion: Motion, seconds_left: Callable[[], float | None]
) -> tuple[float, MotionStatus, str] | None:
    """When, how and why a motion must end before its last time; None if nothing meets."""
    states = list(motion.states)
    if motion.state is not None and motion.state.time != states[-1].time:
        states.append(motion.state)
    whole = Motion(motion._system, states, MotionStatus.DONE, "")
    whole._source = mechanism, drawing.contents.edits
    sign = 1.0 if states[-1].time >= states[0].time else -1.0
    parts = colliding(drawing.contents)
    by_margin: dict[float, list[tuple[str, str]]] = {}
    for pair in parts.every_pair():
        margin = parts.moving_margin(*pair)
        if margin is not None:
            by_margin.setdefault(margin, []).append(pair)
    ends: list[tuple[float, MotionStatus, str]] = []
    for margin, pairs in by_margin.items():
        found = clashes(whole, pairs, margin, mechanism, seconds_left(), None)
        undecided = MotionStatus.LOST if found.status is MotionStatus.DONE else found.status
        for met in found.found:
            at = met.start if sign > 0.0 else met.end
            text = f"at t = {at:.9g} s {met.a!r} and {met.b!r} meet, and a motion ends there"
            ends.append((at, MotionStatus.COLLISION, text))
        for open_ in found.undecided:
            at = open_.start if sign > 0.0 else open_.end
            text = f"at t = {at:.9g} s it is not known whether {open_.a!r} and {open_.b!r} meet: {open_.reason}"
            ends.append((at, undecided, text))
    return min(ends, key=lambda end: sign * end[0], default=None)
