"""Joints and geometric constraints as bundles of primitives between frames and points."""

from cardan.joints.geometric import (
    angle,
    distance,
    parallel,
    perpendicular,
    point_in_plane,
    point_on_line,
)
from cardan.joints.lower_pairs import (
    cylindrical,
    fixed,
    planar,
    prismatic,
    revolute,
    spherical,
    universal,
)
from cardan.joints.registry import REGISTRY, Joint, JointKind, Relative, joint_kind

__all__ = [
    "REGISTRY",
    "Joint",
    "JointKind",
    "Relative",
    "angle",
    "cylindrical",
    "distance",
    "fixed",
    "joint_kind",
    "parallel",
    "perpendicular",
    "planar",
    "point_in_plane",
    "point_on_line",
    "prismatic",
    "revolute",
    "spherical",
    "universal",
]
