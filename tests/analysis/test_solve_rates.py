"""Velocities that satisfy joints, drivers and given rates, with the least kinetic energy."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.examples import REGISTRY
from cardan.math import euler


def four_bar() -> cd.Mechanism:
    m = cd.Mechanism("four-bar")
    names, points = ("crank", "coupler", "rocker"), ((0, 0, 0), (0, 1, 0), (2, 1.5, 0))
    ends = ((0, 1, 0), (2, 0.5, 0), (0, -1.5, 0))
    for name, point in zip(names, points, strict=True):
        m.body(name, position=point, mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), center=(0.1, 0.3, 0.0))
    m.revolute("A", m.ground.frame(), m["crank"].frame())
    m.revolute("B", m["crank"].frame(ends[0]), m["coupler"].frame())
    m.revolute("C", m["coupler"].frame(ends[1]), m["rocker"].frame())
    m.revolute("D", m["rocker"].frame(ends[2]), m.ground.frame((2, 0, 0)))
    return m


def test_the_rates_of_a_loop_are_those_of_the_same_motion():
    m = four_bar()
    start = m.assemble().state
    found = m.solve_rates(start, {"A": 2.0})
    driven = m.copy()
    angle = m["A"].coordinate(start)
    driven.drive("motor", driven["A"], lambda t: angle + 2.0 * t)
    expected = driven.move([0.0, 0.1]).states[0]
    assert np.abs(found.velocities - expected.velocities).max() < 1e-12
    assert np.array_equal(found.coordinates, start.coordinates)
    again = driven.solve_rates(start)
    assert np.abs(again.velocities - expected.velocities).max() < 1e-12


def test_what_is_left_free_has_the_least_kinetic_energy():
    rng = np.random.default_rng(3)
    m = cd.Mechanism("arm")
    at = m.ground.frame()
    for k in range(4):
        axis = rng.normal(size=3)
        body = m.body(f"b{k}", mass=1.0 + k, inertia=np.diag([0.1, 0.2, 0.25]), center=rng.normal(size=3))
        m.revolute(f"j{k}", at.body.frame(at.origin, z=axis), body.frame(z=axis))
        at = body.frame(rng.normal(size=3))
    start = m.assemble().state
    found = m.solve_rates(start, {"j1": 0.7, "j3": -0.2})
    alone = [m.solve_rates(start, {f"j{k}": float(k == i) for k in range(4)}).velocities for i in range(4)]

    def energy(rates):
        v = sum(rate * one for rate, one in zip(rates, alone, strict=True))
        total = 0.0
        for k, row in enumerate(v):
            body, pose = m[f"b{k}"], start[f"b{k}"]
            center = row[:3] + pose.matrix @ np.cross(row[3:], body.center)
            total += 0.5 * body.mass * center @ center + 0.5 * row[3:] @ np.array(body.inertia) @ row[3:]
        return total

    # by the definition: a quadratic form in the four rates, minimised over the two that are free
    form = np.array([[energy(a + b) - energy(a) - energy(b) for a in np.eye(4)] for b in np.eye(4)])
    free, fixed = [0, 2], np.array([0.7, -0.2])
    rest = np.linalg.solve(form[np.ix_(free, free)], -form[np.ix_(free, [1, 3])] @ fixed)
    expected = sum(r * one for r, one in zip([rest[0], 0.7, rest[1], -0.2], alone, strict=True))
    assert np.abs(found.velocities - expected).max() < 1e-12


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "strandbeest"])
def test_velocities_satisfy_the_joints_of_the_gallery(name):
    m = REGISTRY[name].build()
    state = m.assemble(time=0.1).state
    found = m.solve_rates(state)
    step = 1e-6
    moved = m.system.state(
        np.hstack(
            [
                state.coordinates[:, :3] + step * found.velocities[:, :3],
                euler.retract(state.coordinates[:, 3:], step * found.velocities[:, 3:]),
            ]
        ),
        np.array([state.angles[key] for key in m.system.counted_angles]),
        state.time,
    )
    near = np.array([state.angles[key] for key in m.system.counted_angles])
    p = formulations.problem(m.system, "manifold", None, state.time + step)
    residual = p.residual(formulations.to_reference(m.system, moved.coordinates, near))
    assert np.abs(residual).max() < 1e-9 * max(1.0, np.abs(found.velocities).max() ** 2)


def test_rates_that_contradict_each_other_are_named():
    m = four_bar()
    state = m.assemble().state
    with pytest.raises(cd.ModelError, match=r"rate of A.*rate of D|rate of D.*rate of A"):
        m.solve_rates(state, {"A": 1.0, "D": 5.0})
    with pytest.raises(cd.ModelError, match="'E'"):
        m.solve_rates(state, {"E": 1.0})
    with pytest.raises(cd.ModelError, match="State"):
        m.solve_rates({"A": 1.0})


def test_a_simulation_starts_with_the_rates():
    m = four_bar()
    start = m.solve_rates(m.assemble().state, {"A": 3.0})
    sim = m.simulate(0.01, start, step=1e-3)
    assert not sim.notes
    assert np.abs(sim.states[0].velocities - start.velocities).max() < 1e-12


def test_a_rate_beyond_a_limit_is_named():
    m = cd.Mechanism()
    slide = m.prismatic("slide", m.ground.frame(), m.body("part").frame())
    m.limit("floor", slide, lower=0.0)
    with pytest.raises(cd.ModelError, match="'rate of slide' would move a coordinate beyond the limit 'floor'"):
        m.solve_rates(m.state, {"slide": -1.0})
    assert m.solve_rates(m.state, {"slide": 1.0})["part"].velocity[2] == pytest.approx(1.0)


def test_coordinates_without_a_joint_have_given_rates():
    """A ball that rolls on the ground at (0.3, −0.2, 0) m/s, and another one that follows it."""
    m = cd.Mechanism("balls")
    road = m.ground.attach(cd.geometry.plane())
    rates = {}
    for name, x in (("first", 0.0), ("second", 1.0)):
        ball = m.body(name, position=(x, 0.0, 0.1))
        m.contact(f"{name}.on", road, ball.attach(cd.geometry.sphere(0.1)), mode="roll")
        for word, rate in (("x", 0.3), ("y", -0.2)):
            rates[cd.coordinate(m.ground.frame(), ball.frame(), word)] = rate
    found = m.solve_rates(m.assemble().state, rates)
    for name in ("first", "second"):
        assert found[name].velocity == pytest.approx([0.3, -0.2, 0.0], abs=1e-12)
        assert found[name].angular_velocity == pytest.approx([2.0, 3.0, 0.0], abs=1e-11)


def test_rates_of_two_coordinates_of_one_joint_are_named_in_full():
    m = cd.Mechanism()
    m.screw("thread", m.ground.frame(), m.body("nut").frame(), pitch=0.02)
    with pytest.raises(cd.ModelError, match=r"'rate of thread.displacement', 'rate of thread.angle'"):
        m.solve_rates(m.assemble().state, {"thread.displacement": 0.1, "thread.angle": 1.0})
