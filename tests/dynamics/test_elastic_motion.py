"""Simulations of flexible bodies: vibrations, energy, momentum, and a beam that is spun up."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.elastic import beam, wave_numbers

L, A, I_Y, I_Z, E, RHO = 1.6, 3e-4, 2e-9, 5e-9, 7e10, 2700.0
SECTION = {"area": A, "second_moments": (I_Y, I_Z), "young": E, "density": RHO}
X, Y, Z = np.eye(3)


def mechanism(gravity=(0, 0, 0), **counts):
    m = cd.Mechanism("flexible", gravity=gravity)
    rod = m.body("rod")
    rod.flexible(beam(L, **SECTION, **counts))
    return m, rod


@pytest.mark.parametrize("damping", [0.0, 0.05])
def test_a_released_cantilever_vibrates_in_its_modes(damping):
    m, rod = mechanism(bending=(2, 0), stretch=0, damping=damping)
    m.fixed("clamp", m.ground.frame(), rod.frame())
    eta = np.array([2e-5, -1e-6])
    names = [one.name for one in rod.elastic.coordinates]
    start = m.state.with_variables(dict(zip(names, eta, strict=True)))
    sim = m.simulate(0.05, start, rtol=1e-9, times=np.linspace(0.0, 0.05, 6))
    assert sim.ok, sim.text()
    w = np.sqrt(np.diag(rod.elastic.modes.stiffness))
    d, wd = damping * w, w * np.sqrt(1 - damping**2)
    t = sim.times[:, None]
    known = eta * np.exp(-d * t) * (np.cos(wd * t) + d / wd * np.sin(wd * t))
    assert sim.shapes["rod"] == pytest.approx(known, abs=1e-7 * 2e-5)
    tip = rod.elastic.modes.at((L, 0, 0)).displacement[1]
    assert sim.trace(rod.point((L, 0, 0)))[:, 1] == pytest.approx(known @ tip, abs=1e-7 * 2e-5)
    if damping:
        assert (np.diff(sim.energy.total) < 0).all()
    else:
        assert np.ptp(sim.energy.total) < 1e-8 * sim.energy.total[0]


def pendulum():
    m, rod = mechanism((0, -9.81, 0), bending=(2, 0), stretch=0)
    m.revolute("A", m.ground.frame(), rod.frame())
    return m


def check_energy(sim, bar):
    assert sim.ok, sim.text()
    assert np.ptp(sim.energy.total) < bar * np.ptp(sim.energy.kinetic)
    assert sim.drift.max() < 1e-14
    assert sim.strain.max() > 1e-6 * np.ptp(sim.energy.kinetic)


def test_an_undamped_pendulum_keeps_its_energy():
    check_energy(pendulum().simulate(0.1, rtol=1e-10, times=np.linspace(0, 0.1, 6)), 1e-10)


@pytest.mark.long
def test_an_undamped_pendulum_keeps_its_energy_for_ten_seconds():
    check_energy(pendulum().simulate(10.0, rtol=1e-10), 1e-8)


def test_a_spring_and_a_weight_at_the_tip_keep_the_energy():
    m, rod = mechanism((0, -9.81, 0), bending=(1, 0), stretch=0, twist=1)
    m.revolute("A", m.ground.frame(), rod.frame())
    weight = m.body("weight", position=(L, 0, 0), mass=0.5, inertia=(0.01, 0.01, 0.01), center=(0.05, 0.02, 0.1))
    m.spherical("B", rod.point((L, 0, 0)), weight.point())
    m.spring("S", m.ground.point((L, 0.5, 0.2)), weight.point((0.1, 0, 0)), stiffness=30.0, rest=0.3)
    sim = m.simulate(0.01, rtol=1e-9, times=[0.0, 0.005, 0.01])
    check_energy(sim, 1e-8)


def test_a_free_beam_keeps_its_momentum():
    m, rod = mechanism(bending=(1, 1), stretch=0)
    modes = rod.elastic.modes
    eta = dict(zip([one.name for one in rod.elastic.coordinates], (2e-2, -1e-2), strict=True))
    start = m.state.with_variables(eta).with_rates([[0.1, 0.2, -0.1, 2.0, -1.0, 3.0]])
    sim = m.simulate(0.1, start, rtol=1e-10, times=np.linspace(0.0, 0.1, 6))
    assert sim.ok
    P = modes.points
    center = np.einsum("k,kti->ti", P.masses, [sim.trace(rod.point(s)) for s in P.places]) / modes.mass
    straight = center[0] + (sim.times / sim.times[-1])[:, None] * (center[-1] - center[0])
    assert np.abs(center - straight).max() < 1e-10
    turned = []
    for state, shape, speed in zip(sim.states, sim.shapes["rod"], sim.shape_rates["rod"], strict=True):
        pose, total = state["rod"], 0.0
        w = pose.matrix.T @ pose.angular_velocity
        for k, s in enumerate(P.places):
            slope = P.displacement[k] + P.second[k] @ shape
            u = s + P.displacement[k] @ shape + 0.5 * P.second[k] @ shape @ shape
            velocity = pose.velocity + pose.matrix @ (np.cross(w, u) + slope @ speed)
            total = total + P.masses[k] * np.cross(pose.position + pose.matrix @ u, velocity)
        spin = P.moments @ (P.axes @ w + np.einsum("ki,kin->kn", P.axes, P.rotation) @ speed)
        turned.append(total + pose.matrix @ X * spin)
    assert np.abs(np.ptp(turned, axis=0)).max() < 1e-9 * np.abs(turned).max()
    assert np.ptp(sim.energy.total) < 1e-9 * sim.energy.total[0]


# -- spin-up of a beam [Kane1987] --------------------------------------------------------------------------------------

SPUN = {"area": 4e-4, "second_moments": 2e-7, "young": 7e10, "density": 3000.0}  # 10 m long


def angle(t, speed, duration, cos):
    return speed / duration * (t * t / 2 + (duration / (2 * np.pi)) ** 2 * (cos(2 * np.pi / duration * t) - 1))


def rotating_beam(speed, duration, times, count=4):
    """Tip deflection by the linear equation of a rotating beam, in the exact modes of a cantilever.

    ρA (v̈ + θ̈ x − θ̇² v) + E I v⁗ − (θ̇² ρA (ℓ² − x²)/2 v′)′ = 0, with the speed as a function of time.
    """
    length, mass, stiff = 10.0, 1.2, 1.4e4
    waves = wave_numbers(("clamped", "free"), count) / length
    nodes, weights = leggauss(60)
    x, dx = 0.5 * length * (nodes + 1), 0.5 * length * weights

    def mode(x, order):
        b = waves[:, None]
        s = (np.cosh(b * length) + np.cos(b * length)) / (np.sinh(b * length) + np.sin(b * length))
        if order == 0:
            return np.cosh(b * x) - np.cos(b * x) - s * (np.sinh(b * x) - np.sin(b * x))
        return b * (np.sinh(b * x) + np.sin(b * x) - s * (np.cosh(b * x) - np.cos(b * x)))

    f, df = mode(x, 0), mode(x, 1)
    M = mass * np.einsum("ip,jp,p->ij", f, f, dx)
    K = np.diag(stiff * waves**4 * np.diag(M) / mass)
    S = mass * np.einsum("ip,jp,p->ij", df, df, dx * (length**2 - x**2) / 2) - M
    pull = mass * np.einsum("ip,p->i", f, x * dx)

    def slope(t, y):
        w = speed / duration * (t - duration / (2 * np.pi) * np.sin(2 * np.pi * t / duration))
        dw = speed / duration * (1 - np.cos(2 * np.pi * t / duration))
        q = y[:count]
        return np.concatenate([y[count:], np.linalg.solve(M, -K @ q - w * w * S @ q - dw * pull)])

    found = solve_ivp(slope, (0, times[-1]), np.zeros(2 * count), "DOP853", times, rtol=1e-9, atol=1e-12)
    return found.y[:count].T @ mode(np.array([length]), 0)[:, 0]


def spun(speed, duration, until, count):
    m = cd.Mechanism(gravity=(0, 0, 0))
    rod = m.body("rod")
    rod.flexible(beam(10.0, **SPUN, bending=(count, 0), stretch=0))
    hinge = m.revolute("A", m.ground.frame(), rod.frame())
    m.drive("spin", hinge, lambda t: angle(t, speed, duration, cd.cos))
    sim = m.simulate(until, rtol=1e-7, times=np.linspace(0.0, until, 41))
    assert sim.ok, sim.text()
    turn = angle(sim.times, speed, duration, np.cos)
    tip = sim.trace(rod.point((10.0, 0, 0)))
    return sim.times, -np.sin(turn) * tip[:, 0] + np.cos(turn) * tip[:, 1]


def test_a_beam_that_is_spun_up_slowly_follows_the_linear_equation():
    times, found = spun(0.3, 1.5, 1.5, 3)
    known = rotating_beam(0.3, 1.5, times)
    assert np.abs(known).max() > 0.1
    assert np.abs(found - known).max() < 2e-3 * np.abs(known).max()


@pytest.mark.long
def test_the_spin_up_of_kane_is_stiffened_by_rotation():
    """At 6 rad/s in 15 s.  Without stiffening θ̇² exceeds the square of the first frequency, and the tip runs away."""
    times, found = spun(6.0, 15.0, 15.0, 4)
    known = rotating_beam(6.0, 15.0, times)
    assert np.abs(found - known).max() < 0.01 * np.abs(known).max()
    assert 0.5 < np.abs(found).max() < 0.6
    assert np.abs(found[-1]) < 0.02
    first = 3.5160 * np.sqrt(1.4e4 / 1.2) / 100.0
    assert first < 6.0


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step": 1e-3}, r"step is 0.001, but simulations with flexible bodies \('rod'\) have one method"),
        ({"method": "rk4", "step": 1e-3}, "method is 'rk4'"),
        ({"stabilization": "none"}, "stabilization is 'none'"),
        ({"contacts": "steps", "step": 0.1}, "contacts is 'steps'"),
        ({"stabilization": "baumgarte", "gain": 3.0}, "stabilization is 'baumgarte'"),
        ({"impacts": "in_turn"}, "impacts is 'in_turn'"),
        ({"times": [0.3, 0.1]}, "must increase"),
        ({"times": [0.0, 3.0]}, "from 0 to 1 s"),
        ({"no": 1}, "no option of a simulation is named 'no'"),
    ],
)
def test_options_that_it_does_not_have_are_refused(options, words):
    with pytest.raises(cd.ModelError, match=words):
        pendulum().simulate(1.0, **options)


def test_the_status_of_a_run_is_not_read_from_words(monkeypatch):
    monkeypatch.setattr("scipy.integrate.DOP853.step", lambda solver: "no step, whatever max_seconds is")
    sim = pendulum().simulate(1.0)
    assert sim.status == "step too small" and "no step" in sim.reason and sim.steps == 0


def test_a_run_is_limited_pickled_and_refuses_what_has_no_mass():
    m = pendulum()
    sim = m.simulate(1.0, max_seconds=1e-3)
    assert not sim.ok and sim.status == "time limit" and "max_seconds" in sim.text()
    done = m.simulate(0.01, times=[0.0, 0.01])
    again = pickle.loads(pickle.dumps(done))
    assert again.ok and np.array_equal(again.shapes["rod"], done.shapes["rod"])
    with pytest.raises(cd.ModelError, match="body 'rod' is flexible"):
        done.states[-1].rate("A")
    with pytest.raises(cd.ModelError, match=r"flexible bodies \('rod'\) has no 'reaction' yet"):
        done.reaction("A")
    assert not hasattr(done, "nothing")
    with pytest.raises(cd.ModelError, match="trace was given 'rod'"):
        done.trace("rod")
    with pytest.raises(cd.ModelError, match="duration"):
        m.simulate(-1.0)
    rod = m["rod"]
    m.revolute("B", rod.frame((L, 0, 0)), m.body("light", position=(L, 0, 0)).frame())
    with pytest.raises(cd.ModelError, match="needs masses"):
        m.simulate(0.1)
    m.limit("stop", m["A"], upper=1.0)
    with pytest.raises(cd.ModelError, match="limits yet: 'stop'"):
        m.simulate(0.1)
