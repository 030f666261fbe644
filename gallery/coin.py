"""A coin rolls in a circle at a constant tilt.

A thin disc of a = 0.1 m and 1 kg leans by 30°.  In steady rolling with the precession Ω about the vertical and the
total spin s about the axle, (C + m a²) s Ω cos α + A Ω² cos α sin α = m g a sin α with the lean α from the upright,
A = m a²/4 and C = m a²/2.  Grübler count 6 − 1 = 5; rolling removes two velocities.
"""

from __future__ import annotations

from math import asin, cos, radians, sin

import numpy as np

import cardan as cd
from gallery.checks import expect
from gallery.looks import BRASS
from gallery.rolling import disc, expect_rolling, run_simulation

RADIUS, MASS, LEAN = 0.1, 1.0, radians(30.0)  # m, kg, rad
PRECESSION = 6.0  # rad/s
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The coin a little above the table; its axle is the y axis of the body."""
    m = cd.Mechanism("coin")
    inertia = MASS * RADIUS**2 * np.diag([0.25, 0.5, 0.25])
    lean = ((1.0, 0.0, 0.0), LEAN)
    coin = m.body("coin", position=(0.0, 0.0, RADIUS * cos(LEAN) + 0.02), orientation=lean, mass=MASS, inertia=inertia)
    rim = disc(coin, RADIUS, 0.008, z=Y, color=BRASS)
    coin.attach(cd.shapes.tube(RADIUS, 0.88 * RADIUS, 0.012), coin.frame(z=Y), color=BRASS)
    coin.attach(cd.shapes.link((-0.4 * RADIUS, 0.0), (0.4 * RADIUS, 0.0), width=0.03, thickness=0.011), coin.frame(z=Y))
    m.contact("rolls", m.ground.attach(cd.geometry.plane(0.6, 0.6)), rim, mode="roll")
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The height of a coin that leans."""
    state = result.state
    up = abs(state["coin"].matrix[2, 1])
    expect("height", state["coin"].position[2], RADIUS * np.sqrt(1.0 - up * up))
    return [f"the centre is {state['coin'].position[2]:.9f} m above the table, a cos α"]


def spin(lean: float) -> float:
    """Total spin [rad/s] about the axle in steady rolling at a lean [rad]."""
    A, C = 0.25 * MASS * RADIUS**2, 0.5 * MASS * RADIUS**2
    left = MASS * 9.81 * RADIUS * sin(lean) - A * PRECESSION**2 * cos(lean) * sin(lean)
    return left / ((C + MASS * RADIUS**2) * PRECESSION * cos(lean))


def steady(state: cd.State) -> cd.State:
    """An assembled state with the velocities of steady rolling at its lean."""
    pose = state["coin"]
    axle, point = pose.matrix[:, 1], state.contact("rolls").point
    up = np.array([0.0, 0.0, 1.0])
    across = np.cross(axle, up)
    slope = np.cross(across, axle) / np.linalg.norm(across)  # ⟂ the axle, in the vertical plane through it
    # ω has the part s along the axle and the part of Ω up that is normal to it
    total = spin(asin(abs(axle[2])))
    omega = -total * np.sign(axle @ up) * axle + PRECESSION * (up @ slope) * slope
    v = -np.cross(omega, point - pose.position)
    return state.with_rates(np.array([[*v, *(pose.matrix.T @ omega)]]))


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Half a second of steady rolling: lean and height stay, nothing slips."""
    rolled = run_simulation(mechanism, 0.5, steady(state))
    lean = [abs(one["coin"].matrix[2, 1]) for one in rolled.states]
    expect("lean", lean, np.full(len(lean), lean[0]), 1e-6)
    for one in rolled.states:
        expect_rolling(one, "rolls", None, "coin")
    total = spin(asin(lean[0]))
    return [f"it rolls steadily with {PRECESSION:g} rad/s about the vertical, {total:.4f} rad/s about its axle"]
