"""Variables of a system: design parameters that are unknowns, or that differ from start to start.

A variable has a place in q behind the poses.  Numbers of the tables that depend on variables are evaluated by a kernel
(:mod:`cardan.system._formulas`) before every walk over the records: the local coordinates of features, and numbers of
joints, which are scalar features of a promoted primitive.  The same kernel gives their derivatives by free variables.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.constraints.expression import Graph, Scalar
from cardan.constraints.promotion import bound, promoted
from cardan.constraints.registry import FeatureKind
from cardan.errors import ModelError
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.formulas import Book, evaluated
from cardan.system.relations import Record

if TYPE_CHECKING:
    from cardan.system.state import FloatArray
    from cardan.system.system import Source, System

OPERATIONS: Final = (
    *("constant", "variable", "+", "-", "*", "/"),
    *(f"call {name}" for name in ("sqrt", "sin", "cos", "tan", "exp", "log", "asin", "acos", "atan")),
    *("call sinh", "call cosh", "call tanh", "call atan2", "call power"),
)  # in the order of the codes of the kernel


class Variables(NamedTuple):
    """Names of the free variables, and of those that are given with each start; in the order of q."""

    free: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.free + self.given


class Scales(NamedTuple):
    """Per free variable, the largest derivative of a length [m] and of a pure number by it."""

    lengths: FloatArray
    numbers: FloatArray
    sizes: FloatArray  # drawn values, where no number depends on a variable to first order

    def at(self, length: float) -> FloatArray:
        """The change of each variable that changes a length by ``length``, or a number by one."""
        slope = np.maximum(self.lengths / length, self.numbers)
        fallback = np.where(self.sizes != 0.0, np.abs(self.sizes), 1.0)
        return np.where(slope > 0.0, 1.0 / np.where(slope > 0.0, slope, 1.0), fallback)


def with_variables(source: Source, variables: Variables) -> Source:
    """The source with promoted primitives, and a row of bounds for each free variable that has some."""
    book = source.book
    assert book is not None
    chosen = set(variables.names)
    names, records = list(source.constraints), []
    for name, record in zip(source.constraints, source.records, strict=True):
        try:
            records.append(_activated(record, book, chosen))
        except ModelError as error:
            raise ModelError(f"{name!r}: {error}") from None
    lengths = _length_variables(records, book)
    for name in variables.free:
        number = book.names.index(name)
        lower, upper = book.bounds[number]
        if math.isfinite(lower) or math.isfinite(upper):
            primitive = bound("m" if name in lengths else "rad")
            own = _template(primitive, (source.drawn[name], lower, upper), ((0, book.nodes[number]),))
            names.append(name)
            records.append(_activated(own, book, chosen))
    return source._replace(constraints=tuple(names), records=tuple(records), variables=variables)


def _template(primitive: Any, floats: tuple[float, ...], bindings: tuple[tuple[int, int], ...]) -> Record:
    """The record of a primitive without features."""
    head = reading.Head(code=primitive.code, rows=primitive.rows, par=len(floats), next=layout.RECORD)
    tables = array("q", head).tobytes(), array("d", floats).tobytes(), array("q", primitive.powers).tobytes()
    return Record(primitive, *tables, None, 0.0, (), bindings)


def _activated(record: Record, book: Book, names: set[str]) -> Record:
    """The record with scalar features for its parameters that depend on the variables.

    A squared length becomes the length itself: d·d − l² has a second root, −l, which is no length.
    """
    used = [(position, node) for position, node in record.bindings if book.parameters_of([node]) & names]
    count = len(record.primitive.parameters)
    chosen = tuple(sorted(position for position, _ in used if position < count))
    if not chosen:
        return record
    if 2 in record.primitive.powers:
        record = record.judged()
    form = promoted(record.primitive, chosen)
    ints = array("q", record.ints).tolist()
    column = ints[layout.COMPONENTS]
    for position in chosen:
        ints += reading.FeatureRow(layout.SCALAR, body=-1, slot=-1, source=position, column=column)
        column += 1
    ints[layout.CODE] = form.code
    ints[layout.FEATURES] += len(chosen)
    ints[layout.COMPONENTS] = column
    ints[layout.NEXT] = len(ints)
    return record._replace(primitive=form, ints=array("q", ints).tobytes())


def _length_variables(records: Sequence[Record], book: Book) -> set[str]:
    """Variables that only change lengths."""
    lengths: set[str] = set()
    others: set[str] = set()
    for record in records:
        ints = reading.template(record.ints)
        for position, node in record.bindings:
            place = _feature_at(ints, 0, position)
            is_length = place is not None and _is_length(record, place.kind)
            (lengths if is_length else others).update(book.parameters_of([node]))
    return lengths - others


def _is_length(record: Any, kind: int) -> bool:
    """Whether a feature is a length: a point, or a number of a primitive whose rows are lengths."""
    return kind == layout.POINT or (kind == layout.SCALAR and max(record.primitive.powers) > 0)


class _Place(NamedTuple):
    """A component of a feature."""

    kind: int
    body: int
    number: int  # of the feature
    component: int


def _feature_at(ints: list[int], record: int, position: int) -> _Place | None:
    """Where a float of the record is."""
    for k, (kind, body, _, source, _) in enumerate(reading.features(ints, record)):
        if kind != layout.ANGLE and source <= position < source + FeatureKind(kind).components:
            return _Place(kind, body, k, position - source)
    return None


class _Program:
    """The nodes that the kernel evaluates."""

    def __init__(self, book: Book, variables: Variables, drawn: Mapping[str, float]) -> None:
        self.graph = Graph()
        self._nodes: list[Scalar] = []
        numbers = {name: k for k, name in enumerate(variables.names)}
        self.seeds = [self.graph.variable(f"x{k}") for k in range(len(numbers))]
        for node in book.graph.nodes[: len(book.values)]:
            if node.operation == "variable":
                name = book.names[int(str(node.value)[1:])]
                k = numbers.get(name or "")
                held = drawn.get(name or "", 0.0)
                self._nodes.append(self.graph.constant(held) if k is None else self.seeds[k])
            elif node.operation == "constant":
                self._nodes.append(self.graph.constant(float(node.value)))  # type: ignore[arg-type]  # a number
            else:
                arguments = tuple(self._nodes[a.index] for a in node.arguments)
                self._nodes.append(self.graph.node(node.operation, arguments))
        self._memos: list[dict[int, Scalar]] = [{} for _ in numbers]
        self.outputs: list[tuple[Scalar, int, tuple[int, int] | None]] = []  # node, place, body and axis of the shift
        self.tangents: list[Scalar] = []

    def node(self, number: int) -> Scalar:
        return self._nodes[number]

    def derivative(self, number: int, variable: int) -> Scalar:
        """By a variable."""
        one = self.graph.constant(1.0)
        return self.graph.derivative(self._nodes[number], {self.seeds[variable]: one}, self._memos[variable])

    def packed(self, first_float: int) -> tuple[list[int], list[float]]:
        """Nodes, outputs without shifts and tangents as integers, and the constants, which begin at a place."""
        wanted = [node for node, *_ in self.outputs] + self.tangents
        needed: set[int] = set()
        stack = list(wanted)
        while stack:
            node = stack.pop()
            if node.index not in needed:
                needed.add(node.index)
                stack += node.arguments
        numbers: dict[int, int] = {}
        ints: list[int] = []
        constants: list[float] = []
        for node in self.graph.nodes:
            if node.index not in needed:
                continue
            numbers[node.index] = len(numbers)
            if node.operation == "constant":
                ints += (0, first_float + len(constants), 0)
                constants.append(float(node.value))  # type: ignore[arg-type]  # a constant is a number
            elif node.operation == "variable":
                ints += (1, int(str(node.value)[1:]), 0)
            else:
                arguments = [numbers[a.index] for a in node.arguments]
                ints += (OPERATIONS.index(node.operation), arguments[0], arguments[-1])
        self.count = len(numbers)
        self.numbers = numbers
        return ints, constants


def extend(system: System) -> None:
    """Add the table of variables to a packed system whose source has some."""
    source = system._source
    book, variables = source.book, source.variables
    assert book is not None
    program = _Program(book, variables, source.drawn)
    free, chosen = len(variables.free), set(variables.names)
    ints = system.ints.tolist()
    lengths, numbers = np.zeros(free), np.zeros(free)
    links: list[tuple[int, list[int], list[tuple[int, int, int]]]] = []  # record, columns, links
    for record, start in zip(source.records, system.starts[:-1].tolist(), strict=True):
        par = reading.record(ints, start).par
        by_feature: dict[int, dict[int, int]] = {}
        kinds: dict[int, int] = {}
        for position, node in record.bindings:
            if not book.parameters_of([node]) & chosen:
                continue  # its value is drawn already
            place = _feature_at(ints, start, par + position)
            assert place is not None
            kind, body, number, component = place
            shift = (body, component) if kind == layout.POINT else None
            program.outputs.append((program.node(node), par + position, shift))
            by_feature.setdefault(number, {})[component] = node
            kinds[number] = kind
        columns: dict[int, int] = {}
        own: list[tuple[int, int, int]] = []
        for number, components in by_feature.items():
            for v in range(free):
                slopes = {c: program.derivative(node, v) for c, node in components.items()}
                if all(slope.is_zero for slope in slopes.values()):
                    continue
                column = columns.setdefault(v, len(columns))
                own.append((number, column, len(program.tangents)))
                zero = program.graph.constant(0.0)
                size = FeatureKind(kinds[number]).components
                program.tangents += [slopes.get(c, zero) for c in range(size)]
                is_length = _is_length(record, kinds[number])
                links_of = lengths if is_length else numbers
                values = _values(program.graph, [source.drawn[name] for name in variables.names])
                slope_size = math.sqrt(sum(values[s.index] ** 2 for s in slopes.values()))
                if math.isfinite(slope_size):
                    links_of[v] = max(links_of[v], slope_size)
        if columns:
            order = sorted(columns)  # ascending, as the blocks of a constraint in the solvers
            place_of = {columns[v]: k for k, v in enumerate(order)}
            links.append((start, order, [(number, place_of[column], at) for number, column, at in own]))
    for angle, first in zip(source.angles, reading.angle_records(system)["source"].tolist(), strict=True):
        for position, node in angle.bindings:
            if book.parameters_of([node]) & chosen:
                program.outputs.append((program.node(node), first + position, None))
    _write(system, ints, program, links)
    drawn = np.array([source.drawn[name] for name in variables.free])
    system.variable_scales = Scales(lengths, numbers, drawn)


def _values(graph: Graph, variables: list[float]) -> list[float]:
    """Values of all nodes of a graph."""
    found: list[float] = []
    for node in graph.nodes:
        found.append(variables[int(str(node.value)[1:])] if node.operation == "variable" else evaluated(node, found))
    return found


def _write(
    system: System, ints: list[int], program: _Program, links: list[tuple[int, list[int], list[tuple[int, int, int]]]]
) -> None:
    """The table, between the records and the counted angles; constants and shifts at the end of the floats."""
    variables = system._source.variables
    size = system.floats.size
    nodes, constants = program.packed(size)
    outputs: list[int] = []
    for node, place, shift in program.outputs:
        at = -1
        if shift is not None:
            body, axis = shift
            at = size + len(constants)
            constants.append(float(system.origin[axis] if body < 0 else system.centroids[body, axis]))
        outputs += (program.numbers[node.index], place, at)
    tangents = [program.numbers[node.index] for node in program.tangents]
    counts = (program.count, len(program.outputs), len(tangents), size + len(constants))
    table = [*counts, *nodes, *outputs, *tangents]
    first = ints[layout.ANGLE_TABLE]
    extra = 0
    wide = {start: len(columns) for start, columns, _ in links}
    for start in system.starts[:-1].tolist():
        ints[start + layout.EXTRA] = extra
        extra += ints[start + layout.ROWS] * wide.get(start, 0)
    for start, columns, own in links:
        ints[start + layout.WIDE] = len(columns)
        ints[start + layout.LINKS] = first + len(table)
        table += [*columns, len(own), *(value for link in own for value in link)]
    ints[first:first] = table
    system.ints = np.array(ints, dtype=np.int64)
    header = layout.SystemTable(system.ints)
    header.write(variables=len(variables.names), free=len(variables.free), extras=extra)
    header.write(variable_table=first, angle_table=first + len(table))
    header.expanded = size + len(constants) + len(tangents) + program.count
    system.floats = np.concatenate([system.floats, np.array(constants, dtype=np.float64)])
    _unite(system, {start: columns for start, columns, _ in links})


def _unite(system: System, columns: Mapping[int, list[int]]) -> None:
    """Pieces with a common free variable are one: leaders of bodies, and of variables."""
    leader = system.leader.tolist()
    count = len(leader)
    parent = list(range(count + len(system._source.variables.free)))

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    def join(a: int, b: int) -> None:
        a, b = root(a), root(b)
        parent[max(a, b)] = min(a, b)

    for body, first in enumerate(leader):
        if first >= 0:
            join(body, first)
    ints = system.ints.tolist()
    for start in system.starts[:-1].tolist():
        blocks = reading.bodies(ints, start) + [count + v for v in columns.get(start, [])]
        for block in blocks[1:]:
            join(blocks[0], block)
    system.leader = np.array([root(b) if leader[b] >= 0 else -1 for b in range(count)], dtype=np.int64)
    system.variable_leader = tuple([root(count + v) for v in range(len(parent) - count)])
    whole = {*system.leader.tolist(), *system.variable_leader}
    system.in_one_piece = whole == {0}
