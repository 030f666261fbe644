"""Stewart platform as six distances: one body on six rods of fixed length, with no freedom.  [Stewart1965]

The base joints b_k lie on a circle of radius 1 m, the platform joints p_k on one of 0.6 m, in pairs 20° apart; the
pairs of the platform are rotated by 60°.  The lengths are those of a known pose, |r + A p_k − b_k| = l_k.  The sketch
is a level platform.  Six lengths allow up to 40 poses [Raghavan1993]: the sketch leads to the known pose, other starts
may lead to others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed
from gallery.masses import with_masses

BASE_RADIUS, PLATFORM_RADIUS = 1.0, 0.6  # m
BASE_ANGLES = (-10, 10, 110, 130, 230, 250)  # degrees, by leg
PLATFORM_ANGLES = (-50, 50, 70, 170, 190, 290)  # degrees, by leg

KNOWN_POSITION = (0.05, -0.04, 1.2)  # m
KNOWN_ROTATION = (0.053, 0.107, 0.160)  # rotation vector [rad]
SAME_POSE = 1e-6  # m, 1: poses that differ by less are the same; the other solutions are far away


def circle(radius: float, degrees: tuple[int, ...]) -> NDArray[np.float64]:
    """Points [m] of a circle in the xy plane, shape (n, 3)."""
    angles = np.deg2rad(degrees)
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.zeros_like(angles)])


BASE = circle(BASE_RADIUS, BASE_ANGLES)
PLATFORM = circle(PLATFORM_RADIUS, PLATFORM_ANGLES)


def known_pose() -> cd.Pose:
    """The pose from which the lengths are computed."""
    return cd.Pose(np.array(KNOWN_POSITION), euler.from_rotation_vector(KNOWN_ROTATION))


def lengths_at(pose: cd.Pose) -> NDArray[np.float64]:
    """Lengths [m] of the six legs for a pose of the platform, shape (6,)."""
    return np.array([np.linalg.norm(placed(pose, p) - b) for b, p in zip(BASE, PLATFORM, strict=True)])


def build() -> cd.Mechanism:
    """The platform level, above the centre of the base."""
    m = cd.Mechanism("stewart_distance")
    platform = m.body("platform", position=(0.0, 0.0, 1.0))
    for k, length in enumerate(lengths_at(known_pose())):
        m.distance(f"leg_{k + 1}", m.ground.point(BASE[k]), platform.point(PLATFORM[k]), length)
    return with_masses(m)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The six lengths, recomputed, and whether the pose is the known one."""
    found, known = result.state["platform"], known_pose()
    lengths = lengths_at(found)
    expect("lengths of the legs", lengths, lengths_at(known))
    away = float(np.linalg.norm(found.position - known.position))
    rotated = 1.0 - abs(float(found.quaternion @ known.quaternion))
    same = away < SAME_POSE and rotated < SAME_POSE
    return [
        "the six legs have the required lengths: " + ", ".join(f"{length:.6f}" for length in lengths) + " m",
        "the platform is in the known pose from which the lengths were computed"
        if same
        else f"the platform is in another pose with the same lengths, {away:.3f} m away",
    ]
