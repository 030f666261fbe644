"""Proofs that no pose satisfies a system: by triangle inequalities, by linear equations of coordinates, and by
displacements along a common direction (:mod:`cardan.analysis.common_direction`).

Points.  Two points of a body have a fixed distance; joints make points coincide, fix or limit their distance, or keep a
point on a line or in a plane of another body.  In every pose, the distance of two points is at most the length of each
path of such distances between them.  If the shortest path between two points (or lines, or planes) of one body is
shorter than their distance, or that between the ends of a rod shorter than the rod, no pose satisfies the joints on
the path.

Directions.  The same holds for angles, which are distances on the unit sphere.  Every direction u has its antipode −u
as a second node: an angle of at least α between u and v is an angle of at most π − α between u and −v.  So lower bounds
are edges too, and the contradiction is a path from u to −u that is shorter than π.

Coordinates.  Gears, racks, screws and drivers are linear equations in the angles and displacements of joints, with
whole turns.  If no values of these coordinates satisfy them, no pose does.

Each joint on a path may deviate by the tolerance; this is added to its length, so a proof holds for the verdict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.analysis.common_direction import displacements_contradict
from cardan.math import euler
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import System

if TYPE_CHECKING:
    from fractions import Fraction

SLACK: Final = 4.0  # of the tolerance, per joint: a vector of three rows deviates by up to √3 times its bound
ROUNDING: Final = 256 * float(np.finfo(float).eps)  # of the lengths computed here, relative to the coordinates
PARALLEL: Final = 1e-12  # [rad] planes at a larger angle may meet
MOST_SOURCES: Final = 64  # paths begin at the ends of the longest fixed distances only
MOST_EDGES: Final = 200_000  # larger systems are not examined
MOST_DIRECTIONS: Final = 400
MOST_EQUATIONS: Final = 400

Node = tuple[int, tuple[float, ...]]  # a body (−1: the ground), and a point or direction in its axes


class _Graph:
    """Upper bounds of distances between nodes: edges (from, to, length)."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.of_body: dict[int, list[int]] = defaultdict(list)
        self.values: list[tuple[float, ...]] = []
        self.edges: list[tuple[int, int, float]] = []

    def node(self, body: int, value: tuple[float, ...]) -> int:
        """The number of a point or direction of a body."""
        known = self.numbers.get((body, value))
        if known is None:
            known = self.numbers[body, value] = len(self.values)
            self.of_body[body].append(known)
            self.values.append(value)
        return known

    def distances(self, count: int, sources: list[int]) -> FloatArray:
        """Lengths of the shortest paths from the sources to all of ``count`` nodes, shape (sources, count)."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        # of several edges between two nodes the shortest counts
        order = sorted(self.edges, key=lambda edge: -edge[2])
        best = {(a, b): length for a, b, length in order}
        ends = np.array(list(best), dtype=np.int32).reshape(-1, 2)  # dijkstra of SciPy 1.12 refuses 64 bits
        lengths = np.array(list(best.values()))
        table = coo_array((lengths, (ends[:, 0], ends[:, 1])), shape=(count, count)).tocsr()
        return dijkstra(table, directed=True, indices=sources)


def is_impossible(system: System, tolerance: float, time: float) -> bool:
    """Whether it is proved that no pose satisfies the system; False if nothing is proved.  time [s]: of the drivers."""
    floats = system.floats_at(time)
    records = _records(system, floats.tolist())
    return (
        _coordinates_contradict(system, records, tolerance)
        or _points_contradict(system, records, tolerance)
        or _directions_contradict(records, tolerance)
        or _displacements_contradict(system, records, tolerance)
    )


def _records(system: System, floats: list[float]) -> list[tuple[str, list[Node], list[float]]]:
    """Name of the primitive, features and parameters of every record."""
    ints = system.ints.tolist()
    found: list[tuple[str, list[Node], list[float]]] = []
    names = set(system.variable_names)  # a proof must hold for all their values
    book = system._source.book
    at_variables = [
        bool(names and book and book.parameters_of([node for _, node in record.bindings]) & names)
        for record in system._source.records
    ]
    for (_, primitive, _), at in zip(system.rows, system.starts[:-1].tolist(), strict=True):
        nodes: list[Node] = []
        is_fixed = primitive.code >= 0 and not at_variables[len(found)]
        if is_fixed:
            for kind, body, _, source, _ in reading.features(ints, at):
                size = 4 if kind == layout.ORIENTATION else 3
                value = (float(source),) if kind == layout.ANGLE else tuple(floats[source : source + size])
                nodes.append((max(body, -1), value))
        par = reading.record(ints, at).par
        found.append((primitive.name if is_fixed else "", nodes, floats[par : par + len(primitive.parameters)]))
    return found


def _coordinates_contradict(system: System, records: list[Any], tolerance: float) -> bool:
    """Whether the linear equations of counted angles and displacements have no solution."""
    size = system.judged_length
    columns: dict[Any, int] = {}
    equations: list[tuple[list[tuple[int, float]], float]] = []  # (column, coefficient) …, right side

    def column(nodes: list[Node]) -> int:
        """Of an angle, whose last feature is its number, or of a displacement along an axis."""
        key = nodes[3] if len(nodes) == 4 else tuple(nodes)
        return columns.setdefault(key, len(columns))

    for name, nodes, given in records:
        if name == "gear":
            equations.append(([(column(nodes[4:]), 1.0), (column(nodes[:4]), -given[0])], given[1]))
        elif name == "rack":
            terms = [(column(nodes[4:]), 1.0), (column(nodes[:4]), -given[0] / size)]
            equations.append((terms, given[1] / size))
        elif name == "turned":
            equations.append(([(column(nodes), 1.0)], given[0]))
        elif name == "dot_2":
            equations.append(([(column(nodes), 1.0)], given[0] / size))
    if len(equations) < 2 or len(equations) > MOST_EQUATIONS:
        return False
    rounding = ROUNDING * max(abs(value) for _, value in equations)
    return _least_error(equations) > SLACK * tolerance + rounding


def _least_error(equations: list[tuple[list[tuple[int, float]], float]]) -> float:
    """A lower bound of the largest error with which linear equations can be met; zero if they have a solution.

    Exact elimination.  Where a combination Σ y_k of the equations has no unknowns left, but a right side e, every
    solution misses one of them by |e|/Σ|y_k| at least.
    """
    from fractions import Fraction

    pivots: dict[int, tuple[dict[int, Fraction], Fraction, dict[int, Fraction]]] = {}
    worst = Fraction(0)
    for k, (terms, value) in enumerate(equations):
        row: dict[int, Fraction] = {}
        for j, coefficient in terms:
            row[j] = row.get(j, Fraction(0)) + Fraction(coefficient)
        right, weights = Fraction(value), {k: Fraction(1)}
        while (column := next((j for j in row if j in pivots), None)) is not None:
            pivot, pivot_right, pivot_weights = pivots[column]
            factor = row[column] / pivot[column]
            row = _difference(row, factor, pivot)
            weights = _difference(weights, factor, pivot_weights)
            right -= factor * pivot_right
        row = {j: value for j, value in row.items() if value}
        if row:
            pivots[max(row, key=lambda j: abs(row[j]))] = row, right, weights
        else:
            worst = max(worst, abs(right) / sum(map(abs, weights.values())))
    return float(worst)


def _difference(a: dict[int, Fraction], factor: Fraction, b: dict[int, Fraction]) -> dict[int, Fraction]:
    """a − factor·b, without zeros."""
    found = {j: a.get(j, 0) - factor * b.get(j, 0) for j in {**a, **b}}
    return {j: value for j, value in found.items() if value}


def _rounding(system: System, records: list[Any]) -> float:
    """Rounding error [m] of the lengths computed here."""
    farthest = max([abs(x) for _, nodes, _ in records for _, value in nodes for x in value], default=0.0)
    drawn = float(np.abs(system.authored[:, :3]).max()) + float(np.abs(system.origin).max())
    return ROUNDING * (system.judged_length + farthest + drawn)


def _displacements_contradict(system: System, records: list[Any], tolerance: float) -> bool:
    """Whether displacements along a direction that several bodies have in common contradict each other."""
    locked = [nodes for name, nodes, _ in records if name == "rotation_vector"]
    slack = SLACK * tolerance * system.judged_length + _rounding(system, records)
    angle = SLACK * tolerance * (1 + len(locked)) + ROUNDING
    return displacements_contradict(records, _common_axes(locked)[0], slack, angle)


def _points_contradict(system: System, records: list[Any], tolerance: float) -> bool:
    """Whether some points, lines or planes of one body are further apart than a path between them."""
    graph = _Graph()
    size = system.judged_length
    rounding = _rounding(system, records)
    slack = SLACK * tolerance * size + rounding
    rods, sets = _read_distances(graph, records, slack)
    slide_sets = _read_planes(graph, sets, slack)
    if len(graph.edges) + sum(len(numbers) ** 2 for numbers in graph.of_body.values()) > MOST_EDGES:
        return False
    points = np.array(graph.values).reshape(-1, 3)
    rods += _rods_in_bodies(graph, points, rounding)
    rods += _rods_to_planes(graph, slide_sets, points, slack, rounding)
    rods = [rod for rod in rods if rod[2] > 0.0]
    longest = sorted(rods, key=lambda rod: -rod[2])
    sources = list(dict.fromkeys([rod[0] for rod in longest]))[:MOST_SOURCES]
    if not sources or not graph.edges:
        return False
    row = {source: k for k, source in enumerate(sources)}
    paths = graph.distances(len(points) + 2 * len(slide_sets), sources)
    return any(paths[row[a], b] < least for a, b, least in rods if a in row)


Rod = tuple[int, int, float]  # from, to, least distance
SlideSet = tuple[Any, int, FloatArray, FloatArray]  # body, number of the point, base, normals


def _read_distances(graph: _Graph, records: list[Any], slack: float) -> tuple[list[Rod], dict[Any, list[Any]]]:
    """Edges of the graph; least distances; and planes of one body on which a point of another is."""
    rods: list[Rod] = []
    sets: dict[tuple[Node, Node], list[tuple[tuple[float, ...], float]]] = defaultdict(list)
    for name, nodes, given in records:
        if name == "coincidence":
            _join(graph, nodes[0], nodes[1], slack)
        elif name in ("distance", "distance_squared", "distance_limit"):
            rods.append((*_join(graph, nodes[0], nodes[1], given[-1] + slack), given[0] - slack))
        elif name == "dot_2":
            (body, v), p, q = nodes
            if p[0] != q[0] and body in (p[0], q[0]):
                sets[(p, q) if body == p[0] else (q, p)].append((v, given[0] if body == p[0] else -given[0]))
    return rods, sets


def _read_planes(graph: _Graph, sets: dict[Any, list[Any]], slack: float) -> list[SlideSet]:
    """Lines and planes on which points are; three planes are a point, and an edge of the graph."""
    slide_sets: list[SlideSet] = []
    for (base, point), planes in sets.items():
        normals, offsets = np.array([v for v, _ in planes]), np.array([offset for _, offset in planes])
        if np.abs(normals @ normals.T - np.eye(len(planes))).max() > ROUNDING:
            continue
        at = np.array(base[1]) + offsets @ normals
        if len(planes) == 3:
            _join(graph, (base[0], tuple(at.tolist())), point, slack)
        else:
            slide_sets.append((base[0], graph.node(*point), at, normals))
    return slide_sets


def _rods_in_bodies(graph: _Graph, points: FloatArray, rounding: float) -> list[Rod]:
    """Edges between the points of each body, and their distances."""
    rods: list[Rod] = []
    for numbers in graph.of_body.values():
        apart = np.linalg.norm(points[numbers][:, None] - points[numbers], axis=2)
        for a, b in combinations(range(len(numbers)), 2):
            graph.edges.append((numbers[a], numbers[b], float(apart[a, b]) + rounding))
            graph.edges.append((numbers[b], numbers[a], float(apart[a, b]) + rounding))
            rods.append((numbers[a], numbers[b], float(apart[a, b]) - rounding))
    return rods


def _rods_to_planes(
    graph: _Graph, slide_sets: list[SlideSet], points: FloatArray, slack: float, rounding: float
) -> list[Rod]:
    """Least distances from lines and planes.  Each has a node where paths begin and one where they end: a path must not
    pass along it."""
    rods: list[Rod] = []
    count = len(points)
    for k, (body, number, at, normals) in enumerate(slide_sets):
        begin, end = count + 2 * k, count + 2 * k + 1
        graph.edges += [(begin, number, slack), (number, end, slack)]
        for other in graph.of_body[body]:
            rods.append((begin, other, float(np.linalg.norm(normals @ (points[other] - at))) - rounding))
        for j, (body_2, _, at_2, normals_2) in enumerate(slide_sets[:k]):
            if body_2 == body:
                common = _common(normals, normals_2)
                rods.append((begin, count + 2 * j + 1, float(np.linalg.norm(common @ (at_2 - at))) - rounding))
    return rods


def _join(graph: _Graph, a: Node, b: Node, length: float) -> tuple[int, int]:
    """Add an edge in both directions; returns its nodes."""
    ends = graph.node(*a), graph.node(*b)
    if math.isfinite(length):
        graph.edges += [(*ends, max(length, 0.0)), (*ends[::-1], max(length, 0.0))]
    return ends


def _common(first: FloatArray, second: FloatArray) -> FloatArray:
    """Orthonormal basis of the directions that are normal to both of two sets, as rows."""
    left, cosines, _ = np.linalg.svd(first @ second.T)
    found: FloatArray = left.T[: cosines.size] @ first
    outside = np.linalg.norm(found - found @ second.T @ second, axis=1)
    return found[outside <= PARALLEL]


def _directions_contradict(records: list[Any], tolerance: float) -> bool:
    """Whether some direction is nearer to its own antipode than π along a path of angles."""
    graph = _Graph()
    slack = SLACK * tolerance
    locked = [nodes for name, nodes, _ in records if name == "rotation_vector"]
    axes, mismatch = _common_axes(locked)
    within = ROUNDING + slack * len(locked)  # deviation of directions that move together
    if mismatch > within:
        return True
    bounds: list[tuple[int, int, float, float]] = []  # (u, v, least, largest angle)

    def node(body: int, u: tuple[float, ...]) -> int:
        leader, rotation = axes.get(body, (body, None))
        return graph.node(leader, u if rotation is None else tuple((rotation @ u).tolist()))

    def join(a: Node, b: Node, least: float, largest: float) -> None:
        bounds.append((node(*a), node(*b), least - slack, largest + slack))

    for name, nodes, given in records:
        if name == "aligned":
            join(nodes[2], nodes[3], 0.0, 0.0)
        elif name == "dot_1":
            join(nodes[0], nodes[1], 0.5 * math.pi, 0.5 * math.pi)
        elif name in ("angle", "angle_cosine", "inclination_limit"):
            join(nodes[0], nodes[1], given[0], given[-1])
    if not bounds or len(graph.values) > MOST_DIRECTIONS:
        return False
    u = np.array(graph.values)
    u /= np.linalg.norm(u, axis=1)[:, None]
    for own in graph.of_body.values():
        sums, differences = u[own][:, None] + u[own], u[own][:, None] - u[own]
        angles = 2.0 * np.arctan2(np.linalg.norm(differences, axis=2), np.linalg.norm(sums, axis=2))
        for a, b in combinations(range(len(own)), 2):
            bounds.append((own[a], own[b], float(angles[a, b]) - within, float(angles[a, b]) + within))
    for a, b, least, largest in bounds:
        for begin, end, length in ((2 * a, 2 * b, largest), (2 * a, 2 * b + 1, math.pi - least)):
            for first, last in ((begin, end), (end, begin), (begin ^ 1, end ^ 1), (end ^ 1, begin ^ 1)):
                graph.edges.append((first, last, max(length, 0.0)))
    paths = graph.distances(2 * len(u), list(range(0, 2 * len(u), 2)))
    return bool((paths[range(len(u)), range(1, 2 * len(u), 2)] < math.pi - ROUNDING).any())


def _common_axes(locked: list[list[Node]]) -> tuple[dict[int, tuple[int, FloatArray]], float]:
    """Bodies that cannot rotate relative to each other: {body: (leader, rotation leader ← body)}.

    Also the largest angle [rad] by which a loop of such joints does not close.
    """
    neighbours: dict[int, list[tuple[int, FloatArray]]] = defaultdict(list)
    for (a, p), (b, q) in locked:  # frames with the orientations p in a and q in b coincide
        between = euler.matrix(p) @ euler.matrix(q).T
        neighbours[a].append((b, between))
        neighbours[b].append((a, between.T))
    axes: dict[int, tuple[int, FloatArray]] = {}
    mismatch = 0.0
    for leader in neighbours:
        if leader in axes:
            continue
        axes[leader] = leader, np.eye(3)
        todo = [leader]
        for body in todo:
            rotation = axes[body][1]
            for other, between in neighbours[body]:
                if other not in axes:
                    axes[other] = leader, rotation @ between
                    todo.append(other)
                else:
                    chord = float(np.linalg.norm(rotation @ between - axes[other][1])) / math.sqrt(8.0)
                    mismatch = max(mismatch, 2.0 * math.asin(min(chord, 1.0)))
    return axes, mismatch
