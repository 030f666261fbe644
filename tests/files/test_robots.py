"""URDF and MJCF in: masses, limits, loops, reports, and forward kinematics against MuJoCo where it is installed."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
import robots
from cardan.files import mjcf, reader, urdf, writer

needs_mujoco = pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="MuJoCo is not installed")

INERTIAL = (
    '<inertial><origin xyz="{at}" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.025" ixy="0.001" ixz="0" iyz="0"/></inertial>'
)


def arm_urdf() -> str:
    """A serial arm of our own: every kind of joint, mimic, friction, a massless tool, looks."""
    links = "".join(
        f'<link name="l{k}">{INERTIAL.format(at=f"0.{k} 0.1 0", mass=k)}<visual><geometry><mesh filename="m{k}.stl"/>'
        "</geometry></visual></link>"
        for k in range(1, 6)
    )
    return f"""<robot name="arm"><link name="base"/>{links}<link name="tool"/><material name="grey"/>
<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><origin xyz="0 0 0.3" rpy="0.1 0 0.4"/>
<axis xyz="0 0 1"/><limit lower="-1.5" upper="2.5" effort="10" velocity="3"/><dynamics damping="0.5"/></joint>
<joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/><origin xyz="0.2 0 0.1" rpy="1.2 -0.3 0"/>
<axis xyz="1 2 -1"/></joint>
<joint name="j3" type="prismatic"><parent link="l2"/><child link="l3"/><origin xyz="0 0.4 0"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.3" effort="1" velocity="1"/></joint>
<joint name="j4" type="revolute"><parent link="l3"/><child link="l4"/><axis xyz="0 -1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/><mimic joint="j1" multiplier="-0.5" offset="0.2"/></joint>
<joint name="j5" type="fixed"><parent link="l4"/><child link="l5"/><origin xyz="0.1 0 0" rpy="0 0.5 0"/></joint>
<joint name="mount" type="fixed"><parent link="l5"/><child link="tool"/><origin xyz="0 0 0.2" rpy="0 0 1"/></joint>
<transmission name="t1"/></robot>"""


def test_masses_limits_and_friction_are_those_of_the_urdf(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_urdf())
    m, report = urdf.load(path)
    assert {name: body.mass for name, body in m.bodies.items()} == {f"l{k}": float(k) for k in range(1, 6)}
    assert dict(m["j1_limit"].parameters) == {"lower": -1.5, "upper": 2.5}
    assert dict(m["j3_limit"].parameters) == {"lower": 0.0, "upper": 0.3}
    assert dict(m.loads["j1_friction"].parameters)["viscous"] == 0.5
    inertia = np.array(m["l3"].inertia)
    assert np.linalg.eigvalsh(inertia) == pytest.approx(
        np.linalg.eigvalsh([[0.01, 0.001, 0], [0.001, 0.02, 0], [0, 0, 0.025]])
    )
    said = "\n".join(report)
    for words in ("visual geometry, a mesh (5", "limits of effort (3", "limits of velocity", "<transmission> (1: t1)"):
        assert words in said
    assert m.diagnose(m.state).dof == 3  # j1, j2, j3; j4 follows j1
    result = m.assemble()
    assert result.ok
    assert m["j4"].coordinate(result.state) == pytest.approx(0.2 - 0.5 * m["j1"].coordinate(result.state), abs=1e-12)
    again = reader.read(writer.dumps(m), "x", False)
    assert writer.dumps(again) == writer.dumps(m)
    assert ("l5", "tool") in again._model.source.frames


@needs_mujoco
def test_forward_kinematics_of_a_urdf_agree_with_mujoco(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_urdf())
    m, _ = urdf.load(path)
    rng = np.random.default_rng(2)
    for _ in range(5):
        free = {"j1": rng.uniform(-1.5, 2.5), "j2": rng.uniform(-3, 3), "j3": rng.uniform(0, 0.3)}
        result = robots.held(m, free).assemble()
        assert result.ok
        theirs = robots.mujoco_poses(robots.urdf_for_mujoco(path), {**free, "j4": 0.2 - 0.5 * free["j1"]})
        mine = robots.poses(m, result.state)
        assert set(theirs) - {"base"} <= set(mine)
        for name, (position, matrix) in theirs.items():
            assert np.abs(mine[name][0] - position).max() < 1e-9, name
            assert np.abs(mine[name][1] - matrix).max() < 1e-9, name


def shipped(package: str, *parts: str) -> Path | None:
    """A file that another package has installed, or None."""
    found = importlib.util.find_spec(package)
    places = [Path(p) for p in (found.submodule_search_locations or [])] if found else []
    places.append(Path(sys.prefix, "share"))
    places += [Path(p) / "cmeel.prefix" / "share" for p in sys.path]
    return next((place.joinpath(*parts) for place in places if place.joinpath(*parts).is_file()), None)


SHIPPED = {
    "kuka_iiwa": (shipped("pybullet_data", "kuka_iiwa", "model.urdf"), 7),
    "a1": (shipped("pybullet_data", "a1", "a1.urdf"), 12),
    "laikago": (shipped("pybullet_data", "laikago", "laikago.urdf"), 12),
    "ur5": (
        shipped("example_robot_data", "example-robot-data", "robots", "ur_description", "urdf", "ur5_robot.urdf"), 6
    ),
    "solo12": (
        shipped("example_robot_data", "example-robot-data", "robots", "solo_description", "robots", "solo12.urdf"), 12
    ),
}  # fmt: skip


@needs_mujoco
@pytest.mark.parametrize("name", SHIPPED)
def test_urdfs_of_other_packages_agree_with_mujoco(name: str) -> None:
    """Where pybullet and example-robot-data are installed."""
    path, dof = SHIPPED[name]
    if path is None:
        pytest.skip("the package with this URDF is not installed")
    import xml.etree.ElementTree as ET

    m, _ = urdf.load(path)
    root = ET.parse(path).getroot()
    for link in root.findall("link"):
        mass = link.find("inertial/mass")
        if mass is not None and float(mass.get("value")) > 0.0:
            assert m[link.get("name")].mass == float(mass.get("value"))
    for joint in root.findall("joint"):
        limit = joint.find("limit")
        if limit is not None and joint.get("type") in ("revolute", "prismatic"):
            bounds = dict(m[f"{joint.get('name')}_limit"].parameters)
            assert bounds == {"lower": float(limit.get("lower", 0)), "upper": float(limit.get("upper", 0))}
    moving = [name for name, joint in m.joints.items() if joint.kind.name in ("revolute", "prismatic")]
    assert len(moving) == dof
    rng = np.random.default_rng(4)
    values = {name: rng.uniform(-1.0, 1.0) for name in moving}
    result = robots.held(m, values).assemble()
    assert result.ok, result.text()
    mine = robots.poses(m, result.state)
    for link, (position, matrix) in robots.mujoco_poses(robots.urdf_for_mujoco(path), values).items():
        assert np.abs(mine[link][0] - position).max() < 1e-9
        assert np.abs(mine[link][1] - matrix).max() < 1e-9


def chain_urdf(name: str, chains: list[list[tuple[str, str, str]]]) -> str:
    """Serial chains on a base; each link is (name, origin of its joint, axis)."""
    text = f'<robot name="{name}"><link name="base"/>'
    for chain in chains:
        parent = "base"
        for link, origin, axis in chain:
            text += f'<link name="{link}">{INERTIAL.format(at="0.1 0 0", mass=1)}</link>'
            xyz, rpy = origin.split("|")
            text += f'<joint name="{link}_j" type="continuous"><parent link="{parent}"/><child link="{link}"/>'
            text += f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/></joint>'
            parent = link
    return text + "</robot>"


def test_a_five_bar_closes_with_a_side_file(tmp_path: Path) -> None:
    z = "0 0 1"
    left = [("a1", "0 0 0|0 0 1.9", z), ("a2", "0.4 0 0|0 0 -1.2", z)]
    right = [("b1", "0.5 0 0|0 0 1.2", z), ("b2", "0.4 0 0|0 0 1.2", z)]
    path, side = tmp_path / "five.urdf", tmp_path / "loops.cardan.toml"
    path.write_text(chain_urdf("five_bar", [left, right]))
    ends = 'a = { body = "a2", origin = [0.5, 0.0, 0.0] }\nb = { body = "b2", origin = [0.5, 0.0, 0.0] }\n'
    side.write_text(f'cardan = 1\n[joints.tip]\nkind = "revolute"\n{ends}')
    m, _ = urdf.load(path, loops=side)
    result = m.assemble()
    assert result.ok
    assert m.diagnose(result.state).dof == 2
    tips = [result.state[name].point((0.5, 0, 0)) for name in ("a2", "b2")]
    assert np.abs(tips[0] - tips[1]).max() < 1e-12
    side.write_text('cardan = 1\n[joints.tip]\nkind = "revolute"\na = "a2"\nb = "b3"\n')
    with pytest.raises(cd.FileError, match=r"line 5, joints\.tip\.b: no frame is named 'b3'; there are 'ground', 'b1'"):
        urdf.load(path, loops=side)


def test_a_delta_closes_with_a_side_file(tmp_path: Path) -> None:
    chains, joints = [], "cardan = 1\n"
    for k in range(3):
        yaw = 2 * math.pi * k / 3
        at = f"{0.2 * math.cos(yaw)} {0.2 * math.sin(yaw)} 0|0 0 {yaw}"
        chains.append([(f"arm_{k}", at, "0 1 0")])
        for side in "ab":
            y = 0.05 if side == "a" else -0.05
            joints += f"[bodies.rod_{k}{side}]\nposition = [0.3, {y}, -0.3]\norientation = [0.7, 0.0, 0.7, 0.0]\n"
    joints += "[bodies.platform]\nposition = [0.0, 0.0, -0.5]\n"
    for k in range(3):
        yaw = 2 * math.pi * k / 3
        c, s = math.cos(yaw), math.sin(yaw)
        for side in "ab":
            y = 0.05 if side == "a" else -0.05
            joints += f'[joints.up_{k}{side}]\nkind = "universal"\na = {{ body = "arm_{k}", origin = [0.3, {y}, 0.0], '
            joints += f'z = [0.0, 1.0, 0.0] }}\nb = {{ body = "rod_{k}{side}", z = [0.0, 0.0, 1.0] }}\n'
            p = [0.08 * c - y * s, 0.08 * s + y * c, 0.0]
            joints += f'[joints.down_{k}{side}]\nkind = "spherical"\n'
            joints += f'a = {{ body = "rod_{k}{side}", point = [0.6, 0.0, 0.0] }}\n'
            joints += f'b = {{ body = "platform", point = {p} }}\n'
    path, side_file = tmp_path / "delta.urdf", tmp_path / "loops.cardan.toml"
    path.write_text(chain_urdf("delta", chains))
    side_file.write_text(joints)
    m, _ = urdf.load(path, loops=side_file)
    result = m.assemble()
    assert result.ok, result.text()
    assert m.diagnose(result.state).dof == 3


def jointed(*pairs: str) -> str:
    """A URDF with fixed joints between links that have names of one letter: parent, child."""
    links = "".join(f'<link name="{name}"/>' for name in sorted(set("".join(pairs))))
    ends = [f'<parent link="{pair[0]}"/><child link="{pair[1]}"/>' for pair in pairs]
    joints = "".join(f'<joint name="j{k}" type="fixed">{end}</joint>' for k, end in enumerate(ends))
    return f"<robot>{links}{joints}</robot>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<robot", "not valid XML"),
        ("<model/>", "its root must be <robot>"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><robot/>', "declares a document type"),
        ("<robot/>", "has no links"),
        ('<robot><link name="a"/><link name="b"/></robot>', "exactly one root link"),
        (jointed("ab", "ba"), "joints of links 'a', 'b' form a loop; a robot must have one root link"),
        (jointed("aa"), "a joint connects link 'a' to itself"),
        (jointed("ab", "cd", "de", "ec"), "joints of links 'e', 'c', 'd' form a loop, which"),
        ('<robot><link name="a"/><link name="a"/></robot>', "two <link name='a'>"),
        ('<robot><link name="arm"/><joint name="j"><parent link="amr"/></joint></robot>', "did you mean 'arm'"),
        ("<robot>" + "<a>" * 500 + "</a>" * 500 + "</robot>", "nested more than"),
    ],
)  # fmt: skip
def test_a_wrong_urdf_is_refused_with_the_element(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.urdf"
    path.write_text(content)
    with pytest.raises(cd.ModelError) as caught:
        urdf.load(path)
    assert message in str(caught.value)


MJCF = """<mujoco model="arm"><compiler angle="degree" eulerseq="zyx"/><option gravity="0 0 -5" timestep="0.001"/>
<default><joint damping="0.1"/><default class="stiff"><joint stiffness="3" springref="20"/></default></default>
<worldbody><site name="anchor" pos="0.9 0 0.2"/><geom type="plane" size="1 1 1"/>
<body name="base" pos="0 0 0.1" euler="30 20 10"><inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
  <joint name="yaw" axis="0 0 1" range="-90 90"/>
  <body name="upper" pos="0.1 0 0.2" axisangle="0 1 0 40">
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <joint name="pitch" class="stiff" axis="0 1 0" pos="0.02 0 0.01" ref="10"/>
    <joint name="roll" axis="1 0 0"/>
    <body name="fore" pos="0.4 0 0" xyaxes="0 1 0 -1 0 0">
      <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
      <joint name="out" type="slide" axis="1 1 0" ref="0.1"/><site name="tip" pos="0.2 0 0.1" zaxis="1 1 1"/></body>
  </body>
