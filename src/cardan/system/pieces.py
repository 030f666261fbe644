"""Pieces: groups of bodies that constraints connect without the ground, each a system of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cardan.system import reading
from cardan.system.variables import Variables

if TYPE_CHECKING:
    from cardan.system.state import FloatArray
    from cardan.system.system import IntArray, System


class Piece:
    """A connected part of a system, and where its bodies, counted angles and rows are in the whole.

    What follows the poses in q, the variables and the counted angles, is called ``angles`` here.

    ``system``: of the piece; the whole itself where that is connected (``is_whole``), and then nothing is copied:
    ``take…`` returns its argument.  A part does not refer to the whole, which keeps it.
    """

    __slots__ = ("_angles", "_bodies", "_relations", "is_whole", "system")

    def __init__(
        self,
        whole: System,
        bodies: list[int] | None = None,
        relations: list[int] | None = None,
        angles: list[int] | None = None,
        variables: list[int] | None = None,
    ) -> None:
        self._bodies, self._relations, self._angles = bodies, relations, angles
        self.is_whole = bodies is None
        if bodies is None or relations is None or angles is None:
            self.system = whole
            return
        names = whole.variable_names
        chosen = variables or []
        free = tuple([names[k] for k in chosen if k < len(whole.variables.free)])
        given = tuple([names[k] for k in chosen if k >= len(whole.variables.free)])
        self._angles = [*chosen, *[len(names) + k for k in angles]]
        self.system = whole.part(bodies, relations, angles, Variables(free, given))

    @property
    def bodies(self) -> IntArray:
        """Numbers of its bodies in the whole."""
        return _numbers(self._bodies, len(self.system.names))

    @property
    def angles(self) -> IntArray:
        """Numbers of its variables and counted angles in the whole."""
        return _numbers(self._angles, len(self.system.variable_names) + len(self.system.counted_angles))

    def rows_in(self, whole: System) -> IntArray:
        """Numbers of its residuals in the whole."""
        chosen = _numbers(self._relations, len(self.system.rows))
        every = whole.rows
        found = [np.arange(row.start, row.start + row.primitive.rows) for row in [every[k] for k in chosen]]
        return np.concatenate([np.empty(0, dtype=np.int64), *found])

    def take(self, coordinates: FloatArray) -> FloatArray:
        """r and p of its bodies, shape (…, bodies, 7), from those of the whole."""
        return coordinates if self.is_whole else coordinates[..., self.bodies, :]

    def put(self, part: FloatArray, coordinates: FloatArray) -> None:
        """Write r and p of its bodies to their places among those of the whole."""
        coordinates[..., self.bodies, :] = part

    def take_angles(self, angles: FloatArray) -> FloatArray:
        """Its counted angles [rad], shape (…, angles), from those of the whole."""
        return angles if self.is_whole else angles[..., self.angles]

    def put_angles(self, part: FloatArray, angles: FloatArray) -> None:
        """Write its counted angles to their places among those of the whole."""
        angles[..., self.angles] = part

    def __repr__(self) -> str:
        return f"<Piece of {len(self.system.names)} bodies>"


def _numbers(chosen: list[int] | None, count: int) -> IntArray:
    return np.arange(count, dtype=np.int64) if chosen is None else np.array(chosen, dtype=np.int64)


def split(whole: System) -> tuple[Piece, ...]:
    """The pieces of a system, in the order of their first bodies.  Bodies that nothing constrains are in none."""
    if whole.in_one_piece:
        return (Piece(whole),)
    leader = whole.leader.tolist()
    bodies: dict[int, list[int]] = {}
    for body, first in enumerate(leader):
        if first >= 0:
            bodies.setdefault(first, []).append(body)
    relations: dict[int, list[int]] = {key: [] for key in bodies}
    angles: dict[int, list[int]] = {key: [] for key in bodies}
    ints = whole.ints.tolist()
    free, given = whole.variables
    variables: dict[int, list[int]] = {key: [len(free) + k for k in range(len(given))] for key in bodies}
    for number, first in enumerate(whole.variable_leader):
        if first in variables:  # else no constraint on a body reads it
            variables[first].append(number)
    for number, at in enumerate(whole.starts[:-1].tolist()):
        first = -1
        if movable := reading.bodies(ints, at):
            first = leader[movable[0]]
        elif (record := reading.record(ints, at)).wide:
            first = whole.variable_leader[ints[record.links]]
        if first in relations:
            relations[first].append(number)
    for number, pair in enumerate(reading.angle_records(whole)[["a", "b"]].tolist()):
        ends = {leader[body] for body in pair if body >= 0}
        if len(ends) == 1 and (first := ends.pop()) >= 0:  # else between pieces, and no relation reads it
            angles[first].append(number)
    return tuple([Piece(whole, bodies[key], relations[key], angles[key], sorted(variables[key])) for key in bodies])
