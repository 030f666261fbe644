"""Proofs that no pose satisfies a system, by displacements along a direction that several bodies have in common.

Joints with aligned axes make a direction of one body equal to one of another, and so on along a chain.  Let u be such a
direction in world, and d_k the same in the axes of body k, in every pose.  With y_k = u·r_k, points that coincide give

    y_a + d_a·p = y_b + d_b·q,

and so does a point that joints keep on a line or plane of another body, if u is normal to it.  These equations do not
depend on the pose.  If their sum along a closed loop is not zero, no pose satisfies the loop: links that lie beside
each other in a planar mechanism, for example, must return to the plane in which they begin.

Each joint may deviate by the tolerance: a point by its length, a direction by its angle times the arm of a point.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np

from cardan.system.state import FloatArray

PARALLEL: Final = 1e-12  # [rad] directions at a larger angle are not the same
DIGITS: Final = 9  # of a direction, by which it is recognised
MOST_RECORDS: Final = 4000  # larger systems are not examined

Axes = dict[int, tuple[int, FloatArray]]  # body: leader, rotation leader ← body; of bodies that do not rotate


def displacements_contradict(records: list[Any], axes: Axes, slack: float, angle: float) -> bool:
    """Whether displacements along a common direction contradict each other.

    records: (primitive, nodes, parameters) of every relation, where a node is a body and a point or direction in its
    axes.  slack [m], angle [rad]: by which a joint may deviate.
    """
    if len(records) > MOST_RECORDS:
        return False
    aligned: dict[int, list[tuple[FloatArray, int, FloatArray]]] = defaultdict(list)
    points: list[tuple[Any, Any]] = []
    planes: dict[Any, list[tuple[FloatArray, float]]] = defaultdict(list)
    seeds: list[tuple[int, FloatArray]] = []
    for name, nodes, given in records:
        if name == "aligned":
            (a, u), (b, v) = (_led(axes, *node) for node in nodes[2:4])
            aligned[a].append((u, b, v))
            aligned[b].append((v, a, u))
            seeds.append((a, u))
        elif name == "coincidence":
            points.append((nodes[0], nodes[1]))
        elif name == "dot_2":
            (body, v), p, q = nodes
            if p[0] != q[0] and body in (p[0], q[0]):
                key, sign = ((p, q), 1.0) if body == p[0] else ((q, p), -1.0)
                planes[key].append((np.array(v), sign * given[0]))
                seeds.append(_led(axes, body, v))
    seen: set[Any] = set()
    for leader, u in seeds:
        if _key(leader, u) not in seen:
            common = _spread(aligned, leader, u)
            seen |= {_key(body, sign * d) for body, d in common.items() for sign in (1.0, -1.0)}
            if len(common) > 1 and _has_open_loop(common, axes, points, planes, slack, angle):
                return True
    return False


def _led(axes: Axes, body: int, u: Any) -> tuple[int, FloatArray]:
    """A direction of a body as one of the leader of the bodies that do not rotate relative to it."""
    leader, rotation = axes.get(body, (body, None))
    direction = np.array(u) if rotation is None else rotation @ np.array(u)
    return leader, direction / np.linalg.norm(direction)


def _key(body: int, u: FloatArray) -> Any:
    return body, *(np.round(u, DIGITS) + 0.0).tolist()


def _spread(aligned: dict[int, list[Any]], leader: int, u: FloatArray) -> dict[int, FloatArray]:
    """The leaders that have the direction in common, and the direction in the axes of each."""
    common = {leader: u}
    todo = [leader]
    for body in todo:
        for own, other, v in aligned[body]:
            along = float(own @ common[body])
            is_same = float(np.linalg.norm(common[body] - along * own)) <= PARALLEL
            if is_same and other not in common:
                common[other] = v if along > 0.0 else -v
                todo.append(other)
    return common


def _has_open_loop(
    common: dict[int, FloatArray], axes: Axes, points: list[Any], planes: dict[Any, Any], slack: float, angle: float
) -> bool:
    """Whether the differences of y along some closed loop do not add up to zero."""

    def direction(body: int) -> FloatArray | None:
        leader, rotation = axes.get(body, (body, None))
        d = common.get(leader)
        return d if d is None or rotation is None else rotation.T @ d

    deviation = len(common) * (angle + PARALLEL)
    steps: dict[int, list[tuple[int, float]]] = defaultdict(list)
    allowed = 0.0  # sum over all joints, and so at least that of any loop

    def add(a: Any, b: Any, offset: float) -> None:
        """y_b − y_a = offset + d_a·p − d_b·q."""
        nonlocal allowed
        d_a, d_b = direction(a[0]), direction(b[0])
        if d_a is None or d_b is None:
            return
        p, q = np.array(a[1]), np.array(b[1])
        step = offset + float(d_a @ p) - float(d_b @ q)
        steps[a[0]].append((b[0], step))
        steps[b[0]].append((a[0], -step))
        allowed += slack + deviation * float(np.linalg.norm(p) + np.linalg.norm(q))

    for a, b in points:
        add(a, b, 0.0)
    for (base, point), own in planes.items():
        d = direction(base[0])
        if d is not None:
            normals, offsets = np.array([v for v, _ in own]), np.array([offset for _, offset in own])
            parts = np.linalg.lstsq(normals.T, d, rcond=None)[0]
            if np.linalg.norm(normals.T @ parts - d) <= PARALLEL:
                add(base, point, float(parts @ offsets))
    return _worst_loop(steps) > allowed


def _worst_loop(steps: dict[int, list[tuple[int, float]]]) -> float:
    """Largest sum of steps along a closed loop that a spanning forest leaves."""
    worst, y = 0.0, dict[int, float]()
    for first in steps:
        if first not in y:
            y[first] = 0.0
            todo = [first]
            for body in todo:
                for other, step in steps[body]:
                    if other not in y:
                        y[other] = y[body] + step
                        todo.append(other)
                    worst = max(worst, abs(y[body] + step - y[other]))
    return worst
