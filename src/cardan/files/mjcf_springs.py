"""Springs and dampers that MuJoCo makes of springdamper = (time constant τ, damping ratio ζ) of a joint.

    stiffness = I/(τζ)²,   damping = 2 I/τ,   1/I = mean of the joint's elements on the diagonal of M⁻¹

with the mass matrix M of all joint coordinates in the reference pose, without equality constraints.  [MuJoCo]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cardan.files import mjcf_joints, robots
from cardan.files.robots import Array, Inertial, Transform

if TYPE_CHECKING:
    from cardan.files.mjcf import _Model

MOST_MOTIONS: Final = 1000  # coordinates of M, which is dense
WITHOUT: Final = f"a mass is not known, M is singular, or there are more than {MOST_MOTIONS} coordinates"


class Reference:
    """Masses and joints in the reference pose, in world axes."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}  # of each body the one that carries it
        self.masses: dict[str, tuple[float, Array, Array] | None] = {}  # mass, centre and inertia; None: not known
        self.motions: list[tuple[str, str, Array, Array, Array, float]] = []  # joint, body, point, v, ω, armature

    def add_mass(self, body: str, world: Transform, inertial: Inertial | None) -> None:
        """The mass of a body."""
        if inertial is None:
            self.masses[body] = None
            return
        center = world.p + world.R @ inertial.center
        self.masses[body] = inertial.mass, center, world.R @ inertial.inertia @ world.R.T

    def add_axis(self, body: str, joint: str, point: Array, axis: Array, turns: bool, armature: float) -> None:
        """A hinge or a slide."""
        none = np.zeros(3)
        self.motions.append((joint, body, point, none if turns else axis, axis if turns else none, armature))

    def add_ball(self, body: str, joint: str, where: Transform) -> None:
        """A ball joint; the masses contain its armature."""
        for axis in where.R.T:
            self.add_axis(body, joint, where.p, axis, True, 0.0)

    def add_free(self, body: str, joint: str, world: Transform) -> None:
        """A free joint; the masses contain its armature."""
        for axis in np.eye(3):
            self.add_axis(body, joint, world.p, axis, False, 0.0)
        self.add_ball(body, joint, world)

    def inertias(self) -> dict[str, float] | None:
        """I of every joint [kg m² or kg]; None if a mass is not known, M is singular, or there are very many."""
        size = len(self.motions)
        if not 0 < size <= MOST_MOTIONS:
            return None
        matrix = np.diag([armature for *_, armature in self.motions])
        for body, mass in self.masses.items():
            carried = self._carriers(body)
            if mass is None:
                if any(on in carried for _, on, *_ in self.motions):
                    return None
                continue
            m, center, inertia = mass
            rows = np.zeros((6, size))
            for k, (_, on, point, v, w, _) in enumerate(self.motions):
                if on in carried:
                    rows[:3, k], rows[3:, k] = v + np.cross(w, center - point), w
            matrix += m * rows[:3].T @ rows[:3] + rows[3:].T @ inertia @ rows[3:]
        if np.linalg.matrix_rank(matrix) < size:
            return None
        inverse = np.diag(np.linalg.inv(matrix))
        by_joint: dict[str, list[float]] = {}
        for (joint, *_), value in zip(self.motions, inverse.tolist(), strict=True):
            by_joint.setdefault(joint, []).append(value)
        return {joint: len(values) / sum(values) for joint, values in by_joint.items()}

    def _carriers(self, body: str) -> set[str]:
        """A body and all that carry it."""
        found = {body}
        while body in self.parents:
            body = self.parents[body]
            found.add(body)
        return found


def add_automatic(model: _Model) -> None:
    """The springs and dampers of all joints with springdamper; what is not known is reported."""
    inertias = model.reference.inertias() if model.automatic else None
    for joint, name, rest, frames in model.automatic:
        if inertias is None:
            model.report.count(f"springdamper of joints: {WITHOUT}", name)
            continue
        tau, ratio = robots.numbers(joint, "springdamper", 2).tolist()
        inertia = inertias[name]
        stiffness, damping = inertia / (tau * ratio) ** 2, 2.0 * inertia / tau
        mjcf_joints.add_springs(model, mjcf_joints.kind_of(joint), name, stiffness, damping, frames, rest)
