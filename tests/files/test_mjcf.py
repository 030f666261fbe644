"""MJCF in: joints with springs and armature, welds, masses of geoms, included files, and what is reported.

``make mujoco`` compares more of it with MuJoCo.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from robots import MASS, mjcf_of


def accelerations(m: cd.Mechanism, velocities: dict[str, tuple[float, ...]] | None = None) -> dict[str, np.ndarray]:
    """Of every body, in the drawn pose, with velocities of some: ṙ in world, ω in body axes."""
    state = m.state
    v = np.array([(velocities or {}).get(name, (0.0,) * 6) for name in state.names])
    state = m.simulate(1e-6, state.with_rates(v), times=[0.0, 1e-6]).states[0]
    return dict(zip(state.names, state.accelerations, strict=True))


def test_ball_and_free_joints_of_an_mjcf_keep_springs_dampers_and_armature(tmp_path: Path) -> None:
    """Closed forms for a body with the moments 1 kg m², 1 kg; the defaults are of joints, and not of <freejoint>."""
    joint = '<joint damping="0.5" armature="3" frictionloss="0.1"/>'
    head = f'<option gravity="0 0 -10"/><default>{joint}</default>'
    bodies = (
        f'<body name="ball">{MASS}<joint name="b" type="ball" stiffness="2"/></body>'
        f'<body name="free" pos="1 0 0">{MASS}<joint name="f" type="free"/></body>'
        f'<body name="loose" pos="2 0 0">{MASS}<freejoint/></body>'
    )
    m, said = mjcf_of(tmp_path, head, bodies)
    spin = (0.0, 0.0, 0.0, 0.3, 0.2, 0.1)
    a = accelerations(m, {"ball": spin, "free": (2.0, 0.0, 0.0, 0.3, 0.2, 0.1), "loose": spin})
    assert a["ball"][3:] == pytest.approx(-0.5 / 4.0 * np.array([0.3, 0.2, 0.1]), abs=1e-12)
    assert a["free"] == pytest.approx([-0.25, 0, -2.5, -0.0375, -0.025, -0.0125], abs=1e-12)  # weight of 1 kg alone
    assert a["loose"] == pytest.approx([0, 0, -10, 0, 0, 0], abs=1e-12)
    turned = m.copy()
    turned["ball"].orientation = (math.cos(0.4), math.sin(0.4), 0.0, 0.0)  # 0.8 rad about x
    assert accelerations(turned)["ball"][3:] == pytest.approx([-2 * 0.8 / 4.0, 0, 0], abs=1e-12)
    for kind, name in (("ball", "b"), ("free", "f")):
        assert f"frictionloss of {kind} joints (1: {name})" in said


def test_armature_of_hinges_and_slides_is_an_inertia_of_the_joint(tmp_path: Path) -> None:
    inner = f'<body name="b" pos="1 0 0">{MASS}<joint name="s" type="slide" axis="1 0 0" armature="0.7"/></body>'
    m, said = mjcf_of(tmp_path, "", f'<body name="a">{MASS}<joint name="h" armature="0.5"/>{inner}</body>')
    assert (m["h"].inertia, m["s"].inertia) == (0.5, 0.7)
    assert "armature" not in said


def test_springdamper_follows_from_the_inertia_in_the_reference_pose(tmp_path: Path) -> None:
    """I/(τζ)² and 2 I/τ, with 1/I on the diagonal of the inverse of the mass matrix of a double pendulum."""
    pair = 'axis="0 1 0" springdamper="0.5 0.4" stiffness="99"'
    inertial = '<inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/>'
    inner = f'<body name="b" pos="1 0 0">{inertial}<joint name="k" {pair}/></body>'
    m, said = mjcf_of(tmp_path, "", f'<body name="a">{MASS}<joint name="j" {pair} armature="0.5"/>{inner}</body>')
    matrix = np.array([[1 + 0.5 + 1 + 4, 1 + 2], [1 + 2, 1 + 1]])
    for name, inverse in zip("jk", np.diag(np.linalg.inv(matrix)), strict=True):
        assert dict(m.loads[f"{name}_spring"].parameters)["stiffness"] == pytest.approx(1 / inverse / 0.04, rel=1e-12)
        assert dict(m.loads[f"{name}_friction"].parameters)["viscous"] == pytest.approx(4 / inverse, rel=1e-12)
    assert "springdamper" not in said


def test_a_ball_on_a_moving_body_reports_its_armature(tmp_path: Path) -> None:
    inner = f'<body name="b" pos="1 0 0">{MASS}<joint name="k" type="ball" armature="0.7"/></body>'
    _, said = mjcf_of(tmp_path, "", f'<body name="a">{MASS}<joint name="h"/>{inner}</body>')
    assert "not converted: armature of ball joints on bodies that move (1: k)" in said


def weld_of(tmp_path: Path, attributes: str, head: str = "") -> tuple[cd.Mechanism, str]:
    bodies = f'<body name="a">{MASS}<freejoint/></body><body name="b" pos="1 0 0">{MASS}<freejoint/></body>'
    return mjcf_of(tmp_path, head, f'{bodies}</worldbody><equality><weld name="w" {attributes}/></equality><worldbody>')


def test_a_weld_puts_its_anchor_at_the_relpose(tmp_path: Path) -> None:
    """As in MuJoCo: the position of relpose is that of the anchor of body2 in body1, and not that of body2."""
    m, _ = weld_of(tmp_path, 'body1="a" body2="b" relpose="0.1 0.2 0.3 0 0 0 1" anchor="0.3 0 0"')
    state = m.assemble().state
    a, b = state["a"], state["b"]
    assert b.point((0.3, 0, 0)) == pytest.approx(a.point((0.1, 0.2, 0.3)), abs=1e-12)
    assert b.matrix == pytest.approx(a.matrix @ np.diag([-1, -1, 1]), abs=1e-12)
    m, _ = weld_of(tmp_path, 'body1="a" body2="b" anchor="0.3 0 0"')
    assert m.assemble().state["b"].position == pytest.approx((1, 0, 0), abs=1e-12)
    m, _ = weld_of(tmp_path, 'body1="a" body2="b" torquescale="0"')
    assert m["w"].kind.name == "spherical" and m.diagnose(m.state).dof == 9
    m, said = weld_of(tmp_path, 'body1="a" body2="b"', '<default><equality active="false"/></default>')
    assert not m.joints and "equality constraints that are not active (1: w)" in said
    m, said = weld_of(tmp_path, 'body1="a" body2="b" solref="0.1 1" torquescale="0.5"')
    assert "solref of <weld> (1: w)" in said and "torquescale of <weld>" in said


def test_an_inertial_in_a_frame_is_placed_by_it(tmp_path: Path) -> None:
    inertial = '<inertial pos="0.1 0 0" mass="2" diaginertia="1 2 2.5"/>'
    body = f'<body name="a"><frame pos="0 0 1" euler="0 90 0">{inertial}</frame><joint name="j"/></body>'
    m, said = mjcf_of(tmp_path, "", body)
    assert m["a"].center == pytest.approx((0, 0, 0.9), abs=1e-15)
    assert np.array(m["a"].inertia) == pytest.approx(np.diag([2.5, 2, 1]), abs=1e-15)
    assert "mass" not in said


@pytest.mark.parametrize(
    ("geom", "mass", "moments"),
    [
        ('type="sphere" size="0.1"', 4000 / 3 * math.pi * 1e-3, [0.004] * 3),
        ('type="box" size="0.1 0.2 0.3" density="10"', 10 * 8 * 0.006, [0.13 / 3, 0.1 / 3, 0.05 / 3]),
        ('type="cylinder" size="0.1 0.2" mass="2"', 2.0, [0.0025 + 0.04 / 3] * 2 + [0.005]),
        ('type="ellipsoid" size="0.1 0.2 0.3" mass="2"', 2.0, [0.026, 0.02, 0.01]),
    ],
)  # fmt: skip
def test_masses_follow_from_geoms(geom: str, mass: float, moments: list[float], tmp_path: Path) -> None:
    m, _ = mjcf_of(tmp_path, "", f'<body name="a"><geom pos="0 1 0" {geom}/><joint/></body>')
    assert m["a"].mass == pytest.approx(mass, rel=1e-14)
    assert m["a"].center == pytest.approx((0, 1, 0))
    assert np.diag(m["a"].inertia) == pytest.approx(np.array(moments) * mass, rel=1e-13)


def test_a_capsule_is_a_cylinder_and_two_half_balls(tmp_path: Path) -> None:
    """By integration over slices."""
    geom = '<geom type="capsule" size="0.1" fromto="0 0 0 0 0 .4"/>'
    m, _ = mjcf_of(tmp_path, "", f'<body name="a">{geom}<joint/></body>')
    nodes, weights = np.polynomial.legendre.leggauss(80)
    mass, across = 0.0, 0.0
    for low, high in ((-0.3, -0.2), (-0.2, 0.2), (0.2, 0.3)):
        z = 0.5 * (low + high) + 0.5 * (high - low) * nodes
        area = math.pi * (0.01 - np.maximum(np.abs(z) - 0.2, 0.0) ** 2)
        w = 0.5 * (high - low) * weights * 1000 * area
        mass, across = mass + w.sum(), across + (w * (area / (4 * math.pi) + z * z)).sum()
    assert m["a"].mass == pytest.approx(mass, rel=1e-12)
    assert m["a"].center == pytest.approx((0, 0, 0.2), abs=1e-15)
    assert m["a"].inertia[0][0] == pytest.approx(across, rel=1e-12)


def test_a_mesh_leaves_the_mass_of_its_body_unknown_and_says_so(tmp_path: Path) -> None:
    body = '<body name="a"><geom type="mesh" mesh="x"/><joint/></body><body name="b"><geom mesh="x"/><joint/></body>'
    m, said = mjcf_of(tmp_path, "", body)
    assert "masses of bodies from meshes, whose files are not read; these bodies are massless (0 kg)" in said
    assert "(2: a, b)" in said
    assert [body.mass for body in m.bodies.values()] == [0.0, 0.0]


def test_polynomials_of_fewer_than_five_numbers_and_sites_between_points(tmp_path: Path) -> None:
    bodies = "".join(f'<body name="{n}" pos="{k} 0 0">{MASS}<joint name="j{n}"/></body>' for k, n in enumerate("ab"))
    site = '<site name="s" type="capsule" size="0.1" fromto="0 0 0 2 0 0"/>'
    equality = '<joint name="e" joint1="ja" joint2="jb" polycoef="0.1"/>'
    m, _ = mjcf_of(tmp_path, "", f"{site}{bodies}</worldbody><equality>{equality}</equality><worldbody>")
    result = m.assemble()
    assert m["ja"].coordinate(result.state) == pytest.approx(0.1 + m["jb"].coordinate(result.state), abs=1e-12)
    frame = m._model.source.frames["ground", "s"]
    assert frame.origin == (1.0, 0.0, 0.0) and frame.z == pytest.approx((-1.0, 0.0, 0.0))
    ball = bodies.replace('<joint name="jb"/>', '<joint name="jb" type="ball"/>')
    with pytest.raises(cd.ModelError, match="'jb' is a ball joint; it must be a hinge or a slide"):
        mjcf_of(tmp_path, "", f"{ball}</worldbody><equality>{equality}</equality><worldbody>")


def test_every_attribute_that_is_not_read_is_in_the_report(tmp_path: Path) -> None:
    """Also one that does not exist; none of those that have no effect is."""
    joint = '<joint name="j" margin="0.1" solreflimit="1 1" actuatorfrcrange="-1 1" hot="1" user="1" group="2"/>'
    inner = '<frame name="f" odd="1"/><site name="s" odd="2" rgba="1 1 1 1"/>'
    body = f'<body name="a" sleep="never">{MASS}{joint}{inner}</body>'
    tail = '</worldbody><equality><connect name="c" body1="a" anchor="0 0 0" solimp="1 1 1"/></equality><worldbody>'
    _, said = mjcf_of(tmp_path, '<compiler alignfree="true" meshdir="x"/>', body + tail)
    for words in (
        *("margin of <joint> (1: j)", "solreflimit of <joint>", "actuatorfrcrange of <joint>", "hot of <joint>"),
        *("sleep of <body> (1: a)", "odd of <frame> (1: f)", "odd of <site> (1: s)", "solimp of <connect> (1: c)"),
        "alignfree of <compiler>",
    ):
        assert f"not converted: {words}" in said
    assert not any(word in said for word in ("user", "group", "rgba", "meshdir"))


def test_ranges_that_mujoco_does_not_take_for_limits_are_none(tmp_path: Path) -> None:
    for given in ('range="0 0"', 'range="1 -1"', 'range="-1 1" limited="false"'):
        m, _ = mjcf_of(tmp_path, "", f'<body name="a">{MASS}<joint name="j" {given}/></body>')
        assert list(m.joints) == ["j"]
    with pytest.raises(cd.ModelError, match="'1 -1'; the first number must be the smaller"):
        mjcf_of(tmp_path, "", f'<body name="a">{MASS}<joint name="j" range="1 -1" limited="true"/></body>')


@pytest.mark.parametrize("sequence", ["xy", "xyzx", "abc", ""])
def test_a_wrong_sequence_of_euler_angles_is_refused(sequence: str, tmp_path: Path) -> None:
    with pytest.raises(cd.ModelError, match="it must have three letters of 'xyzXYZ'"):
        mjcf_of(tmp_path, f'<compiler eulerseq="{sequence}"/>', f'<body name="a" euler="1 2 3">{MASS}</body>')


def test_files_are_included_relative_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "head.xml").write_text('<mujocoinclude><include file="gravity.xml"/></mujocoinclude>')
    (tmp_path / "gravity.xml").write_text('<mujoco><option gravity="0 0 -5"/></mujoco>')
    (tmp_path / "sub" / "body.xml").write_text(f'<mujocoinclude><body name="a">{MASS}<joint/></body></mujocoinclude>')
    m, _ = mjcf_of(tmp_path, '<include file="sub/head.xml"/>', '<include file="sub/body.xml"/><body name="b"/>')
    assert m.gravity == (0.0, 0.0, -5.0) and list(m.bodies) == ["a", "b"]


def test_included_files_must_be_in_the_folder_of_the_model(tmp_path: Path) -> None:
    """Links are followed first; devices, pipes and folders are refused, and so are files that include each other."""
    model, secret = tmp_path / "model", tmp_path / "secret.xml"
    model.mkdir()
    secret.write_text("<mujoco/>")
    (model / "link.xml").symlink_to(secret)
    (model / "self.xml").write_text('<mujoco><include file="self.xml"/></mujoco>')
    (model / "twice.xml").write_text("<mujoco/>")
    (model / "folder").mkdir()
    os.mkfifo(model / "pipe.xml")
    for name, words in {
        "../secret.xml": "must be in the folder of the model or below it",
        str(secret): "must be in the folder of the model or below it",
        "link.xml": "must be in the folder of the model or below it",
        "/dev/zero": "must be in the folder of the model or below it",
        "folder": "is not a file",
        "pipe.xml": "is not a file",
        "none.xml": "is not a file",
        "": "has no file",
        "m.xml": "is included twice",
        "self.xml": "is included twice",
    }.items():
        with pytest.raises(cd.ModelError, match=words):
            mjcf_of(model, f'<include file="{name}"/>', "")
    with pytest.raises(cd.ModelError, match="is included twice"):
        mjcf_of(model, '<include file="twice.xml"/><include file="./twice.xml"/>', "")
    for k in range(120):
        (model / f"n{k}.xml").write_text(f'<mujoco><include file="n{k + 1}.xml"/></mujoco>')
    with pytest.raises(cd.ModelError, match="more than 16 deep"):
        mjcf_of(model, '<include file="n0.xml"/>', "")
    frames = "<frame>" * 150, "</frame>" * 150
    (model / "deep.xml").write_text(f"<mujoco>{''.join(frames)}</mujoco>")
    with pytest.raises(cd.ModelError, match="nested more than 200 deep"):
        mjcf_of(model, "", f'{frames[0]}<include file="deep.xml"/>{frames[1]}')
    for k in range(120):
        (model / f"n{k}.xml").write_text("<mujoco/>")
    with pytest.raises(cd.ModelError, match="more than 100 files"):
        mjcf_of(model, "".join(f'<include file="n{k}.xml"/>' for k in range(120)), "")
