"""Proofs that a case cannot be assembled, as data, and the resulting bounds.

Each proof names joints in a closed loop that starts and ends at a body, ``host``.  By a triangle inequality the sum of
their errors is at least a gap in every pose, so some joint has an error of at least gap / count.  The gap is recomputed
from the description, so a minimised case is accepted only if its proof still holds.

``polygon``  points: a loop of joints that make points coincide (0) or fix their distance (d); the distance of the two
             points on each body is fixed.  The longest side exceeds the sum of the others by the gap.  [m]
``sets``     the distance of two points, lines or planes of one body, constrained by the first and the last joint of a
             chain, exceeds the length of the chain between them by the gap.  [m]
``sphere``   directions: a loop of joints that align axes (0) or fix their angle (π/2 or given); the angle between the
             two axes on each body is fixed.  The sum of a set T of sides (an odd number) exceeds the sum of the others
             by (|T| − 1)π and the gap.  This is the inequality of closed spherical polygons, applied after replacing
             every vertex between two sides of T by its antipode.  [rad]
``rotations``  a loop of joints that lock all rotation; the angle of the product of the rotations between them is the
             gap.  [rad]
"""

from __future__ import annotations

import numpy as np

from fuzz.geometry import angle_between, axes, length, rotation_angle


def total(case, found):
    """Sum of the errors of the joints in the proof."""
    k = 0 if case.proof["unit"] == "m" else 1
    return float(sum(found[name][k] for name in case.proof["joints"]))


def bound(case):
    """The gap [m or rad], computed from the description; ≤ 0 if the proof does not hold."""
    joints = {j.name: j for j in case.joints}
    if any(name not in joints for name in case.proof["joints"]):
        return -1.0
    loop = [joints[name] for name in case.proof["joints"]]
    return _BOUNDS[case.proof["kind"]](case.proof, loop)


def _ends(loop, host):
    """(entry end, exit end) of each joint along the loop from the host; None if the loop is not closed."""
    walk = []
    here = host
    for joint in loop:
        if joint.a.body == here:
            walk.append((joint.a, joint.b))
        elif joint.b.body == here:
            walk.append((joint.b, joint.a))
        else:
            return None
        here = walk[-1][1].body
    return walk if here == host else None


_MEET = ("spherical", "revolute", "universal", "fixed")
_ALIGN = ("revolute", "cylindrical", "prismatic", "planar", "parallel", "fixed")


def _polygon(proof, loop):
    walk = _ends(loop, proof["host"])
    if walk is None:
        return -1.0
    sides = []
    for k, joint in enumerate(loop):
        if joint.kind == "distance":
            sides.append(joint.options["length"])
        elif joint.kind not in _MEET:
            return -1.0
        sides.append(length(np.array(walk[k][0].origin) - np.array(walk[k - 1][1].origin)))
    return 2 * max(sides) - sum(sides)


def _affine(joint, host):
    """Base point and directions (columns) of the set on the host that contains a point of the joint's other end."""
    R = axes(host.z, host.x) if host.z is not None else np.eye(3)
    o = np.array(host.origin)
    if joint.kind in _MEET:
        return o, R[:, :0]
    if joint.kind in (("cylindrical", "prismatic") if host is joint.a else ("point_on_line",)):
        return o, R[:, 2:]
    if joint.kind == ("planar" if host is joint.a else "point_in_plane"):
        return o, R[:, :2]
    return None


def _sets(proof, loop):
    walk = _ends(loop, proof["host"])
    if walk is None:
        return -1.0
    first, last = _affine(loop[0], walk[0][0]), _affine(loop[-1], walk[-1][1])
    if first is None or last is None:
        return -1.0
    between = last[0] - first[0]
    left, values, _ = np.linalg.svd(np.hstack([first[1], last[1], np.zeros((3, 1))]))
    free = left[:, (np.append(values, [0.0] * 3)[:3] <= 1e-9)]
    chain = 0.0
    for k in range(1, len(loop)):
        chain += length(np.array(walk[k][0].origin) - np.array(walk[k - 1][1].origin))
        if k < len(loop) - 1:
            if loop[k].kind == "distance":
                chain += loop[k].options["length"]
            elif loop[k].kind not in _MEET:
                return -1.0
    return length(free.T @ between) - chain


def _sphere(proof, loop):
    walk = _ends(loop, proof["host"])
    if walk is None:
        return -1.0
    sides = []
    for k, joint in enumerate(loop):
        if any(end.z is None for end in (joint.a, joint.b)):
            return -1.0
        sides.append(angle_between(axes(walk[k - 1][1].z)[:, 2], axes(walk[k][0].z)[:, 2]))
        if joint.kind == "angle":
            sides.append(joint.options["angle"])
        elif joint.kind in ("perpendicular", "universal"):
            sides.append(0.5 * np.pi)
        elif joint.kind in _ALIGN:
            sides.append(0.0)
        else:
            return -1.0
    best = -1.0
    order = sorted(sides, reverse=True)
    for count in range(1, len(sides) + 1, 2):
        best = max(best, sum(order[:count]) - sum(order[count:]) - (count - 1) * np.pi)
    return best


def _rotations(proof, loop):
    walk = _ends(loop, proof["host"])
    if walk is None or any(j.kind not in ("fixed", "prismatic") for j in loop):
        return -1.0
    R = np.eye(3)
    for entered, left in walk:
        R = R @ axes(entered.z, entered.x) @ axes(left.z, left.x).T
    return rotation_angle(R)


_BOUNDS = {"polygon": _polygon, "sets": _sets, "sphere": _sphere, "rotations": _rotations}
