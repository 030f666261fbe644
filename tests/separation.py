"""Certificates that convex solids are apart, independent of the library: a plane between them.

The support h(d) = max d·x of a box, a cylinder or a sphere has a closed form.  For any unit vector n

    −h_b(−n) − h_a(n) ≤ gap,

so a single n for which the left side is not negative proves that the solids do not overlap, wherever n comes from.
"""

from __future__ import annotations

import numpy as np

import cardan as cd
from cardan.math import euler


def support(shape, pose, d) -> float:
    """h(d) in world; pose: (x, y, z, w, qx, qy, qz)."""
    local = np.asarray(euler.rotate(euler.conjugate(pose[3:]), d))
    if isinstance(shape, cd.shapes.solids.Box):
        reach = float(0.5 * np.abs(local) @ shape.size)
    elif isinstance(shape, cd.shapes.solids.Cylinder):
        reach = shape.radius * float(np.hypot(*local[:2])) + 0.5 * shape.height * abs(float(local[2]))
    else:
        reach = shape.radius * float(np.linalg.norm(local))
    return float(d @ pose[:3]) + reach


def between(a, pose_a, b, pose_b, n) -> float:
    """The room between two solids along n [m]: a lower bound of their gap.  None for a is the half-space z ≤ 0."""
    n = np.asarray(n) / np.linalg.norm(n)
    if a is None:
        up = np.asarray(euler.rotate(pose_a[3:], [0.0, 0.0, 1.0]))
        return -support(b, pose_b, -up) - float(up @ pose_a[:3])
    if b is None:
        return between(b, pose_b, a, pose_a, -n)
    return -support(b, pose_b, -n) - support(a, pose_a, n)


def room(a, pose_a, b, pose_b, hint) -> float:
    """The largest room that some directions give: the hint, the line of the centres, the axes of both."""
    axes = [np.asarray(euler.matrix(pose[3:])).T for pose in (pose_a, pose_b)]
    ways = [hint, pose_b[:3] - pose_a[:3], *axes[0], *axes[1], *-axes[0], *-axes[1]]
    return max(between(a, pose_a, b, pose_b, n) for n in ways if np.linalg.norm(n) > 0.0)
