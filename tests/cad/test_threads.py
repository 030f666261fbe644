"""Screws in threads, cosmetic threads, a gearbox; contacts between faces of STEP parts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.math import euler
from later import Later

steps = Later("tests.cad.steps")

HERE = ((0, 0, 0), (1, 0, 0, 0))


def screw_and_nut(pitch):
    screw = steps.fuse(steps.cylinder(5, 20, (0, 0, -4)), steps.ridge(5, 6, pitch, 12))
    return screw, steps.cut(steps.box((24, 24, 6), (0, 0, 6)), screw)


@pytest.mark.slow
@pytest.mark.parametrize("pitch", [2.0, -3.0])
def test_a_screw_in_its_nut_is_a_screw_joint_with_pitch_and_hand(tmp_path, pitch):
    rng = np.random.default_rng(6)
    screw, nut = screw_and_nut(pitch)
    place = (rng.uniform(-50, 50, 3), steps.unit_quaternion(rng))
    steps.write(
        tmp_path / "screw.step", [["all", [["nut", nut, HERE, None], ["screw", screw, HERE, None]], place, None]]
    )
    found = cd.load_step(tmp_path / "screw.step")
    (proposal,) = cd.cad.propose_joints(found)
    assert proposal.kind == "screw" and proposal.options["pitch"] == pytest.approx(1e-3 * pitch, rel=1e-4)
    assert (
        "right-handed" if pitch > 0 else "left-handed"
    ) in proposal.reason and f"pitch {abs(pitch):.4g} mm" in proposal.reason
    # a quarter of a turn: points on the flanks of the screw stay on those of the nut, on the same helix
    m = cd.cad.Draft(found, ground="nut").mechanism()
    (joint,) = [joint for joint in m.joints.values() if joint.kind.name == "screw"]
    m.drive("turn", joint.of("angle"), lambda t: cd.pi / 2 * t)
    start, end = m.move([0.0, 1.0], m.assemble(time=0.0).state).states
    flank = next(face for face in found["screw"].faces if face.thread is not None)
    at = flank.triangles.reshape(-1, 3)
    phases = [_phase(proposal, found["nut"], state, at, 1e-3 * pitch) for state in (start, end)]
    change = np.angle(np.exp(1j * (phases[1] - phases[0])))
    np.testing.assert_allclose(change, 0.0, atol=2e-3)
    moved = end["screw"].position - start["screw"].position
    axis = euler.rotate(found["nut"].quaternion, proposal.frames[0][1])
    np.testing.assert_allclose(moved @ axis, 1e-3 * pitch / 4, rtol=1e-4)


def _phase(proposal, nut, state, points, pitch):
    """Angle of points of the screw about the axis, minus that of the helix at their height; constant on a helix."""
    origin, z, x = proposal.frames[0]
    world = state["screw"].position + np.array([euler.rotate(state["screw"].quaternion, p) for p in points])
    local = np.array([euler.rotate(nut.quaternion * (1, -1, -1, -1), p - nut.position) for p in world]) - origin
    angle = np.arctan2(local @ np.cross(z, x), local @ x)
    return angle - 2 * math.pi * (local @ z) / pitch


@pytest.mark.slow
def test_a_thread_that_is_drawn_as_cylinders_is_cylindrical_and_says_so(tmp_path):
    bolt, plate = (
        steps.cylinder(5, 30, (0, 0, -5)),
        steps.cut(steps.box((30, 30, 10), (0, 0, 5)), steps.cylinder(4.25, 40, (0, 0, -9))),
    )
    steps.write(tmp_path / "bolt.step", [["plate", plate, HERE, None], ["bolt", bolt, HERE, None]])
    (found,) = cd.cad.propose_joints(cd.load_step(tmp_path / "bolt.step"))
    assert found.kind == "cylindrical" and "drawn without its helix" in found.reason and "pitch" in found.reason
    loose = steps.cut(steps.box((30, 30, 10), (0, 0, 5)), steps.cylinder(5.3, 40, (0, 0, -9)))
    steps.write(tmp_path / "loose.step", [["plate", loose, HERE, None], ["bolt", bolt, HERE, None]])
    assert not cd.cad.propose_joints(cd.load_step(tmp_path / "loose.step"))  # a clearance hole holds nothing


@pytest.mark.slow
def test_only_helical_faces_are_threads(tmp_path):
    """A sweep along an arc, a cone, a torus and their cuts are none."""
    body = steps.cut(steps.fuse(steps.cone(12, 6, 30), steps.torus(20, 5)), steps.sphere(7, (10, 0, 10)))
    steps.write(tmp_path / "none.step", [["body", body, HERE, None], ["gear", steps.spur(9, 20, 6), HERE, None]])
    found = cd.load_step(tmp_path / "none.step")
    assert all(face.thread is None for part in found.parts for face in part.faces)


def gearbox():
    """A housing with two posts, a cover on dowels, two shafts in bores of both, and a keyed gear on each."""
    posts = [steps.box((10, 20, 30), (x, 0, 15)) for x in (-40, 80)]
    dowels = [steps.cylinder(3, 8, (x, 0, 30)) for x in (-40, 80)]
    bores = [steps.cylinder(5, 80, (x, 0, -20)) for x in (0, 40)]
    housing = steps.cut(steps.fuse(steps.box((140, 40, 10), (20, 0, -5)), *posts, *dowels), *bores)
    cover = steps.cut(
        steps.box((140, 40, 8), (20, 0, 34)), *bores, *[steps.cylinder(3, 20, (x, 0, 25)) for x in (-40, 80)]
    )
    parts = [["housing", housing, HERE, None], ["cover", cover, HERE, None]]
    for k, (x, teeth) in enumerate(((0.0, 12), (40.0, 13))):
        key = steps.box((4, 14, 10), (x, 0, 10))
        shaft = steps.fuse(steps.cylinder(5, 48, (x, 0, -10)), steps.cylinder(8, 5, (x, 0, 0)), key)
        gear = steps.cut(steps.spur(teeth, 20, 10, (x, 0, 5)), steps.cylinder(5, 40, (x, 0, 0)), key)
        parts += [[f"shaft {k}", shaft, HERE, None], [f"gear {k}", gear, HERE, None]]
    return parts


GEARBOX = {
    "housing - cover": "fixed",
    "housing - shaft 0": "revolute",
    "housing - shaft 1": "revolute",
    "cover - shaft 0": "cylindrical",
    "cover - shaft 1": "cylindrical",
    "shaft 0 - gear 0": "fixed",
    "shaft 1 - gear 1": "fixed",
}


@pytest.mark.slow
def test_the_joints_of_a_gearbox_are_proposed_and_its_second_bearings_are_redundant(tmp_path):
    steps.write(tmp_path / "gearbox.step", gearbox())
    draft = cd.cad.Draft(cd.load_step(tmp_path / "gearbox.step"))
    assert {p.name: p.kind for p in draft.proposals.values()} == GEARBOX
    found = draft.diagnose()
    assert found.dof == 2  # both shafts turn: teeth that mesh are no joint of faces
    marked = {name for name, p in draft.proposals.items() if p.mark.startswith("redundant")}
    assert marked and len(found.redundant) == 8
    for name in ("cover - shaft 0", "cover - shaft 1"):
        draft.refuse(name)
    assert draft.diagnose().dof == 2 and not any(p.mark for p in draft.proposals.values())


@pytest.mark.slow
def test_a_false_proposal_says_why_and_is_marked(tmp_path):
    """A block that only rests beside a slide: planes touch, so a joint is proposed, with this as its reason."""
    base = steps.cut(steps.box((60, 40, 20)), steps.box((60, 10, 12), (0, 0, 6)))
    slider, rest = steps.box((20, 10, 12), (0, 0, 6)), steps.box((10, 8, 8), (0, 0, 16))
    steps.write(
        tmp_path / "rest.step", [["base", base, HERE, None], ["slider", slider, HERE, None], ["rest", rest, HERE, None]]
    )
    draft = cd.cad.Draft(cd.load_step(tmp_path / "rest.step"))
    assert draft["base - slider"].kind == "prismatic"
    false = draft["slider - rest"]
    assert false.kind == "planar" and "planes that touch" in false.reason
    draft.diagnose()
    draft.refuse("slider - rest")
    assert draft.diagnose().unconnected == ("rest",)


@pytest.mark.slow
def test_a_cam_of_step_parts_lifts_its_follower_by_the_closed_form(tmp_path):
    """An eccentric disc under a follower with a ball: y = e sin θ + √((R + r)² − e² cos² θ)."""
    e, big, small = 6.0, 20.0, 4.0
    disc = steps.cylinder(big, 10, (e, 0, -5))
    tip = steps.fuse(steps.sphere(small), steps.cylinder(2, 30, (0, 0, 0), (0, 1, 0)))
    steps.write(tmp_path / "cam.step", [["cam", disc, HERE, None], ["follower", tip, ((0, 23, 0), (1, 0, 0, 0)), None]])
    found = cd.load_step(tmp_path / "cam.step")
    m = cd.Mechanism("cam")
    cam, follower = m.add(found["cam"]), m.add(found["follower"])
    hinge = m.revolute("hinge", m.ground, cam, at=(0, 0, 0), axis=(0, 0, 1))
    m.prismatic("guide", m.ground, follower, at=(0, 0, 0), axis=(0, 1, 0))
    m.contact(
        "touch", found["cam"].cylinders().only().attach_to(cam), found["follower"].spheres().only().attach_to(follower)
    )
    m.drive("motor", hinge, lambda t: 2 * cd.pi * t)
    states = m.move(np.linspace(0.0, 1.0, 25).tolist(), m.assemble(time=0.0).state).states
    for state in states:
        angle = 2 * math.pi * state.time
        y = e * math.sin(angle) + math.sqrt((big + small) ** 2 - (e * math.cos(angle)) ** 2)
        assert float(state["follower"].position[1]) == pytest.approx(1e-3 * y, abs=1e-12)


@pytest.mark.slow
def test_a_ball_of_a_step_file_stays_on_a_plane_of_another_part(tmp_path):
    steps.write(
        tmp_path / "ball.step",
        [
            ["table", steps.box((80, 60, 10), (0, 0, -5)), ((0, 0, 3), (1, 0, 0, 0)), None],
            ["ball", steps.sphere(7, (1, 2, 3)), ((5, 5, 30), (1, 0, 0, 0)), None],
        ],
    )
    found = cd.load_step(tmp_path / "ball.step")
    m = cd.Mechanism("ball")
    table, ball = m.add(found["table"], fixed=True), m.add(found["ball"], density=7850.0)
    top = max(found["table"].planes().parallel((0, 0, 1)), key=lambda face: face.center[2])
    m.contact("on", top.attach_to(table), found["ball"].spheres().only().attach_to(ball))
    result = m.assemble()
    assert result.ok and m.diagnose(result.state).dof == 5
    center = result.state["ball"].position + euler.rotate(result.state["ball"].quaternion, np.array((1e-3, 2e-3, 3e-3)))
    assert center[2] == pytest.approx(10e-3, abs=1e-12)
