"""What joints give to packing: relations (a primitive on its features), and the motion that a joint allows.

Packing keeps :class:`Record` and :class:`Edge`, which are plain values and name bodies by their serial numbers.  So a
System can be pickled, divided and packed again without the mechanism that it was made from.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cardan.constraints.promotion import promoted
from cardan.constraints.registry import FeatureKind, Primitive
from cardan.constraints.signal import GivenRate, Signal
from cardan.system import tables as layout
from cardan.system.check import Triple
from cardan.system.formulas import Book, Formula, are_floats, bindings, number, plain
from cardan.system.parts import Body, CountedAngle, Direction, Feature, Frame, Point

if TYPE_CHECKING:
    from cardan.constraints.user_motion import JointMotion

Location = tuple[str, Triple]

_pack_place: Final = struct.Struct("12d").pack
_UNIT_AXES: Final = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@cache
def _packer(sort: str, count: int) -> Callable[..., bytes]:
    """The function that packs that many integers ("q") or floats ("d"); it is stored, since making it takes longer."""
    return struct.Struct(f"{count}{sort}").pack


class Record(NamedTuple):
    """A relation as packing keeps it.  ``ints``, ``floats``: template of its record in the tables, see layout.

    ``powers``: of length, per row.  ``signal``, ``size``, ``locations``: as in :class:`Relation`.
    ``bindings``: of every float that is a formula its position, and its node in the book of the mechanism.
    ``timed``: of every parameter that is a function of time the position of its value, rate and acceleration.
    ``pair``: the shapes of a contact (:class:`cardan.joints.contacts.Pair`); its address is the first parameter.
    """

    primitive: Primitive
    ints: bytes
    floats: bytes
    powers: bytes
    signal: Signal | GivenRate | None
    size: float
    locations: tuple[Location, ...]
    bindings: tuple[tuple[int, int], ...] = ()
    timed: tuple[tuple[int, Signal], ...] = ()
    pair: Any = None

    def drawn(self, values: Sequence[float]) -> Record:
        """The same with other values of the nodes of the book."""
        if self.used:
            signal = None if self.signal is None else self.signal.drawn(values)
            timed = tuple([(position, function.drawn(values)) for position, function in self.timed])
            return self._replace(signal=signal, timed=timed)._redrawn(values)
        return self._redrawn(values)

    @property
    def used(self) -> list[Formula]:
        """Formulas that its functions of time read."""
        own = () if self.signal is None else self.signal.used
        return [*own, *[formula for _, function in self.timed for formula in function.used]]

    def _redrawn(self, values: Sequence[float]) -> Record:
        if not self.bindings:
            return self
        floats = array("d", self.floats)
        for position, node in self.bindings:
            floats[position] = values[node]
        lengths = self.primitive.lengths if self.signal is None else ()
        size = max([self.size, *[abs(floats[k]) for k, _ in self.bindings if k in lengths]])
        return self._replace(floats=floats.tobytes(), size=size)

    def judged(self) -> Record:
        """The same relation with the primitive that verdicts judge it by."""
        form = self.primitive.judged()
        if form is self.primitive:
            return self
        ints = array("q", self.ints)
        ints[layout.CODE] = form.code
        return self._replace(primitive=form, ints=ints.tobytes(), powers=array("q", form.powers).tobytes())

    def __deepcopy__(self, memo: Any) -> Record:
        if not self.used:
            return self
        return self._replace(signal=deepcopy(self.signal, memo), timed=deepcopy(self.timed, memo))


class Relation:
    """One primitive on its features, with its parameters.  A joint is a bundle of relations.

    ``signal``: what gives its last parameter at a time, for a driver; None for all others.  Any parameter may be a
    :class:`Signal` itself, a function of time.
    ``size`` [m]: the largest length among its parameters, or of the part it stands for; zero where there is none.
    Limits have none, since a bound may be arbitrarily far away; nor have drivers, whose values change.
    ``locations``: name of a body ("" for the ground) and position on it [m] of frames that only give it directions.
    ``template``: its record, in which formulas have the values that they had when it was made.
    """

    __slots__ = ("bodies", "book", "counted_angles", "features", "parameters", "template")

    def __init__(
        self,
        primitive: Primitive,
        features: tuple[Feature, ...],
        parameters: tuple[Any, ...] = (),
        signal: Signal | GivenRate | None = None,
        size: float = 0.0,
        locations: tuple[Location, ...] = (),
        pair: Any = None,
    ) -> None:
        self.features = features
        self.parameters = parameters
        chosen: tuple[int, ...] = ()
        if parameters:
            chosen = tuple([k for k, value in enumerate(parameters) if isinstance(value, Signal)])
        functions = [parameters[k] for k in chosen]
        if chosen:
            primitive = promoted(primitive, chosen, FeatureKind.TIMED)
            parameters = tuple([p.some_value() if isinstance(p, Signal) else p for p in parameters])
        self.bodies = bodies = list[Body]()  # the movable ones
        self.counted_angles: list[CountedAngle] = []
        floats = [*parameters, *primitive.constants]
        laid: list[int] = []  # FeatureRow after FeatureRow, and head is a Head; named ones take 7 % longer to build
        column = 0
        for kind, body, value in features:
            if isinstance(body, CountedAngle):
                self.counted_angles.append(body)
                is_tracked = pair is not None and not primitive.of_rates
                laid += (kind, -1, layout.TRACKED if is_tracked else -1, body._serial, column)
                column += 1
                continue
            serial = body._serial
            if serial >= 0 and body not in bodies:  # the ground has none
                bodies.append(body)
            laid += (kind, serial, -1, len(floats), column)
            floats += value
            column += len(value)
        timed = []
        for function in functions:
            laid += (FeatureKind.TIMED, -1, -1, len(floats), column)
            timed.append((len(floats), function))
            floats += (function.some_value(), 0.0, 0.0)
            column += 1
        self.book: Book | None = None
        if signal is not None or chosen or not are_floats(floats):
            self.book = _book_of(floats, (signal, *functions))
        bound = bindings(floats) if self.book is not None else ()
        slots = [body._serial for body in bodies]
        count = layout.RECORD + len(slots) + len(laid)
        number_of = len(features) + len(timed)
        head = (primitive.code, 0, primitive.rows, 0, len(floats), number_of, len(slots), column, count, 0, 0, 0)
        lengths = primitive.lengths if signal is None or signal.is_constant else ()
        if chosen:
            lengths = tuple([k for k in lengths if k not in chosen])
        self.template = Record(
            primitive,
            _packer("q", count)(*head, *slots, *laid),
            _packer("d", len(floats))(*(plain(floats) if bound else floats)),
            _packer("q", len(primitive.powers))(*primitive.powers),
            signal,
            max([size, *[abs(number(parameters[k])) for k in lengths if k not in dict(bound)]]) if lengths else size,
            locations,
            bound,
            tuple(timed),
            pair,
        )

    @property
    def record(self) -> Record:
        """At the drawn values of the parameters."""
        return self.record_at(None)

    def record_at(self, values: Sequence[float] | None) -> Record:
        """At values of the nodes of the book; at the drawn ones where none are given."""
        if self.book is None:
            return self.template
        return self.template.drawn(self.book.values if values is None else values)

    @property
    def is_sampled(self) -> bool:
        """Whether it is a contact by closest points and differences, which motions refuse."""
        return getattr(self.template.pair, "by_differences", False)

    def followed(self) -> Relation:
        """The same for motions, in which a contact stays near where it was."""
        if self.template.pair is None:
            return self
        made = copy(self)
        made.template = self.template._replace(pair=self.template.pair.followed())
        return made

    @property
    def nodes(self) -> list[int]:
        """Nodes of the book that it reads."""
        counted = [bindings((*angle.x, *angle.y, *angle.v)) for angle in self.counted_angles]
        found = [node for bound in (self.template.bindings, *counted) for _, node in bound]
        return [*found, *[formula.index for formula in self.template.used]]

    @property
    def primitive(self) -> Primitive:
        return self.template.primitive

    @property
    def signal(self) -> Signal | GivenRate | None:
        return self.template.signal

    @property
    def is_timed(self) -> bool:
        """Whether a parameter is a function of time."""
        return bool(self.template.timed)


def _book_of(floats: Sequence[Any], functions: Sequence[Signal | GivenRate | None]) -> Book | None:
    """The book of the formulas among some numbers, or of those that functions read; None if there is none."""
    found = [one for one in floats if isinstance(one, Formula)]
    found += [one for function in functions if function is not None for one in function.used]
    return found[0].book if found else None


class Motion(NamedTuple):
    """What a joint leaves free, in its frame a: translations (1: z, 2: x and y, 3: all), and a rotation (see layout).

    ``rotation``: STILL, ABOUT_Z, CROSSED (about z_a and z_b, which stay perpendicular) or ANYHOW.  BY_USER is a motion
    of the user's own, where ``translations`` is the number of its coordinates.
    """

    translations: int
    rotation: int

    def coordinates(self) -> int:
        """How many coordinates it has: a free rotation has four Euler parameters."""
        return self.translations + (0, 1, 2, 4, 0)[self.rotation]

    def unknowns(self, euler: bool) -> int:
        """How many unknowns it has: four for a free rotation in Euler parameters, three on the manifold."""
        return self.translations + (0, 1, 2, 4 if euler else 3, 0)[self.rotation]


class Place(NamedTuple):
    """A frame of a joint as plain values: serial number of its body (−1: the ground), and 12 packed floats.

    ``floats``: origin [m], x, y and z in body axes.
    """

    body: int
    floats: bytes
    bindings: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(end: Frame | Point | Direction) -> Place:
        """A point has the axes of its body, a vector is at its origin.  Formulas have their drawn values."""
        if isinstance(end, Direction):
            floats: tuple[Any, ...] = (0.0, 0.0, 0.0, *_UNIT_AXES)
        elif isinstance(end, Point):
            floats = (*end.position, *_UNIT_AXES)
        else:
            floats = (*end.origin, *end.x, *end.y, *end.z)
        if are_floats(floats):
            return Place(end.body._serial, _pack_place(*floats))
        return Place(end.body._serial, struct.pack("12d", *plain(floats)), bindings(floats))

    def drawn(self, values: Sequence[float]) -> Place:
        """The same with other values of the nodes of the book."""
        if not self.bindings:
            return self
        floats = array("d", self.floats)
        for position, node in self.bindings:
            floats[position] = values[node]
        return self._replace(floats=floats.tobytes())


class UserMotion(NamedTuple):
    """A motion of the user's own: :class:`cardan.constraints.user_motion.JointMotion`, its numbers, and where its
    coordinates are searched for."""

    motion: JointMotion
    numbers: tuple[float, ...]
    search: tuple[tuple[float, float, int], ...]


class Edge(NamedTuple):
    """A joint that can be part of a spanning tree: the motion it allows between two frames.

    ``relations``: how many it has; ``equations``: of all of them.  ``pitch`` [m/rad] and ``offset`` [m]: of a thread,
    d = pitch·θ + offset along z_a, where θ is the counted angle of serial number ``counted``; 0, 0 and −1 otherwise.
    ``user_motion``: a motion of the user's own and its numbers (:class:`UserMotion`).
    """

    motion: Motion
    a: Place
    b: Place
    relations: int
    equations: int
    pitch: float = 0.0
    offset: float = 0.0
    counted: int = -1
    bindings: tuple[tuple[int, int], ...] = ()  # of pitch (0) and offset (1), where they are formulas
    user_motion: UserMotion | None = None

    def drawn(self, values: Sequence[float]) -> Edge:
        """The same with other values of the nodes of the book."""
        found = self._replace(a=self.a.drawn(values), b=self.b.drawn(values))
        for position, node in self.bindings:
            value = values[node]
            found = found._replace(offset=value) if position else found._replace(pitch=value)
        return found

    def __deepcopy__(self, memo: Any) -> Edge:
        return self


class Bundle(NamedTuple):
    """What packing reads of a joint: its name, its relations, and the motion it allows (None: none declared)."""

    name: str
    relations: Sequence[Relation]
    edge: Edge | None = None
