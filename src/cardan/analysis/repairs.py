"""Changes of one number or axis with which a mechanism that is a conflict can be assembled: advice, never an edit.

The changes are those that undo a usual mistake:

- a frame of a joint turned by 180° about one of its axes, so that the other two are reversed;
- a length divided or multiplied by 1000, if that brings it nearer to the median of all lengths: the place of a joint on
  a body, one coordinate of it, or a length among the options of a constraint; or a parameter;
- places exchanged: those of one joint on its two bodies, or those of two joints on one body.

A change is tried on a copy of the packed system; the mechanism is not touched.  Features of a joint, of its counted
angles, and of the drivers, limits and couplings of its coordinates move together: p → o' + M (p − o), v → M v, where o
and o' are the old and the new place.  A change is a repair only if the verdict on the whole mechanism is met.

The search is bounded by numbers, not by time, so that its result is always the same: the joints of a contradictory part
(:mod:`cardan.analysis.parts`) or of the piece that is not assembled, MOST_JOINTS of them at most, MOST_TRIALS changes,
RESTARTS restarts for each, and MOST_WORK iterations · unknowns in total.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.analysis import attempts
from cardan.analysis.assemble import assemble
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.parts import angles_within, contradictory_part
from cardan.analysis.repair_changes import changed, changes
from cardan.analysis.restarts import Restarts
from cardan.analysis.result import Status
from cardan.analysis.starts import start_angles
from cardan.calls import explains
from cardan.coordinates import formulations
from cardan.system import reading
from cardan.system.drawing import Drawing
from cardan.system.state import State
from cardan.system.system import System

MOST_JOINTS: Final = 40
MOST_TRIALS: Final = 600
MOST_WORK: Final = 4e6  # iterations · unknowns, of all trials together
RESTARTS: Final = 3  # of a trial


@explains()
class Repair(NamedTuple):
    """A change with which a mechanism can be assembled.

    ``kind``: "reverse axis", "scale length" or "exchange places".  ``names``: the joints, constraint or parameter that
    it changes.  ``text``: what to change, in words.  ``size`` [m]: by how much a place or length changes at most, 0 for
    an axis.  ``apart``: how far the drawn poses are from the assembled ones, as a root mean square over the bodies of
    displacements in units of the extent and of chords of rotations.
    """

    kind: str
    names: tuple[str, ...]
    text: str
    size: float
    apart: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self._asdict(), "names": list(self.names)}


def find_repairs(
    drawing: Drawing, system: System, unmet: list[str], state: State, start: State, tolerance: float
) -> list[Repair]:
    """The changes with which the mechanism can be assembled, the smallest first.

    unmet: names of the constraints that are not met in the state, the largest residual first.
    """
    if system.variable_names or system.index.contacts:
        return []
    wrong = [piece for piece in system.pieces if any(row.constraint in unmet for row in piece.system.rows)]
    if len(wrong) != 1:  # one change does not repair two pieces
        return []
    whole = wrong[0].system
    part = contradictory_part(whole, tolerance, state.time)
    names = set(part or [row.constraint for row in whole.rows])
    known = drawing.contents.joints
    order = dict.fromkeys([name for name in (*unmet, *[row.constraint for row in whole.rows]) if name in known])
    joints = [known[name] for name in order if name in names][:MOST_JOINTS]
    others = [known[name] for name in order if name not in names][:MOST_JOINTS]
    trials = _Trials(system, part, start, state, tolerance)
    found = []
    for number, change in enumerate(changes(drawing, joints, others)):
        if number == MOST_TRIALS or trials.work > MOST_WORK:
            break
        made = changed(drawing, system, change)
        apart = None if made is None else trials.closes(made)
        if apart is not None:
            found.append(Repair(change.kind, change.names, change.text, change.size, apart))
    return sorted(found, key=lambda repair: (repair.size, repair.apart))


class _Trials:
    """Attempts to assemble a changed system: first the part that is contradictory, then the whole."""

    def __init__(
        self, system: System, part: tuple[str, ...], start: State, compromise: State, tolerance: float
    ) -> None:
        self._starts = (start, compromise)
        self._time = compromise.time
        self._task = attempts.Task(
            AssemblyOptions(tolerance=tolerance, restarts=RESTARTS), None, compromise.time, is_part=True
        )
        self._chosen = [k for k, row in enumerate(system.rows) if row.constraint in part]
        ints = system.ints.tolist()
        starts = system.starts[self._chosen].tolist()
        self._bodies = sorted({body for at in starts for body in reading.bodies(ints, at)})
        self.work = 0.0

    def closes(self, made: System) -> float | None:
        """How far the assembled poses are from the start; None if a pose is not found."""
        if self._chosen:
            part = made.part(self._bodies, self._chosen, angles_within(made, frozenset(self._bodies)))
            if not all(self._solves(piece.system) for piece in part.pieces):
                return None
        for start in self._starts:
            result = assemble(made, start, self._time, self._task.options)
            self.work += result.iterations * 6.0 * len(made.names)
            if result.status is Status.CONFLICT:  # proved: there are too few attempts for evidence
                return None
            if result.ok:
                q, first = (formulations.to_reference(made, one.coordinates) for one in (result.state, self._starts[0]))
                draws = Restarts(made, q, made.judged_length, 0)
                return float(np.sqrt(draws.apart(q, first) / len(made.names)))
        return None

    def _solves(self, part: System) -> bool:
        for start in self._starts:
            own = start.coordinates[[start.names.index(name) for name in part.names]]
            end = attempts.solve(part, formulations.to_reference(part, own, start_angles(part, None)), self._task)
            self.work += end.iterations * 6.0 * len(part.names)
            if attempts.is_met(part, end.q, self._task):
                return True
            if end.conflict:  # proved
                return False
        return False
