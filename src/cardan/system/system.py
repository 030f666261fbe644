"""Packing: bodies and the primitives between them become a frozen System of flat tables."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.constraints import kernels, primitives
from cardan.constraints.registry import FeatureKind, Primitive, find
from cardan.constraints.signal import Signal
from cardan.errors import ModelError
from cardan.lazy import TieredModule
from cardan.system import layout
from cardan.system.parts import Body, CountedAngle, Feature
from cardan.system.state import FloatArray, State

_tables = TieredModule("cardan.system._tables")

IntArray = NDArray[np.int64]

LENGTHS = (1e-100, 1e100)  # [m], extents that can be computed with
COINCIDENT = 1e-9  # points nearer than this part of their coordinates are one point, as far as rounding can tell
# [m] Where lengths come from outside the model too (drivers, bounds, functions of the user's), a spread of parts in one
# point is below this what rounding leaves of zero, and no size: nothing else tells the two apart.
LEAST_SPREAD = 1e-12


Location = tuple[str, tuple[float, float, float]]


class Relation:
    """One primitive on its features, with its parameters: what joints are bundles of.

    ``signal``: what gives its last parameter at a time, for a driver; None for all others.
    ``size`` [m]: the largest length among its parameters, or of the part it stands for; zero where there is none.
    Limits have none, since a bound may be as far away as one likes, nor have drivers, whose values come and go.
    ``locations``: name of a body ("" for the ground) and place on it [m] of frames that only give it directions.
    """

    __slots__ = (
        "bodies",
        "counted_angles",
        "features",
        "floats",
        "ints",
        "locations",
        "parameters",
        "powers",
        "primitive",
        "signal",
        "size",
    )

    def __init__(
        self,
        primitive: Primitive,
        features: tuple[Feature, ...],
        parameters: tuple[float, ...] = (),
        signal: Signal | None = None,
        size: float = 0.0,
        locations: tuple[Location, ...] = (),
    ) -> None:
        self.primitive = primitive
        self.locations = locations
        self.features = features
        self.parameters = parameters
        self.signal = signal
        lengths = primitive.lengths if signal is None or signal.is_constant else ()
        self.size = max([size, *[abs(parameters[k]) for k in lengths]])
        self.bodies: list[Body] = []  # the movable ones
        self.counted_angles: list[CountedAngle] = []
        # The template of its record, laid out once: see layout.
        floats = list(parameters)
        laid: list[int] = []
        column = 0
        for kind, body, value in features:
            if isinstance(body, CountedAngle):
                self.counted_angles.append(body)
                laid += (kind, -1, -1, body.serial, column)
                column += 1
                continue
            if not body.is_ground and body not in self.bodies:
                self.bodies.append(body)
            laid += (kind, body.serial, -1, len(floats), column)
            floats += value
            column += len(value)
        slots = [body.serial for body in self.bodies]
        size = layout.RECORD + len(slots) + len(laid)
        record = (primitive.code, 0, primitive.rows, 0, len(floats), len(features), len(slots), column, size)
        self.ints = array("q", [*record, *slots, *laid]).tobytes()
        self.floats = array("d", floats).tobytes()
        self.powers = array("q", primitive.powers).tobytes()


class Row(NamedTuple):
    """Where a use lies in the residual vector."""

    constraint: str
    primitive: Primitive
    start: int


class Piece(NamedTuple):
    system: System
    bodies: IntArray
    angles: IntArray


class System:
    """A mechanism, packed and frozen: tables, names, reference points, characteristic length.  Shared by threads.

    Nothing writes to its arrays after it is made (they are not flagged so: to numba a read-only array is another type,
    and every kernel would compile twice).

    ``length`` L [m]: extent of the assembled mechanism from its geometry; lengths are judged relative to it.  Where all
    parts are mere points: the largest length among the parameters (a radius, a pitch), or the spread of the authored
    poses if that is larger.  Zero where there is no length in the model at all.
    ``origin`` [m]: centroid of the ground's points, where it is ``grounded`` by some; solvers count from it, so that
    a mechanism far away loses no digits.  Zero where a primitive of the user's own depends on where the world's is.
    ``reference_points`` [m], shape (bodies, 3), in body axes: of each body, the centroid of its joint points.
    Solvers turn bodies about it, so that it does not matter where a part's origin was drawn.
    ``level``, shape (bodies,): steps from the ground, negative where a body is not connected to it.
    ``counted_angles``: keys of the angles whose whole turns are counted.
    ``signals``: position of a driver's value in ``floats``, and the signal that gives it.
    """

    __slots__ = (
        "_cache",
        "_locations",
        "_relations",
        "_sizes",
        "authored",
        "counted_angles",
        "equations",
        "floats",
        "grounded",
        "in_one_piece",
        "index",
        "ints",
        "leader",
        "length",
        "level",
        "names",
        "origin",
        "powers",
        "reference_points",
        "signals",
        "starts",
    )

    def __init__(
        self,
        bodies: Sequence[Body],
        bundles: Sequence[tuple[str, Sequence[Relation]]],
        angles: Sequence[CountedAngle] = (),
    ) -> None:
        flat = [relation for _, bundle in bundles for relation in bundle]
        self.names = tuple([body.name for body in bodies])
        self.index = dict(zip(self.names, range(len(self.names)), strict=True))
        # Three flat tuples, not one of Rows: a thousand small objects would set the garbage collector going.
        kinds = tuple([relation.primitive for relation in flat])
        self._relations = (tuple([name for name, bundle in bundles for _ in bundle]), kinds)
        self._sizes = tuple([relation.size for relation in flat])
        self._locations = tuple([relation.locations for relation in flat])
        self.equations = sum([relation.primitive.equations for relation in flat if relation.signal is None])
        self.counted_angles = tuple([angle.key for angle in angles])
        header = array("q", (len(bodies), len(kinds), 0, 0, len(angles), 0, 0, 0)).tobytes()
        ends = [array("q", (angle.a.serial, angle.b.serial, 0)).tobytes() for angle in angles]
        axes = [array("d", (*angle.x, *angle.y, *angle.v)).tobytes() for angle in angles]
        self.ints: IntArray = _joined([header, *[relation.ints for relation in flat], *ends], np.int64)
        self.floats: FloatArray = _joined([relation.floats for relation in flat] + axes, np.float64)
        self.powers: IntArray = _joined([relation.powers for relation in flat], np.int64)
        authored: FloatArray = _joined([body.packed for body in bodies], np.float64)
        self.authored = authored.reshape(len(bodies), layout.POSE)
        self._measure(_numbers([body.serial for body in bodies]), _numbers([angle.serial for angle in angles]))
        self.signals = tuple(
            [
                (int(self.ints[self.starts[k] + layout.PAR]) + len(relation.parameters) - 1, relation.signal)
                for k, relation in enumerate(flat)
                if relation.signal is not None
            ]
        )
        self._measure_points()
        self._cache: dict[Any, Any] = {}

    def _measure(self, bodies: IntArray, angles: IntArray) -> None:
        """Pack the templates; reference points, body extents, characteristic length and connection to the ground."""
        count = len(self.names)
        self.starts: IntArray = np.empty(len(self._relations[0]) + 1, dtype=np.int64)
        self.level: IntArray = np.empty(count, dtype=np.int64)
        self.leader: IntArray = np.empty(count, dtype=np.int64)
        scratch = np.empty(self.ints.size + 2 * count + 3, dtype=np.int64)
        measures = np.empty(3 * count + 3)
        reference_points: FloatArray = np.empty(3 * count + 3)
        tables = (self.starts, self.level, self.leader, scratch, measures, reference_points)
        absolute = any([primitive.absolute for primitive in self._relations[1]])
        length = _tables.measure(self.ints, self.floats, bodies, angles, _RODS, absolute, _NONE, *tables)
        if length < 0.0:
            order = np.array(sorted(range(count), key=self.names.__getitem__), dtype=np.int64)
            length = _tables.measure(self.ints, self.floats, _NONE, angles, _RODS, absolute, order, *tables)
        self.reference_points: FloatArray = reference_points[:-3].reshape(count, 3)
        self.origin: FloatArray = reference_points[-3:]
        self.grounded = bool(measures[-1])
        self.in_one_piece = bool(scratch[-1])
        self.length = float(length)
        self._check_length()

    def _measure_points(self) -> None:
        """The characteristic length of parts that are mere points."""
        if self.length:
            return
        q = self.authored.ravel().copy()
        _tables.shift_reference(len(self.names), self.reference_points.reshape(-1), self.origin, 1.0, q)
        size = max(self._sizes, default=0.0)
        if span := self._span():
            self.length = max(size, span)
            self._check_length()
            return
        least = 0.0 if self._is_closed() else LEAST_SPREAD
        self.length = max(size if size > least else 0.0, min(self._spread(q, least), LENGTHS[1]))
        self._check_length()

    def _span(self) -> float:
        """Extent [m] of a body whose joints' one point lies beside the frames that only give it directions; or zero."""
        found: dict[str, list[Any]] = {}
        for name, location in [location for locations in self._locations for location in locations]:
            found.setdefault(name, []).append(location)
        if not found:
            return 0.0
        pointed = self._pointed()
        if any([primitive.absolute for primitive in self._relations[1]]):
            pointed.discard(-1)  # then the origin is the world's, and no point of the ground
        spans = []
        for name, locations in found.items():
            number = self.index[name] if name else -1
            if number in pointed:
                locations.append(self.reference_points[number] if name else self.origin)
            points = np.array(locations)
            span = _extent(points)
            spans.append(span if span > COINCIDENT * float(np.abs(points).max()) else 0.0)
        return max(spans)

    def _pointed(self) -> set[int]:
        """Numbers of the bodies that joints hold by a point, −1 for the ground."""
        table = self.ints.tolist()
        found = set()
        for at in self.starts[:-1].tolist():
            first = at + layout.RECORD + table[at + layout.SLOTS]
            for f in range(first, first + layout.FEATURE * table[at + layout.FEATURES], layout.FEATURE):
                if table[f + layout.KIND] == layout.POINT:
                    found.add(max(table[f + layout.BODY], -1))
        return found

    def _is_closed(self) -> bool:
        """Whether all lengths there are stand in the model: no driver, no limit, no function of the user's."""
        return not self.signals and all([kind.code >= 0 and kind.equations > 0 for kind in self._relations[1]])

    def _check_length(self) -> None:
        if self.length and not LENGTHS[0] <= self.length <= LENGTHS[1]:
            raise ModelError(
                f"the extent of the mechanism is {self.length} m; it must lie between {LENGTHS[0]} and {LENGTHS[1]} m, "
                "so that squares of lengths can be computed: choose another unit, or correct the points"
            )

    @property
    def judged_length(self) -> float:
        """What lengths are judged by [m], in every pose the same: L, or a metre where the model has no length."""
        return self.length or 1.0

    def extent_at(self, q: FloatArray) -> float:
        """L [m], or where the model has no length the spread of the bodies in solver coordinates q: what is solved in.

        A metre where that is none either.
        """
        return self.length or self._spread(q) or 1.0

    def _spread(self, q: FloatArray, least: float = LEAST_SPREAD) -> float:
        """Extent [m] of the reference points in solver coordinates q; zero up to ``least``, or to rounding."""
        points = q[: layout.POSE * len(self.names)].reshape(-1, layout.POSE)[:, :3]
        if self.grounded:
            points = np.vstack([points, np.zeros(3)])
        spread = _extent(points)
        drawn = (points, self.origin, self.reference_points, self.authored[:, :3])
        largest = max([float(np.abs(table).max(initial=0.0)) for table in drawn])
        return spread if spread > max(COINCIDENT * largest, least) else 0.0

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every use of a primitive with its place in the residual vector, in the order of the tables."""
        found: tuple[Row, ...] = self.cached("rows", self._rows)
        return found

    def _rows(self) -> tuple[Row, ...]:
        return tuple(map(Row, *self._relations, self.ints[self.starts[:-1] + layout.ROW].tolist()))

    @property
    def addressed(self) -> IntArray:
        """The integers with addresses for codes, as evaluators want them; valid in this process only."""
        found: IntArray = self.cached("addressed", self._addressed)
        return found

    def _addressed(self) -> IntArray:
        if all([primitive.inline for primitive in self._relations[1]]):
            return self.ints
        ints = self.ints.copy()
        ints[self.starts[:-1] + layout.CODE] = [kernels.address(primitive) for primitive in self._relations[1]]
        return ints

    def curvature_codes(self) -> IntArray:
        """Per constraint, the code or address of ẋᵀ f_xx ẋ."""
        codes = [kernels.curvature_address(primitive) for primitive in self._relations[1]]
        return np.array(codes, dtype=np.int64)

    def floats_at(self, time: float) -> FloatArray:
        """The floats with the values of all drivers at a time; the system's own where there is none."""
        if not self.signals:
            return self.floats
        floats = self.floats.copy()
        for position, signal in self.signals:
            floats[position] = signal.value(time)
        return floats

    def components(self) -> list[tuple[IntArray, System]]:
        """Groups of bodies that constraints connect without the ground, each with a system of its own; made once.

        Bodies that nothing constrains are in none.  A mechanism in one piece is its own only component.
        """
        found: list[tuple[IntArray, System]] = self.cached("components", lambda: split(self))
        return found

    @property
    def pieces(self) -> tuple[Piece, ...]:
        found: tuple[Piece, ...] = self.cached(
            "pieces",
            lambda: tuple(
                Piece(system, bodies, np.array([self.counted_angles.index(k) for k in system.counted_angles], np.int64))
                for bodies, system in self.components()
            ),
        )
        return found

    @classmethod
    def part(cls, whole: System, bodies: list[int], chosen: list[int]) -> System:
        """The system of some bodies and the constraints among them, from the tables of the whole."""
        made = cls.__new__(cls)
        made.names = tuple([whole.names[b] for b in bodies])
        made.index = {name: k for k, name in enumerate(made.names)}
        made.authored = whole.authored[bodies]
        made._relations = tuple([tuple([column[k] for k in chosen]) for column in whole._relations])  # type: ignore[assignment]  # of two columns
        made._sizes = tuple([whole._sizes[k] for k in chosen])
        made._locations = tuple([whole._locations[k] for k in chosen])
        driven = {signal.name for _, signal in whole.signals}
        made.equations = sum(kind.equations for name, kind in zip(*made._relations, strict=True) if name not in driven)
        made.powers = np.array([power for kind in made._relations[1] for power in kind.powers], dtype=np.int64)
        ints, floats = whole.ints.tolist(), whole.floats
        table = [len(bodies), len(chosen), 0, 0, 0, 0, 0, 0]
        pieces: list[FloatArray] = []
        ends = [*ints_at(whole, layout.PAR), floats.size - 9 * len(whole.counted_angles)]
        signals = dict(whole.signals)
        made_signals, size = [], 0
        for k in chosen:
            at, base = int(whole.starts[k]), ends[k]
            record = ints[at : int(whole.starts[k + 1])]
            record[layout.PAR] = ends[k + 1] - base
            record[layout.NEXT] -= at
            for f in range(layout.RECORD + record[layout.SLOTS], len(record), layout.FEATURE):
                if record[f + layout.KIND] != layout.ANGLE:
                    record[f + layout.SOURCE] -= base
            table += record
            pieces.append(floats[base : ends[k + 1]])
            made_signals += [(size + i - base, signals[i]) for i in range(base, ends[k + 1]) if i in signals]
            size += ends[k + 1] - base
        numbers = _numbers(bodies)
        mine = set(bodies)
        angles, at = [], ints[layout.ANGLE_TABLE]
        for k in range(len(whole.counted_angles)):
            a, b, source = ints[at : at + layout.ANGLE_RECORD]
            if (a < 0 or a in mine) and (b < 0 or b in mine):
                angles.append(k)
                table += (a, b, 0)
                pieces.append(floats[source : source + 9])
            at += layout.ANGLE_RECORD
        table[layout.ANGLES] = len(angles)
        made.counted_angles = tuple([whole.counted_angles[k] for k in angles])
        made.signals = tuple(made_signals)
        made.ints = np.array(table, dtype=np.int64)
        made.floats = np.concatenate(pieces)
        made._cache = {}
        made._measure(numbers, _numbers(angles))  # moves the references once more, by rounding at the most
        made.reference_points = made.reference_points + whole.reference_points[bodies]
        made.origin = made.origin + whole.origin
        made._measure_points()
        return made

    def judged(self) -> System:
        """This system with every primitive in its sharp form, for verdicts in metres and radians; made once."""
        found: System = self.cached("judged", lambda: in_judged_form(self))
        return found

    def judged_powers(self) -> IntArray:
        """Per row of the judged system the power of length it is divided by, or −1 for an angle of whole turns."""
        judged = self.judged()
        if not judged.counted_angles:
            return judged.powers
        found: IntArray = self.cached("judged powers", lambda: _with_angles_marked(judged))
        return found

    def least_sensitivity(self, length: float) -> float:
        """How much smaller the residuals of blunt forms are than what they stand for, at the worst: 1 where none is.

        d·d − l² is 2 l (|d| − l) near its solution, in units of L² instead of L; u·v − cos α is sin α times the angle.
        """
        if self.judged() is self:
            return 1.0
        factor = 1.0
        for par, primitive in zip(ints_at(self, layout.PAR), self._relations[1], strict=True):
            if primitive.judged_as != primitive.name:
                value = float(self.floats[par])
                factor = min(factor, 2.0 * value / length if primitive.unit == "m²" else math.sin(value))
        return factor

    @property
    def unconnected(self) -> tuple[str, ...]:
        """Names of the bodies that no chain of constraints connects to the ground."""
        return tuple(self.names[k] for k in np.flatnonzero(self.level < 0))

    @property
    def gruebler(self) -> int:
        """6 × bodies − equations: the freedom a count of equations predicts."""
        return 6 * len(self.names) - self.equations

    def state(
        self, coordinates: FloatArray | None = None, angles: FloatArray | None = None, time: float = 0.0
    ) -> State:
        """A state of this system: the authored one, or that with r, p of each body given, shape (bodies, 7).

        angles [rad], shape (turns,): of the turns that are counted.  time [s].
        """
        if coordinates is None:
            coordinates = self.authored.copy()
        if angles is not None and angles.shape != (len(self.counted_angles),):
            wanted = (len(self.counted_angles),)
            raise ModelError(f"the angles of a state have shape {angles.shape}; it must be {wanted}")
        counted = None if angles is None else dict(zip(self.counted_angles, angles.tolist(), strict=True))
        return State(self.names, self.index, coordinates, angles=counted, time=time)

    def cached(self, key: Any, make: Any) -> Any:
        """What make() returned the first time: derived tables, the same for everyone."""
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = make()
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._cache = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, System):
            return NotImplemented
        if self.names != other.names or self._relations != other._relations:
            return False
        if self.counted_angles != other.counted_angles:
            return False
        if self.signals != other.signals or self._sizes != other._sizes or self._locations != other._locations:
            return False
        pairs = ((self.ints, other.ints), (self.floats, other.floats), (self.authored, other.authored))
        return all(bool(np.array_equal(a, b)) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __repr__(self) -> str:
        return f"<System of {len(self.names)} bodies, {self.equations} equations, L = {self.length:.4g} m>"


def _extent(points: FloatArray) -> float:
    """Twice the largest distance [m] of a point from their centroid."""
    apart = points - points.mean(axis=0)
    far = float(np.abs(apart).max(initial=0.0)) or 1.0  # scaled, so that the squares do not vanish
    return 2.0 * far * float(np.sqrt(((apart / far) ** 2).sum(axis=1)).max(initial=0.0))


def _joined(parts: list[bytes], kind: Any) -> Any:
    """One array of packed parts: a view of a bytearray, since what bytes hold cannot be written to."""
    return np.frombuffer(bytearray(b"".join(parts)), dtype=kind) if parts else np.empty(0, dtype=kind)


def _numbers(serials: Sequence[int]) -> IntArray:
    """Number by serial number, for numbers in the order given."""
    if not serials:
        return _NONE
    numbers: IntArray = np.empty(max(serials) + 1, dtype=np.int64)
    numbers[serials] = range(len(serials))
    return numbers


_NONE: IntArray = np.empty(0, dtype=np.int64)
_RODS: IntArray = np.array([primitives.distance.code, primitives.distance_squared.code], dtype=np.int64)


def ints_at(system: System, field: int) -> list[int]:
    """One field of every record."""
    found: list[int] = system.ints[system.starts[:-1] + field].tolist()
    return found


def split(system: System) -> list[tuple[IntArray, System]]:
    """The components of a system, in the order of their first bodies."""
    count = len(system.names)
    if system.in_one_piece:
        return [(np.arange(count, dtype=np.int64), system)]
    group = system.leader.tolist()
    members: dict[int, list[int]] = {}
    for body, first in enumerate(group):
        if first >= 0:
            members.setdefault(first, []).append(body)
    records: dict[int, list[int]] = {key: [] for key in members}
    ints = system.ints
    for number, at in enumerate(system.starts[:-1].tolist()):
        if ints[at + layout.SLOTS]:
            records[group[ints[at + layout.RECORD]]].append(number)
    return [
        (np.array(bodies, dtype=np.int64), System.part(system, bodies, records[key])) for key, bodies in members.items()
    ]


def _with_angles_marked(system: System) -> IntArray:
    powers = system.powers.copy()
    for _, primitive, start in system.rows:
        if FeatureKind.ANGLE in primitive.features:
            rows = powers[start : start + primitive.rows]
            rows[rows == 0] = -1
    return powers


def in_judged_form(system: System) -> System:
    """A system whose primitives are the sharp forms of the given one's: the same tables but for codes and units."""
    if all([primitive.judged_as == primitive.name for primitive in system._relations[1]]):
        return system
    judged_as = tuple(p if p.judged_as == p.name else find(p.judged_as) for p in system._relations[1])
    made = copy(system)
    made._relations = (system._relations[0], judged_as)
    made.powers = np.array([power for primitive in judged_as for power in primitive.powers], dtype=np.int64)
    made.ints = system.ints.copy()
    made.ints[system.starts[:-1] + layout.CODE] = [primitive.code for primitive in judged_as]
    return made
