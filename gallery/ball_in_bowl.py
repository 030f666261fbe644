"""A ball rolls in a bowl: a NURBS surface, the paraboloid z = k (x² + y²) exactly.

k = 1 1/m, so the curvature radius at the bottom is 0.5 m; ball of 0.1 m and 1 kg.  Grübler count 6 − 1 = 5; rolling
removes two velocities.  A small oscillation through the bottom has ω² = 5 g/(7 (ρ − R)) for a solid ball.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery.checks import expect
from gallery.rolling import expect_rolling, run_simulation

K, RADIUS, WIDE = 1.0, 0.1, 0.6  # 1/m, m, m
MASS = 1.0  # kg
SMALL = 1e-4  # m: amplitude


def bowl() -> cd.geometry.Surface:
    """z = k (x² + y²) on a square, by its control points: quadratic along both parameters."""
    line, square = (-WIDE, 0.0, WIDE), (WIDE**2, -(WIDE**2), WIDE**2)
    points = [[(x, y, K * (a + b)) for y, b in zip(line, square, strict=True)]
              for x, a in zip(line, square, strict=True)]  # fmt: skip
    return cd.geometry.Surface(points, degree=2)


def build() -> cd.Mechanism:
    """The ball a little above the bowl."""
    m = cd.Mechanism("ball_in_bowl")
    ball = m.body("ball", position=(0.25, 0.1, 0.26), mass=MASS, inertia=0.4 * MASS * RADIUS**2 * np.eye(3))
    glass = m.ground.attach(bowl(), color="#9fc3e466")
    m.contact("on", glass, ball.attach(cd.geometry.sphere(RADIUS), color="#d5643a"), mode="roll")
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The contact is on the paraboloid, and the ball is normal above it."""
    state = result.state
    x, y, z = state.contact("on").point
    expect("height of the contact", z, K * (x * x + y * y))
    normal = np.array([-2 * K * x, -2 * K * y, 1.0])
    expect("centre", state["ball"].position, (x, y, z) + RADIUS * normal / np.linalg.norm(normal))
    return [f"the ball touches the paraboloid at ({x:.6f}, {y:.6f}, {z:.6f}) m"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Half a second from rest without slip and with constant energy; a small oscillation has its known period."""
    fallen = run_simulation(mechanism, 0.5, mechanism.solve_rates(state, {}))
    energy = fallen.energy.total
    expect("energy", np.ptp(energy), 0.0, 1e-6 * abs(energy[0]))
    for pose in fallen.states:
        expect_rolling(pose, "on", None, "ball")
    omega = sqrt(5.0 * 9.81 / (7.0 * (0.5 / K - RADIUS)))
    low = state.moved({"ball": cd.Pose(np.array([SMALL, 0.0, RADIUS]), np.array([1.0, 0.0, 0.0, 0.0]))})
    assembled = mechanism.assemble(low)
    if not assembled.ok:
        raise ExampleError(f"the ball does not reach the bottom; {assembled.text()}")
    period = run_simulation(mechanism, 2 * pi / omega, mechanism.solve_rates(assembled.state, {}))
    expect("position after a period", period.positions("ball")[-1], period.positions("ball")[0], 1e-3 * SMALL)
    return [f"it rolls without slip with constant energy; a small oscillation takes {2 * pi / omega:.4f} s"]
