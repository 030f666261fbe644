"""Parameters that are functions of time: C_t, C_tt and C_qt by differences, in motions and in simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.constraints.registry import REGISTRY
from cardan.coordinates import formulations

TIME = 0.37


def changing(value):
    """A function of time near a value, with a rate and an acceleration."""
    return lambda t: value * (1.0 + 0.3 * cd.sin(1.7 * t)) + 0.05 * t * t


def random_unit(rng, size=3):
    v = rng.normal(size=size)
    return v / np.linalg.norm(v)


def given(m, primitive, rng, first, second):
    """Random features for a primitive, in turn on two bodies."""
    found = {}
    for k, argument in enumerate(primitive.arguments):
        body = (first, second)[k % 2]
        if argument.kind == "point":
            found[argument.name] = body.point(rng.normal(size=3))
        elif argument.kind == "vector":
            found[argument.name] = body.vector(random_unit(rng))
        elif argument.kind == "orientation":
            z = random_unit(rng)
            found[argument.name] = body.frame(rng.normal(size=3), z=z, x=np.cross(z, random_unit(rng)))
        else:
            frames = [b.frame(rng.normal(size=3), z=(0, 0, 1), x=(1, 0, 0)) for b in (m.ground, body)]
            kind = {"angle": "revolute", "displacement": "prismatic", "distance": "distance", "inclination": "angle"}
            options = {"distance": (1.0,), "inclination": (1.0,)}.get(argument.kind, ())
            found[argument.name] = getattr(m, kind[argument.kind])(f"joint_{k}", *frames, *options)
    return found


NAMED = [name for name, primitive in REGISTRY.items() if primitive.parameters and not primitive.guards]


@pytest.mark.parametrize("name", NAMED)
def test_time_derivatives_of_every_primitive_agree_with_differences(name):
    """Along q(t) with constant velocities: dC/dt = J v + C_t, and d²C/dt² = −γ."""
    primitive = REGISTRY[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    m = cd.Mechanism()
    bodies = [m.body(b, position=rng.normal(size=3), orientation=random_unit(rng, 4)) for b in "ab"]
    functions = {p: changing(0.5 + 0.3 * rng.random()) for p in primitive.parameters}
    m.constrain("c", primitive, **given(m, primitive, rng, *bodies), **functions)
    system = m.system
    assert len(system.timed) == len(primitive.parameters)
    (start,) = [row.start for row in system.rows if row.constraint == "c"]
    rows = slice(start, start + primitive.rows)
    problem = formulations.problem(system, "manifold")
    q, v = formulations.to_reference(system, system.authored), rng.normal(size=12)

    def value(t):
        return problem.with_floats(system.floats_at(TIME + t)).residual(problem.retract(q, t * v))[rows]

    h = 1e-3
    samples = {k: value(k * h) for k in range(-3, 4)}
    rate = sum(w * (samples[k] - samples[-k]) for k, w in ((1, 45), (2, -9), (3, 1))) / (60 * h)
    second = sum(w * (samples[k] + samples[-k]) for k, w in ((1, 270), (2, -27), (3, 2))) - 490 * samples[0]
    now = system.floats_at(TIME)
    moved = problem.with_floats(now).product(q, v)[rows]
    exact = moved + formulations.time_derivative(system, q, TIME)[rows]
    scale = 1.0 + np.abs(rate).max()
    assert np.abs(exact - rate).max() <= 1e-8 * scale
    gamma = formulations.gamma(system, "manifold", q, v, now)[rows]
    assert np.abs(gamma + second / (180 * h * h)).max() <= 1e-6 * (1.0 + np.abs(gamma).max())
    assert np.abs(exact - moved).max() > 1e-3  # the parameters matter


def telescope(length):
    """A slider on the x axis, at a distance from the point (0, 1, 0)."""
    m = cd.Mechanism()
    slider = m.body("slider", position=(1.5, 0, 0))
    m.prismatic("guide", m.ground.frame(z=(1, 0, 0), x=(0, 1, 0)), slider.frame(z=(1, 0, 0), x=(0, 1, 0)))
    m.distance("rod", m.ground.point((0, 1, 0)), slider.point(), length)
    return m


@pytest.mark.parametrize("squared", [False, True])
def test_a_rod_whose_length_is_a_function_of_time_moves_a_slider(squared):
    m = telescope(1.8)
    m.remove("rod")
    m.distance("rod", m.ground.point((0, 1, 0)), m["slider"].point(), lambda t: 1.8 + 0.4 * cd.sin(t), squared=squared)
    assert m.assemble(time=0.5).state["slider"].position[0] == pytest.approx(
        np.sqrt((1.8 + 0.4 * np.sin(0.5)) ** 2 - 1), abs=1e-11
    )
    times = np.linspace(0.0, 3.0, 13)
    found = m.move(times)
    assert found.ok
    length, rate, second = 1.8 + 0.4 * np.sin(times), 0.4 * np.cos(times), -0.4 * np.sin(times)
    x = np.sqrt(length**2 - 1)
    speed = length * rate / x
    acceleration = (rate**2 + length * second - speed**2) / x
    assert np.abs(found.positions("slider")[:, 0] - x).max() <= 1e-10
    assert np.abs([s["slider"].velocity[0] for s in found.states] - speed).max() <= 1e-8
    assert np.abs([s.accelerations[0, 0] for s in found.states] - acceleration).max() <= 1e-8
    assert m.diagnose(found.states[3]).residual <= 1e-11


def wheels():
    """Two wheels of inertia 0.5 about their hinges, with a gear whose ratio is a function of time."""
    m = cd.Mechanism()
    hinges = []
    for k in range(2):
        body = m.body(f"wheel_{k}", position=(2.0 * k, 0, 0), mass=1.0, inertia=np.diag([0.3, 0.3, 0.5]))
        hinges.append(m.revolute(f"hinge_{k}", m.ground.frame((2.0 * k, 0, 0)), body.frame()))
    m.drive("motor", hinges[0], lambda t: 0.2 + 1.5 * t)
    m.gear("mesh", *hinges, ratio=lambda t: -1.0 - 0.2 * t * t, phase=lambda t: 0.1 * cd.sin(t))
    return m


def test_a_gear_whose_ratio_is_a_function_of_time():
    """θ₂ = r(t) θ₁: the equation holds between the angles, so θ̇₂ = ṙ θ₁ + r θ̇₁."""
    m = wheels()
    hinges = [m["hinge_0"], m["hinge_1"]]
    times = np.linspace(0.0, 4.0, 9)
    found = m.move(times)
    assert found.ok
    first, ratio = 0.2 + 1.5 * times, -1.0 - 0.2 * times**2
    assert np.abs(found.coordinate(hinges[1]) - (ratio * first + 0.1 * np.sin(times))).max() <= 1e-9
    rate = -0.4 * times * first + ratio * 1.5 + 0.1 * np.cos(times)
    second = -0.4 * first - 0.8 * times * 1.5 - 0.1 * np.sin(times)
    assert np.abs([s.velocities[1, 5] for s in found.states] - rate).max() <= 1e-8
    assert np.abs([s.accelerations[1, 5] for s in found.states] - second).max() <= 1e-8


def pendulum():
    """A ball on a rod whose length is a function of time, at 0.6 rad, without velocity along the circle."""
    m = cd.Mechanism(gravity=(0, 0, -9.81))
    ball = m.body("ball", position=(np.sin(0.6), 0, -np.cos(0.6)), mass=2.0, inertia=np.eye(3))
    m.distance("rod", m.ground.point(), ball.point(), lambda t: 1.0 + 0.2 * cd.sin(2.0 * t))
    return m


def swung(t):
    """θ of l²θ̈ + 2 l l̇ θ̇ + g l sin θ = 0, by SciPy."""

    def rates(t, y):
        length, rate = 1.0 + 0.2 * np.sin(2 * t), 0.4 * np.cos(2 * t)
        return [y[1], -(2 * rate * y[1] + 9.81 * np.sin(y[0])) / length]

    return solve_ivp(rates, (0, t), [0.6, 0.0], rtol=1e-12, atol=1e-13, method="DOP853").y[0, -1]


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"step": 1e-3}, 1e-8),
        ({"rtol": 1e-9}, 1e-7),
        ({"step": 2e-3, "method": "rk4"}, 1e-8),
        ({"step": 2e-3, "method": "dopri5"}, 1e-8),
        ({"step": 1e-3, "method": "generalized_alpha"}, 1e-4),
    ],
)
def test_a_pendulum_of_changing_length_agrees_with_scipy(options, tolerance):
    m = pendulum()
    state = m.solve_rates(m.assemble().state, {})
    # the rod grows at 0.4 m/s, so the ball begins along it
    assert np.abs(state["ball"].velocity - 0.4 * np.array([np.sin(0.6), 0, -np.cos(0.6)])).max() <= 1e-12
    sim = m.simulate(1.0, state, **options)
    assert sim.ok
    x, _, z = sim.state["ball"].position
    assert abs(np.arctan2(x, -z) - swung(1.0)) <= tolerance
    assert np.hypot(x, z) == pytest.approx(1.0 + 0.2 * np.sin(2.0), abs=max(1e-12, 1e-2 * tolerance))
    assert sim.drift.max() <= 1e-11


def test_the_force_of_a_rod_of_changing_length():
    """Along the rod m(l̈ − l θ̇²) = m g cos θ − F, in a simulation and in a driven motion."""
    m = pendulum()
    sim = m.simulate(0.5, m.solve_rates(m.assemble().state, {}), step=1e-3, times=[0.0, 0.25, 0.5])
    force = np.linalg.norm(sim.reaction("rod").force, axis=1)
    for k, state in enumerate(sim.states):
        t, along = state.time, state["ball"].position / np.linalg.norm(state["ball"].position)
        v = state["ball"].velocity
        turning = (v @ v - (v @ along) ** 2) / np.linalg.norm(state["ball"].position)
        expected = 2.0 * (-9.81 * along[2] - (-0.8 * np.sin(2 * t)) + turning)
        assert force[k] == pytest.approx(expected, rel=1e-8)


def test_the_effort_of_a_motor_with_a_gear_whose_ratio_changes():
    """J depends on the time: the power of the motor is the change of kinetic energy of both wheels."""
    m = wheels()
    times = np.linspace(0.0, 2.0, 5)
    found = m.move(times)
    first, ratio = 0.2 + 1.5 * times, -1.0 - 0.2 * times**2
    second = -0.4 * first - 0.8 * times * 1.5 - 0.1 * np.sin(times)
    effort = found.effort("motor")
    assert np.abs(effort - ratio * 0.5 * second).max() <= 1e-7  # the torque on the second wheel times the ratio


def test_the_public_equations_contain_the_time_derivatives():
    m = pendulum()
    sim = m.simulate(0.3, m.solve_rates(m.assemble().state, {}), step=1e-3)
    found = m.constraint_equations(sim.state)
    v = sim.state.velocities.ravel()
    assert np.abs(found.jacobian @ v - found.rate).max() <= 1e-9
    assert abs(found.rate).max() > 0.1


@pytest.mark.parametrize(
    ("verb", "named"),
    [
        (lambda m: m.session(m.assemble().state), "a session does not support"),
        (lambda m: m.assemble(formulation="relative"), "formulation 'relative' does not support"),
        (lambda m: m.save("rod.toml"), "is a function of time"),
    ],
    ids=["session", "relative", "save"],
)
def test_what_is_not_supported_is_refused_by_name(verb, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cd.CardanError, match=named) as error:
        verb(pendulum())
    assert "rod" in str(error.value)


def test_a_function_that_is_not_defined_is_named():
    m = cd.Mechanism()
    body = m.body("body", position=(1, 0, 0))
    with pytest.raises(cd.ModelError, match="parameter 'length'"):
        m.distance("rod", m.ground.point(), body.point(), lambda t: cd.sqrt(-1.0 - t * t))
    m.distance("rod", m.ground.point(), body.point(), lambda t: 1.0 + t)
    assert m.copy().system == m.system


@cd.primitive(p="point")
def height(p, *, z):
    """A point at a height above the ground."""
    return p.z - z


@cd.primitive(p="point", q="point", v="vector")
def across(p, q, v):
    """Two points of one body on a line perpendicular to a direction of the world."""
    return cd.dot(q - p, v)


def test_a_primitive_on_one_body_alone():
    m = cd.Mechanism()
    body = m.body("body", position=(0.1, 0.2, 0.3), orientation=(0.9, 0.2, 0.1, 0.3))
    for k, corner in enumerate(((0, 0, 0), (1, 0, 0), (0, 1, 0))):
        m.constrain(f"leg_{k}", height, p=body.point(corner), z=lambda t, k=k: 0.5 + 0.1 * k * t)
    assert m.diagnose(m.assemble().state).dof == 3
    at = m.assemble(time=1.0)
    assert at.ok
    for k, corner in enumerate(((0, 0, 0), (1, 0, 0), (0, 1, 0))):
        assert at.state["body"].point(corner)[2] == pytest.approx(0.5 + 0.1 * k, abs=1e-11)
    found = m.move([0.0, 0.5, 1.0])
    assert found.ok
    assert found.states[-1]["body"].point((0, 1, 0))[2] == pytest.approx(0.7, abs=1e-11)
    m.constrain("level", across, p=body.point(), q=body.point((1, 0, 0)), v=m.ground.vector((0, 1, 0)))
    assert m.assemble().ok
