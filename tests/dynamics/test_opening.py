"""Contacts without friction that open: hits, accumulation, lift-off and energy, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError

G = 9.81
TIME = 1e-11  # s: of a hit
RADIUS, HEIGHT = 0.1, 0.5  # [m] of the ball, and below it


def ball(restitution, at=(0.0, 0.0, 0.0), friction=0.0):
    m = cd.Mechanism("ball", gravity=(0.0, 0.0, -G))
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame(at))
    x, y, z = at
    body = m.body("ball", position=(x, y, z + HEIGHT + RADIUS), mass=1.3, inertia=0.01 * np.eye(3))
    face = body.attach(cd.geometry.sphere(RADIUS))
    m.contact("on", floor, face, unilateral=True, restitution=restitution, friction=friction)
    return m


@pytest.mark.parametrize("restitution", [0.5, 0.8])
@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (30.0, -20.0, 10.0)])
def test_a_ball_hits_at_the_times_of_its_falls_and_comes_to_rest_when_they_end(restitution, at):
    fall = math.sqrt(2.0 * HEIGHT / G)
    end = fall * (1.0 + restitution) / (1.0 - restitution)
    sim = ball(restitution, at).simulate(1.2 * end, step=1e-2)
    hits = [event for event in sim.events if event.kind == "hit"]
    times = [fall * (1.0 + 2.0 * sum(restitution ** (j + 1) for j in range(k))) for k in range(10)]
    assert np.abs(np.array([hit.time for hit in hits[:10]]) - times).max() < TIME
    speeds = [math.sqrt(2.0 * G * HEIGHT) * restitution**k for k in range(10)]
    assert np.allclose([hit.speed for hit in hits[:10]], speeds, rtol=1e-9)
    assert np.allclose([hit.impulse for hit in hits[:10]], 1.3 * (1.0 + restitution) * np.array(speeds), rtol=1e-9)
    (last,) = [event for event in sim.events if event.kind == "accumulation"]
    assert abs(last.time - end) < TIME
    assert abs(sim.contact("on").gap[-1]) < 1e-12
    assert np.allclose(sim.contact("on").force[-1], (0.0, 0.0, 1.3 * G), rtol=1e-9)
    balance = sim.energy.total + sim.energy.lost_impact
    assert np.abs(balance - balance[0]).max() < 1e-9
    assert sim.penetration < 1e-11
    again = ball(restitution, at).simulate(1.2 * end, step=1e-2)
    assert (again.states[-1].coordinates == sim.states[-1].coordinates).all()


def test_what_events_do_not_consider_is_refused_by_name():
    with pytest.raises(ModelError, match="contact 'on' has friction, but impacts is 'in_turn'"):
        ball(0.5, friction=0.3).simulate(1.0, impacts="in_turn")
    m = ball(0.5)
    for verb in (m.diagnose, m.equilibrium, m.session, lambda: m.move([0.0, 1.0])):
        with pytest.raises(ModelError, match=r"does not consider contacts that open yet, and 'on' is one"):
            verb()
    m.collide("all")
    with pytest.raises(ModelError, match=r"assemble with collisions.*does not consider contacts that open yet"):
        m.assemble()


def test_faces_that_overlap_at_the_start_are_refused():
    m = ball(0.5)
    m["ball"].position = (0.0, 0.0, 0.5 * RADIUS)
    with pytest.raises(ModelError, match=r"contact 'on': the faces overlap by 0\.05 m at the start"):
        m.simulate(0.1)
    assert m.simulate(0.1, m.assemble().state).ok


def test_a_result_that_would_lose_its_hits_is_not_saved(tmp_path):
    sim = ball(0.5).simulate(0.4, step=1e-2)
    assert sim.energy.lost_impact[-1] > 0.0
    with pytest.raises(ModelError, match=r"contacts that open.*cannot be saved yet"):
        sim.save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())
