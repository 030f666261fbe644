"""What joints give to packing: relations (a primitive on its features), and the motion that a joint allows.

Packing keeps :class:`Record` and :class:`Edge`, which are plain values and name bodies by their serial numbers.  So a
System can be pickled, divided and packed again without the mechanism that it was made from.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cardan.constraints.registry import Primitive, find
from cardan.constraints.signal import GivenRate, Signal
from cardan.system import layout
from cardan.system.check import Triple
from cardan.system.parts import Body, CountedAngle, Feature, Frame, Point

Location = tuple[str, Triple]

_UNIT_AXES: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class Record(NamedTuple):
    """A relation as packing keeps it.  ``ints``, ``floats``: template of its record in the tables, see layout.

    ``powers``: of length, per row.  ``signal``, ``size``, ``locations``: as in :class:`Relation`.
    """

    primitive: Primitive
    ints: bytes
    floats: bytes
    powers: bytes
    signal: Signal | GivenRate | None
    size: float
    locations: tuple[Location, ...]

    def judged(self) -> Record:
        """The same relation with the primitive that verdicts judge it by."""
        if self.primitive.judged_as == self.primitive.name:
            return self
        form = find(self.primitive.judged_as)
        ints = array("q", [form.code]).tobytes() + self.ints[8:]  # CODE is the first field
        return self._replace(primitive=form, ints=ints, powers=array("q", form.powers).tobytes())

    def __deepcopy__(self, memo: Any) -> Record:
        return self


class Relation:
    """One primitive on its features, with its parameters.  A joint is a bundle of relations.

    ``signal``: what gives its last parameter at a time, for a driver; None for all others.
    ``size`` [m]: the largest length among its parameters, or of the part it stands for; zero where there is none.
    Limits have none, since a bound may be arbitrarily far away; nor have drivers, whose values change.
    ``locations``: name of a body ("" for the ground) and position on it [m] of frames that only give it directions.
    """

    __slots__ = ("bodies", "counted_angles", "features", "parameters", "record")

    def __init__(
        self,
        primitive: Primitive,
        features: tuple[Feature, ...],
        parameters: tuple[float, ...] = (),
        signal: Signal | GivenRate | None = None,
        size: float = 0.0,
        locations: tuple[Location, ...] = (),
    ) -> None:
        self.features = features
        self.parameters = parameters
        self.bodies: list[Body] = []  # the movable ones
        self.counted_angles: list[CountedAngle] = []
        floats = list(parameters)
        laid: list[int] = []
        column = 0
        for kind, body, value in features:
            if isinstance(body, CountedAngle):
                self.counted_angles.append(body)
                laid += (kind, -1, -1, body._serial, column)
                column += 1
                continue
            if not body.is_ground and body not in self.bodies:
                self.bodies.append(body)
            laid += (kind, body._serial, -1, len(floats), column)
            floats += value
            column += len(value)
        slots = [body._serial for body in self.bodies]
        count = layout.RECORD + len(slots) + len(laid)
        record = (primitive.code, 0, primitive.rows, 0, len(floats), len(features), len(slots), column, count)
        lengths = primitive.lengths if signal is None or signal.is_constant else ()
        self.record = Record(
            primitive,
            array("q", [*record, *slots, *laid]).tobytes(),
            array("d", floats).tobytes(),
            array("q", primitive.powers).tobytes(),
            signal,
            max([size, *[abs(parameters[k]) for k in lengths]]),
            locations,
        )

    @property
    def primitive(self) -> Primitive:
        return self.record.primitive

    @property
    def signal(self) -> Signal | GivenRate | None:
        return self.record.signal


class Motion(NamedTuple):
    """What a joint leaves free, in its frame a: translations (1: z, 2: x and y, 3: all), and a rotation (see layout).

    ``rotation``: STILL, ABOUT_Z, CROSSED (about z_a and z_b, which stay perpendicular) or ANYHOW.
    """

    translations: int
    rotation: int

    def coordinates(self) -> int:
        """How many coordinates it has: a free rotation has four Euler parameters."""
        return self.translations + (0, 1, 2, 4)[self.rotation]

    def unknowns(self, euler: bool) -> int:
        """How many unknowns it has: four for a free rotation in Euler parameters, three on the manifold."""
        return self.translations + (0, 1, 2, 4 if euler else 3)[self.rotation]


class Place(NamedTuple):
    """A frame of a joint as plain values: serial number of its body (−1: the ground), and 12 packed floats.

    ``floats``: origin [m], x, y and z in body axes.
    """

    body: int
    floats: bytes

    @staticmethod
    def of(end: Frame | Point) -> Place:
        """A point has the axes of its body."""
        if isinstance(end, Point):
            return Place(end.body._serial, struct.pack("12d", *end.position, *_UNIT_AXES))
        return Place(end.body._serial, struct.pack("12d", *end.origin, *end.x, *end.y, *end.z))


class Edge(NamedTuple):
    """A joint that can be part of a spanning tree: the motion it allows between two frames.

    ``relations``: how many it has; ``equations``: of all of them.  ``pitch`` [m/rad] and ``offset`` [m]: of a thread,
    d = pitch·θ + offset along z_a, where θ is the counted angle of serial number ``counted``; 0, 0 and −1 otherwise.
    """

    motion: Motion
    a: Place
    b: Place
    relations: int
    equations: int
    pitch: float = 0.0
    offset: float = 0.0
    counted: int = -1

    def __deepcopy__(self, memo: Any) -> Edge:
        return self


class Bundle(NamedTuple):
    """What packing reads of a joint: its name, its relations, and the motion it allows (None: none declared)."""

    name: str
    relations: Sequence[Relation]
    edge: Edge | None = None
