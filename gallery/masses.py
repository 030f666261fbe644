"""Masses of the examples, which are sketches of kinematics in the first place."""

from __future__ import annotations

import numpy as np

import cardan as cd

MASS = 1.0  # kg
LEAST_SIZE = 0.1  # of the mechanism's extent: radius of a body all of whose joint points are at its origin


def with_masses(mechanism: cd.Mechanism) -> cd.Mechanism:
    """The mechanism; each body without a mass becomes a ball of 1 kg around its origin, up to its farthest joint."""
    points = mechanism._model.drawing.joint_points()
    least = LEAST_SIZE * mechanism.system.judged_length
    for name, body in mechanism.bodies.items():
        if not body.has_mass and body.inertia is None:
            radius = max([float(np.linalg.norm(point)) for point in points.get(name, ())], default=0.0) or least
            body.mass, body.inertia = MASS, np.diag([0.4 * MASS * radius**2] * 3)
    return mechanism
