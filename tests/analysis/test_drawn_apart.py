"""The verdict on pieces whose only length is how far apart they were drawn, and on motions that end."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from mechanisms import unit

UNITS = (1e-9, 1e-3, 1.0, 1e3, 1e9)
EPS = float(np.finfo(float).eps)
TURNED = unit([0.8, 0.1, 0.2, 0.5])


def ball(m, u, far, offset=0.0):
    """A ball joint at the ground; all joint points of the body are in one place."""
    body = m.body("body", position=far * u * np.array([0.9, -0.4, 0.2]), orientation=TURNED)
    m.spherical("ball", m.ground.point((0.1 * u, 0.2 * u, -0.3 * u)), body.point((offset * u, 0, 0)))


def hinge(m, u, far):
    """A hinge at the world's origin: no coordinate of the solution has a size."""
    body = m.body("body", position=far * u * np.array([0.9, -0.4, 0.2]), orientation=TURNED)
    m.revolute("hinge", m.ground.frame(), body.frame())


def bead(m, u, far):
    """A point on a line: the coordinate along it is free."""
    body = m.body("body", position=far * u * np.array([0.9, -0.4, 0.2]), orientation=TURNED)
    m.point_on_line("wire", body.point((0.9 * u, -0.1 * u, -0.4 * u)), m.ground.frame(z=(0.65, -0.23, 0.72)))


def rack(m, u, far):
    """A radius is a length of the joints themselves."""
    pinion, bar = m.body("pinion", position=(0, far * u, 0)), m.body("bar", position=(far * u, 0, 0.1 * u))
    turn = m.revolute("A", m.ground.frame(), pinion.frame())
    slide = m.prismatic("S", m.ground.frame(z=(1, 0, 0)), bar.frame(z=(1, 0, 0)))
    m.rack("r", turn, slide, radius=0.1 * u)
    m.drive("d", turn, 0.7)


def gap(result):
    """Largest residual that is a length [m]."""
    return max(violation.residual for violation in result.residuals if violation.unit == "m")


def reach(state):
    """Largest coordinate [m]."""
    return max(float(np.abs(pose.position).max()) for pose in state.values())


def test_a_ball_joint_drawn_far_away_is_closed_to_rounding():
    """Not only to 1e-14 of the distance at which it was drawn, which is 0.16 mm."""
    m = cd.Mechanism()
    ball(m, 1.0, 1.6e10)
    result = m.assemble()
    assert result.ok and gap(result) <= 64 * EPS


def test_small_parts_drawn_far_away_are_closed_relative_to_their_size():
    m = cd.Mechanism()
    ball(m, 1.0, 138.0, offset=1e-4)
    result = m.assemble()
    assert result.ok and gap(result) <= 64 * EPS * 0.4
    m = cd.Mechanism()
    body = m.body("body", position=(138, 3, 2), orientation=TURNED)
    m.spherical("ball", m.ground.point(), body.point((1e-4, 0, 0)))
    result = m.assemble()
    assert result.ok and gap(result) <= 1e-13 * 1e-4


@pytest.mark.parametrize("build", [ball, hinge, bead, rack])
def test_the_verdict_depends_neither_on_the_unit_nor_on_where_it_was_drawn(build):
    """In every verb; the gap is 64 ulps of the coordinates of the solution, or the tolerance of the joints' lengths."""
    for u in UNITS:
        for far in (1.0, 138.0, 1e6, 1.6e10):
            m = cd.Mechanism()
            build(m, u, far)
            result = m.assemble()
            assert result.ok, (u, far, result.text())
            own = 1e-12 * 0.1 * u if build is rack else 1e-24 * far * u
            bound = 4 * max(64 * EPS * max(reach(result.state), 0.4 * u * (build is ball)), own)
            assert gap(result) <= bound, (u, far, result.text())
            many = m.assemble_many([None, {name: ((far * u, u, 0), TURNED) for name in m.bodies}])
            assert many.ok.all()
            assert m.diagnose(result.state).assembled
            session = m.session(closed=False)
            while (status := session.step()) == cd.SessionStatus.MOVING:
                pass
            assert status == cd.SessionStatus.IDLE, (u, far)
            assert m.diagnose(session.state).assembled


