"""Spanning tree of a mechanism: which joints carry the coordinates, and which are cut.

Bodies are nodes, the ground is the root, joints that declare the motion they allow are edges.  An edge in
the tree removes its equations from the problem, so the tree that leaves fewest is one of greatest weight, the weight
of a joint being the number of its equations: Prim's algorithm from the ground.  [Prim1957]  Among equals the body
nearest to the ground is added first, then the joint first by name.  So loops are cut far from the ground, long chains
are cut in the middle, and the order in which a model was written does not matter.  A body that no joint connects is
attached to the ground by a free joint, of weight zero.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates.edges import FREE, Edges, edges
from cardan.system.relations import Motion, UserMotion
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System
from cardan.system.tables import ANGLE, BODY, FEATURE, FEATURES, KIND, RECORD, SLOTS

__all__ = ["GROUND", "Limb", "Path", "Tree", "spanning_tree"]

GROUND: Final = -1
_FREE: Final = -1  # in place of the number of an edge
_ORIGINS: Final = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0) * 2  # frames of a free joint


class Limb(NamedTuple):
    """One body of the tree, its parent, and the joint between them."""

    body: int
    parent: int  # body, −1: the ground
    joint: str  # "": a free joint, of no name
    motion: Motion
    frames: FloatArray  # shape (14,)
    pitch: float
    counted: int


class Path(NamedTuple):
    """A cut constraint: its number, its record in the system's table, and the limbs (ascending) that its value depends
    on: those on its bodies' paths to the root that are not common to all paths."""

    relation: int
    record: int
    limbs: list[int]
    ancestor: int  # limb where the paths meet, −1: the ground


