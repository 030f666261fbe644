"""Bricard's linkage of six hinges: it moves although its Grübler count is 0.  [Bricard1897]

Six rods of 1 m lie along the edges of a cube.  Each hinge is perpendicular to both of its rods, so neighbouring axes
are perpendicular too.  The sixth rod is the ground.  This is problem A04 of [IFToMM2016].
The Grübler count is 30 − 6·5 = 0; the rank gives one degree of freedom.

The angles between successive rods repeat around the loop, θ, φ, θ, φ, θ, φ, and satisfy
cos θ + cos φ + cos θ cos φ = 0 ([Chen2005] with twist 90°).  θ = φ = 90° is the cube; θ = 60° gives
φ = arccos(−1/3) = 109.47°.
"""

from __future__ import annotations

from math import acos, cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect, rates, rotated, run_move, without_drivers
from gallery.masses import with_masses

RODS = 5  # moving rods
X, Y, Z = np.eye(3)
EDGES = np.array([X, Y, Z, -X, -Y, -Z])  # directions of the rods around the cube, the ground first
DRAWN = 1.1  # m: edge of the cube in the sketch, too long
ROTATION = (0.05, 0.10, 0.15)  # rad: rotation vector of the rods in the sketch
MIDDLE, SWING, BEGIN = radians(75.0), radians(35.0), radians(25.0)  # mean, amplitude and initial phase of θ
DURATION, POSES = 3.0, 24  # s


def theta(t: Any) -> Any:
    """θ [rad] at time t [s]: an oscillation."""
    return MIDDLE + SWING * cd.sin(2 * cd.pi * t / DURATION + BEGIN)


def _far_axis(rod: int) -> tuple[float, float, float]:
    """Axis of the hinge at the far end of a rod, in rod axes (x along the rod, z along the hinge at the near end)."""
    return (0.0, 1.0, 0.0) if rod % 2 == 0 else (0.0, -1.0, 0.0)


def build() -> cd.Mechanism:
    """The cube, drawn 10 % too large, with rotated rods."""
    m = cd.Mechanism("bricard")
    rotation = euler.from_rotation_vector(ROTATION)
    rods = []
    for k in range(1, RODS + 1):
        along, axis = EDGES[k], np.cross(EDGES[k - 1], EDGES[k])
        square = euler.from_matrix(np.column_stack([along, np.cross(axis, along), axis]))
        rods.append(
            m.body(f"rod_{k}", position=DRAWN * EDGES[:k].sum(axis=0), orientation=euler.multiply(rotation, square))
        )
    m.revolute("hinge_1", m.ground.frame((1, 0, 0), z=Z, x=X), rods[0].frame((0, 0, 0), z=Z, x=X))
    for k in range(1, RODS):
        far = rods[k - 1].frame((1, 0, 0), z=_far_axis(k), x=X)
        m.revolute(f"hinge_{k + 1}", far, rods[k].frame((0, 0, 0), z=Z, x=X))
    m.revolute("hinge_6", rods[-1].frame((1, 0, 0), z=_far_axis(RODS), x=X), m.ground.frame((0, 0, 0), z=-Y, x=X))
    m.drive("swing", m["hinge_1"], theta)
    return with_masses(m)


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """θ and φ [rad]; checks all six angles."""
    angles = [mechanism[f"hinge_{k}"].coordinate(state) for k in range(1, 7)]
    theta, phi = angles[0], angles[1]
    expect("the six repeating angles", np.cos(angles), np.cos([theta, phi] * 3))
    expect("cos θ + cos φ + cos θ cos φ", cos(theta) + cos(phi) + cos(theta) * cos(phi), 0.0)
    return theta, phi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The relation of the angles in the assembled pose, and in a distant one: the linkage is mobile, not shaky."""
    theta, phi = _check_angles(mechanism, result.state)
    facts = [f"the angles around the loop repeat, {degrees(theta):.4f}° and {degrees(phi):.4f}°, as in theory"]
    locked = without_drivers(mechanism)
    locked.drive("lock", locked["hinge_1"], pi / 3)
    moved = locked.assemble()
    if not moved.ok:
        raise ExampleError(f"bricard does not assemble with θ = 60°; {moved.text()}")
    _, other = _check_angles(mechanism, moved.state)
    expect("φ at θ = 60°", other, acos(-1 / 3))
    return [*facts, f"at θ = 60° it also assembles, with φ = {degrees(other):.6f}° = arccos(−1/3)"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The relation of the angles and its time derivative, over one oscillation."""
    found = []
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        theta, phi = _check_angles(mechanism, pose)
        _, first = rates(pose, "rod_1")
        _, second = rates(pose, "rod_2")
        phi_rate = float((second - first) @ rotated(pose["rod_2"], Z))  # about the hinge at its near end
        law = sin(theta) * (1.0 + cos(phi)) * first[2] + sin(phi) * (1.0 + cos(theta)) * phi_rate
        expect("θ̇ sin θ (1 + cos φ) + φ̇ sin φ (1 + cos θ)", law, 0.0)
        found.append(degrees(theta))
    return [f"the angles satisfy the closed form from θ = {min(found):.1f}° to {max(found):.1f}°, in {POSES} poses"]