def test_an_open_joint_is_not_ok_however_far_apart_it_was_drawn():
    m = cd.Mechanism()
    ball(m, 1.0, 1.6e10)
    state = m.assemble().state
    pose = state["body"]
    for by in (1e-3, 1e-6, 1e-9, 1e-12):
        opened = state.moved({"body": (pose.position + np.array([by, 0, 0]), pose.quaternion)})
        assert not m.diagnose(opened).assembled
        assert m.assemble(opened).ok


def test_the_tolerance_that_a_report_names_accepts_the_pose():
    """Bounds of limits are no lengths of the model: here L is only how far away the slider was drawn."""
    m = cd.Mechanism()
    slider = m.body("slider", position=(0.0, 0.7, 0.0))
    slide = m.prismatic("slide", m.ground.frame(), slider.frame())
    m.limit("stop", slide, lower=0.0, upper=0.1)
    m.drive("drive", slide, lambda t: 0.1001 + 0.0 * t)
    result = m.assemble()
    assert not result.ok
    nearly = m.diagnose(result.state).nearly
    assert nearly is not None and m.diagnose(result.state, tolerance=nearly[0]).assembled
    assert m.assemble(tolerance=nearly[0]).ok


def test_a_moved_piece_drawn_far_away_stays_closed():
    m = cd.Mechanism()
    slider = m.body("slider", position=(1.6e10, 0, 1.0))
    slide = m.prismatic("slide", m.ground.frame(), slider.frame())
    m.drive("drive", slide, lambda t: 0.3 * cd.sin(t))
    motion = m.move(np.linspace(0.0, 6.0, 13))
    assert motion.ok, motion.reason
    for state in motion.states:
        assert abs(state["slider"].position[2] - 0.3 * math.sin(state.time)) <= 1e-15
        assert np.abs(state["slider"].position[:2]).max() <= 1e-15


@cd.primitive(i="point", j="point")
def root_of_square(i, j, *, c):
    """|i.z − c| − j.z, whose derivative does not exist at i.z = c."""
    return cd.sqrt((i.z - c) * (i.z - c)) - j.z


def kinked(function):
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two", position=(1, 0, 1))
    slide = m.prismatic("p", m.ground.frame(), one.frame())
    m.prismatic("q", m.ground.frame((1, 0, 0)), two.frame())
    m.constrain("kink", root_of_square, i=one.point(), j=two.point(), c=1.0)
    m.drive("drive", slide, function)
    return m


@pytest.mark.parametrize(("times", "count"), [([0.0, 0.5, 1.0], 0), ([0.5, 0.0, -0.5], 1)])
def test_a_motion_to_a_pose_that_is_not_finite_is_lost(times, count):
    motion = kinked(lambda t: 1.0 - t).move(times)
    assert motion.status is cd.MotionStatus.LOST
    assert "t = " in motion.reason and "not finite" in motion.reason
    assert len(motion.states) == count


@pytest.mark.parametrize("far", [0.0, 138.0, 1.6e10])
def test_a_motion_that_fails_does_not_keep_a_state_with_open_joints(far):
    """The end of a motion between two given times is judged too."""
    m = cd.Mechanism()
    slider = m.body("slider", position=(far, 0, 0.5))
    slide = m.prismatic("slide", m.ground.frame(), slider.frame())
    m.limit("stop", slide, lower=-1.0, upper=0.75)
    m.drive("drive", slide, lambda t: 0.5 + t)
    motion = m.move([0.0, 1.0])
    assert motion.status is cd.MotionStatus.LIMIT and 0.0 < motion.state.time < 1.0
    assert m.diagnose(motion.state).assembled
    other = kinked(lambda t: 1.0 - t)
    assert other.diagnose(other.move([0.5, 0.0]).state).assembled


