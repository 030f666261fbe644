"""Shapes on bodies: mass by density, through copy, pickle, comparison and dynamics."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan import shapes
from cardan.errors import ModelError

Y = (0.0, 1.0, 0.0)
DENSITY = 7850.0


def pendulum() -> cd.Mechanism:
    """A box that hangs from a hinge at a quarter of its length."""
    m = cd.Mechanism("pendulum")
    arm = m.body("arm")
    arm.attach(shapes.box(0.6, 0.04, 0.08), arm.frame((0.15, 0, 0)), density=DENSITY)
    m.revolute("A", m.ground.frame(z=Y), arm.frame(z=Y))
    return m


def test_density_gives_mass_centre_and_inertia():
    arm = pendulum()["arm"]
    mass = DENSITY * 0.6 * 0.04 * 0.08
    assert arm.mass == pytest.approx(mass, rel=1e-14)
    assert arm.center == pytest.approx((0.15, 0, 0))
    moments = mass / 12 * np.array([0.04**2 + 0.08**2, 0.6**2 + 0.08**2, 0.6**2 + 0.04**2])
    assert np.array(arm.inertia) == pytest.approx(np.diag(moments), rel=1e-12)


def test_a_physical_pendulum_swings_as_its_shape_demands():
    """Small oscillations: ω² = m g d / (J + m d²), against the zero crossing of a simulation."""
    m = pendulum()
    d, size = 0.15, (0.6**2 + 0.08**2) / 12
    period = 2 * math.pi * math.sqrt((size + d * d) / (9.81 * d))
    amplitude = 1e-4
    # x of the body points down at the angle π/2 about y
    start = m.assemble({"arm": ((0, 0, 0), _about_y(math.pi / 2 + amplitude))}).state
    sim = m.simulate(period, start, rtol=1e-10, times=[0.0, period / 4, period / 2, period])
    assert sim.ok and not sim.notes
    angles = sim.coordinate(m["A"]) - math.pi / 2
    assert angles == pytest.approx([amplitude, 0.0, -amplitude, amplitude], abs=1e-8)


def _about_y(angle):
    return (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0)


def test_a_shape_and_its_numbers_give_the_same_motion():
    by_shape = pendulum()
    arm = by_shape["arm"]
    m = cd.Mechanism("pendulum")
    numbers = m.body("arm", mass=arm.mass, center=arm.center, inertia=arm.inertia)
    m.revolute("A", m.ground.frame(z=Y), numbers.frame(z=Y))
    one, two = (each.simulate(0.5, rtol=1e-9) for each in (by_shape, m))
    assert np.array_equal(one.positions("arm"), two.positions("arm"))
    assert np.array_equal(one.quaternions("arm"), two.quaternions("arm"))
    assert np.array_equal(one.reaction("A").force, two.reaction("A").force)


def test_shapes_add_up_and_can_be_detached():
    m = pendulum()
    arm = m["arm"]
    before = arm.mass, arm.center, arm.inertia
    first = m.simulate(0.2, rtol=1e-8)
    ball = arm.attach(shapes.sphere(0.05), arm.frame((0.4, 0, 0)), density=1000.0)
    looks = arm.attach(shapes.sphere(0.2), color="#ff0000")
    added = 1000.0 * 4 / 3 * math.pi * 0.05**3
    assert arm.mass == pytest.approx(before[0] + added, rel=1e-14)
    assert arm.center[0] == pytest.approx((before[0] * 0.15 + added * 0.4) / (before[0] + added), rel=1e-13)
    heavier = m.simulate(0.2, rtol=1e-8)
    assert abs(heavier.positions("arm") - first.positions("arm")).max() < 1e-12  # the origin is on the hinge
    assert abs(heavier.quaternions("arm") - first.quaternions("arm")).max() > 1e-4  # packed anew
    arm.detach(ball)
    assert (arm.mass, arm.center, arm.inertia) == before
    assert arm.attachments[1:] == (looks,)
    for one in arm.attachments:
        arm.detach(one)
    assert (arm.mass, arm.center, arm.inertia) == (0.0, (0.0, 0.0, 0.0), None)
    with pytest.raises(ModelError, match=r"must be one of body\.attachments"):
        arm.detach(ball)


def test_frames_place_shapes():
    """A cylinder along x in a tilted frame equals one given in that orientation."""
    body = cd.Mechanism().body("b")
    body.attach(shapes.cylinder(0.1, 1.0), body.frame((1, 2, 3), z=(1, 1, 0)), density=1.0)
    v = math.pi * 0.01
    u = np.array([1, 1, 0]) / math.sqrt(2)
    along, across = v * 0.005, v * (3 * 0.01 + 1.0) / 12
    expected = across * np.eye(3) + (along - across) * np.outer(u, u)
    assert body.center == pytest.approx((1, 2, 3))
    assert np.array(body.inertia) == pytest.approx(expected, abs=1e-14)


def test_attachments_survive_copy_pickle_and_remove():
    m = pendulum()
    m.ground.attach(shapes.box(1, 1, 0.1), color=(0.5, 0.5, 0.5))
    m["arm"].attach(shapes.gear(0.01, 20, 0.02), color=(1, 0, 0, 0.5))
    other = m.body("other")
    other.attach(shapes.sphere(0.1))
    for twin in (m.copy(), pickle.loads(pickle.dumps(m))):
        assert twin == m
        assert [a.shape for a in twin["arm"].attachments] == [a.shape for a in m["arm"].attachments]
        assert all(a.body is twin["arm"] and a.frame.body is twin["arm"] for a in twin["arm"].attachments)
        assert twin["arm"].mass == m["arm"].mass
        twin["arm"].attach(shapes.sphere(0.1))
        assert twin != m
    twin = m.copy()
    twin.ground.detach(twin.ground.attachments[0])
    assert twin != m
    m.remove("other")
    assert "other" not in m
    assert len(m["arm"].attachments) == 2


def test_colours_are_checked():
    body = cd.Mechanism().body("b")
    assert body.attach(shapes.sphere(1), color="#ff8000").color == pytest.approx((1.0, 128 / 255, 0.0, 1.0))
    assert body.attach(shapes.sphere(1), color="#ff800080").color[3] == pytest.approx(128 / 255)
    assert body.attach(shapes.sphere(1), color=np.array([0.1, 0.2, 0.3])).color == (0.1, 0.2, 0.3, 1.0)
    for bad in ("red", "#ff", "#gg0000", (1, 2, 3), (0.1, 0.2), 7, (math.nan, 0, 0)):
        with pytest.raises(ModelError, match="color of a shape on body 'b'"):
            body.attach(shapes.sphere(1), color=bad)


def test_what_contradicts_is_refused_with_the_way_out():
    m = cd.Mechanism()
    for given in ({"mass": 2.0}, {"inertia": np.eye(3)}, {"center": (0, 0, 1)}):
        body = m.body(f"given {next(iter(given))}", **given)
        body.attach(shapes.sphere(1))
        with pytest.raises(ModelError, match=f"{next(iter(given))}= was given to the body; omit one"):
            body.attach(shapes.sphere(1), density=1.0)
        assert len(body.attachments) == 1
    later = m.body("later")
    later.mass = 3.0
    with pytest.raises(ModelError, match="mass= was given"):
        later.attach(shapes.sphere(1), density=1.0)
    shaped = m.body("shaped")
    shaped.attach(shapes.sphere(1), density=1.0)
    for word, value in (("mass", 1.0), ("inertia", np.eye(3)), ("center", (0, 0, 0))):
        with pytest.raises(ModelError, match=f"the {word} of body 'shaped' follows from the shapes"):
            setattr(shaped, word, value)
    shaped.position = (1, 2, 3)
    with pytest.raises(ModelError, match="the ground has no mass"):
        m.ground.attach(shapes.sphere(1), density=1.0)
    with pytest.raises(ModelError, match=r"density of a shape on body 'shaped' is -1\.0"):
        shaped.attach(shapes.sphere(1), density=-1.0)
    with pytest.raises(ModelError, match="was given 3; it must be a shape"):
        shaped.attach(3)
    with pytest.raises(ModelError, match="must be a frame of that body"):
        shaped.attach(shapes.sphere(1), later.frame())


def test_inverse_dynamics_uses_the_shapes():
    """The torque that holds the arm level is m g d."""
    m = pendulum()
    m.drive("hold", m["A"], 0.0)
    motion = m.move([0.0, 1.0])
    assert abs(motion.effort("hold")) == pytest.approx(m["arm"].mass * 9.81 * 0.15, rel=1e-9)
