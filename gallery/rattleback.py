"""A rattleback: half an ellipsoid whose axes of inertia are turned against those of its surface.

Numbers of [KaneLevinson1982]: half axes 0.2, 0.03 and 0.02 m, the centre of mass 0.01 m below the centre of the
ellipsoid, 1 kg.  Spun in one direction it begins to rock, and its spin reverses.  Grübler count 6 − 1 = 5.
"""

from __future__ import annotations

import numpy as np

import cardan as cd
from gallery.checks import expect
from gallery.rolling import expect_rolling, run_simulation

AXES, BELOW = (0.2, 0.03, 0.02), 0.01  # m
INERTIA = [[2e-4, -2e-5, 0.0], [-2e-5, 1.6e-3, 0.0], [0.0, 0.0, 1.7e-3]]  # kg m²
SPIN = -5.0  # rad/s


def build() -> cd.Mechanism:
    """The stone a little above the table, tilted."""
    m = cd.Mechanism("rattleback")
    tilt = ((1.0, 0.0, 0.0), 0.0087)
    stone = m.body("stone", position=(0.0, 0.0, 0.03), orientation=tilt, mass=1.0, inertia=INERTIA)
    surface = stone.attach(cd.geometry.ellipsoid(*AXES), stone.frame((0.0, 0.0, BELOW)), color="#8a5a3c")
    m.contact("rolls", m.ground.attach(cd.geometry.plane(0.6, 0.4)), surface, mode="roll")
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The height of an ellipsoid over its tangent plane: h² = Σ (aᵢ nᵢ)²."""
    pose = result.state["stone"]
    height = float(np.linalg.norm(pose.matrix[2] * AXES))
    expect("height", pose.position[2] + BELOW * pose.matrix[2, 2], height)
    return [f"the centre of the ellipsoid is {height:.9f} m above the table"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The first second of the spin: energy and rolling; the stone begins to rock."""
    pose = state["stone"]
    omega = pose.matrix @ (0.0, 0.0, SPIN)
    v = -np.cross(omega, state.contact("rolls").point - pose.position)
    simulation = run_simulation(mechanism, 1.0, state.with_rates(np.array([[*v, 0.0, 0.0, SPIN]])))
    energy = simulation.energy.total
    expect("energy", np.ptp(energy), 0.0, 1e-6 * abs(energy[0]))
    for one in simulation.states[:: max(1, len(simulation.states) // 20)]:
        expect_rolling(one, "rolls", None, "stone")
    return [f"energy is constant to {np.ptp(energy) / abs(energy[0]):.0e}; nothing slips"]
