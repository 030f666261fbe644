"""Pinocchio: no assembly, but one step of its constrained dynamics on the RSUR four-bar, the loop closed by a 3-D
constraint.

Timed: ``constraintDynamics`` and ``integrate`` (1 ms, semi-implicit Euler, gravity, Baumgarte gains).  The residual
during the motion is reported too.  The loop is cut at the ball joint; the universal joint is two hinges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from peers import version as _version
from problems import Model, Pose

name = "Pinocchio"
tolerance = "Baumgarte, 1e-12 proximal"
problems = ()

SECONDS = 1e-3
GAIN = 200.0  # 1/s, of the Baumgarte correction, critically damped


def available() -> str | None:
    return _version("pin", "pinocchio")


def stepper(model: Model) -> tuple[Callable[[], None], Callable[[], dict[int, Pose]]]:
    """Stepper of the RSUR four-bar, from rest in its reference pose."""
    pivot, ball, cross, hinge = model.joints
    place = {k: pin.SE3(R, p) for k, (R, p) in model.reference.items()}
    lengths = {1: ball.point_i[0], 2: cross.point_i[0], 3: cross.point_j[0]}
    tree = pin.Model()
    tree.gravity.linear = np.array([0.0, 0.0, -9.81])

    def add(parent: int, axis: np.ndarray, at: pin.SE3, label: str) -> int:
        return tree.addJoint(parent, pin.JointModelRevoluteUnaligned(axis), at, label)

    def load(joint: int, body: int, at: pin.SE3) -> None:
        about = lengths[body] ** 2 / 12
        centre = np.array([lengths[body] / 2, 0.0, 0.0])
        tree.appendBodyToJoint(joint, pin.Inertia(1.0, centre, np.diag([0.001, about, about])), at)

    here = pin.SE3.Identity()
    crank = add(0, pivot.axis_j, place[1], "crank")  # its origin is on the axis
    rocker = add(0, hinge.axis_j, place[3], "rocker")
    # The joint frame has the coupler's axes and its origin at the universal joint.
    at_cross = place[3].inverse() * place[2] * pin.SE3(np.eye(3), cross.point_i)
    yoke = add(rocker, at_cross.rotation.T @ cross.axis_j, at_cross, "yoke")
    coupler = add(yoke, cross.axis_i, here, "coupler")
    from_cross = pin.SE3(np.eye(3), -cross.point_i)
    load(crank, 1, here)
    load(rocker, 3, here)
    load(coupler, 2, from_cross)

    closed = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D,
        tree,
        crank,
        pin.SE3(np.eye(3), ball.point_i),
        coupler,
        from_cross * pin.SE3(np.eye(3), ball.point_j),
        pin.ReferenceFrame.LOCAL,
    )
    closed.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(GAIN**2, 2 * GAIN))
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()  # a list is copied at each call
    models.append(closed)
    datas.append(closed.createData())
    data = tree.createData()
    pin.initConstraintDynamics(tree, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 10)
    q, v, effort = pin.neutral(tree), np.zeros(tree.nv), np.zeros(tree.nv)

    def step() -> None:
        nonlocal q, v
        v = v + SECONDS * pin.constraintDynamics(tree, data, q, v, effort, models, datas, settings)
        q = pin.integrate(tree, q, SECONDS * v)

    def poses() -> dict[int, Pose]:
        now = tree.createData()
        pin.forwardKinematics(tree, now, q)
        found = {1: now.oMi[crank], 2: now.oMi[coupler] * from_cross, 3: now.oMi[rocker]}
        return {k: (M.rotation.copy(), M.translation.copy()) for k, M in found.items()}

    return step, poses
