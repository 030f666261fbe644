"""Spanning tree of a mechanism: which joints carry the coordinates, and which are cut.

Bodies are nodes, the ground is the root, joints that leave a motion with coordinates of its own are edges.  An edge in
the tree removes its equations from the problem, so the tree that leaves fewest is one of greatest weight, the weight
of a joint being the number of its equations: Prim's algorithm from the ground.  [Prim1957]  Among equals the body
nearest to the ground is hung first, and then the joint first by name, so that loops are cut far from the ground, long
chains are cut in the middle, and the order in which a model was written does not matter.  What no joint connects hangs
on the ground by a free joint, of weight zero.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

from cardan.coordinates.edges import ABOUT_Z, ANYHOW, CROSSED, FREE, STILL, Edge, Motion, edges
from cardan.system.layout import BODY, FEATURE, FEATURES, KIND, RECORD, SLOTS, TURN
from cardan.system.system import System

__all__ = ["ABOUT_Z", "ANYHOW", "CROSSED", "GROUND", "STILL", "Limb", "Path", "Tree", "spanning_tree"]

GROUND: Final = -1
_UNMOVED: Final = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] * 2


class Limb(NamedTuple):
    """One body of the tree: what it hangs on, and by which joint.

    ``frames``: of the joint on the parent, then on the body, each the quaternion body ← frame and the place [m] from
    the body's reference point.
    """

    body: int
    parent: int  # body, −1: the ground
    joint: str  # "": a free joint, of no name
    motion: Motion
    frames: list[float]
    pitch: float  # [m] per radian
    counted: int  # ± (1 + number of the turn that its angle is), − where that is measured from this body; 0: none


class Path(NamedTuple):
    """A cut constraint: its number, its record in the system's table, and the limbs (ascending) that its value depends
    on: those of its bodies' ways to the root that are not common to all."""

    use: int
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
    found = edges(system)
    limbs, chosen = _hang(system, found)
    left = bytearray(b"\1") * (system.starts.size - 1)
    for k in chosen:
        for use in range(found[k].first, found[k].first + found[k].size):
            left[use] = 0
    number = [0] * (len(limbs) + 1)
    number[GROUND] = GROUND
    for k, limb in enumerate(limbs):
        number[limb.body] = k
    parents = [number[limb.parent] for limb in limbs]
    depth = [0] * (len(limbs) + 1)  # the last is the ground's
    depth[GROUND] = -1
    for k, parent in enumerate(parents):
        depth[k] = depth[parent] + 1
    paths = []
    references = [GROUND] * len(limbs)
    for use, record in enumerate(system.starts[:-1].tolist()):
        if not left[use]:
            continue
        bodies, grounded = _bodies(table, record)
        ends = [number[body] for body in bodies]
        if grounded or not _is_indifferent(system, use):
            ends.append(GROUND)
        ancestor = ends[0]
        for end in ends[1:]:
            ancestor = _meet(ancestor, end, parents, depth)
        touched: set[int] = set()
        for end in ends:
            while end != ancestor and end not in touched:
                touched.add(end)
                end = parents[end]
        paths.append(Path(use, record, tuple(sorted(touched)), ancestor))
        if ancestor != GROUND:
            for k in touched:
                if depth[ancestor] > depth[references[k]]:
                    references[k] = ancestor
    return Tree(tuple(limbs), tuple(paths), tuple(references))


def _is_indifferent(system: System, use: int) -> bool:
    from cardan.coordinates.indifference import is_indifferent

    return is_indifferent(system, system.rows[use])


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
    grounded = any([table[f + BODY] < 0 and table[f + KIND] != TURN for f in features])
    return table[first:at], grounded


def _hang(system: System, found: list[Edge]) -> tuple[list[Limb], list[int]]:
    """Prim's algorithm from the ground: the heaviest joint to a new body, of equals the one nearest to the ground.

    Returns the limbs, and which edges they are made of.
    """
    count = len(system.names)
    at_body: list[list[int]] = [[] for _ in range(count + 1)]  # the last is the ground's
    for k, edge in enumerate(found):
        at_body[edge.a].append(k)
        at_body[edge.b].append(k)
    level_of = [-1] * count + [0]
    limbs: list[Limb] = []
    chosen: list[int] = []
    heap = [(-found[k].weight, 1, found[k].name, k, GROUND) for k in at_body[GROUND]]
    heapq.heapify(heap)
    by_name = None
    while len(limbs) < count:
        if heap:
            _, level, name, k, parent = heapq.heappop(heap)
            edge = found[k]
            forward = edge.a == parent
            body = edge.b if forward else edge.a
            if level_of[body] >= 0:
                continue
            frames, counted = edge.frames, edge.counted
            if not forward:
                frames, counted = frames[7:] + frames[:7], -counted
            limbs.append(Limb(body, parent, name, edge.motion, frames, edge.pitch, counted))
            chosen.append(k)
        else:
            if by_name is None:
                by_name = iter(sorted(range(count), key=system.names.__getitem__))
            body = next(body for body in by_name if level_of[body] < 0)
            level = 1
            limbs.append(Limb(body, GROUND, "", FREE, _UNMOVED, 0.0, 0))
        level_of[body] = level
        for k in at_body[body]:
            edge = found[k]
            if level_of[edge.b if edge.a == body else edge.a] < 0:
                heapq.heappush(heap, (-edge.weight, level + 1, edge.name, k, body))
    return limbs, chosen