</body>
<body name="rod" pos="0.9 0 0.2" quat="0.8 0 0.6 0"><inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
  <joint name="ball" type="ball"/><site name="end" pos="0 0 0.5"/></body>
</worldbody>
<equality>{equality}</equality><actuator><motor name="m" joint="yaw"/></actuator></mujoco>"""


def load_mjcf(tmp_path: Path, equality: str = "") -> tuple[cd.Mechanism, list[str], Path]:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(equality=equality))
    return *mjcf.load(path), path


def test_an_mjcf_is_carried_and_what_is_not_is_listed(tmp_path: Path) -> None:
    m, report, _ = load_mjcf(tmp_path)
    assert m.gravity == (0.0, 0.0, -5.0)
    assert m["base"].mass == 2.0
    assert dict(m["yaw_limit"].parameters)["upper"] == pytest.approx(math.pi / 2)
    assert dict(m.loads["pitch_spring"].parameters)["rest"] == pytest.approx(math.radians(20))
    assert dict(m.loads["roll_friction"].parameters)["viscous"] == 0.1
    said = "\n".join(report)
    for words in (
        "<actuator> (1: m)",
        "not converted: drawing and contact of <geom> (1",
        "timestep",
        "'upper' has 2 joints",
    ):
        assert words in said, said
    assert m.diagnose(m.state).dof == 7


@needs_mujoco
def test_poses_of_an_mjcf_agree_with_mujoco(tmp_path: Path) -> None:
    """Also of a pose that satisfies an equality constraint, whose residual MuJoCo computes."""
    import mujoco

    m, _, path = load_mjcf(tmp_path)
    rng = np.random.default_rng(6)
    for _ in range(4):
        values = {"yaw": rng.uniform(-1, 1), "pitch": rng.uniform(-1, 1), "roll": rng.uniform(-1, 1)}
        values["out"] = rng.uniform(-0.2, 0.2)
        result = robots.held(m, values).assemble()
        assert result.ok
        mine = robots.poses(m, result.state)
        for name, (position, matrix) in robots.mujoco_poses(path.read_text(), values).items():
            if name != "rod":  # it is free to turn
                assert np.abs(mine[name][0] - position).max() < 1e-9, name
                assert np.abs(mine[name][1] - matrix).max() < 1e-9, name
    equalities = '<connect name="close" site1="tip" site2="end"/><joint name="two" joint1="roll" joint2="pitch" '
    equalities += 'polycoef="0.1 0.5 0.2 0 0"/>'
    m, _, path = load_mjcf(tmp_path, equalities)
    result = m.assemble()
    assert result.ok, result.text()
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for name in ("yaw", "pitch", "roll", "out"):
        data.qpos[model.joint(name).qposadr[0]] = m[name].coordinate(result.state)
    start = model.joint("ball").qposadr[0]
    own, rod = result.state["rod"].matrix, np.zeros(9)
    mujoco.mju_quat2Mat(rod, model.body("rod").quat)
    turned = np.zeros(4)
    mujoco.mju_mat2Quat(turned, (rod.reshape(3, 3).T @ own).ravel())
    data.qpos[start : start + 4] = turned
    mujoco.mj_kinematics(model, data)
    assert np.abs(data.site("tip").xpos - data.site("end").xpos).max() < 1e-9
    for name in ("base", "upper", "fore", "rod"):
        assert np.abs(data.body(name).xpos - result.state[name].position).max() < 1e-9
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]).max() < 1e-9


def test_welds_and_connects_between_bodies_hold_their_initial_relation(tmp_path: Path) -> None:
    equality = (
        '<weld name="w" body1="fore" body2="rod"/><connect name="c" body1="base" body2="upper" anchor="0.1 0 0.2"/>'
    )
    m, _, _ = load_mjcf(tmp_path, equality)
    residuals = {one.name: one.residual for one in m.diagnose(m.state).residuals}
    assert max(residuals.values()) < 1e-12


@pytest.mark.parametrize("tag", ["replicate", "attach", "composite", "flexcomp", "plugin"])
def test_elements_that_make_bodies_are_refused(tag: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(f"<mujoco><worldbody><{tag}/></worldbody></mujoco>")
    with pytest.raises(cd.ModelError, match=f"<{tag}> is not read"):
        mjcf.load(path)


DECLARED = '<?xml version="1.0" encoding="{}"?>{}<robot name="bär"><link name="l"/></robot>'


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "ISO-8859-1", "windows-1252", "utf-16", "utf-8-sig"])
def test_entities_are_found_in_every_encoding(encoding, tmp_path):
    path = tmp_path / "robot.urdf"
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    path.write_bytes(DECLARED.format(name, "").encode(encoding))
    assert urdf.load(path)[0].name == "bär"
    path.write_bytes(DECLARED.format(name, '<!DOCTYPE robot [<!ENTITY b "c">]>').encode(encoding))
    with pytest.raises(cd.ModelError, match="declares a document type"):
        urdf.load(path)


@pytest.mark.parametrize("encoding", ["zlib", "punycode", "utf-7", "cp037"])
def test_an_encoding_that_is_not_known_is_refused(encoding, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_bytes(DECLARED.format(encoding, "").encode())
    with pytest.raises(cd.ModelError, match=f"{encoding!r} is none of 'utf-8'.*save it as UTF-8"):
        urdf.load(path)


def test_a_joint_in_a_frame_belongs_to_the_body_around_the_frame(tmp_path: Path) -> None:
    """The axis z and the anchor of a frame that is turned by 90° about y: along x of the body, through (0.3, 0, 0)."""
    frames = '<frame pos="0.3 0 0" euler="0 90 0"><frame pos="0 0 0.1"><joint name="j"/></frame>{}</frame>'
    inner = f'<body name="b" pos="0 0 1">{robots.MASS}<joint name="k" axis="1 0 0"/></body>'
    m, _ = robots.mjcf_of(tmp_path, "", f'<body name="a" pos="0 0 1">{robots.MASS}{frames.format(inner)}</body>')
    assert m["j"].kind.name == "revolute"
    assert m["j"].b.origin == pytest.approx((0.4, 0.0, 0.0), abs=1e-15)
    assert m["j"].b.z == pytest.approx((1.0, 0.0, 0.0), abs=1e-15)
    state = m.state_at({m["j"]: math.pi / 2})
    assert state["b"].position == pytest.approx((1.3, 0.0, 1.0), abs=1e-12)
    assert state["a"].vector((0.0, 1.0, 0.0)) == pytest.approx((0.0, 0.0, 1.0), abs=1e-12)


def test_repeated_sections_of_an_mjcf_are_merged(tmp_path: Path) -> None:
    head = (
        '<compiler angle="radian"/><compiler autolimits="false"/><default><joint axis="0 1 0"/></default>'
        '<default><joint damping="2" range="-1 1" limited="true"/></default>'
        '<option timestep="0.001"/><option gravity="0 0 -5"/>'
    )
    m, _ = robots.mjcf_of(tmp_path, head, f'<body name="a">{robots.MASS}<joint name="j"/></body>')
    assert m.gravity == (0.0, 0.0, -5.0)
    assert m["j"].b.z == pytest.approx((0.0, 1.0, 0.0))
    assert dict(m["j_limit"].parameters) == {"lower": -1.0, "upper": 1.0}
    assert dict(m.loads["j_friction"].parameters)["viscous"] == 2.0


def test_flags_and_masses_of_the_compiler_are_read_or_reported(tmp_path: Path) -> None:
    flags = '<flag gravity="disable" equality="disable" limit="disable" contact="disable"/>'
    head = f'<compiler settotalmass="10" boundmass="0.5"/><option gravity="0 0 -3">{flags}</option>'
    joint = '<joint name="j" range="-10 10"/>'
    one = f'<body name="a">{robots.MASS}{joint}</body>'
    two = f'<body name="b" pos="1 0 0">{robots.MASS}<freejoint/></body>'
    weld = '<equality><weld name="w" body1="a" body2="b"/></equality>'
    m, said = robots.mjcf_of(tmp_path, head, f"{one}{two}</worldbody>{weld}<worldbody>")
    assert m.gravity == (0.0, 0.0, 0.0) and list(m.joints) == ["j"]
    for words in ("the gravity is zero", "not active (1: w)", "which a flag disables (1: j)", "contact=disable"):
        assert words in said
    assert "change masses (2: settotalmass, boundmass)" in said


def test_a_joint_may_have_the_name_of_its_body_and_masses_may_follow_from_shapes(tmp_path: Path) -> None:
    shape = '<geom type="sphere" size="1"/>'
    body = f'<body name="tail">{robots.MASS}{shape}<joint name="tail"/><joint name="twist" axis="1 0 0"/></body>'
    m, said = robots.mjcf_of(tmp_path, '<compiler inertiafromgeom="true"/>', body)
    assert m["tail"].mass == pytest.approx(1000 * 4 / 3 * math.pi, rel=1e-15)
    assert m["tail_joint"].kind.name == "revolute"
    assert "the joint 'tail' is named 'tail_joint' here" in said


def test_a_mimic_joint_of_a_fixed_one_is_held_at_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    content = arm_urdf().replace('<mimic joint="j1"', '<mimic joint="j5"')
    mimic = '<mimic joint="j1"/></joint>\n<joint name="mount"'
    content = content.replace('</joint>\n<joint name="mount"', mimic)
    path.write_text(content.replace('<link name="tool"/>', '<link name="tool"><contact name="soft"/></link>'))
    m, report = urdf.load(path)
    said = "\n".join(report)
    assert m["j4_mimic"].kind.name == "drive"
    result = m.assemble()
    assert result.ok and result.state.coordinate(m["j4"]) == pytest.approx(0.2, abs=1e-12)
    assert "joint 'j4' mimics 'j5', which is fixed: it is held at 0.2" in said
    assert "mimic of fixed joints (1: j5)" in said
    assert "<contact> of a link (1: tool)" in said


def link_urdf(inertial: str, joint: str = "", kind: str = "continuous") -> str:
    joint = f'<joint name="j" type="{kind}"><parent link="base"/><child link="l"/>{joint}</joint>'
    return f'<robot name="r"><link name="base"/><link name="l"><inertial>{inertial}</inertial></link>{joint}</robot>'


def test_an_inertia_of_no_real_body_is_kept_or_refused_on_request(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(link_urdf('<mass value="1"/><inertia ixx="0.1" iyy="0.2" izz="0.9" ixy="0" ixz="0" iyz="0"/>'))
    m, report = urdf.load(path)
    assert np.diag(m["l"].inertia).tolist() == [0.1, 0.2, 0.9]
    assert "principal moments 0.1, 0.2, 0.9 kg m², as no real body has; it is kept" in "\n".join(report)
    sim = m.simulate(0.01)
    assert any("largest principal moment of l exceeds the sum of the others" in note for note in sim.notes)
    assert reader.read(writer.dumps(m), "x", False) == m
    with pytest.raises(cd.ModelError, match=r"inertia of body 'l' .*without real_inertias=True"):
        urdf.load(path, real_inertias=True)
    path.write_text(link_urdf('<mass value="0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'))
    said = "\n".join(urdf.load(path)[1])
    assert "link 'l' has an inertia, and no mass or the mass 0; its inertia is not used" in said


def test_what_a_urdf_joint_has_and_is_not_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    mass = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    extra = '<safety_controller k_velocity="1"/><calibration rising="0"/>'
    extra += '<limit lower="-1" upper="1" effort="3" jerk="2"/>'
    for kind in ("continuous", "floating", "planar", "fixed"):
        path.write_text(link_urdf(mass, f'{extra}<dynamics damping="1" friction="2"/>', kind))
        said = "\n".join(urdf.load(path)[1])
        for words in ("<safety_controller> of a joint (1: j)", "<calibration> of a joint", "jerk of <limit>"):
            assert words in said, (kind, said)
        assert "limits of effort" in said and f"limits of {kind} joints (1: j)" in said
        if kind != "continuous":
            assert f"of {kind} joints (1: j)" in said


def test_links_without_inertia_on_fixed_joints_are_simulated(tmp_path: Path) -> None:
    """A compound pendulum: f = √(Σ m g d / (J + Σ m d²))/2π; the flange has no mass, and the tip no inertia."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        """<robot name="arm"><link name="root"/><link name="flange"/>
        <link name="arm"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
          <inertia ixx="0.3" iyy="0.3" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <link name="tip"><inertial><mass value="0.5"/>
          <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="hinge" type="continuous"><parent link="root"/><child link="arm"/><axis xyz="0 1 0"/></joint>
        <joint name="a" type="fixed"><parent link="arm"/><child link="flange"/><origin xyz="0 0 -0.9"/></joint>
        <joint name="b" type="fixed"><parent link="flange"/><child link="tip"/><origin xyz="0 0 -0.1"/></joint>
        </robot>"""
    )
    m, said = urdf.load(path)
    found = m.linearize()
    assert not any("assumed" in line for line in said)
    exact = np.sqrt((2.0 * 0.5 + 0.5) * 9.81 / (0.3 + 2.0 * 0.25 + 0.5)) / (2.0 * np.pi)
    assert found.frequencies == pytest.approx([exact], rel=1e-8)
