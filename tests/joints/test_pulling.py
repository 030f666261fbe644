"""Contacts that pull are noted, with the time at which real parts would separate."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import cardan as cd
from cardan.view.clip import from_motion

G = cd.geometry
X, Y, Z = np.eye(3)


def ball_on_ball(mode: str, order: int = 1, gravity: float = -10.0) -> cd.Mechanism:
    """A solid ball of 0.1 m near the top of a ball of 0.9 m."""
    m = cd.Mechanism("globe", gravity=(0, 0, gravity))
    tilt = 1e-3
    ball = m.body("ball", position=(np.sin(tilt), 0, np.cos(tilt)), mass=2.0, inertia=np.eye(3) * 0.4 * 2.0 * 0.01)
    faces = m.ground.attach(G.sphere(0.9)), ball.attach(G.sphere(0.1))
    m.contact("on", *faces[::order], mode=mode)
    return m


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("mode", "leaves"), [("slide", 2 / 3), ("roll", 10 / 17)])
def test_a_ball_leaves_a_ball_where_the_closed_form_says(mode, leaves, order):
    """From rest at the top: cos θ = 2/3 where it slides, 10/17 where it rolls."""
    simulation = ball_on_ball(mode, order).simulate(6.0, rtol=1e-10, times=np.linspace(0.0, 6.0, 6001))
    found = [note for note in simulation.notes if "'on' pulls" in note]
    assert len(found) == 1 and found[0] in simulation.text() and found[0] in simulation.to_dict()["notes"]
    time = float(re.search(r"from t = ([\d.]+) s", found[0])[1])
    heights = np.interp(time, simulation.times, simulation.positions("ball")[:, 2])
    assert heights == pytest.approx(leaves, abs=5e-3)
    assert pickle.loads(pickle.dumps(simulation)).notes == copy.deepcopy(simulation).notes == simulation.notes


def test_a_contact_that_presses_or_does_nothing_is_not_noted():
    assert not ball_on_ball("roll").simulate(0.5).notes
    assert not ball_on_ball("slide", gravity=0.0).simulate(0.5).notes
    spun = ball_on_ball("slide", gravity=0.0)
    start = spun.solve_rates(spun.assemble().state)
    assert not spun.simulate(0.5, start).notes


@pytest.mark.parametrize("weight", [-10.0, 10.0])
def test_a_ball_in_a_bowl_pulls_only_where_gravity_points_up(weight):
    m = cd.Mechanism("bowl", gravity=(0, 0, weight))
    ball = m.body("ball", position=(0.54, 0, -0.72), mass=1.0, inertia=np.eye(3) * 0.004)
    m.contact("in", m.ground.attach(G.sphere(1.0)), ball.attach(G.sphere(0.1)), side="inside", mode="roll")
    notes = m.simulate(0.1).notes
    assert bool(notes) == (weight > 0)
    assert not notes or notes[0].startswith("contact 'in' pulls from t = 0 s, with up to")


@pytest.mark.parametrize("inertia", [0.0, 0.1])
def test_a_contact_of_massless_bodies_that_pulls_is_noted(inertia):
    """The only load is a torque on a hinge: −3 N m at an arm of about 1 m pulls the rocker away from the cam."""
    m = cd.Mechanism("cam", gravity=(0, 0, 0))
    cam, arm = m.body("cam"), m.body("arm", position=(0, 0.3, 0))
    m.revolute("A", m.ground.frame(), cam.frame()).inertia = inertia
    m.revolute("B", m.ground.frame((1, 0.3, 0)), arm.frame((1, 0, 0))).inertia = inertia
    m.contact("c", cam.attach(G.circle(0.2), cam.frame((0.02, 0, 0))), arm.attach(G.circle(0.1), arm.frame()))
    m.drive("motor", "A", lambda t: 2 * t)
    m.actuator("away", m["B"], -3.0)
    for found in (m.simulate(0.1, step=0.01), m.move([0.0, 0.05, 0.1])):
        assert found.notes[-1].startswith("contact 'c' pulls from t = 0 s, with up to 3.0")


def test_a_point_on_a_surface_is_guided_on_both_sides():
    m = cd.Mechanism("bead", gravity=(0, 0, 10.0))
    bead = m.body("bead", position=(0, 0, 1.0), mass=1.0, inertia=np.eye(3) * 0.004)
    m.point_on_surface("on", bead.point(), m.ground.attach(G.sphere(1.0)))
    assert m.simulate(0.1).ok and not m.simulate(0.1).notes


@pytest.mark.slow
def test_a_driven_cam_lifts_off_where_the_acceleration_exceeds_gravity():
    """y = r + e sin ωt: the force is m (g − e ω² sin ωt)."""
    e, g = 0.1, 10.0
    for rate, first in ((9.0, None), (12.0, np.arcsin(g / (e * 144.0)) / 12.0)):
        m = cd.Mechanism("cam", gravity=(0, -g, 0))
        cam, follower = m.body("cam", mass=1.0, inertia=np.eye(3)), m.body("follower", position=(0, 0.3, 0), mass=2.0)
        follower.inertia = np.eye(3)
        shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
        m.prismatic("guide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
        m.contact("touch", follower.attach(G.line()), cam.attach(G.circle(0.3), cam.frame((e, 0, 0))))
        m.drive("motor", shaft, lambda t, rate=rate: rate * t)
        motion = m.move(np.linspace(0.0, 0.5, 501))
        if first is None:
            assert motion.ok and motion.notes == ()
            continue
        (note,) = motion.notes
        assert float(re.search(r"from t = ([\d.]+) s", note)[1]) == pytest.approx(first, abs=1e-3)
        assert f"up to {2.0 * (e * 144.0 - g):.3g} N" in note
        assert note in from_motion(m, motion).text


def test_an_equilibrium_that_hangs_on_a_contact_is_noted():
    m = ball_on_ball("slide", gravity=10.0)
    found = m.equilibrium({"ball": ((0.0, 0.0, 1.0), (1, 0, 0, 0))})
    assert found.ok and found.notes == ("contact 'on' pulls with 20 N: a real contact would open there",)
    assert found.notes[0] in found.text()
    m.gravity = (0, 0, -10.0)
    assert m.equilibrium({"ball": ((0.0, 0.0, 1.0), (1, 0, 0, 0))}).notes == ()


def test_notes_of_a_motion_without_dynamics_say_why_forces_are_not_known():
    """A thin rod, without a moment about its own axis, does not matter; a load that fails does."""
    m = cd.Mechanism("rod on a cam")
    cam = m.body("cam", mass=1.0, inertia=np.eye(3))
    rod = m.body("rod", position=(0, 0.1, 0), mass=1.0, inertia=np.diag((1.0, 0.0, 1.0)))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame((0.02, 0, 0)))
    m.prismatic("guide", m.ground.frame(z=Y, x=Z), rod.frame(z=Y, x=Z))
    m.contact("lift", rod.attach(G.line()), cam.attach(G.circle(0.1)))
    m.drive("motor", shaft, lambda t: t)
    assert m.move([0.0, 0.5]).ok and not m.move([0.0, 0.5]).notes
    m.force("gust", rod.point(), lambda t, state: (1 / 0, 0, 0))
    motion = m.move([0.0, 0.5])
    assert motion.ok
    (note,) = motion.notes
    assert note.startswith("it is not known whether contacts pull") and "'gust'" in note
