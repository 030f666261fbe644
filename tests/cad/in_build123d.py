"""Joints of build123d, whose loops are closed.  Run by ``make build123d`` in an environment that has build123d."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import build123d as bd
import numpy as np
import pytest

import cardan as cd


def link(label: str, length: float) -> bd.Part:
    """A bar along x with a hinge at its first end and a rigid joint at the other."""
    found = bd.Part() + bd.Box(length + 10, 10, 4, align=(bd.Align.MIN, bd.Align.CENTER, bd.Align.CENTER))
    found = bd.Pos(-5, 0, 0) * found
    found = bd.Part(found.wrapped)
    found.label = label
    bd.RigidJoint("start", found, bd.Location((0, 0, 0)))
    bd.RevoluteJoint("end", found, axis=bd.Axis((length, 0, 0), (0, 0, 1)), angular_range=(-360, 360))
    return found


def loop(lengths, angles):
    """Links in a row, each hinged on the one before, and the last on the first."""
    parts = [link(f"link {k}", length) for k, length in enumerate(lengths)]
    for (a, b), angle in zip(pairwise(parts), angles, strict=True):
        a.joints["end"].connect_to(b.joints["start"], angle=angle)
    parts[-1].joints["end"].connect_to(parts[0].joints["start"], angle=0)  # moves the first part, off the second
    return parts


def gaps(parts):
    """Distance [mm] between the two sides of every connection."""
    found = {}
    for part in parts:
        for joint in part.joints.values():
            if joint.connected_to is not None:
                found[f"{part.label}.{joint.label}"] = (
                    joint.location.position - joint.connected_to.location.position
                ).length
    return found


CASES = {
    "four-bar": ((1000, 300, 900, 700), (130, -60, -100)),
    "five-bar": ((800, 400, 600, 600, 400), (110, -50, -70, -60)),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_close_where_its_own_joints_leave_them_open(name):
    lengths, angles = CASES[name]
    parts = loop(lengths, angles)
    before, base = gaps(parts), parts[0].location.position
    assert max(before.values()) > 100.0  # mm
    began = time.perf_counter()
    result = cd.solve_build123d(parts)
    seconds = time.perf_counter() - began
    assert result.ok, result.text()
    after = gaps(parts)
    size = sum(lengths)
    far, near = max(before.values()), max(after.values())
    print(f"{name}: open by {far:.1f} mm, closed to {near:.1e} mm, {seconds:.2f} s")
    assert max(after.values()) <= 1e-9 * size
    assert (parts[0].location.position - base).length == 0.0
    m = cd.from_build123d(parts)
    assert m.diagnose(m.state).dof == len(lengths) - 3


def one(kind: str, **options):
    """A joint on a turned part, connected to a rigid joint on another; the parts are then scattered."""
    base, other = bd.Part(bd.Box(30, 20, 10).wrapped), bd.Part(bd.Box(5, 6, 7).wrapped)
    base.label, other.label = "base", "other"
    base.locate(bd.Location((3, -4, 5), (20, 30, 40)))
    axis = bd.Axis((1, 2, 3), (1, -2, 2))
    make = {
        "RigidJoint": lambda: bd.RigidJoint("j", base, bd.Location((1, 2, 3), (10, 20, 30))),
        "RevoluteJoint": lambda: bd.RevoluteJoint("j", base, axis, **options),
        "LinearJoint": lambda: bd.LinearJoint("j", base, axis, **options),
        "CylindricalJoint": lambda: bd.CylindricalJoint("j", base, axis, **options),
        "BallJoint": lambda: bd.BallJoint("j", base, bd.Location((1, 2, 3)), **options),
    }
    joint = make[kind]()
    rigid = bd.RigidJoint("r", other, bd.Location((2, 1, 1), (30, 10, 60)))
    return base, other, joint, rigid


SETTINGS = {
    "RigidJoint": [{}],
    "RevoluteJoint": [{"angle": 0}, {"angle": 70}, {"angle": 300}],
    "LinearJoint": [{"position": 0}, {"position": 12}],
    "CylindricalJoint": [{"position": 5, "angle": 20}, {"position": 0, "angle": 200}],
    "BallJoint": [{"angles": (10, 20, 30)}, {"angles": (50, 5, 80)}],
}
DOF = {"RigidJoint": 0, "RevoluteJoint": 1, "LinearJoint": 1, "CylindricalJoint": 2, "BallJoint": 3}


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("reverse", [False, True])
def test_where_build123d_places_a_part_the_joint_is_met_and_has_its_freedom(kind, reverse):
    """Its own placement at several settings, by either connect_to, is an assembled state of ours."""
    for setting in SETTINGS[kind]:
        base, other, joint, rigid = one(
            kind, **({"linear_range": (0, 50)} if kind in ("LinearJoint", "CylindricalJoint") else {})
        )
        if reverse:
            rigid.connect_to(joint, **setting)
        else:
            joint.connect_to(rigid, **setting)
        m = cd.from_build123d([base, other])
        found = m.diagnose(m.state)
        assert found.assembled, (kind, setting, found.residual)
        assert found.dof == DOF[kind]
        (made, *_) = [j for j in m.joints.values() if j.kind.name not in ("fixed", "limit")] or [None]
        if "angle" in setting and made is not None:
            angle = made.coordinate(m.state, "angle")
            assert math.remainder(angle - math.radians(setting["angle"]), 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
        if "position" in setting:
            assert made.coordinate(m.state, "displacement") == pytest.approx(1e-3 * setting["position"], abs=1e-12)


def test_a_hinge_that_slides_is_met_where_build123d_places_it():
    base, other = bd.Part(bd.Box(30, 20, 10).wrapped), bd.Part(bd.Box(5, 6, 7).wrapped)
    base.locate(bd.Location((3, -4, 5), (20, 30, 40)))
    line = bd.LinearJoint("slot", base, bd.Axis((1, 2, 3), (1, 0, 0)), linear_range=(0, 40))
    base.locate(bd.Location((3, -4, 5), (20, 30, 40)))
    hinge = bd.RevoluteJoint("pin", other, bd.Axis((2, 1, 0), (0, 0, 1)))
    line.connect_to(hinge, position=12, angle=35)
    m = cd.from_build123d([base, other])
    found = m.diagnose(m.state)
    assert found.assembled and found.dof == 2
    line.linear_range = (0, 10)  # now 12 mm is too far
    result = cd.solve_build123d([base, other])
    assert result.ok
    moved = (base.location.inverse() * bd.Location(hinge.location.position)).position - line.relative_axis.position
    assert moved.dot(line.relative_axis.direction) == pytest.approx(10.0, abs=1e-9)


def test_ranges_are_limits_held_joints_stay_and_wrong_calls_are_refused():
    parts = loop(*CASES["four-bar"])
    crank = parts[0].joints["end"]
    crank.angular_range = (200, 250)  # the middle is not within half a turn of 0
    result = cd.solve_build123d(parts)
    assert result.ok
    base, angle = (part.location.orientation.Z for part in parts[:2])
    assert 200 - 1e-6 <= (angle - base) % 360 <= 250 + 1e-6
    crank.angular_range = (-360, 360)
    assert cd.solve_build123d(parts, hold=[crank]).ok
    assert abs(parts[1].location.orientation.Z - angle) <= 1e-9
    with pytest.raises(cd.ModelError, match="hold has a joint that is not connected"):
        cd.solve_build123d(parts, hold=[bd.RigidJoint("x", parts[0])])
    with pytest.raises(cd.ModelError, match="no joint of the parts is connected"):
        cd.solve_build123d([link("alone", 10)])
    with pytest.raises(cd.ModelError, match="give a list of parts"):
        cd.solve_build123d(3)
    with pytest.raises(cd.ModelError, match="it must be one of the parts"):
        cd.solve_build123d(parts, ground=link("other", 3))
    base, other, joint, rigid = one("BallJoint", angular_range=((0, 360), (0, 90), (0, 360)))
    joint.connect_to(rigid, angles=(10, 20, 30))
    with pytest.raises(cd.ModelError, match="ranges=False"):
        cd.from_build123d([base, other])
    assert cd.solve_build123d([base, other], ranges=False).ok


@pytest.mark.parametrize("kind", ["RevoluteJoint", "CylindricalJoint"])
@pytest.mark.parametrize(("low", "high", "angle"), [(-30, 100, 80), (-30, 100, -30), (200, 300, 250), (-720, 720, 500)])
def test_angles_and_positions_within_their_ranges_do_not_move(kind, low, high, angle):
    """Both ranges of a cylindrical joint, beside that of a hinge."""
    more = {"linear_range": (-5, 20)} if kind == "CylindricalJoint" else {}
    base, other, joint, rigid = one(kind, angular_range=(low, high), **more)
    joint.connect_to(rigid, angle=angle, **({"position": 20} if more else {}))
    before = other.location.position
    m = cd.from_build123d([base, other])
    limits = [one for one in m.joints.values() if one.kind.name == "limit"]
    assert len(limits) == bool(more) + (high - low < 360)
    assert m.diagnose(m.state).assembled
    assert cd.solve_build123d([base, other]).ok
    assert (other.location.position - before).length <= 1e-9


def test_joints_of_parts_in_nested_compounds_are_closed_in_world():
    base, other, joint, rigid = one("RevoluteJoint")
    joint.connect_to(rigid, angle=30)
    inner = bd.Compound(label="inner", children=[other])
    whole = bd.Compound(label="whole", children=[base, inner])
    inner.locate(bd.Location((10, 20, 30), (0, 0, 40)))
    whole.locate(bd.Location((-4, 5, 6), (10, 0, 20)))
    place = inner.location
    assert cd.solve_build123d(whole).ok
    assert (inner.location.position - place.position).length == 0.0
    points = [
        (whole.location * base.location * bd.Location(joint.relative_axis.position)).position,
        (whole.location * inner.location * other.location * rigid.relative_location).position,
    ]
    assert (points[0] - points[1]).length <= 1e-9


def test_builders_are_taken_as_their_parts():
    with bd.BuildPart() as base:
        bd.Box(10, 10, 10)
        bd.RigidJoint("top", joint_location=bd.Location((0, 0, 5)))
    with bd.BuildPart() as pin:
        bd.Cylinder(2, 10)
        bd.RevoluteJoint("hinge", axis=bd.Axis((0, 0, -5), (0, 0, 1)))
    pin.part.joints["hinge"].connect_to(base.part.joints["top"], angle=20)
    assert cd.solve_build123d([base, pin]).ok
    with pytest.raises(cd.ModelError, match="is not a part of build123d"):
        cd.solve_build123d([3])


def test_a_held_ball_keeps_its_orientation():
    base, other, joint, rigid = one("BallJoint")
    joint.connect_to(rigid, angles=(10, 20, 30))
    before = other.location.orientation
    other.locate(bd.Location(other.location.position + bd.Vector(5, -3, 2), before))
    m = cd.from_build123d([base, other], hold=[joint])
    assert m.diagnose(m.state).dof == 0
    assert cd.solve_build123d([base, other], hold=[joint]).ok
    assert (joint.location.position - rigid.location.position).length <= 1e-9
    assert (other.location.orientation - before).length <= 1e-9


def test_an_impossible_loop_is_reported_and_left_alone():
    parts = loop((1000, 100, 200, 100), (130, -60, -100))
    before = [part.location.position.X for part in parts]
    result = cd.solve_build123d(parts)
    assert not result.ok and result.worst
    assert [part.location.position.X for part in parts] == before


def test_thirty_nested_parts_of_build123d_are_read(tmp_path):
    rng = np.random.default_rng(3)
    for unit, name, scale in ((bd.Unit.MM, "milli", 1.0), (bd.Unit.IN, "inch", 25.4)):  # unit: of the numbers
        groups, wanted = [], {}
        for g in range(6):
            children = []
            for k in range(5):
                part = bd.Part(bd.Box(2 + k, 3, 4 + g).wrapped)
                part.label, part.color = f"part {g}.{k}", bd.Color(*np.round(rng.random(3), 2))
                part.locate(bd.Location(tuple(rng.uniform(-50, 50, 3)), tuple(rng.uniform(-80, 80, 3))))
                wanted[part.label] = (part, (2 + k) * 3 * (4 + g) * 1e-9)
                children.append(part)
            groups.append(bd.Compound(label=f"group {g}", children=children))
        whole = bd.Compound(label="whole", children=groups)
        path = tmp_path / f"{name}.step"
        bd.export_step(whole, path, unit=unit)
        began = time.perf_counter()
        found = cd.load_step(path)
        seconds = time.perf_counter() - began
        print(f"30 parts of build123d in {found.unit}: {seconds:.2f} s")
        is_inch = b"'INCH'" in path.read_bytes()  # some versions write millimetres, whatever is asked for
        assert found.unit.lower().startswith("inch" if is_inch else "milli")
        assert seconds <= 5.0 and list(found) == list(wanted)
        for label, (part, volume) in wanted.items():
            p = part.location.position
            np.testing.assert_allclose(found[label].position, 1e-3 * scale * np.array([p.X, p.Y, p.Z]), atol=1e-12)
            assert found[label].volume == pytest.approx(scale**3 * volume, rel=1e-9)
            np.testing.assert_allclose(found[label].color, tuple(part.color)[:3], atol=2e-3)
            assert found[label].path[:-1] == ("whole", f"group {label[5]}")
