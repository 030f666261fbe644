"""Benchmark models as Cardan mechanisms."""

from __future__ import annotations

import numpy as np

import cardan as cd
from problems import Model, Pose, quaternion


def build(model: Model, poses: dict[int, Pose] | None = None) -> cd.Mechanism:
    """The model as a mechanism, with its bodies authored at ``poses`` (default: the reference poses)."""
    m = cd.Mechanism(model.name)
    bodies = {0: m.ground}
    for number in model.reference:
        if number:
            R, p = (poses or model.reference)[number]
            bodies[number] = m.body(f"body {number}", position=p, orientation=quaternion(R))
    for k, c in enumerate(model.joints):
        i, j, name = bodies[c.i], bodies[c.j], f"joint {k}"
        if c.kind == "spherical":
            m.spherical(name, i.point(c.point_i), j.point(c.point_j))
        elif c.kind == "distance":
            m.distance(name, i.point(c.point_i), j.point(c.point_j), c.length)
        elif c.kind == "prismatic":
            a = i.frame(c.point_i, z=c.axis_i)
            a = i.frame(c.point_i, z=c.axis_i, x=a.x)
            m.prismatic(name, a, j.frame(c.point_j, z=c.axis_j, x=c.rotation.T @ np.array(a.x)))
        else:
            add = m.revolute if c.kind == "revolute" else m.universal
            add(name, i.frame(c.point_i, z=c.axis_i), j.frame(c.point_j, z=c.axis_j))
    return m


def poses(state: cd.State) -> dict[int, Pose]:
    """Poses of a state in the form that the judge needs."""
    return {int(name.removeprefix("body ")): (pose.matrix, pose.position) for name, pose in state.items()}
