"""MuJoCo: no assembly, but one step of its dynamics on the RSUR four-bar, its loop closed by ``connect``.

Timed: ``mj_step`` (1 ms, Newton solver, gravity).  Its constraints are soft, so the residual during the motion is
reported too.  The loop is cut at the ball joint; the universal joint is two hinges on one body.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from peers import version as _version
from problems import Model, Pose, quaternion

name = "MuJoCo"
tolerance = "soft constraints"
problems = ()

STEP = """
<mujoco>
  <option timestep="0.001" gravity="0 0 -9.81" tolerance="1e-10"/>
  <worldbody>
    {crank}
    {rocker}
  </worldbody>
  <equality><connect body1="body1" body2="body2" anchor="{anchor}" solref="0.002 1"/></equality>
</mujoco>
"""


def available() -> str | None:
    return _version("mujoco", "mujoco")


def _numbers(values) -> str:
    return " ".join(f"{x:.17g}" for x in values)


def _body(number: int, pose: Pose, length: float, joints: list[tuple[np.ndarray, np.ndarray]], inside: str = "") -> str:
    R, p = pose
    hinges = "".join(f'<joint type="hinge" pos="{_numbers(at)}" axis="{_numbers(axis)}"/>' for at, axis in joints)
    about = 1.0 * length**2 / 12
    return (
        f'<body name="body{number}" pos="{_numbers(p)}" quat="{_numbers(quaternion(R))}">{hinges}'
        f'<inertial pos="{length / 2} 0 0" mass="1" diaginertia="0.001 {about} {about}"/>{inside}</body>'
    )


def stepper(model: Model) -> tuple[Callable[[], None], Callable[[], dict[int, Pose]]]:
    """Stepper of the RSUR four-bar, from rest in its reference pose."""
    compiled = _compiled(model)
    data = mujoco.MjData(compiled)

    def step() -> None:
        mujoco.mj_step(compiled, data)

    return step, lambda: _poses(compiled, data)


def simulator(model: Model, lengths: dict[int, float], duration: float, step: float) -> Callable[[], dict[int, Pose]]:
    """A run of the RSUR four-bar from rest, all steps in one call."""
    compiled = _compiled(model)
    compiled.opt.timestep = step
    steps = round(duration / step)

    def run() -> dict[int, Pose]:
        data = mujoco.MjData(compiled)
        mujoco.mj_step(compiled, data, nstep=steps)
        return _poses(compiled, data)

    return run


def _poses(compiled, data) -> dict[int, Pose]:
    mujoco.mj_kinematics(compiled, data)
    bodies = {k: data.body(f"body{k}") for k in (1, 2, 3)}
    return {k: (body.xmat.reshape(3, 3).copy(), body.xpos.copy()) for k, body in bodies.items()}


def _compiled(model: Model):
    """The RSUR four-bar, its loop cut at the ball joint."""
    pivot, ball, cross, hinge = model.joints
    crank, coupler, rocker = (model.reference[k] for k in (1, 2, 3))
    R_D, p_D = rocker
    lengths = {1: ball.point_i[0], 2: cross.point_i[0], 3: cross.point_j[0]}
    inside = _body(
        2,
        (R_D.T @ coupler[0], R_D.T @ (coupler[1] - p_D)),
        lengths[2],
        [(cross.point_i, coupler[0].T @ R_D @ cross.axis_j), (cross.point_i, cross.axis_i)],
    )
    text = STEP.format(
        crank=_body(1, crank, lengths[1], [(pivot.point_j, pivot.axis_j)]),
        rocker=_body(3, rocker, lengths[3], [(hinge.point_j, hinge.axis_j)], inside),
        anchor=_numbers(ball.point_i),
    )
    return mujoco.MjModel.from_xml_string(text)
