"""Kinds of joints that replace others in some cases: each allows what the replaced one allows, and more.

A weld becomes a bent joint of constant velocity, a slide becomes an equal orientation, and a point on a line or in a
plane gets a distance from a line or plane that is moved by as much.  So the poses that satisfied the case still do.
"""

from __future__ import annotations

import numpy as np

from fuzz.geometry import axes, rotation

SHARE = 0.3  # of all cases of these families
FAMILIES = ("consistent", "redundant", "disconnected")  # no proof depends on their joints
REPLACED = {
    "fixed": "constant_velocity",
    "prismatic": "orientation",
    "point_on_line": "line_distance",
    "point_in_plane": "plane_distance",
}


def replace_some(case, seed, index):
    """Replace some joints of a case; the case is otherwise the same."""
    rng = np.random.default_rng([seed, index, 17])
    if rng.random() >= SHARE or case.family not in FAMILIES or case.proof is not None:
        return
    for joint in case.joints:
        if joint.kind not in REPLACED or rng.random() < 0.3:
            continue
        joint.kind = REPLACED[joint.kind]
        R = axes(joint.b.z, joint.b.x)
        size = float(np.linalg.norm(joint.b.origin)) or 1.0
        share, turn, sign = rng.uniform(0.2, 1.0), rng.uniform(-np.pi, np.pi), rng.choice([-1.0, 1.0])
        across = np.cos(turn) * R[:, 0] + np.sin(turn) * R[:, 1]
        if joint.kind == "constant_velocity":
            bent = rotation(across, 1.4 * share) @ R
            joint.b.z, joint.b.x = bent[:, 2].tolist(), bent[:, 0].tolist()
        elif joint.kind != "orientation":
            is_line = joint.kind == "line_distance"
            distance = float(share * size * (1.0 if is_line else sign))
            joint.b.origin = (np.asarray(joint.b.origin) - distance * (across if is_line else R[:, 2])).tolist()
            joint.options["distance"] = distance
