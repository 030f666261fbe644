"""Packing: bodies and the primitives between them become a frozen System of flat tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.constraints import primitives
from cardan.constraints.registry import FeatureKind, Primitive, find
from cardan.errors import ModelError
from cardan.system import layout
from cardan.system.parts import Body, Feature
from cardan.system.state import FloatArray, State

IntArray = NDArray[np.int64]

LENGTHS = (1e-100, 1e100)  # [m], extents that can be computed with
COINCIDENT = 1e-9  # points nearer than this part of their coordinates are one point, as far as rounding can tell


class Use:
    """One primitive on its features, with its parameters: what joints are bundles of."""

    __slots__ = ("constants", "features", "floats", "movable", "parameters", "places", "primitive")

    def __init__(
        self, primitive: Primitive, features: tuple[Feature, ...], parameters: tuple[float, ...] = ()
    ) -> None:
        self.primitive = primitive
        self.features = features
        self.parameters = parameters
        # What packing needs, laid out once: the movable bodies, the floats of the record, and per feature its kind,
        # which of these bodies it is on (−1: the ground), its first float and its first column.
        self.movable: list[Body] = []
        self.floats = list(parameters)
        self.places: list[tuple[int, int, int, int]] = []
        column = 0
        for kind, body, value in features:
            if body.is_ground:
                which = -1
            else:
                if body not in self.movable:
                    self.movable.append(body)
                which = self.movable.index(body)
            self.places.append((int(kind), which, len(self.floats), column))
            self.floats += value
            column += len(value)
        self.constants = (
            primitive.code,
            primitive.rows,
            primitive.components,
            primitive.equations,
            primitive.powers,
            len(self.places),
            layout.RECORD + layout.FEATURE * len(self.places),
        )


class Row(NamedTuple):
    """Where a use lies in the residual vector."""

    constraint: str
    primitive: Primitive
    start: int


class System:
    """A mechanism, packed and frozen: tables, names, reference points, characteristic length.  Shared by threads.

    Nothing writes to its arrays after it is made (they are not flagged so: to numba a read-only array is another type,
    and every kernel would compile twice).

    ``length`` L [m]: extent of the assembled mechanism from its geometry; lengths are judged relative to it.  Zero
    where nothing in the model has a size, as for parts that are mere points.
    ``origin`` [m]: centroid of the ground's points, where it is ``grounded`` by some; solvers count from it, so that
    a mechanism far away loses no digits.
    ``centers`` [m], shape (bodies, 3), in body axes: the reference point of each body, the centroid of its points.
    Solvers turn bodies about it, so that it does not matter where a part's origin was drawn.
    ``level``, shape (bodies,): steps from the ground, negative where a body is not connected to it.
    """

    __slots__ = (
        "_cache",
        "_uses",
        "authored",
        "centers",
        "equations",
        "floats",
        "grounded",
        "index",
        "ints",
        "length",
        "level",
        "names",
        "origin",
        "powers",
    )

    def __init__(self, bodies: Sequence[Body], uses: Sequence[tuple[str, Sequence[Use]]]) -> None:
        self.names = tuple([body.name for body in bodies])
        self.index = {name: k for k, name in enumerate(self.names)}
        numbers: dict[Body, int] = {body: k for k, body in enumerate(bodies)}
        ints = [len(bodies), 0, 0, 0, 0, 0, 0, 0]
        floats: list[float] = []
        powers: list[int] = []
        constraints: list[str] = []
        kinds: list[Primitive] = []
        starts: list[int] = []
        row = block = equations = 0
        for name, bundle in uses:
            for use in bundle:
                code, count, components, independent, unit_powers, features, size = use.constants
                own = [numbers[body] for body in use.movable]
                slots = len(own)
                touched = own if slots < 2 or (slots == 2 and own[0] < own[1]) else sorted(own)
                base = len(floats)
                ints += (code, row, count, block, base, features, slots, components, len(ints) + slots + size)
                ints += touched
                floats += use.floats
                for kind, which, source, column in use.places:
                    if which < 0:
                        ints += (kind, -1, -1, base + source, column)
                    else:
                        slot = which if touched is own else touched.index(own[which])
                        ints += (kind, own[which], slot, base + source, column)
                constraints.append(name)
                kinds.append(use.primitive)
                starts.append(row)
                powers += unit_powers
                row += count
                equations += independent
                block += count * slots
        ints[layout.CONSTRAINTS] = len(kinds)
        ints[layout.ROWS_TOTAL] = row
        ints[layout.BLOCKS] = block
        # Three flat tuples, not one of Rows: a thousand small objects would set the garbage collector going.
        self._uses = (tuple(constraints), tuple(kinds), tuple(starts))
        self.equations = equations
        self.powers: IntArray = np.array(powers, dtype=np.int64)
        self.ints: IntArray = np.array(ints, dtype=np.int64)
        self.floats: FloatArray = np.array(floats, dtype=np.float64)
        self.authored: FloatArray = np.array([b.position + b.orientation for b in bodies], dtype=np.float64)
        self._measure()
        self._cache: dict[Any, Any] = {}

    def _measure(self) -> None:
        """Reference points, body extents, characteristic length and connection to the ground."""
        from cardan.system import _tables

        count = len(self.names)
        centers = np.zeros(3 * count + 3)
        sizes = np.zeros(count + 1)
        counts = np.zeros(count + 1)
        _tables.center_features(self.ints, self.floats, centers, sizes, counts)
        starts = np.empty(count + 2, dtype=np.int64)
        links = np.empty(int(self.ints[layout.BLOCKS]) + 1, dtype=np.int64)
        _tables.link_bodies(self.ints, starts, links)
        order = np.array(sorted(range(count), key=self.names.__getitem__), dtype=np.int64)
        codes = np.array([primitives.distance.code, primitives.distance_squared.code], dtype=np.int64)
        level = np.empty(count, dtype=np.int64)
        length = _tables.characteristic_length(
            self.ints, self.floats, sizes, codes, order, starts, links, np.empty_like(level), level, np.empty(count)
        )
        self.centers: FloatArray = centers[:-3].reshape(count, 3)
        self.origin: FloatArray = centers[-3:].copy()
        self.grounded = bool(counts[-1])
        self.level: IntArray = level
        self.length = float(length)
        if self.length and not LENGTHS[0] <= self.length <= LENGTHS[1]:
            raise ModelError(
                f"the extent of the mechanism is {self.length} m; it must lie between {LENGTHS[0]} and {LENGTHS[1]} m, "
                "so that squares of lengths can be computed: choose another unit, or correct the points"
            )

    def extent_at(self, q: FloatArray) -> float:
        """L [m], or where nothing in the model has a size the spread of the bodies in solver coordinates q."""
        if self.length:
            return self.length
        points = q.reshape(-1, layout.POSE)[:, :3]
        if self.grounded:
            points = np.vstack([points, np.zeros(3)])
        spread = 2.0 * float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1)).max(initial=0.0))
        largest = max(float(np.abs(points).max(initial=0.0)), float(np.abs(self.origin).max()))
        return spread if spread > COINCIDENT * largest else 1.0

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every use of a primitive with its place in the residual vector, in the order of the tables."""
        found: tuple[Row, ...] = self.cached("rows", lambda: tuple(map(Row, *self._uses)))
        return found

    def components(self) -> list[tuple[IntArray, System]]:
        """Groups of bodies that constraints connect without the ground, each with a system of its own; made once.

        Bodies that nothing constrains are in none.  A mechanism in one piece is its own only component.
        """
        found: list[tuple[IntArray, System]] = self.cached("components", lambda: split(self))
        return found

    @classmethod
    def part(cls, whole: System, ints: list[int], starts: list[int], bodies: list[int], chosen: list[int]) -> System:
        """The system of some bodies and the constraints among them, from the tables of the whole."""
        made = cls.__new__(cls)
        made.names = tuple([whole.names[b] for b in bodies])
        made.index = {name: k for k, name in enumerate(made.names)}
        made.authored = whole.authored[bodies]
        numbers = {body: k for k, body in enumerate(bodies)}
        numbers[-1] = -1
        table = [len(bodies), len(chosen), 0, 0, 0, 0, 0, 0]
        floats: list[FloatArray] = []
        rows: list[Row] = []
        numbered = whole.rows
        size = row = block = equations = 0
        for number in chosen:
            at = starts[number]
            old = numbered[number]
            count, features, slots = (ints[at + k] for k in (layout.ROWS, layout.FEATURES, layout.SLOTS))
            first = at + layout.RECORD + slots
            base = ints[at + layout.PAR]
            last = first + layout.FEATURE * (features - 1)
            end = ints[last + layout.SOURCE] + FeatureKind(ints[last + layout.KIND]).components
            start = len(table)
            table += ints[at : at + layout.RECORD]
            table[start + layout.ROW] = row
            table[start + layout.BLOCK] = block
            table[start + layout.PAR] = size
            table[start + layout.NEXT] = start + layout.RECORD + slots + layout.FEATURE * features
            table += [numbers[b] for b in ints[at + layout.RECORD : first]]
            for f in range(first, first + layout.FEATURE * features, layout.FEATURE):
                kind, body, slot, source, column = ints[f : f + layout.FEATURE]
                table += (kind, numbers[body], slot, size + source - base, column)
            floats.append(whole.floats[base:end])
            rows.append(Row(old.constraint, old.primitive, row))
            size += end - base
            row += count
            equations += old.primitive.equations
            block += count * slots
        table[layout.ROWS_TOTAL], table[layout.BLOCKS] = row, block
        made._uses = tuple(zip(*rows, strict=True))  # type: ignore[assignment]  # of three columns
        made.equations = equations
        made.powers = np.array([power for r in rows for power in r.primitive.powers], dtype=np.int64)
        made.ints = np.array(table, dtype=np.int64)
        made.floats = np.concatenate(floats)
        made._cache = {}
        made._measure()  # moves the references once more, by rounding at the most
        made.centers = made.centers + whole.centers[bodies]
        made.origin = made.origin + whole.origin
        return made

    def judged(self) -> System:
        """This system with every primitive in its sharp form, for verdicts in metres and radians; made once."""
        found: System = self.cached("judged", lambda: sharpened(self))
        return found

    def blunted(self, length: float) -> float:
        """How much smaller the residuals of blunt forms are than what they stand for, at the worst: 1 where none is.

        d·d − l² is 2 l (|d| − l) near its solution, in units of L² instead of L; u·v − cos α is sin α times the angle.
        """
        if self.judged() is self:
            return 1.0
        factor = 1.0
        for at, row in zip(_record_starts(self.ints.tolist()), self.rows, strict=True):
            if row.primitive.sharp != row.primitive.name:
                value = float(self.floats[self.ints[at + layout.PAR]])
                factor = min(factor, 2.0 * value / length if row.primitive.unit == "m²" else math.sin(value))
        return factor

    @property
    def unconnected(self) -> tuple[str, ...]:
        """Names of the bodies that no chain of constraints connects to the ground."""
        return tuple(self.names[k] for k in np.flatnonzero(self.level < 0))

    @property
    def gruebler(self) -> int:
        """6 × bodies − equations: the freedom a count of equations predicts."""
        return 6 * len(self.names) - self.equations

    def state(self, coordinates: FloatArray | None = None) -> State:
        """A state of this system: the authored one, or that with r, p of each body given, shape (bodies, 7)."""
        return State(self.names, self.index, self.authored.copy() if coordinates is None else coordinates)

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
        if self.names != other.names or self._uses != other._uses:
            return False
        pairs = ((self.ints, other.ints), (self.floats, other.floats), (self.authored, other.authored))
        return all(bool(np.array_equal(a, b)) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __repr__(self) -> str:
        return f"<System of {len(self.names)} bodies, {self.equations} equations, L = {self.length:.4g} m>"


def split(system: System) -> list[tuple[IntArray, System]]:
    """The components of a system, in the order of their first bodies."""
    count = len(system.names)
    ints = system.ints.tolist()
    starts = _record_starts(ints)
    group = _groups(count, ints, starts)
    members: dict[int, list[int]] = {}
    for body, first in enumerate(group):
        if first >= 0:
            members.setdefault(first, []).append(body)
    if len(members.get(0, ())) == count:
        return [(np.arange(count, dtype=np.int64), system)]
    records: dict[int, list[int]] = {key: [] for key in members}
    for number, at in enumerate(starts):
        records[group[ints[at + layout.RECORD]]].append(number)
    return [
        (np.array(bodies, dtype=np.int64), System.part(system, ints, starts, bodies, records[key]))
        for key, bodies in members.items()
    ]


def _groups(count: int, ints: list[int], starts: list[int]) -> list[int]:
    """For each body the first body of those that constraints connect it with, −1 where it has no constraint."""
    leader = [-1] * count
    for at in starts:
        first = ints[at + layout.RECORD]
        for b in ints[at + layout.RECORD : at + layout.RECORD + ints[at + layout.SLOTS]]:
            if leader[b] < 0:
                leader[b] = b
            while leader[b] != b:
                leader[b] = leader[leader[b]]
                b = leader[b]
            while leader[first] != first:
                first = leader[first]
            if first < b:
                leader[b] = first
            else:
                leader[first] = first = b
    for b in range(count):
        if leader[b] >= 0:
            leader[b] = leader[leader[b]]  # earlier bodies point to their first one already
    return leader


def _record_starts(ints: list[int]) -> list[int]:
    starts = []
    at = layout.HEADER
    for _ in range(ints[layout.CONSTRAINTS]):
        starts.append(at)
        at = ints[at + layout.NEXT]
    return starts


def sharpened(system: System) -> System:
    """A system whose primitives are the sharp forms of the given one's: the same tables but for codes and units."""
    if all([primitive.sharp == primitive.name for primitive in system._uses[1]]):
        return system
    sharp = [Row(row.constraint, find(row.primitive.sharp), row.start) for row in system.rows]
    made = copy(system)
    made._uses = (system._uses[0], tuple(row.primitive for row in sharp), system._uses[2])
    made.powers = np.array([power for row in sharp for power in row.primitive.powers], dtype=np.int64)
    made.ints = system.ints.copy()
    for at, row in zip(_record_starts(system.ints.tolist()), sharp, strict=True):
        made.ints[at + layout.CODE] = row.primitive.code
    return made