@pytest.mark.parametrize("far", [24226.0, 2.2e8, 1.4e14])
def test_a_session_of_parts_drawn_far_away_keeps_them_closed(far):
    """Joints were closed to 1e-13 of the distance at which they were drawn: 0.06 m were open."""
    m = cd.Mechanism()
    one, two = m.body("one", position=(far, 0.1 * far, 0.0)), m.body("two", position=(0.0, far, 0.3 * far))
    m.cylindrical("slide", m.ground.frame((0.1, 0.2, 0.3)), one.frame((0.1, 0, 0)))
    m.revolute("hinge", one.frame((0.1, 0, 0), z=(1, 0.2, 0)), two.frame((0, 0.2, 0), z=(0, 1, 0.1)))
    session = m.session()
    hand = session.grasp("two")
    for k in range(8):
        hand.target = hand.point + np.array([0.1, -0.2, 0.3 * k])
        session.step()
        assert gap(m.diagnose(session.state)) <= max(1e-12, 64 * EPS * reach(session.state))


@pytest.mark.parametrize("length", [1e-9, 1e-13, 1e-30])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e6])
def test_a_rod_is_a_length_however_small_and_however_far_away_it_was_drawn(length, far):
    """It was rounding below 1e-12 m, or below 1e-14 of the drawing: an ok with the rod open by all of its length."""
    m = cd.Mechanism()
    body = m.body("body", position=(far, 0.3 * far, 0.0), orientation=TURNED)
    m.distance("rod", m.ground.point(), body.point((3 * length, 0, 0)), length=length)
    assert not m.diagnose().assembled
    result = m.assemble()
    assert result.ok and m.diagnose(result.state).assembled
    assert gap(result) <= 1e-11 * length
    pose = result.state["body"]
    opened = result.state.moved({"body": (pose.position + np.array([5 * length, 0, 0]), pose.quaternion)})
    assert not m.diagnose(opened).assembled
    shorter = cd.Mechanism()  # two rods that contradict each other
    body = shorter.body("body", position=(far, 0, 0))
    for k in (1, 2):
        shorter.distance(f"rod {k}", shorter.ground.point(), body.point(), length=k * length)
    assert not shorter.assemble().ok


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_parts_that_are_too_small_for_their_place_fail_and_say_so(far):
    """A rod of 1e-9 m at 1e6 m, where coordinates are rounded to 1e-10 m, was ok with twice its length."""
    m = cd.Mechanism()
    place = np.array([far, -0.5 * far, 0.0])
    part = m.body("part", position=place + np.array([2e-9, 0, 0]))
    m.distance("rod", m.ground.point(place), part.point(), length=1e-9)
    result = m.assemble()
    report = m.diagnose(result.state)
    assert not m.diagnose().assembled and not result.ok and not report.assembled
    for text in (result.text(), report.text()):
        assert f"coordinates of 'part' are up to {far:.3g} m" in text
        assert "an extent of 1e-09 m: draw these parts nearer to the origin" in text
    with pytest.raises(cd.ModelError, match="draw these parts nearer"):
        m.session()
    part.position = place + np.array([0.5, 0, 0])
    m.remove("rod")
    m.distance("rod", m.ground.point(place), part.point(), length=1.0)
    assert m.assemble().ok


@pytest.mark.parametrize("far", [1e4, 2.3e5, 1e11])
def test_two_balls_that_do_not_fit_are_not_ok_however_far_away_they_were_drawn(far):
    """Their distances differ by 6e-10 m.  That counted as rounding of the drawing, or vanished in its evaluation."""
    m = cd.Mechanism()
    one = m.body("one", position=(0.3 * far, 0.7 * far, 0.2 * far), orientation=TURNED)
    two = m.body("two", position=(far, -0.1 * far, 0.3 * far))
    for k, along in enumerate((0.0, 6e-10)):
        m.spherical(f"ball {k}", one.point((1e-4, -2e-4 + along, 3e-4)), two.point((2e-4, 1e-4, -1e-4)))
    result = m.assemble(restarts=3)
    assert not result.ok and not m.diagnose(result.state).assembled
    assert not m.assemble_many([None, result.state], restarts=3).ok.any()
