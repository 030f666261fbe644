"""Contacts without friction that open: hits, accumulation, lift-off and energy, against closed forms."""

from __future__ import annotations

import math
import time as clock

import numpy as np
import pytest

import cardan as cd
from cardan.dynamics import tables
from cardan.dynamics.integrate import FAILURES, Integration
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


def ball_over_a_plate(x):
    """A ball over a square plate of ±1 m."""
    u, v = np.meshgrid(np.linspace(-1.0, 1.0, 4), np.linspace(-1.0, 1.0, 4), indexing="ij")
    m = cd.Mechanism("plate")
    plate = m.ground.attach(cd.geometry.Surface(np.stack([u, v, 0.0 * u], axis=-1)))
    body = m.body("ball", position=(x, 0.0, 0.5), mass=1.0, inertia=(0.004,) * 3)
    m.contact("on", plate, body.attach(cd.geometry.sphere(0.1)), unilateral=True)
    return m


@pytest.mark.parametrize("options", [{}, {"step": 1e-3}])
def test_an_open_contact_that_passes_an_edge_ends_the_run(options):
    m = ball_over_a_plate(0.9)
    sim = m.simulate(0.05, m.state.with_rates([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]]), max_seconds=20.0, **options)
    assert sim.status == "contact"
    assert "contact 'on' reaches the edge of a shape" in sim.reason
    assert abs(sim.times[-1] - 0.1 / 3.0) < 1e-9


@pytest.mark.parametrize("x", [1.05, 3.0])
def test_a_ball_beside_the_face_at_the_start_ends_the_run_with_the_contact(x):
    sim = ball_over_a_plate(x).simulate(0.05, max_seconds=20.0)
    assert sim.status == "contact"
    assert "contact 'on' has no points with opposed normals, because a face is beyond the edge" in sim.reason


def test_retries_of_steps_obey_the_limit_of_time(monkeypatch):
    calls, steps = [], Integration._steps

    def creep(run, until, count):
        """Steps that, after the first that fails, take some time, go on a little and fail again."""
        assert len(calls) < 200, "the limit of time is not obeyed"
        if calls:
            clock.sleep(0.01)
            run.control.time += 1e-12
            run.control.phase, run.control.step = tables.CORRECT, 1e-6
            return tables.NOT_CLOSED
        status = steps(run, until, count)
        calls.extend([1] * (status in FAILURES))
        return status

    def counted(run, until, count):
        calls.extend([1] * bool(calls))
        return creep(run, until, count)

    monkeypatch.setattr(Integration, "_steps", counted)
    m = ball_over_a_plate(0.9)
    sim = m.simulate(0.05, m.state.with_rates([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]]), max_seconds=0.3)
    assert sim.status == "time limit"
    assert len(calls) > 3


@pytest.mark.parametrize("friction", [0.0, 0.3])
@pytest.mark.parametrize("offset", [0.0, 0.05])
@pytest.mark.parametrize("inertia", [{}, {"inertia": (0.0, 0.0, 0.0)}])
def test_a_contact_that_would_turn_a_body_without_inertia_is_refused(friction, offset, inertia):
    m = cd.Mechanism("point mass", gravity=(0.0, 0.0, -G))
    body = m.body("ball", position=(0.0, 0.0, 0.2), mass=1.0, **inertia)
    face = body.attach(cd.geometry.sphere(RADIUS), body.frame((offset, 0.0, 0.0)))
    m.contact("on", m.ground.attach(cd.geometry.plane()), face, unilateral=True, friction=friction)
    start = m.state.with_rates([[1e-3, 0.0, 0.0, 0.0, 0.0, 0.0]])
    if friction or offset:
        what = "friction" if friction else "force"
        text = rf"contact 'on': its {what} would turn body 'ball', which has no inertia .*give it an inertia"
        with pytest.raises(ModelError, match=text):
            m.simulate(0.3, start, max_seconds=20.0)
        return
    sim = m.simulate(0.3, start, max_seconds=20.0)  # without a lever arm the spin has no effect
    assert sim.ok
    assert np.allclose(sim.states[-1].coordinates[0, :3], (3e-4, 0.0, RADIUS), atol=1e-9)


@pytest.mark.parametrize("step", [None, 1e-3])
@pytest.mark.parametrize("mass", [1.0, 1.1])
@pytest.mark.parametrize(("restitution", "speeds"), [(0.0, [0.25] * 4), (1.0, [-0.5, 0.5, 0.5, 0.5])])
def test_balls_in_a_row_that_are_hit_together_go_on_at_the_speeds_of_their_impact(restitution, speeds, mass, step):
    m = cd.Mechanism("row", gravity=(0.0, 0.0, 0.0))
    faces = []
    for i in range(4):
        body = m.body(f"b{i}", position=(0.2 * i - 0.3 * (i == 0), 0.0, 0.0), mass=mass, inertia=(0.01,) * 3)
        faces.append(body.attach(cd.geometry.sphere(RADIUS)))
        m.prismatic(f"s{i}", m.ground.frame(z=(1.0, 0.0, 0.0)), body.frame(z=(1.0, 0.0, 0.0)))
    for i in range(3):
        m.contact(f"c{i}", faces[i], faces[i + 1], unilateral=True, restitution=restitution)
    start = m.state.with_rates([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] + [[0.0] * 6] * 3)
    sim = m.simulate(1.0, start, step=step, max_seconds=20.0)
    assert sim.ok, sim.reason
    assert np.allclose([sim.rate(f"s{i}")[-1] for i in range(4)], speeds, atol=1e-9)
