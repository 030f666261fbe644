"""Spanning tree of a mechanism: which joints carry the coordinates, and which are cut.

Bodies are nodes, the ground is the root, joints that leave a motion with coordinates of its own are edges.  An edge in
the tree removes its equations from the problem, so the tree that leaves fewest is one of greatest weight, the weight
of a joint being the number of its equations: Prim's algorithm from the ground.  Among equals the body nearest to the
ground is hung first, and then the joint first by name, so that loops are cut far from the ground, long chains are cut
in the middle, and the order in which a model was written does not matter.  What no joint connects hangs on the ground
by a free joint, of weight zero.

A joint is known by its primitives alone (PATTERNS), as the tables hold them: nothing else is asked of a system.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import Row, System

Floats = tuple[float, ...]

STILL: Final = 0
ABOUT_Z: Final = 1
CROSSED: Final = 2
ANYHOW: Final = 3

GROUND: Final = -1
AXES_ATOL = 1e-14  # axes of one frame are orthogonal to rounding, and differ by no more where they are stored twice
INDIFFERENT = 1e-9  # of its derivatives' size: what a rigid motion of all bodies may change of a constraint


class Motion(NamedTuple):
    """What a joint leaves free, in its frame on the parent: translations (1: z, 2: x and y, 3: all), then a turn."""

    translations: int
    turn: int

    def coordinates(self) -> int:
        return self.translations + (0, 1, 2, 4)[self.turn]

    def unknowns(self, euler: bool) -> int:
        return self.translations + (0, 1, 2, 4 if euler else 3)[self.turn]


FREE: Final = Motion(3, ANYHOW)

# By the names of the primitives, in the order in which joints state them.
PATTERNS: dict[tuple[str, ...], Motion] = {
    ("coincidence", "rotation_vector"): Motion(0, STILL),  # fixed
    ("coincidence", "aligned"): Motion(0, ABOUT_Z),  # revolute
    ("dot_2", "dot_2", "rotation_vector"): Motion(1, STILL),  # prismatic
    ("dot_2", "dot_2", "aligned"): Motion(1, ABOUT_Z),  # cylindrical
    ("dot_2", "dot_2", "aligned", "rack"): Motion(0, ABOUT_Z),  # screw
    ("coincidence",): Motion(0, ANYHOW),  # spherical
    ("coincidence", "dot_1"): Motion(0, CROSSED),  # universal
    ("dot_2", "aligned"): Motion(2, ABOUT_Z),  # planar
    ("aligned",): Motion(3, ABOUT_Z),  # parallel
    ("dot_1",): Motion(3, CROSSED),  # perpendicular
}


class End(NamedTuple):
    """A joint's frame on a body: quaternion body ← frame, and place [m] from the body's reference point."""

    quaternion: Floats
    place: Floats


IDENTITY: Final = End((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


class Edge(NamedTuple):
    """A joint that can be part of the tree: bodies a and b (−1: the ground), their frames, the records it replaces."""

    name: str
    weight: int
    motion: Motion
    a: int
    b: int
    end_a: End
    end_b: End
    pitch: float  # [m] per radian
    counted: int  # 1 + number of the turn that its angle is, 0: none
    records: tuple[int, ...]


class Limb(NamedTuple):
    """One body of the tree: what it hangs on, by which joint, with that joint's frames on the parent and on itself."""

    body: int
    parent: int  # body, −1: the ground
    joint: str  # "": a free joint, of no name
    motion: Motion
    on_parent: End
    on_body: End
    pitch: float
    counted: int  # ± (1 + number of the turn that its angle is), − where that is measured from this body; 0: none


class Path(NamedTuple):
    """A cut constraint: its record in the system's table, and the limbs (by number, ascending) that its value depends
    on: those of its bodies' ways to the root that are not common to all."""

    record: int
    limbs: tuple[int, ...]
    ancestor: int  # limb where the ways meet, −1: the ground


