"""Forward kinematics of URDF and MJCF files by MuJoCo, for comparison."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

import cardan as cd
from cardan.files import mjcf

KEPT = ("link", "joint")
MASS = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def urdf_for_mujoco(path: Path) -> str:
    """The URDF without its looks, and with instructions to MuJoCo to keep every link."""
    robot = ET.parse(path).getroot()
    for element in list(robot):
        if element.tag not in KEPT:
            robot.remove(element)
        for tag in ("visual", "collision"):
            for shape in element.findall(tag):
                element.remove(shape)
    options = {"fusestatic": "false", "boundmass": "1e-9", "boundinertia": "1e-15", "balanceinertia": "true"}
    ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler", options)
    return ET.tostring(robot, encoding="unicode")


def mujoco_poses(text: str, values: dict[str, float]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of every body by MuJoCo, at joint coordinates by name."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for name, value in values.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_kinematics(model, data)
    return {model.body(k).name: (data.xpos[k].copy(), data.xmat[k].reshape(3, 3).copy()) for k in range(1, model.nbody)}


def held(m: cd.Mechanism, values: dict[str, float]) -> cd.Mechanism:
    """A copy without limits, with every joint held at a value."""
    made = m.copy()
    for name, joint in m.joints.items():
        if joint.kind.name == "limit":
            made.remove(name)
    for name, value in values.items():
        made.drive(f"hold {name}", made[name], value)
    return made


def poses(m: cd.Mechanism, state: cd.State) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of bodies and of named frames of bodies."""
    found = {name: (state[name].position, state[name].matrix) for name in m.bodies}
    for (body, name), frame in m._model.source.frames.items():
        pose = state[body]
        found[name] = (pose.point(frame.origin), pose.matrix @ np.column_stack([frame.x, frame.y, frame.z]))
    return found


def mjcf_of(tmp_path: Path, head: str, bodies: str) -> tuple[cd.Mechanism, str]:
    path = tmp_path / "m.xml"
    path.write_text(f'<mujoco model="m">{head}<worldbody>{bodies}</worldbody></mujoco>')
    m, report = mjcf.load(path)
    return m, "\n".join(report)
