"""Limits with restitution: hits at stops, accumulation, rest and energy, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.dynamics import rebound
from cardan.errors import ModelError

G = 9.81
TIME = 1e-11  # s: of a hit


def falling(restitution, gravity=G):
    """A carriage of 2 kg, 1 m above its stop."""
    m = cd.Mechanism("falling", gravity=(0.0, 0.0, -gravity))
    m.prismatic("P", m.ground.frame(), m.body("carriage", mass=2.0, inertia=np.eye(3), position=(0, 0, 1)).frame())
    m.limit("floor", "P", lower=0.0, restitution=restitution)
    return m


def rotor(**bounds):
    m = cd.Mechanism("rotor", gravity=(0.0, 0.0, 0.0))
    m.revolute("A", m.ground.frame(), m.body("rotor", mass=1.0, inertia=np.diag([1.0, 1.0, 0.5])).frame())
    if bounds:
        m.limit("stop", "A", **bounds)
    return m


def spinning(m, **rates):
    """A state of a mechanism with rates about the z axes of bodies."""
    return m.state.with_rates(np.array([(0, 0, 0, 0, 0, rates[name]) for name in m.bodies], dtype=float))


def hits_of(sim, name):
    return [event for event in sim.events if getattr(event, "kind", "") == "hit" and event.name == name]


def imbalance(sim):
    balance = sim.energy.total + sim.energy.lost_impact
    return np.abs(balance - balance[0]).max()


def test_a_hit_at_the_start_is_no_contradiction():
    m = falling(0.5)
    m["carriage"].position = (0.0, 0.0, 0.0)
    sim = m.simulate(0.1, m.state.with_rates(np.array([[0.0, 0, -1.0, 0, 0, 0]])), rtol=1e-8)
    assert hits_of(sim, "floor")[0].time == 0.0 and sim.states[0].velocities[0, 2] == pytest.approx(0.5)
    assert "contradict" not in sim.text()


@pytest.mark.parametrize("restitution", [0.3, 0.8])
@pytest.mark.parametrize("steps", [{"rtol": 1e-8}, {"step": 1e-2}])
def test_a_carriage_hits_at_the_times_of_its_falls_and_comes_to_rest_when_they_end(restitution, steps):
    fall, speed = math.sqrt(2.0 / G), math.sqrt(2.0 * G)
    end = fall * (1.0 + restitution) / (1.0 - restitution)
    sim = falling(restitution).simulate(1.2 * end, **steps)
    hits = hits_of(sim, "floor")[:6]
    times = [fall * (1.0 + 2.0 * sum(restitution ** (j + 1) for j in range(k))) for k in range(6)]
    assert np.abs(np.array([hit.time for hit in hits]) - times).max() < TIME
    speeds = speed * restitution ** np.arange(6)
    assert np.allclose([hit.speed for hit in hits], speeds, rtol=1e-9)
    assert np.allclose([hit.impulse for hit in hits], 2.0 * (1.0 + restitution) * speeds, rtol=1e-9)
    (last,) = [event for event in sim.events if getattr(event, "kind", "") == "accumulation"]
    assert abs(last.time - end) < TIME
    assert [event.what for event in sim.events if hasattr(event, "what")] == ["reached"]
    assert abs(sim.coordinate("P")[-1]) < 1e-14
    assert sim.effort("floor")[-1] == pytest.approx(2.0 * G, rel=1e-12)
    assert sim.coordinate("P").min() > -1e-12
    assert imbalance(sim) < 1e-12 * 2.0 * G
    assert sim.energy.lost_impact[-1] == pytest.approx(2.0 * G, rel=1e-7)  # bounces below 1e-8 m are summed


@pytest.mark.parametrize("restitution", [0.25, 1.0])
def test_a_rotor_between_two_stops_loses_the_square_of_its_restitution(restitution):
    m = rotor(lower=-0.2, upper=0.3, restitution=restitution)
    sim = m.simulate(0.5, spinning(m, rotor=3.0), rtol=1e-8)
    t, w, times = 0.1, 3.0, []
    while t < 0.5:
        times.append(t)
        w *= restitution
        t += 0.5 / w
    hits = hits_of(sim, "stop")
    assert len(hits) == len(times) and np.abs(np.array([hit.time for hit in hits]) - times).max() < TIME
    assert sim.energy.kinetic[-1] == pytest.approx(0.25 * w**2, rel=1e-12)
    assert imbalance(sim) < 1e-12


@pytest.mark.parametrize("impacts", ["together", "in_turn"])
@pytest.mark.parametrize(("first", "second"), [(0.9, 0.2), (0.2, 0.9), (0.5, 0.5), (1.0, 0.0)])
def test_two_stops_at_one_time_never_give_energy(impacts, first, second):
    """Gears reach two stops at the same time, and a free rotor hits one of them earlier."""
    m = rotor(upper=0.3, restitution=first)
    m.revolute("B", m.ground.frame((2, 0, 0)), m.body("wheel", position=(2, 0, 0), mass=1.0, inertia=np.eye(3)).frame())
    m.gear("mesh", "A", "B", ratio=-2.0)
    m.limit("other", "B", lower=-0.6, restitution=second)
    sim = m.simulate(0.3, spinning(m, rotor=2.0, wheel=-4.0), rtol=1e-8, impacts=impacts)
    assert sim.ok, sim.text()
    assert imbalance(sim) < 1e-12
    assert (np.diff(sim.energy.lost_impact) >= 0.0).all()
    rate = sim.states[-1]["rotor"].angular_velocity[2]
    assert -2.0 <= rate <= 0.0
    if first == second:
        assert rate == pytest.approx(-2.0 * first, rel=1e-10)


def test_a_slider_crank_hits_with_the_inertia_of_all_its_parts():
    """One freedom: every rate is multiplied by −e, and the energy by e²."""
    m = cd.Mechanism("slider crank", gravity=(0.0, 0.0, 0.0))
    inertia = np.diag([0.01, 0.02, 0.02])
    for name, x, mass in (("crank", 0.0, 0.5), ("rod", 0.2, 0.8), ("slider", 0.7, 1.1)):
        m.body(name, position=(x, 0, 0), mass=mass, inertia=inertia, center=(0.1 if name != "slider" else 0.0, 0, 0))
    m.revolute("A", m.ground.frame(), m["crank"].frame())
    m.revolute("B", m["crank"].frame((0.2, 0, 0)), m["rod"].frame())
    m.revolute("C", m["rod"].frame((0.5, 0, 0)), m["slider"].frame())
    m.prismatic("P", m.ground.frame(z=(1, 0, 0)), m["slider"].frame(z=(1, 0, 0)))
    m.drive("start", "A", lambda t: 0.5 + 4.0 * t)
    start = m.move([0.0, 0.01]).states[0]
    m.remove("start")
    m.limit("stop", "P", lower=0.55, restitution=0.7)
    sim = m.simulate(0.4, start, rtol=1e-9)
    (hit,) = hits_of(sim, "stop")
    energy = sim.energy.kinetic
    assert np.allclose(energy, energy[0] * np.where(sim.times < hit.time, 1.0, 0.49), rtol=1e-7)
    rate = sim.velocities("slider")[:, 0]
    assert rate[sim.times < hit.time][-1] < 0.0 < rate[sim.times > hit.time][0]
    assert sim.coordinate("P").min() > 0.55 - 1e-12


def test_a_stop_that_is_held_opens_when_the_other_end_is_hit():
    """A hammer on a carriage that rests at its own stop: the carriage leaves it only if the impulse pulls."""
    m = falling(0.0)
    hammer = m.body("hammer", mass=1.0, inertia=np.eye(3), position=(0, 0, 1.5))
    m.prismatic("Q", m["carriage"].frame(), hammer.frame())
    m.limit("anvil", "Q", lower=0.2, upper=0.6, restitution=0.5)
    sim = m.simulate(3.0, rtol=1e-8)
    assert sim.ok and imbalance(sim) < 1e-9
    assert sim.coordinate("P").min() > -1e-12 and sim.coordinate("Q").min() > 0.2 - 1e-12
    assert abs(sim.coordinate("Q")[-1] - 0.2) < 1e-12 and sim.energy.kinetic[-1] < 1e-20


def bob(play):
    """A part on a ball joint, or on a socket with play, as a limit of a distance."""
    m = cd.Mechanism("bob", gravity=(0.0, 0.0, -G))
    body = m.body("bob", mass=1.0, inertia=(0.01, 0.02, 0.03), center=(0.3, 0.0, -0.1))
    if play is None:
        m.spherical("ball", m.ground.point(), body.point())
    else:
        m.limit("socket", cd.coordinate(m.ground.point(), body.point(), "distance"), upper=play, restitution=0.3)
    return m


def test_a_socket_with_play_tends_to_the_ball_joint():
    ideal = bob(None).simulate(0.3, rtol=1e-9, times=[0.0, 0.3]).states[-1]["bob"].point((0.3, 0, -0.1))
    errors = []
    for play in (1e-3, 1e-4, 1e-5):
        sim = bob(play).simulate(0.3, rtol=1e-7, times=np.linspace(0.0, 0.3, 7))
        assert sim.ok and hits_of(sim, "socket"), sim.text()
        assert np.linalg.norm(sim.positions("bob"), axis=1).max() < play + 1e-10
        assert imbalance(sim) < 1e-6
        errors.append(np.linalg.norm(sim.states[-1]["bob"].point((0.3, 0, -0.1)) - ideal))
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2] and errors[2] < 3e-3


def test_a_driver_that_pushes_against_a_stop_ends_the_run():
    m = rotor(upper=0.3, restitution=0.5)
    m.drive("motor", "A", lambda t: t)
    sim = m.simulate(1.0, rtol=1e-8)
    assert sim.status == "limit" and sim.times[-1] == pytest.approx(0.3, abs=1e-9)
    assert "driver 'motor' pushes against limit 'stop' (upper)" in sim.reason


def test_too_many_hits_end_the_run_with_the_way_out(monkeypatch):
    monkeypatch.setattr(rebound, "MOST_HITS", 100)
    m = rotor(lower=0.0, upper=1e-3, restitution=1.0)
    sim = m.simulate(1.0, spinning(m, rotor=0.11), rtol=1e-6, times=[0.0, 1.0])
    assert sim.status == "events" and "limits are hit too often" in sim.reason


@pytest.mark.parametrize("given", [-0.1, 1.1, math.nan, "high", None])
def test_a_restitution_that_is_none_is_refused(given):
    with pytest.raises(ModelError, match=r"limit 'stop'.*restitution"):
        rotor(upper=0.3, restitution=given)
    with pytest.raises(ModelError, match=r"lower and upper are both 0\.3; leave restitution out"):
        rotor(lower=0.3, upper=0.3, restitution=0.5)


def test_what_does_not_consider_a_restitution_refuses_it_by_name():
    m = rotor(upper=0.3, restitution=0.5)
    assert m.session(mode="kinematic").state is not None
    for call, match in (
        (lambda: m.session(mode="dynamic"), "limit 'stop' has restitution=0.5"),
        (lambda: m.simulate(1.0, step=1e-3, stabilization="none"), "limit 'stop' has a restitution, but stabilization"),
        (lambda: m.simulate(1.0, step=1e-3, method="generalized_alpha"), "does not stop at the limits 'stop'"),
    ):
        with pytest.raises(ModelError, match=match):
            call()
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame((0.0, 0.0, -3.0)))
    ball = m.body("ball", mass=1.0, inertia=np.eye(3)).attach(cd.geometry.sphere(0.1))
    m.contact("on", floor, ball, unilateral=True)
    with pytest.raises(ModelError, match="contact 'on' opens, and limit 'stop' has a restitution"):
        m.simulate(1.0)


def test_files_and_results_carry_a_restitution(tmp_path):
    m = falling(0.5)
    m.save(tmp_path / "m.cardan.toml")
    again = cd.load(tmp_path / "m.cardan.toml")
    assert again == m and again != falling(0.4)
    sim = m.simulate(1.0, rtol=1e-8)
    assert again.simulate(1.0, rtol=1e-8) == sim
    m.assemble().save(tmp_path / "run.npz")
    cd.load_result(tmp_path / "run.npz", mechanism=again)
    with pytest.raises(ModelError, match="limit 'floor' differs"):
        cd.load_result(tmp_path / "run.npz", mechanism=falling(0.4))
    with pytest.raises(ModelError, match=r"limits with restitution.*cannot be saved yet"):
        sim.save(tmp_path / "sim.npz")
