"""Balls that are rolled without slip or spin: a path that closes on the ball, and a drag."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.math import euler

G = cd.geometry
Z = np.array([0.0, 0.0, 1.0])


def rolled_ball(r, position):
    m = cd.Mechanism("holonomy", gravity=(0, 0, 0))
    ball = m.body("ball", position=position, mass=1.0, inertia=np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(r)), mode="roll_without_spin")
    return m, ball


def drive_along(m, ball, x, y):
    for k, law in enumerate((x, y)):
        axis = np.eye(3)[k]
        m.drive(f"along {k}", cd.coordinate(m.ground.frame(z=axis), ball.frame(z=axis), "displacement"), law)


def test_a_path_that_closes_on_the_sphere_turns_it_by_its_area():
    """A small circle of the sphere at the angle β has the geodesic curvature cot β/r; rolled without spin, its image in
    the plane has the same, an arc of 2π cos β.  The ball then is turned about the normal by 2π (1 − cos β)."""
    r, beta = 0.3, 1.0
    rho, total = r * np.tan(beta), 2 * np.pi * np.cos(beta)
    m, ball = rolled_ball(r, (rho, 0.0, r))
    drive_along(m, ball, lambda t: rho * cd.cos(t), lambda t: rho * cd.sin(t))
    start = m.solve_rates(m.assemble().state, {})
    by_forces = m.simulate(total, start, step=total / 2000).state
    by_drivers = m.move(np.linspace(0.0, total, 9), start).state
    for end in (by_forces, by_drivers):
        turned = end["ball"].matrix @ start["ball"].matrix.T
        assert np.linalg.norm(turned @ Z - Z) < 1e-6  # the same point of the ball touches
        angle = np.arctan2(turned[1, 0], turned[0, 0])
        # the frame of the path turns by 2π cos β, and the ball by the rest of a turn
        assert np.abs(np.exp(1j * angle) - np.exp(2j * np.pi * np.cos(beta))) < 1e-6
        area = 2 * np.pi * (1 - np.cos(beta))
        assert np.abs(np.exp(-1j * angle) - np.exp(1j * area)) < 1e-6
        old, new = (state.contact("on").parameters[1] for state in (start, end))
        assert np.abs(old - new).max() < 1e-6


def test_a_session_rolls_a_ball_without_slipping():
    """A ball that is dragged 0.3 m turns by 0.3/r about the horizontal axis, to the order of its sub-steps."""
    m, _ = rolled_ball(0.1, (0, 0, 0.1))
    with m.session() as session:
        hand = session.grasp("ball", (0.0, 0.0, 0.0))
        hand.target = hand.point + np.array([0.1, 0.0, 0.0])
        for _ in range(200):
            session.step()
        state = session.state
    moved = state["ball"].position[0]
    assert moved == pytest.approx(0.1, abs=1e-6)
    turned = state["ball"].matrix
    assert np.arctan2(turned[0, 2], turned[2, 2]) == pytest.approx(moved / 0.1, abs=1e-6)
    assert abs(turned[1]).max() == pytest.approx(1.0, abs=1e-9)


def test_a_driven_motion_rolls_as_a_simulation_does():
    """move integrates the rate rows: a ball round a circle turns by 2π(√(1 + ρ²/r²) − 1), and no position solve
    removes this."""
    rho, r = 0.5, 0.3
    m, ball = rolled_ball(r, (rho, 0, r))
    drive_along(m, ball, lambda t: rho * cd.cos(t), lambda t: rho * cd.sin(t))
    motion = m.move(np.linspace(0.0, 2 * np.pi, 9))
    assert motion.ok, motion.text()
    p, q = motion.quaternions("ball")[[0, -1]]
    angle = 2 * np.arccos(np.clip(abs(euler.multiply(q, euler.conjugate(p))[0]), 0, 1))
    total = 2 * np.pi * (np.sqrt(1 + rho**2 / r**2) - 1)
    assert angle == pytest.approx(abs((total + np.pi) % (2 * np.pi) - np.pi), abs=1e-6)
    again = m.assemble(motion.states[-1])
    assert again.ok and np.array_equal(again.state.coordinates, motion.states[-1].coordinates)