class Tree(NamedTuple):
    """Limbs, parents first; the constraints that are left; and for each limb the limb (−1: the ground) that the turn of
    its body is measured from."""

    limbs: tuple[Limb, ...]
    paths: tuple[Path, ...]
    references: tuple[int, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints in the tree."""
        return tuple(limb.joint for limb in self.limbs if limb.joint)


def spanning_tree(system: System) -> Tree:
    """The tree of a system; made once."""
    found: Tree = system.cached("tree", lambda: _grow(system))
    return found


def _grow(system: System) -> Tree:
    table = system.ints.tolist()
    edges = _edges(system, table)
    limbs = _hang(system, edges)
    replaced = {record for edge in _chosen(edges, limbs) for record in edge.records}
    number = {limb.body: k for k, limb in enumerate(limbs)}
    number[GROUND] = GROUND
    parents = [number[limb.parent] for limb in limbs]
    depth = [0] * (len(limbs) + 1)  # the last is the ground's
    depth[GROUND] = -1
    for k, parent in enumerate(parents):
        depth[k] = depth[parent] + 1
    paths = []
    references = [GROUND] * len(limbs)
    for record, row in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        if record in replaced:
            continue
        bodies, grounded = _bodies(table, record)
        ends = [number[body] for body in bodies]
        if grounded or not is_indifferent(system, row):
            ends.append(GROUND)
        ancestor = ends[0]
        for end in ends[1:]:
            ancestor = _meet(ancestor, end, parents, depth)
        touched: set[int] = set()
        for end in ends:
            while end != ancestor and end not in touched:
                touched.add(end)
                end = parents[end]
        paths.append(Path(record, tuple(sorted(touched)), ancestor))
        if ancestor != GROUND:
            for k in touched:
                if depth[ancestor] > depth[references[k]]:
                    references[k] = ancestor
    return Tree(tuple(limbs), tuple(paths), tuple(references))


def _meet(a: int, b: int, parents: list[int], depth: list[int]) -> int:
    """Lowest common ancestor of two limbs."""
    while a != b:
        if depth[a] >= depth[b]:
            a = parents[a]
        else:
            b = parents[b]
    return a


def _bodies(table: list[int], record: int) -> tuple[list[int], bool]:
    """Movable bodies of a constraint, and whether it has a feature on the ground."""
    first = record + layout.RECORD
    at = first + table[record + layout.SLOTS]
    count = table[record + layout.FEATURES]
    features = range(at, at + layout.FEATURE * count, layout.FEATURE)
    grounded = any(table[f + layout.BODY] < 0 and table[f + layout.KIND] != layout.TURN for f in features)
    return table[first:at], grounded


# --- the joints that can be edges -------------------------------------------------------------------------------------


def _edges(system: System, table: list[int]) -> list[Edge]:
    """Every joint of a pattern whose frames are those of a joint: on two bodies, with axes that belong together."""
    floats = system.floats.tolist()
    starts = system.starts.tolist()
    names = [row.constraint for row in system.rows]
    kinds = [row.primitive.name if row.primitive.code >= 0 else "" for row in system.rows]  # a user's has any name
    equations = [row.primitive.equations for row in system.rows]
    edges = []
    at, count = 0, len(names)
    while at < count:
        end = at + 1
        while end < count and names[end] == names[at]:
            end += 1
        pattern = tuple(kinds[at:end])
        motion = PATTERNS.get(pattern)
        if motion is not None:
            read = _read(table, floats, pattern, starts[at:end])
            if read is not None:
                edges.append(Edge(names[at], sum(equations[at:end]), motion, *read, tuple(starts[at:end])))
        at = end
    return edges


def _read(
    table: list[int], floats: list[float], pattern: tuple[str, ...], records: list[int]
) -> tuple[int, int, End, End, float, int] | None:
    """Bodies and frames of a joint of that pattern, or None where its features do not make it one."""
    bodies: tuple[int, int] | None = None
    place_a = place_b = None
    turn_a = turn_b = IDENTITY.quaternion
    normals = []
    for primitive, record in zip(pattern, records, strict=True):
        first = record + layout.RECORD + table[record + layout.SLOTS]
        last = first + layout.FEATURE * (table[record + layout.FEATURES] - 1)
        pair = table[first + layout.BODY], table[last + layout.BODY]
        if pair[0] == pair[1] or bodies not in (None, pair):
            return None
        bodies = pair
        a, b = table[first + layout.SOURCE], table[last + layout.SOURCE]
        if primitive == "rack":
            assert place_a is not None and place_b is not None  # of the slide before it
            ends = End(turn_a, tuple(place_a)), End(turn_b, tuple(place_b))
            return _read_thread(table, floats, record, bodies, *ends) if _belong(normals, _axis(turn_a)) else None
        if any([table[at + layout.BODY] != pair[0] for at in range(first, last, layout.FEATURE)]):
            return None  # all but the last are on a
        if primitive == "coincidence" or primitive == "dot_2":
            if primitive == "dot_2":
                if floats[table[record + layout.PAR]] != 0.0:
                    return None
                normals.append(floats[a : a + 3])
                a = table[last - layout.FEATURE + layout.SOURCE]
            places = floats[a : a + 3], floats[b : b + 3]
            if place_a is not None and places != (place_a, place_b):
                return None
            place_a, place_b = places
        elif primitive == "rotation_vector":
            turn_a, turn_b = tuple(floats[a : a + 4]), tuple(floats[b : b + 4])
        else:  # the axis z of a is the last of what is on a
            a = table[last - layout.FEATURE + layout.SOURCE]
            turn_a, turn_b = _with_axis(floats[a : a + 3]), _with_axis(floats[b : b + 3])
    assert bodies is not None
    if normals and not _belong(normals, _axis(turn_a)):
        return None
    on_a = End(turn_a, IDENTITY.place if place_a is None else tuple(place_a))
    on_b = End(turn_b, IDENTITY.place if place_b is None else tuple(place_b))
    return *bodies, on_a, on_b, 0.0, 0


def _read_thread(
    table: list[int], floats: list[float], record: int, bodies: tuple[int, int], on_a: End, on_b: End
) -> tuple[int, int, End, End, float, int] | None:
    """A screw: d = radius·θ + offset on the axis of a slide that turns.  Its angle counts from x of both frames."""
    features = []
    at = record + layout.RECORD + table[record + layout.SLOTS]
    for _ in range(table[record + layout.FEATURES]):
        source = table[at + layout.SOURCE]
        features.append((table[at + layout.BODY], source, floats[source : source + 3]))
        at += layout.FEATURE
    (_, _, x), (_, _, y), (_, _, v), (_, turn, _), (_, _, axis), (_, _, p), (_, _, q) = features
    a, b = bodies
    if [body for body, _, _ in features] != [a, a, b, -1, a, a, b]:
        return None
    turned_a, turned_b = _with_axes(on_a.quaternion, x), _with_axes(on_b.quaternion, v)
    z = _axis(turned_a)
    same = (axis, z), (p, on_a.place), (q, on_b.place), (x, _turned(turned_a, _X)), (y, _turned(turned_a, _Y))
    if any([math.dist(u, w) > AXES_ATOL for u, w in (*same, (v, _turned(turned_b, _X)))]):
        return None
    par = table[record + layout.PAR]
    radius, offset = floats[par : par + 2]
    place = tuple([c + offset * k for c, k in zip(on_a.place, z, strict=True)])
    return a, b, End(turned_a, place), End(turned_b, on_b.place), radius, turn + 1


_X, _Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def _turned(p: Floats, u: Floats) -> Floats:
    """A(p) u of a unit quaternion."""
    w, x, y, z = p
    t = (2.0 * (y * u[2] - z * u[1]), 2.0 * (z * u[0] - x * u[2]), 2.0 * (x * u[1] - y * u[0]))
    return (
        u[0] + w * t[0] + y * t[2] - z * t[1],
        u[1] + w * t[1] + z * t[0] - x * t[2],
        u[2] + w * t[2] + x * t[1] - y * t[0],
    )


def _with_axes(p: Floats, x: Sequence[float]) -> Floats:
    """The frame p turned about its z until its x is there."""
    one, two = _turned(p, _X), _turned(p, _Y)
    half = 0.5 * math.atan2(sum(map(float.__mul__, two, x)), sum(map(float.__mul__, one, x)))
    c, s = math.cos(half), math.sin(half)
    return p[0] * c - p[3] * s, p[1] * c + p[2] * s, p[2] * c - p[1] * s, p[3] * c + p[0] * s


def _with_axis(z: Sequence[float]) -> Floats:
    """Quaternion of a frame with that unit axis z, whatever its x: the least turn from z or −z, which is nearer."""
    if z[2] >= 0.0:
        n = math.sqrt(2.0 * (1.0 + z[2]))
        return 0.5 * n, -z[1] / n, z[0] / n, 0.0
    n = math.sqrt(2.0 * (1.0 - z[2]))
    return -z[1] / n, 0.5 * n, 0.0, z[0] / n


def _axis(p: Floats) -> Floats:
    """z of a frame."""
    w, x, y, z = p
    return 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)


def _belong(normals: list[list[float]], z: Floats) -> bool:
    """Whether translations that the normals leave are those along z (two normals), or those across z (one)."""
    if len(normals) == 1:
        return math.dist(normals[0], z) <= AXES_ATOL
    pairs = ((normals[0], z), (normals[1], z), (normals[0], normals[1]))
    return all([abs(u[0] * v[0] + u[1] * v[1] + u[2] * v[2]) <= AXES_ATOL for u, v in pairs])


# --- the tree ---------------------------------------------------------------------------------------------------------


def _hang(system: System, edges: list[Edge]) -> list[Limb]:
    """Prim's algorithm from the ground: the heaviest joint to a new body, of equals the one nearest to the ground."""
    at_body: list[list[int]] = [[] for _ in range(len(system.names) + 1)]  # the last is the ground's
    for k, edge in enumerate(edges):
        at_body[edge.a].append(k)
        at_body[edge.b].append(k)
    depth = [-1] * len(system.names) + [0]
    limbs: list[Limb] = []
    heap = [(-edges[k].weight, 1, edges[k].name, k, GROUND) for k in at_body[GROUND]]
    heapq.heapify(heap)
    unhung = iter(sorted(range(len(system.names)), key=system.names.__getitem__))
    while len(limbs) < len(system.names):
        if heap:
            _, level, _, k, parent = heapq.heappop(heap)
            edge = edges[k]
            forward = edge.a == parent
            body = edge.b if forward else edge.a
            if depth[body] >= 0:
                continue
            ends = (edge.end_a, edge.end_b) if forward else (edge.end_b, edge.end_a)
            limbs.append(Limb(body, parent, edge.name, edge.motion, *ends, edge.pitch, edge.counted if forward else -edge.counted))
        else:
            body = next(body for body in unhung if depth[body] < 0)
            level = 1
            limbs.append(Limb(body, GROUND, "", FREE, IDENTITY, IDENTITY, 0.0, 0))
        depth[body] = level
        for k in at_body[body]:
            other = edges[k].b if edges[k].a == body else edges[k].a
            if depth[other] < 0:
                heapq.heappush(heap, (-edges[k].weight, level + 1, edges[k].name, k, body))
    return limbs


def _chosen(edges: list[Edge], limbs: list[Limb]) -> list[Edge]:
    names = {limb.joint for limb in limbs if limb.joint}
    return [edge for edge in edges if edge.name in names]


# --- constraints that know nothing of the world -----------------------------------------------------------------------


def is_indifferent(system: System, row: Row) -> bool:
    """Whether a constraint states only how its features lie to each other, as all built-in primitives do: its value is
    the same in all axes, or is a vector that is turned along with them.

    A primitive of the user's is tried: at random poses of the system a rigid motion of all bodies, a displacement and
    a turn ω, must change its value f by 0, or by ω × f, to first order.  A function that knows of the world's axes or
    origin fails it, but for one in ever so many places, of which a fixed one is taken.
    """
    if row.primitive.code >= 0:
        return True
    tried: FloatArray = system.cached("rigid motions", lambda: _try_rigid_motions(system))
    return bool((tried[row.start : row.start + row.primitive.rows] <= INDIFFERENT).all())  # not so where it is NaN


def _try_rigid_motions(system: System) -> FloatArray:
    """Per row, by how much a rigid motion changes it otherwise, in parts of its derivatives' size; shape (rows,)."""
    from cardan.coordinates import formulations
    from cardan.math import euler

    rng = np.random.default_rng(1)
    count = len(system.names)
    poses = rng.normal(size=(count, layout.POSE))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1)[:, None]
    problem = formulations.problem(system, "manifold", 1.0)
    f, entries = problem.entries(
        formulations.rewound(system, np.concatenate([poses.ravel(), np.zeros(len(system.turns))]))
    )
    changes: FloatArray = np.empty(system.powers.size)
    matrices = [euler.matrix(p) for p in poses[:, 3:]]
    for record in system.starts[:-1].tolist():
        row, rows, block, slots = (int(system.ints[record + k]) for k in _PLACES)
        bodies = system.ints[record + layout.RECORD :][:slots]
        J = entries[6 * block : 6 * (block + rows * slots)].reshape(rows, slots, 6)
        moments = np.zeros((rows, 3))
        for k, body in enumerate(bodies):
            moments += J[:, k, 3:] @ matrices[body].T + np.cross(poses[body, :3], J[:, k, :3])
        turned = np.abs(moments).max(axis=1)
        if rows == 3:
            along = np.abs(moments + euler.tilde(f[row : row + 3])).max(axis=1)  # ω × f = −f̃ ω
            turned = min(turned, along, key=np.max)
        shifted = np.abs(J[:, :, :3].sum(axis=1)).max(axis=1)
        size = np.abs(J).max(axis=(1, 2), initial=np.finfo(float).tiny)
        changes[row : row + rows] = np.maximum(shifted, turned) / size
    return changes


_PLACES = (layout.ROW, layout.ROWS, layout.BLOCK, layout.SLOTS)