class Tree(NamedTuple):
    """Limbs by columns, parents first; the constraints that are left; and for each limb the limb (−1: the ground) that
    the rotation of its body is measured from.

    ``frames``, shape (bodies, 14): of the joint on the parent, then on the body, each the quaternion reference ← frame
    and the origin [m] in the body's reference frame.  ``pitch`` [m/rad].  ``counted``: ± (1 + number of its angle among
    those counted), − where that is measured from this body; 0 for none.
    ``user_motions``: by limb, its motion if it is of the user's own, and whether it is that of frame a in frame b.
    """

    bodies: list[int]
    parents: list[int]
    names: list[str]
    motions: list[Motion]
    frames: FloatArray
    pitch: FloatArray
    counted: IntArray
    paths: list[Path]
    references: list[int]
    user_motions: dict[int, tuple[UserMotion, bool]]

    @property
    def limbs(self) -> list[Limb]:
        """One by one."""
        columns = (self.bodies, self.parents, self.names, self.motions, self.frames)
        return [Limb(*row) for row in zip(*columns, self.pitch.tolist(), self.counted.tolist(), strict=True)]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints in the tree."""
        return tuple(name for name in self.names if name)


def spanning_tree(system: System) -> Tree:
    """The tree of a system; made once."""
    return system.cached("tree", lambda: _grow(system))


def _grow(system: System) -> Tree:
    found = edges(system)
    bodies, parents, chosen = _attach(system, found)
    remaining = bytearray(b"\1") * (system.starts.size - 1)  # 1: not replaced by a joint of the tree
    for k in chosen:
        if k != _FREE:
            first, size = found.first[k], found.size[k]
            remaining[first : first + size] = bytes(size)
    paths, references = _paths(system, bodies, parents, remaining)

    frames: FloatArray = np.tile(_ORIGINS, (len(bodies), 1))
    pitch: FloatArray = np.zeros(len(bodies))
    counted: IntArray = np.zeros(len(bodies), dtype=np.int64)
    limbs = [k for k, edge in enumerate(chosen) if edge != _FREE]
    joints = [chosen[k] for k in limbs]
    if limbs:
        forward = np.array([found.a[k] for k in joints]) == np.array([parents[k] for k in limbs])
        taken = found.frames[joints]
        frames[limbs] = np.where(forward[:, None], taken, np.roll(taken, 7, axis=1))
        pitch[limbs] = found.pitch[joints]
        counted[limbs] = np.where(forward, found.counted[joints], -found.counted[joints])
    names = ["" if k == _FREE else found.names[k] for k in chosen]
    motions = [FREE if k == _FREE else found.motions[k] for k in chosen]
    user_motions: dict[int, tuple[UserMotion, bool]] = {}
    for k, joint in zip(limbs, joints, strict=True):
        motion = found.user_motions[joint]
        if motion is not None:
            user_motions[k] = motion, found.a[joint] != parents[k]
    return Tree(bodies, parents, names, motions, frames, pitch, counted, paths, references, user_motions)


def _paths(
    system: System, bodies: list[int], parent_bodies: list[int], remaining: bytearray
) -> tuple[list[Path], list[int]]:
    """The constraints that are left, and the limb that each limb's rotation is measured from: the lowest ancestor."""
    number = [GROUND] * (len(bodies) + 1)
    for k, body in enumerate(bodies):
        number[body] = k
    parents = [number[body] for body in parent_bodies]
    depth = [-1] * (len(bodies) + 1)  # the last is the ground's
    for k, parent in enumerate(parents):
        depth[k] = depth[parent] + 1
    table = system.ints.tolist()
    paths = []
    references = [GROUND] * len(bodies)
    for relation, record in enumerate(system.starts[:-1].tolist()):
        if not remaining[relation]:
            continue
        movable, grounded = _bodies(table, record)
        ends = [number[body] for body in movable]
        if grounded or not system.primitives[relation].indifferent:
            ends.append(GROUND)
        ancestor = ends[0]
        for end in ends[1:]:
            ancestor = _meet(ancestor, end, parents, depth)
        touched: set[int] = set()
        for end in ends:
            while end != ancestor and end not in touched:
                touched.add(end)
                end = parents[end]
        paths.append(Path(relation, record, sorted(touched), ancestor))
        if ancestor != GROUND:
            for k in touched:
                if depth[ancestor] > depth[references[k]]:
                    references[k] = ancestor
    return paths, references


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
    first = record + RECORD
    at = first + table[record + SLOTS]
    features = range(at, at + FEATURE * table[record + FEATURES], FEATURE)
    grounded = any([table[f + BODY] < 0 and table[f + KIND] != ANGLE for f in features])
    return table[first:at], grounded


def _attach(system: System, found: Edges) -> tuple[list[int], list[int], list[int]]:
    """Prim's algorithm from the ground: the heaviest joint to a new body, of equals the one nearest to the ground.

    Returns the bodies in the order in which they are added, their parents, and the numbers of the edges, or _FREE.
    """
    count = len(system.names)
    names, weights, first, second = found.names, found.weights, found.a, found.b
    at_body: list[list[int]] = [[] for _ in range(count + 1)]  # the last is the ground's
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        at_body[a].append(k)
        at_body[b].append(k)
    level_of = [-1] * count + [0]
    bodies: list[int] = []
    parents: list[int] = []
    chosen: list[int] = []
    heap = [(-weights[k], 1, names[k], k, GROUND) for k in at_body[GROUND]]
    heapq.heapify(heap)
    by_name = None
    while len(bodies) < count:
        if heap:
            _, level, _, k, parent = heapq.heappop(heap)
            body = second[k] if first[k] == parent else first[k]
            if level_of[body] >= 0:
                continue
        else:
            if by_name is None:
                by_name = iter(sorted(range(count), key=system.names.__getitem__))
            body = next(body for body in by_name if level_of[body] < 0)
            level, k, parent = 1, _FREE, GROUND
        bodies.append(body)
        parents.append(parent)
        chosen.append(k)
        level_of[body] = level
        for k in at_body[body]:
            other = second[k] if first[k] == body else first[k]
            if level_of[other] < 0:
                heapq.heappush(heap, (-weights[k], level + 1, names[k], k, body))
    return bodies, parents, chosen
