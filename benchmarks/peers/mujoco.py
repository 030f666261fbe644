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


def _option(step: float, gravity: str) -> str:
    """Constraints as stiff as the step allows."""
    head = f'<mujoco><option timestep="{step:.17g}" gravity="{gravity}" tolerance="1e-12" iterations="200"/>'
    return head + f'<default><equality solref="{2 * step:.17g} 1"/></default>'


def chain(
    model: Model, lengths: dict[int, float], duration: float, step: float, number: int
) -> Callable[[], np.ndarray]:
    """A run of a closed chain of ball joints from rest; returns the position of one body."""
    text, close = "", ""
    R_before, p_before = np.eye(3), np.zeros(3)
    for k, length in lengths.items():
        R, p = model.reference[k]
        turned, at = R_before.T @ R, R_before.T @ (p - p_before)
        about = length**2 / 12
        text += (
            f'<body name="body{k}" pos="{_numbers(at)}" quat="{_numbers(quaternion(turned))}"><joint type="ball"/>'
            f'<inertial pos="{length / 2} 0 0" mass="1" diaginertia="0.001 {about} {about}"/>'
        )
        close += "</body>"
        R_before, p_before = R, p
    last = max(lengths)
    loop = f'<equality><connect body1="body{last}" anchor="{_numbers(model.joints[-1].point_i)}"/></equality>'
    xml = f"{_option(step, '0 0 -9.81')}<worldbody>{text}{close}</worldbody>{loop}</mujoco>"
    compiled = mujoco.MjModel.from_xml_string(xml)
    steps = round(duration / step)

    def run() -> np.ndarray:
        data = mujoco.MjData(compiled)
        mujoco.mj_step(compiled, data, nstep=steps)
        mujoco.mj_kinematics(compiled, data)
        return data.body(f"body{number}").xpos.copy()

    return run


def squeezer(step: float) -> Callable[[], float]:
    """A run of Andrews' squeezing mechanism; returns β [rad] within a turn."""
    import squeezer as s

    places = dict(enumerate(s.places(), start=1))
    places[0] = np.zeros(2), 0.0

    def body(k: int, parent: int) -> str:
        (at, angle), (p, before) = places[k], places[parent]
        c, d = np.cos(before), np.sin(before)
        x, y = np.array([[c, d], [-d, c]]) @ (at - p)
        half = (angle - before) / 2
        inside = "".join(body(j, k) for i, _, j, _ in s.TREE if i == k)
        site = f'<site name="end" pos="{s.ATTACHED[0]} {s.ATTACHED[1]} 0"/>' if k == 3 else ""
        cx, cy = s.CENTERS[k - 1]
        i = s.INERTIAS[k - 1]
        return (
            f'<body name="K{k}" pos="{x:.17g} {y:.17g} 0" quat="{np.cos(half):.17g} 0 0 {np.sin(half):.17g}">'
            f'<joint name="q{k}" type="hinge" axis="0 0 1"/>'
            f'<inertial pos="{cx} {cy} 0" mass="{s.MASSES[k - 1]}" diaginertia="{i} {i} {i}"/>{site}{inside}</body>'
        )

    bodies = "".join(body(j, 0) for i, _, j, _ in s.TREE if i == 0)
    loops = "".join(f'<connect body1="K{i}" body2="K{j}" anchor="{p[0]} {p[1]} 0"/>' for i, p, j, _ in s.LOOPS)
    xml = (
        f'{_option(step, "0 0 0")}<worldbody><site name="foot" pos="{s.C[0]} {s.C[1]} 0"/>{bodies}</worldbody>'
        f'<tendon><spatial stiffness="{s.STIFFNESS}" springlength="{s.REST}"><site site="foot"/><site site="end"/>'
        f"</spatial></tendon><equality>{loops}</equality></mujoco>"
    )
    compiled = mujoco.MjModel.from_xml_string(xml)
    steps = round(s.DURATION / step)

    def run() -> float:
        data = mujoco.MjData(compiled)
        data.qfrc_applied[compiled.joint("q1").dofadr[0]] = s.TORQUE
        mujoco.mj_step(compiled, data, nstep=steps)
        return float(s.START[0] + data.joint("q1").qpos[0])

    return run
