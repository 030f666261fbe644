"""Kinds of joints that replace others in some cases: each allows what the replaced one allows, and more.

A weld becomes a bent joint of constant velocity, a slide becomes an equal orientation, and a point on a line or in a
plane gets a distance from a line or plane that is moved by as much.  So the poses that satisfied the case still do.
Kinds that are neither drawn nor in this list replace any joint with as many equations, in a pose of their own: the
frame on b is moved to where they are closed.
"""

from __future__ import annotations

import numpy as np

from fuzz.case import GROUND, End
from fuzz.geometry import axes, matrix, rotation
from fuzz.oracles.joints import JOINTS
from fuzz.sketch import scaled, takes_a_point

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


def replace_by_new(case, seed, index):
    """Replace some joints by kinds that no family draws, with reference poses that close them."""
    new = [kind for kind, row in JOINTS.items() if row.draw is None and kind not in REPLACED.values()]
    rng = np.random.default_rng([seed, index, 18])
    if not new or case.family != "consistent" or case.reference is None or rng.random() >= SHARE:
        return
    poses = {GROUND: (np.zeros(3), np.eye(3))}
    poses |= {name: (np.array(p), matrix(q)) for name, (p, q) in case.reference.items()}
    for joint in case.joints:
        kind = str(rng.choice(new))
        old, row = JOINTS[joint.kind], JOINTS[kind]
        if row.equations > old.equations or row.rotational > old.rotational or rng.random() < 0.3:
            continue
        (p_a, R_a), (p_b, R_b) = poses[joint.a.body], poses[joint.b.body]
        local = np.eye(3) if joint.a.z is None else axes(joint.a.z, joint.a.x)
        pose = row.pose(rng)
        size = float(np.linalg.norm(joint.a.origin)) or 1.0
        origin = p_a + R_a @ (np.array(joint.a.origin) + size * (local @ pose.d))
        frame = R_b.T @ R_a @ local @ pose.R
        joint.kind, joint.options = kind, scaled(kind, pose.options, size)
        for end, R, is_point in zip((joint.a, joint.b), (local, frame), takes_a_point(kind), strict=True):
            end.z, end.x = (None, None) if is_point and end.z is None else (R[:, 2].tolist(), R[:, 0].tolist())
        joint.b = End(joint.b.body, (R_b.T @ (origin - p_b)).tolist(), joint.b.z, joint.b.x)
