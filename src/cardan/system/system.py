"""Packing: bodies and the primitives between them become a frozen System of flat tables."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardan.constraints import kernels, primitives
from cardan.constraints.promotion import FIRST_CODE
from cardan.constraints.registry import FeatureKind, Primitive
from cardan.constraints.signal import Signal
from cardan.errors import ModelError
from cardan.lazy import LazyModule, TieredModule
from cardan.math import euler
from cardan.system import reading, variables
from cardan.system import tables as layout
from cardan.system.display import DEFAULT, Display
from cardan.system.formulas import Book, Values
from cardan.system.parts import AngleRecord, BodyRecord, CountedAngle
from cardan.system.pieces import Piece, split
from cardan.system.relations import Bundle, Edge, Record
from cardan.system.state import FloatArray, Index, State, Touch
from cardan.system.variables import Scales, Variables

_tables = TieredModule("cardan.system._tables")
_formulas = LazyModule("cardan.system._formulas")

IntArray = NDArray[np.int64]
T = TypeVar("T")
_NO_VALUES: Mapping[str, float] = {}

LENGTHS = (1e-100, 1e100)  # [m], extents that can be computed with
COINCIDENT = 1e-9  # points nearer than this, relative to their coordinates, count as one point
# Points that differ by less than this, relative to the largest coordinate drawn, differ by rounding: 45 ulps of it.
ROUNDED = 1e-14
FROM_AFAR = 1e-6  # of the largest coordinate drawn: joint points nearer to a body's origin were not computed from there
# [m] Where nothing else tells a size from rounding, less is rounding: an extent of joint points, if all bodies are
# drawn at the origin; and a spread of the bodies, if lengths also come from such points, drivers, limits or users'
# functions.
LEAST_SPREAD = 1e-12
# A free parameter that is beyond a bound by less than this share of the bound or of its scale is at the bound: rows are
# met to 1e-12.
AT_BOUND = 1e-11
MOST_RATIO = 1e6  # of a gear, for which the rounding of an angle is allowed
# Of the spread that was drawn: a smaller spread of a start is what an earlier solve left, and is no unit of length.
LEAST_OF_START = 1e-9
MOST_UNIT = 10.0  # of the largest length among the parameters: most of a spread that is the unit of motions
MOST_ROUNDING = 1e-9  # [m] a larger extent of joint points is none of rounding, however far away it was drawn


class Row(NamedTuple):
    """One relation: the constraint it belongs to, its primitive, and its first row in the residual vector."""

    constraint: str
    primitive: Primitive
    start: int


class Source(NamedTuple):
    """What a system is packed from, as plain values: all of a mechanism, or a part of it.

    ``names``, ``serials``, ``authored``: of the bodies.  ``constraints``: for each record the name of its constraint.
    ``edges``: joints that declare a motion, by name.  ``references``, shape (bodies, 7): see :class:`System`.
    ``offsets`` [m], shape (bodies + 1, 3), the last for the ground: points of the records are measured from there.
    ``book``: the formulas of the design parameters, ``drawn`` their values, and ``near`` those of the mechanism itself;
    None and empty where there are none.
    ``variables``: those of the parameters that have a place in q.
    """

    names: tuple[str, ...]
    serials: tuple[int, ...]
    authored: FloatArray
    constraints: tuple[str, ...]
    records: tuple[Record, ...]
    angles: tuple[AngleRecord, ...]
    edges: Mapping[str, Edge]
    references: FloatArray | None
    offsets: FloatArray | None = None
    rate_constraints: tuple[str, ...] = ()  # the same of rate rows, which constrain velocities alone
    rate_records: tuple[Record, ...] = ()
    origin: FloatArray | None = None  # [m] of the solvers, where it is not the centroid of the ground's points
    book: Book | None = None
    drawn: Mapping[str, float] = _NO_VALUES
    near: Mapping[str, float] = _NO_VALUES
    variables: Variables = Variables()
    display: Display = DEFAULT

    def part(self, bodies: list[int], chosen: list[int], angles: list[int], variables: Variables) -> Source:
        """Some bodies, some records and some counted angles, by number, with their variables."""
        constraints = tuple([self.constraints[k] for k in chosen])
        return Source(
            tuple([self.names[b] for b in bodies]),
            tuple([self.serials[b] for b in bodies]),
            self.authored[bodies],
            constraints,
            tuple([self.records[k] for k in chosen]),
            tuple([self.angles[k] for k in angles]),
            {name: self.edges[name] for name in dict.fromkeys(constraints) if name in self.edges},
            None if self.references is None else self.references[bodies],
            book=self.book,
            drawn=self.drawn,
            near=self.near,
            variables=variables,
            display=self.display,
        )

    def redrawn(self, values: Sequence[float], drawn: Mapping[str, float], near: Mapping[str, float]) -> Source:
        """The same at other values of the parameters; values: of all nodes of the book."""
        return self._replace(
            records=tuple([record.drawn(values) for record in self.records]),
            rate_records=tuple([record.drawn(values) for record in self.rate_records]),
            angles=tuple([angle.drawn(values) if angle.bindings else angle for angle in self.angles]),
            edges={name: edge.drawn(values) for name, edge in self.edges.items()},
            drawn=drawn,
            near=near,
        )


class System:
    """A mechanism, packed and frozen: tables, names, reference frames, characteristic length.  Shared by threads.

    Nothing writes to its arrays after it is made (they are not flagged so: to numba a read-only array is another type,
    and every kernel would compile twice).

    ``length`` L [m]: extent of the assembled mechanism from its geometry; lengths are judged relative to it.  Where
    each body has all its joint points in one place: the largest length among the parameters (a radius, a pitch); else
    the spread of the authored poses.  Zero where there is no length in the model at all.
    ``own_length`` [m]: the same, but zero where each body has all its joint points in one place.
    ``spread`` [m]: of the authored poses, where it is L; else zero.
    ``judged_length``: the unit of length of verdicts [m], the same in every pose: L, or 1 m where there is no length.
    ``unit``: the unit of length of motions [m]: the same, but at most 1 m where L is the spread; the spread, but at
    most 10 L, where L is a length among the parameters.
    ``noise`` [m]: extent of joint points that counts as rounding.

    Solvers work with the pose of each body's reference frame.  By default its origin is the centroid of the body's
    joint points and its axes are those of the body, so that it does not matter where a part's origin was drawn.
    ``reference_frames`` in body axes, shape (bodies, 3) or (bodies, 7): their origins [m] and, where they have axes of
    their own, the quaternions body ← reference.
    ``origin`` [m], shape (3,): centroid of the ground's points, where it is ``grounded`` by some; solver coordinates
    count from it, so that a mechanism far away loses no digits.  Zero where a primitive depends on the world's origin.
    ``centroids`` [m], shape (bodies, 3), in body axes: of each body's joint points, whatever its reference frame.

    ``level``, shape (bodies,): steps from the ground, negative where a body is not connected to it.
    ``leader``, shape (bodies,): the first body of the piece it belongs to, −1 where it has no constraint.
    ``counted_angles``: keys of the angles whose whole turns are counted.
    ``has_contacts``: whether a constraint has contact coordinates.
    ``primitives``: of every relation, in the order of the tables.
    ``signals``: position of a driver's value in ``floats``, and the signal that gives it.
    ``timed``: for each parameter that is a function of time the position of its value, rate and acceleration in
    ``floats``, the number of its relation, and the signal that gives them.
    ``values``: of the design parameters, by name; ``near``: those of the mechanism itself.  ``variables``: those that
    have a place in q, ``variable_names`` in its order; ``variable_scales``, ``variable_leader``: see :mod:`.variables`.
    """

    __slots__ = (
        "_cache",
        "_nodes",
        "_packed",
        "_plain",
        "_shared",
        "_touching",
        "authored",
        "centroids",
        "counted_angles",
        "floats",
        "grounded",
        "has_contacts",
        "in_one_piece",
        "index",
        "ints",
        "judged_length",
        "leader",
        "length",
        "level",
        "names",
        "near",
        "noise",
        "origin",
        "own_length",
        "powers",
        "primitives",
        "reference_frames",
        "signals",
        "spread",
        "starts",
        "timed",
        "unit",
        "values",
        "variable_leader",
        "variable_names",
        "variable_scales",
        "variables",
    )

    _packed: Source
    _nodes: Sequence[float] | None
    values: Mapping[str, float]
    near: Mapping[str, float]

    def __init__(
        self,
        bodies: Sequence[BodyRecord],
        bundles: Sequence[Bundle | Any],
        angles: Sequence[CountedAngle] = (),
        references: Any = None,
        rate_rows: Sequence[Bundle | Any] = (),
        formulas: Values | None = None,
        display: Display = DEFAULT,
    ) -> None:
        """Pack bodies and the relations between them.

        bundles: joints, or what has a name, relations and an edge like them.  angles: those that are counted.
        references: frames for the solvers, shape (bodies, 7), each an origin [m] and a unit quaternion
        body ← reference, in body axes; None for the centroids of joint points and the axes of the bodies.
        rate_rows: constraints of velocities alone, which only :attr:`rated` has in its tables.
        formulas: of the design parameters, at their values; without them formulas have their drawn values.
        """
        nodes = None if formulas is None else formulas.nodes
        authored: FloatArray = _joined([body.packed for body in bodies], np.float64)
        source = Source(
            tuple([body.name for body in bodies]),
            tuple([body.serial for body in bodies]),
            authored.reshape(len(bodies), layout.POSE),
            tuple([bundle.name for bundle in bundles for _ in bundle.relations]),
            tuple([r.template if r.book is None else r.record_at(nodes) for b in bundles for r in b.relations]),
            tuple([angle.record(nodes) for angle in angles]) if angles else (),
            {bundle.name: bundle.edge for bundle in bundles if bundle.edge is not None},
            None if references is None else np.array(references, dtype=np.float64),
            display=display,
        )
        if rate_rows:
            source = source._replace(
                rate_constraints=tuple([bundle.name for bundle in rate_rows for _ in bundle.relations]),
                rate_records=tuple([r.record_at(nodes) for bundle in rate_rows for r in bundle.relations]),
            )
        if formulas is not None:
            edges = {name: edge.drawn(formulas.nodes) for name, edge in source.edges.items()}
            source = source._replace(edges=edges, book=formulas.book, drawn=formulas.drawn, near=formulas.near)
        self._pack(source)
        self.index.joints = {bundle.name: bundle for bundle in bundles}

    def _derived(self, source: Source) -> System:
        """Another system of the same joints."""
        made = System.from_source(source)
        made.index.joints, made.index.contents = self.index.joints, self.index.contents
        return made

    @classmethod
    def from_source(cls, source: Source) -> System:
        """The system of plain values."""
        made = cls.__new__(cls)
        made._pack(source)
        return made

    def part(
        self, bodies: list[int], chosen: list[int], angles: list[int], variables: Variables | None = None
    ) -> System:
        """The system of some bodies, relations and counted angles, by number; variables: None for all of them."""
        source = self._source.part(bodies, chosen, angles, self.variables if variables is None else variables)
        if source.references is None:  # points are taken from the centroids, so that a small piece far away is exact
            first = ints_at(self, layout.PAR)
            sizes = [len(record.floats) // 8 for record in self._source.records]
            floats = [self.floats[first[k] : first[k] + sizes[k]].tobytes() for k in chosen]
            records = [record._replace(floats=own) for record, own in zip(source.records, floats, strict=True)]
            offsets = np.vstack([self.centroids[bodies], self.origin])
            source = source._replace(records=tuple(records), offsets=offsets)
        return System.from_source(source)

    def redrawn(self, formulas: Values) -> System:
        """The same system at other values of the parameters.  Only what depends on numbers is computed again."""
        made = System.__new__(System)
        for slot in _UNCHANGED:
            setattr(made, slot, getattr(self, slot))
        values = formulas.nodes
        made._packed, made._nodes = self._packed, values
        made.values, made.near = formulas.drawn, formulas.near
        made.variable_names, made.variable_scales, made.variable_leader = self.variable_names, None, ()
        made._cache, made._shared = {}, self._shared
        drawing: tuple[FloatArray, list[tuple[int, int]]] = made.cached("drawing", self._drawing)
        template, bindings = drawing
        made.signals = tuple([(place, signal.drawn(values)) for place, signal in self.signals])
        made.timed = tuple([(place, k, function.drawn(values)) for place, k, function in self.timed])
        made.floats = template.copy()
        for position, node in bindings:
            made.floats[position] = values[node]
        made._finish(made._measure(packed=self))
        return made

    def _drawing(self) -> tuple[FloatArray, list[tuple[int, int]]]:
        """The floats before they are measured from centroids; of those that are formulas the places and the nodes."""
        parts: list[Record | AngleRecord] = [*self._packed.records, *self._packed.angles]
        sizes = [len(part.floats) // 8 for part in parts]
        firsts = [0, *accumulate(sizes)]
        found = [
            (first + position, node)
            for first, part in zip(firsts, parts, strict=False)
            for position, node in part.bindings
        ]
        return _joined([part.floats for part in parts], np.float64), found

    @property
    def _source(self) -> Source:
        """What it is packed from, at its own values of the parameters."""
        nodes = self._nodes
        if nodes is not None:  # threads may both make it
            self._packed = self._packed.redrawn(nodes, self.values, self.near)
            self._nodes = None
        return self._packed

    def _pack(self, source: Source) -> None:
        self._packed, self._nodes = source, None
        self._cache: dict[Any, Any] = {}
        # derived tables of the systems of all values of the parameters
        self._shared: dict[Any, Any] = self._cache if source.book is None else {}
        self.values, self.near = source.drawn, source.near
        self.variables = source.variables
        self.variable_names = source.variables.names
        angles = source.angles
        self.names = source.names
        self.index = Index(zip(self.names, range(len(self.names)), strict=True))
        self.authored = source.authored
        columns = zip(*source.records, strict=True) if source.records else _EMPTY
        primitives, ints, floats, powers, signals, _, _, _, timed, pairs = columns
        self.primitives: tuple[Primitive, ...] = primitives
        self._plain = all([primitive.plain for primitive in primitives])
        self._touching: tuple[int, ...] = ()
        if pairs.count(None) < len(pairs):
            self._touching = tuple(k for k, pair in enumerate(pairs) if pair is not None)
            self.index.contacts = touches(
                dict(zip(source.serials, source.names, strict=True)),
                {angle.serial: angle.key for angle in angles},
                zip(source.constraints, source.records, strict=True),
            )
        self.has_contacts = bool(self._touching)
        self.counted_angles = tuple([angle.key for angle in angles])
        header = _HEADER.pack(len(self.names), len(primitives), 0, 0, len(angles))
        self.ints: IntArray = _joined([header, *ints, *[angle.ints for angle in angles]], np.int64)
        self.floats: FloatArray = _joined([*floats, *[angle.floats for angle in angles]], np.float64)
        self.powers: IntArray = _joined(powers, np.int64)
        rounded = self._measure()
        self.signals: tuple[tuple[int, Any], ...] = ()
        if signals.count(None) < len(signals):
            # the value of a driver is its last parameter; that of a rate row comes behind its parameters
            driven = [(k, signal, primitives[k]) for k, signal in enumerate(signals) if signal is not None]
            self.signals = tuple(
                [
                    (int(self.ints[self.starts[k] + layout.PAR]) + len(kind.parameters) - (not kind.of_rates), signal)
                    for k, signal, kind in driven
                ]
            )
        self.timed: tuple[tuple[int, int, Signal], ...] = ()
        if any(timed):
            functions = [(k, at, f) for k, own in enumerate(timed) for at, f in own]
            places = [(int(self.ints[self.starts[k] + layout.PAR]) + at, k, f) for k, at, f in functions]
            self.timed = tuple(places)
        self._finish(rounded)
        if self._touching:  # their kernels work behind x
            room = max([primitives[k].components + pairs[k].work for k in self._touching])
            table = layout.SystemTable(self.ints)
            table.widest = max(table.widest, room)
        self.variable_scales: Scales | None = None
        self.variable_leader: tuple[int, ...] = ()
        if self.variable_names:
            variables.extend(self)

    def with_variables(self, free: tuple[str, ...], given: tuple[str, ...] = ()) -> System:
        """The same system with some parameters in q: free ones, and those that are given with each start; made once."""
        key = Variables(free, given)
        self._check_functions({*free, *given})

        def make() -> System:
            return self._derived(variables.with_variables(self._source, key))

        return self.cached(("variables", key), make)

    def _check_functions(self, names: set[str]) -> None:
        """ModelError if a function of time reads one of some parameters, whose values would differ from start to
        start."""
        for name, record in zip(self._packed.constraints, self._packed.records, strict=True):
            for formula in record.used:
                if read := sorted(formula.parameters & names):
                    raise ModelError(
                        f"parameter {read[0]!r} is in the function of {name!r}: it cannot be free, and no derivatives "
                        "or batches of assemblies by it are made; set its value, or give it in the state"
                    )

    @property
    def tail(self) -> FloatArray:
        """What follows the poses in q, as drawn: the variables, and counted angles of zero."""
        return np.array([self.values[name] for name in self.variable_names] + [0.0] * len(self.counted_angles))

    def _finish(self, rounded: bool) -> None:
        """Reference frames that were given, and the length where joint points have none."""
        source = self._packed
        if source.references is not None:
            self._set_references(source.references)
        if source.origin is not None:
            self._set_origin(source.origin)
        self.own_length, self.spread, self.unit = self.length, 0.0, 0.0
        if not self.length:
            self._measure_points(rounded)
        self.judged_length = self.length or 1.0
        self.unit = self.unit or self.judged_length
        for k in self._touching:
            self.floats[self.ints[self.starts[k] + layout.PAR]] = self._packed.records[k].pair.address

    def followed(self, floats: FloatArray) -> FloatArray:
        """A copy of the floats for motions, in which contacts stay near where they were."""
        found = floats.copy()
        for k in self._touching:
            found[self.ints[self.starts[k] + layout.PAR]] = self._packed.records[k].pair.followed().address
        return found

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of the constraints with contact coordinates."""
        return tuple(dict.fromkeys([self._packed.constraints[k] for k in self._touching]))

    def _measure(self, packed: System | None = None) -> bool:
        """Pack the templates; centroids, body extents, characteristic length and connection to the ground.

        Returns whether joint points of a body differ, but by rounding alone; then the length is zero.
        packed: a system with the same integers, which are packed already.
        """
        count, constraints = len(self.names), len(self.primitives)
        numbers = _NONE
        if packed is None:
            numbers = _numbers(self._packed.serials, [angle.serial for angle in self._packed.angles])
        tables: IntArray = np.empty(constraints + 1 + 2 * count, dtype=np.int64)
        if packed is not None:
            tables[: constraints + 1] = packed.starts
        scratch = np.empty(self.ints.size + 2 * count + 3, dtype=np.int64)
        results: FloatArray = np.empty(6 * count + 6)
        measures, points = results[: 3 * count + 3], results[3 * count + 3 :]
        is_plain = self._plain and not self._packed.rate_records  # as most are: faster than a look-up
        absolute = not is_plain and self.cached("absolute", self._has_absolute)
        given = (self.ints, self.floats, _RODS, numbers, absolute)
        offsets = self._packed.offsets
        drawn = self.authored if offsets is None else np.vstack([self.authored, np.pad(offsets, ((0, 0), (0, 4)))])
        found = (drawn.reshape(-1), tables, scratch, results)
        length = _tables.measure(*given, _NONE, *found)
        if length <= -2.0:
            k = int(-2.0 - length)
            name = self._packed.constraints[k] if k < constraints else "a counted angle"
            raise ModelError(f"{name!r} refers to a body or an angle that is not in the mechanism; pack them together")
        if length < 0.0:
            order = np.array(sorted(range(count), key=self.names.__getitem__), dtype=np.int64)
            length = _tables.measure(*given, order, *found)
        if offsets is not None:
            points += offsets.ravel()
        self.starts: IntArray = tables[: constraints + 1]
        self.level: IntArray = tables[constraints + 1 : constraints + 1 + count]
        self.leader: IntArray = tables[constraints + 1 + count :]
        self.reference_frames: FloatArray = points[:-3].reshape(count, 3)
        self.centroids = self.reference_frames
        self.origin: FloatArray = points[-3:]
        self.grounded = bool(measures[-1])
        self.in_one_piece = bool(scratch[-1])
        rounded = self._is_rounding(length, measures.item(2 * count + 1))
        self.noise = 0.0
        if rounded and self._has_rod():  # its length is given, and no rounding of coordinates
            length, rounded = max(length, self._span()), False
        elif rounded:
            length, self.noise = 0.0, float(length)
        self.length = float(length)
        self._check_length()
        return rounded

    def _has_rod(self) -> bool:
        """Whether a distance is given that is not zero."""
        first = self.starts[: len(self.primitives)]
        codes, places = self.ints[first + layout.CODE], self.ints[first + layout.PAR]
        return bool(self.floats[places[np.isin(codes, _RODS)]].any())

    def _is_rounding(self, extent: float, far: float) -> bool:
        """Whether an extent [m] of joint points is only rounding, of drawn coordinates up to far [m].

        Points of a body that are not at its origin, but much nearer to it than far, were not computed from there.
        """
        if 0.0 < extent < LEAST_SPREAD and not self.authored[:, :3].any():
            return True
        most = min(ROUNDED * far, MOST_ROUNDING)
        if not 0.0 < extent <= most:
            return False
        return not most < float(np.abs(self.centroids).max(initial=0.0)) < FROM_AFAR * far

    def _set_references(self, references: FloatArray) -> None:
        """Express all features in given reference frames instead of those at the centroids."""
        if references.shape != self.authored.shape:
            raise ModelError(f"the reference frames have shape {references.shape}; it must be {self.authored.shape}")
        self.reference_frames = references.copy()
        moved = np.hstack([references[:, :3] - self.centroids, references[:, 3:]])
        _tables.change_frames(self.ints, self.floats, moved.reshape(-1))

    def _set_origin(self, origin: FloatArray) -> None:
        """Measure the ground's points from another origin of solver coordinates."""
        shift = self.origin - origin
        table = self.ints.tolist()
        for at in self.starts[:-1].tolist():
            for feature in reading.features(table, at):
                if feature.kind == layout.POINT and feature.body < 0:
                    self.floats[feature.source : feature.source + 3] += shift
        self.origin = origin

    @property
    def reference_points(self) -> FloatArray:
        """Origins of the reference frames [m] in body axes, shape (bodies, 3)."""
        return self.reference_frames[:, :3]

    @property
    def reference_axes(self) -> FloatArray | None:
        """Quaternions body ← reference, shape (bodies, 4); None where the axes are those of the bodies."""
        return self.reference_frames[:, 3:] if self.reference_frames.shape[1] > 3 else None

    def _measure_points(self, rounded: bool) -> None:
        """The characteristic length where each body has all its joint points in one place, perhaps by rounding."""
        q = self.authored.ravel().copy()
        _tables.shift_reference(len(self.names), self.reference_frames.reshape(-1), self.origin, 1.0, q)
        size = max([record.size for record in self._source.records], default=0.0)
        span = self._span()
        if self._source.references is not None:  # centres of mass: away from the joints, they are a size of the body
            arms = np.linalg.norm(self.reference_points - self.centroids, axis=1)
            span = max(span, float(arms.max(initial=0.0)))
        drawn = (self.authored[:, :3], self.centroids, self.origin)
        far = max([float(np.abs(table).max(initial=0.0)) for table in drawn])
        if self._is_rounding(span, far):
            self.noise = max(self.noise, span)
            span, rounded = 0.0, True
        closed = self._is_closed() and not rounded
        if not span and (size <= ROUNDED * far or not (closed or size > LEAST_SPREAD)):
            size = 0.0
        self.own_length = max(size, span) if span else 0.0
        self.length = max(size, span)
        if span:
            self._check_length()
            return
        apart = min(self._spread(q, 0.0 if closed else LEAST_SPREAD), LENGTHS[1])
        self.unit = min(max(size, apart), MOST_UNIT * size if size else 1.0)
        if not size:
            self.spread = self.length = apart
        self._check_length()

    def _span(self) -> float:
        """Largest extent [m] of a body's joint points and the origins of frames that only give directions; or zero."""
        found: dict[str, list[Any]] = {}
        for name, location in [location for record in self._source.records for location in record.locations]:
            found.setdefault(name, []).append(location)
        if not found:
            return 0.0
        pointed = self._pointed()
        if self._is_absolute():
            pointed.discard(-1)  # then the origin is that of the world, not the centroid of the ground's points
        spans = []
        for name, locations in found.items():
            number = self.index[name] if name else -1
            if number in pointed:
                locations.append(self.centroids[number] if name else self.origin)
            points = np.array(locations)
            span = _extent(points)
            spans.append(span if span > COINCIDENT * float(np.abs(points).max()) else 0.0)
        return max(spans)

    def _is_absolute(self) -> bool:
        """Whether a primitive depends on the world's origin."""
        return not self._plain and any([primitive.absolute for primitive in self.primitives])

    def _has_absolute(self) -> bool:
        """Whether a primitive, or one of a rate row, depends on the world's origin."""
        return self._is_absolute() or any([record.primitive.absolute for record in self._packed.rate_records])

    def _pointed(self) -> set[int]:
        """Numbers of the bodies with joint points, −1 for the ground."""
        table = self.ints.tolist()
        features = [feature for at in self.starts[:-1].tolist() for feature in reading.features(table, at)]
        return {max(feature.body, -1) for feature in features if feature.kind == layout.POINT}

    def _is_closed(self) -> bool:
        """Whether all lengths are in the model: no driver, no limit, no user's primitive."""
        return (
            not self.signals
            and not self.timed
            and all([kind.code >= 0 and kind.equations > 0 for kind in self.primitives])
        )

    def _check_length(self) -> None:
        if self.length and not LENGTHS[0] <= self.length <= LENGTHS[1]:
            raise ModelError(
                f"the extent of the mechanism is {self.length} m; it must lie between {LENGTHS[0]} and {LENGTHS[1]} m, "
                "so that squares of lengths can be computed: choose another unit, or correct the points"
            )

    def extent_at(self, q: FloatArray) -> float:
        """The unit of length of solvers [m]: L; of points in one place the spread of the bodies in coordinates q."""
        if self.own_length:
            return self.own_length
        least = 0.0 if self.spread else self.length
        return max(self._spread(q, LEAST_OF_START * self.judged_length), least) or self.unit

    def _spread(self, q: FloatArray, least: float) -> float:
        """Extent [m] of the centroids in solver coordinates q; zero up to ``least``, or to rounding."""
        poses = q[: layout.POSE * len(self.names)].reshape(-1, layout.POSE)
        points = poses[:, :3]
        if self.reference_axes is not None:
            arms = euler.rotate(euler.conjugate(self.reference_axes), self.centroids - self.reference_points)
            points = points + euler.rotate(poses[:, 3:], arms)
        if self.grounded:
            points = np.vstack([points, np.zeros(3)])
        spread = _extent(points)
        drawn = (points, self.origin, self.centroids, self.authored[:, :3])
        largest = max([float(np.abs(table).max(initial=0.0)) for table in drawn])
        return spread if spread > max(COINCIDENT * largest, least) else 0.0

    @property
    def display(self) -> Display:
        """Units of texts."""
        return self._source.display

    @property
    def constraints(self) -> tuple[str, ...]:
        """Of every relation the name of the constraint that it belongs to."""
        return self._packed.constraints

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every relation with its first row in the residual vector, in the order of the tables."""
        return self.cached("rows", self._rows)

    def _rows(self) -> tuple[Row, ...]:
        return tuple(map(Row, self._source.constraints, self.primitives, ints_at(self, layout.ROW)))

    @property
    def addressed(self) -> IntArray:
        """The integers with addresses in place of codes, as evaluators need them; valid in this process only."""
        return self.cached("addressed", self._addressed)

    def _addressed(self) -> IntArray:
        if not self.variable_names and (self._plain or all([primitive.inline for primitive in self.primitives])):
            return self.ints
        ints = self.ints.copy()
        if self.variable_names:
            layout.SystemTable(ints).expand = _formulas.EXPAND
        ints[self.starts[: len(self.primitives)] + layout.CODE] = kernels.addresses(
            self.primitives, "", self._source.constraints
        )
        return ints

    def curvature_codes(self) -> IntArray:
        """Per constraint, the code or address of ẋᵀ f_xx ẋ."""
        return np.array(kernels.curvature_addresses(self.primitives, self._source.constraints), dtype=np.int64)

    def floats_at(self, time: float) -> FloatArray:
        """The floats with the values of all functions of time at a time [s]; the system's own array without any."""
        if not self.signals and not self.timed:
            return self.floats
        floats = self.floats.copy()
        for position, signal in self.signals:
            floats[position] = signal.value(time)
        for position, _, function in self.timed:
            jet = function.jet(time)
            floats[position : position + 3] = jet.value, jet.rate, jet.acceleration
        return floats

    def refuse_timed(self, what: str) -> None:
        """ModelError if a parameter is a function of time, which ``what`` does not support."""
        if self.timed:
            _, number, function = self.timed[0]
            raise ModelError(
                f"{self.constraints[number]!r}: its parameter {function.name!r} is a function of time, which {what} "
                "does not support; give a number, or drive a coordinate with m.drive"
            )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Groups of bodies that constraints connect without the ground, each with a system of its own; made once.

        Bodies that nothing constrains are in none.  A mechanism in one piece is its own only piece.
        """
        # its own only piece is not kept: it refers to the system
        return split(self) if self.in_one_piece else self.cached("pieces", lambda: split(self))

    @property
    def edges(self) -> Mapping[str, Edge]:
        """Joints that declare the motion they allow, by name."""
        return self._source.edges

    @property
    def rated(self) -> System:
        """The system with its rate rows behind all other rows, for velocities; itself if there are none.

        Solver coordinates and velocities are the same.
        """
        if not self._packed.rate_records:
            return self
        return self.cached("rated", lambda: self._with_rates(self._source.constraints, self._source.records))

    @property
    def rates_alone(self) -> System:
        """The system of the rate rows alone, with the same solver coordinates and velocities."""
        return self.cached("rates alone", lambda: self._with_rates((), ()))

    def _with_rates(self, constraints: tuple[str, ...], records: tuple[Record, ...]) -> System:
        own = self._source
        frames = self.reference_frames
        if frames.shape[1] == 3:
            frames = np.hstack([frames, np.tile([1.0, 0.0, 0.0, 0.0], (len(frames), 1))])
        changes: dict[str, Any] = {"constraints": constraints + own.rate_constraints, "references": frames}
        changes |= {"records": records + own.rate_records, "rate_constraints": (), "rate_records": ()}
        return self._derived(own._replace(**changes, origin=self.origin))

    @property
    def rate_constraints(self) -> tuple[str, ...]:
        """Names of the rate rows, one for each relation."""
        return self._source.rate_constraints

    def numbers(self) -> dict[int, int]:
        """Number of each body and of each counted angle by its serial number; −1 for the ground."""
        serials = (self._source.serials, [angle.serial for angle in self._source.angles])
        return {-1: -1} | {serial: k for kind in serials for k, serial in enumerate(kind)}

    def judged(self) -> System:
        """This system with every primitive in the form that verdicts use, in metres and radians; made once."""
        if self._plain:
            return self
        return self.cached("judged", self._judged)

    def with_references(self, references: FloatArray) -> System:
        """The same system with other reference frames, shape (bodies, 7)."""
        return self._derived(self._source._replace(references=references))

    def _judged(self) -> System:
        if all([primitive.judged_as == primitive.name for primitive in self.primitives]):
            return self
        records = tuple([record.judged() for record in self._source.records])
        return System.from_source(self._source._replace(records=records))

    def judged_powers(self) -> IntArray:
        """Per row of the judged system the power of length it is divided by; −k for a row of counted angles.

        k ≥ 1: the ratio of a gear, by which the rounding of an angle is multiplied.
        """
        judged = self.judged()
        if not judged.counted_angles:
            return judged.powers

        def make() -> Any:
            if any(["ratio" in primitive.parameters for primitive in judged.primitives]):
                return _with_angles_marked(judged)
            return self.cached("marked rows", lambda: _with_angles_marked(judged))

        return self.cached("judged powers", make)

    def least_sensitivity(self, length: float) -> float:
        """The least of :meth:`sensitivities`, at most 1."""
        return min(1.0, float(self.sensitivities(length).min(initial=1.0)))

    def sensitivities(self, length: float) -> FloatArray:
        """Of every row the ratio of its residual to that in judged form, shape (rows,); 1 where they are the same.

        d·d − l² is 2 l (|d| − l) near its solution, in units of L² instead of L; u·v − cos α is sin α times the angle.
        """
        found: FloatArray = np.ones(len(self.powers))
        if self.judged() is not self:
            for par, (_, primitive, start) in zip(ints_at(self, layout.PAR), self.rows, strict=True):
                if primitive.judged_as != primitive.name:
                    value = float(self.floats[par])
                    found[start] = 2.0 * value / length if primitive.unit == "m²" else math.sin(value)
        return found

    @property
    def unconnected(self) -> tuple[str, ...]:
        """Names of the bodies that no chain of constraints connects to the ground."""
        return tuple(self.names[k] for k in np.flatnonzero(self.level < 0))

    @property
    def equations(self) -> int:
        """Number of constraint equations; limits and drivers are none."""
        return sum([record.primitive.equations for record in self._packed.records if record.signal is None])

    @property
    def gruebler(self) -> int:
        """6 × bodies + free variables − equations: the freedom a count of equations predicts."""
        return 6 * len(self.names) + len(self.variables.free) - self.equations

    def state(
        self, coordinates: FloatArray | None = None, angles: FloatArray | None = None, time: float = 0.0
    ) -> State:
        """A state of this system: the authored one, or that with r, p of each body given, shape (bodies, 7).

        angles [rad], shape (angles,): the counted angles, behind the variables.  time [s].
        """
        if coordinates is None:
            coordinates = self.authored.copy()
        if angles is None:
            return State(self.names, self.index, coordinates, time=time, drawn=self.values)
        names = self.variable_names
        wanted = (len(names) + len(self.counted_angles),)
        if angles.shape != wanted:
            raise ModelError(f"the angles of a state have shape {angles.shape}; it must be {wanted}")
        counted = dict(zip(self.counted_angles, angles[len(names) :].tolist(), strict=True))
        values: Mapping[str, float] = self.values
        if names:
            found = self.rounded_to_bounds(angles[: len(names)]).tolist()
            values = {**values, **dict(zip(names, found, strict=True))}
        return State(self.names, self.index, coordinates, angles=counted, time=time, drawn=values)

    def rounded_to_bounds(self, values: FloatArray) -> FloatArray:
        """Values of the variables, shape (…, variables), in which those beyond a bound by rounding are at the bound.

        Those with a period are within half a period of the value that the mechanism has.
        """
        lower, upper, scales = self.cached("bounds", self._bounds)
        at_bound = np.clip(values, lower, upper)
        room = AT_BOUND * np.maximum(np.abs(at_bound), scales)
        found: FloatArray = np.where(np.abs(values - at_bound) <= room, at_bound, values)
        book = self._packed.book
        assert book is not None
        for k, name in enumerate(self.variables.free):
            period = book.periods[book.names.index(name)]
            if period > 0.0:
                found[..., k] -= period * np.round((found[..., k] - self.near[name]) / period)
        return found

    def nodes(self) -> list[int]:
        """Nodes of the formulas in use."""
        parts: list[Record | AngleRecord] = [*self._packed.records, *self._packed.rate_records, *self._packed.angles]
        return self.cached("nodes", lambda: [node for part in parts for _, node in part.bindings])

    @property
    def idle(self) -> list[str]:
        """Free variables that no constraint depends on, except for their bounds."""
        source, free = self._packed, self.variables.free
        if source.book is None or not free:
            return []
        pairs = zip(source.constraints, source.records, strict=True)
        nodes = [node for name, record in pairs if name not in free for _, node in record.bindings]
        used = source.book.parameters_of(nodes)
        return [name for name in free if name not in used]

    def are_valid(self, values: FloatArray) -> Any:
        """Whether formulas allow values of the variables, shape (…, variables): axes that are not zero, lengths, …"""
        book = self._packed.book
        assert book is not None
        return book.are_valid({**self.values, **dict(zip(self.variable_names, values.T, strict=True))}, self.nodes())

    def check_values(self, given: Mapping[str, float]) -> None:
        """ModelError where a formula does not allow values of the parameters, with the reason."""
        book = self._packed.book
        assert book is not None
        book.check(book.evaluate({**book.drawn(), **self.values, **given}), self.nodes())

    def within_bounds(self, angles: FloatArray) -> FloatArray:
        """Variables and counted angles, with each variable moved to its bound where it is beyond."""
        lower, upper, _ = self.cached("bounds", self._bounds)
        found = angles.copy()
        found[: len(lower)] = np.clip(angles[: len(lower)], lower, upper)
        return found

    def _bounds(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of every variable the bounds and the scale; shape (variables,) each."""
        book = self._packed.book
        assert book is not None
        assert self.variable_scales is not None
        bounds = np.array([book.bounds[book.names.index(name)] for name in self.variable_names])
        scales = np.zeros(len(bounds))
        scales[: len(self.variables.free)] = self.variable_scales.at(self.judged_length)
        return bounds[:, 0], bounds[:, 1], scales

    def cached(self, key: Any, make: Callable[[], T]) -> T:
        """What make() returned the first time: derived tables, shared by all callers."""
        found: T | None = self._cache.get(key)
        if found is None:
            if self._shared is not self._cache and (key in _SHARED or key[0] in _SHARED):
                found = self._shared.get(key)
                if found is None:
                    found = self._shared[key] = make()
            else:
                found = make()
            self._cache[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return System.from_source, (self._source,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, System):
            return NotImplemented
        mine, theirs = self._source, other._source
        plain = [
            [(r.primitive, r.signal, r.size, r.locations, r.timed) for r in source.records] for source in (mine, theirs)
        ]
        if mine.rate_constraints != theirs.rate_constraints:
            return False
        if mine.rate_constraints and self.rated != other.rated:
            return False
        if mine.names != theirs.names or mine.constraints != theirs.constraints or plain[0] != plain[1]:
            return False
        if self.counted_angles != other.counted_angles:
            return False
        if [record.pair for record in mine.records] != [record.pair for record in theirs.records]:
            return False
        floats = [system.floats.copy() for system in (self, other)]
        for k in self._touching:  # addresses
            for own in floats:
                own[self.ints[self.starts[k] + layout.PAR]] = 0.0
        pairs = ((self.ints, other.ints), (floats[0], floats[1]), (self.authored, other.authored))
        frames = ((self.reference_frames, other.reference_frames), (self.origin, other.origin))
        return all(bool(np.array_equal(a, b)) for a, b in (*pairs, *frames))

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __repr__(self) -> str:
        return f"<System of {len(self.names)} bodies, {self.equations} equations, L = {self.length:.4g} m>"


def _extent(points: FloatArray) -> float:
    """Twice the largest distance [m] of a point from their centroid."""
    apart = points - points.mean(axis=0)
    far = float(np.abs(apart).max(initial=0.0)) or 1.0  # scaled, so that the squares do not vanish
    return 2.0 * far * float(np.sqrt(((apart / far) ** 2).sum(axis=1)).max(initial=0.0))


def _joined(parts: Sequence[bytes], kind: Any) -> Any:
    """One array of packed parts: a view of a bytearray, since what bytes hold cannot be written to."""
    return np.frombuffer(bytearray(b"".join(parts)), dtype=kind) if parts else np.empty(0, dtype=kind)


def _numbers(bodies: Sequence[int], angles: Sequence[int]) -> IntArray:
    """Number by serial number, of bodies and of counted angles; −1 for all others."""
    most = max(max(bodies, default=-1), max(angles, default=-1))
    numbers = array("q", b"\xff" * (8 * (most + 1)))
    for serials in (bodies, angles):
        for number, serial in enumerate(serials):
            numbers[serial] = number
    return np.frombuffer(numbers, dtype=np.int64)


_NONE: IntArray = np.empty(0, dtype=np.int64)
# What does not depend on numbers: attributes of a system, and keys of its cache.
_UNCHANGED = (
    *("_plain", "_touching", "authored", "counted_angles", "has_contacts", "index", "ints", "names", "powers"),
    *("primitives", "variables"),
)
_SHARED = frozenset(  # keys, or first items of keys, of derived tables that do not depend on values of parameters
    (
        *("structure", "addressed", "rows", "drawing", "nodes", "marked rows", "absolute"),
        *("driver rows", "turns to count", "drivers of angles"),
    )
)
_DISTANCES = [primitives.distance.code, primitives.distance_squared.code]
_RODS: IntArray = np.array([*_DISTANCES, *[FIRST_CODE - code for code in _DISTANCES]], dtype=np.int64)
_HEADER = struct.Struct(f"{layout.ANGLES + 1}q{8 * (layout.HEADER - layout.ANGLES - 1)}x")  # the rest is zero
_EMPTY: Any = ((),) * len(Record._fields)  # columns of no records


def touches(
    names: Mapping[int, str], keys: Mapping[int, str], constraints: Iterable[tuple[str, Any]]
) -> dict[str, Touch]:
    """By the name of each contact, what reads it in a state.

    names: of bodies, by their serial numbers; keys: of counted angles, likewise; constraints: names with their records.
    """
    names = {**names, -1: ""}
    found: dict[str, Touch] = {}
    for name, record in constraints:
        if record.pair is not None and record.primitive.equations and not record.primitive.of_rates:
            floats = array("d", record.floats)
            a, _, b, _, *angles = reading.features(reading.template(record.ints))
            places = [floats[end.source :][: layout.POSE] for end in (a, b)]
            own = tuple(keys[angle.source] for angle in angles)
            found[name] = Touch(record.pair, (names[a.body], names[b.body]), np.array(places), own)
    return found


def ints_at(system: System, field: int) -> list[int]:
    """One field of every record."""
    return system.ints[system.starts[:-1] + field].tolist()


def _with_angles_marked(system: System) -> IntArray:
    powers = system.powers.copy()
    parameters = ints_at(system, layout.PAR)
    for (_, primitive, start), first in zip(system.rows, parameters, strict=True):
        if FeatureKind.ANGLE in primitive.features and not primitive.is_contact:
            factor = 1.0
            if "ratio" in primitive.parameters:
                ratio = float(system.floats[first + list(primitive.parameters).index("ratio")])
                factor = min(max(1.0, abs(ratio)), MOST_RATIO)
            rows = powers[start : start + primitive.rows]
            rows[rows == 0] = -int(factor)
    return powers
