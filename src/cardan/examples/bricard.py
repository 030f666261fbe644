"""Bricard's linkage of six hinges: rigid by count, and yet it moves.  [Bricard1897]

Six rods of 1 m along the edges of a cube, hinges at right angles to both their rods, so that neighbouring axes are at
right angles too; the sixth rod is the ground.  It is problem A04 of [IFToMM2016].
30 − 6·5 = 0 by count, one degree of freedom by rank.

The angles from rod to rod repeat around the loop, θ, φ, θ, φ, θ, φ, and obey cos θ + cos φ + cos θ cos φ = 0
([Chen2005] with twist 90°): θ = φ = 90° is the cube, and θ = 60° needs φ = arccos(−1/3) = 109.47°.
"""

from __future__ import annotations

from math import acos, cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, ExampleError, expect, played, rates, released, rotated
from cardan.math import euler

RODS = 5  # that move
X, Y, Z = np.eye(3)
EDGES = np.array([X, Y, Z, -X, -Y, -Z])  # directions around the cube, the ground's first
DRAWN = 1.1  # m: the sketch has its corners too far apart,
TURNED = (0.05, 0.10, 0.15)  # and its rods turned by this rotation vector [rad]
MIDDLE, SWING, BEGIN = radians(75.0), radians(35.0), radians(25.0)  # of θ while it moves; where its swing begins
DURATION, POSES = 3.0, 24  # s


def theta(t: Any) -> Any:
    """θ [rad] at a time [s]: to and fro."""
    return MIDDLE + SWING * cd.sin(2 * cd.pi * t / DURATION + BEGIN)


def _far_axis(rod: int) -> tuple[float, float, float]:
    """Axis of the hinge at the far end of a rod, in its axes (x along the rod, z the axis at its near end)."""
    return (0.0, 1.0, 0.0) if rod % 2 == 0 else (0.0, -1.0, 0.0)


def build() -> cd.Mechanism:
    """The cube, drawn a tenth too large, with its rods askew."""
    m = cd.Mechanism("bricard")
    askew = euler.from_rotation_vector(TURNED)
    rods = []
    for k in range(1, RODS + 1):
        along, axis = EDGES[k], np.cross(EDGES[k - 1], EDGES[k])
        square = euler.from_matrix(np.column_stack([along, np.cross(axis, along), axis]))
        rods.append(
            m.body(f"rod_{k}", position=DRAWN * EDGES[:k].sum(axis=0), orientation=euler.multiply(askew, square))
        )
    m.revolute("hinge_1", m.ground.frame((1, 0, 0), z=Z, x=X), rods[0].frame((0, 0, 0), z=Z, x=X))
    for k in range(1, RODS):
        far = rods[k - 1].frame((1, 0, 0), z=_far_axis(k), x=X)
        m.revolute(f"hinge_{k + 1}", far, rods[k].frame((0, 0, 0), z=Z, x=X))
    m.revolute("hinge_6", rods[-1].frame((1, 0, 0), z=_far_axis(RODS), x=X), m.ground.frame((0, 0, 0), z=-Y, x=X))
    m.drive("swing", m["hinge_1"], theta)
    return m


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """θ and φ [rad], after a look at all six."""
    angles = [mechanism[f"hinge_{k}"].coordinate(state) for k in range(1, 7)]
    theta, phi = angles[0], angles[1]
    expect("the six angles, which repeat", np.cos(angles), np.cos([theta, phi] * 3))
    expect("cos θ + cos φ + cos θ cos φ", cos(theta) + cos(phi) + cos(theta) * cos(phi), 0.0)
    return theta, phi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The law of its angles where it was assembled, and far from there: its freedom is no accident of one pose."""
    theta, phi = _check_angles(mechanism, result.state)
    facts = [f"the angles repeat around the loop: {degrees(theta):.4f}° and {degrees(phi):.4f}°, as its law says"]
    locked = released(mechanism)
    locked.drive("lock", locked["hinge_1"], pi / 3)
    moved = locked.assemble()
    if not moved.ok:
        raise ExampleError(f"bricard does not assemble with θ = 60°; {moved.text()}")
    _, other = _check_angles(mechanism, moved.state)
    expect("φ at θ = 60°", other, acos(-1 / 3))
    return [*facts, f"moved to θ = 60° it is assembled again, with φ = {degrees(other):.6f}° = arccos(−1/3)"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """To and fro: the law of the angles, and that of their rates, which is its derivative."""
    found = []
    for pose in played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        theta, phi = _check_angles(mechanism, pose)
        _, first = rates(pose, "rod_1")
        _, second = rates(pose, "rod_2")
        turning = float((second - first) @ rotated(pose["rod_2"], Z))  # φ̇, about the axis at its near end
        law = sin(theta) * (1.0 + cos(phi)) * first[2] + sin(phi) * (1.0 + cos(theta)) * turning
        expect("θ̇ sin θ (1 + cos φ) + φ̇ sin φ (1 + cos θ)", law, 0.0)
        found.append(degrees(theta))
    return [f"driven from θ = {min(found):.1f}° to {max(found):.1f}° its angles keep their law, in {POSES} poses"]


EXAMPLE = Example(
    "bricard",
    "Bricard's linkage: rigid by count, and it moves",
    build,
    check,
    dof=1,
    gruebler=0,
    motion=motion,
    duration=DURATION,
)
