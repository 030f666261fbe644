"""Joints and geometric constraints as bundles of primitives between frames and points, and couplings of coordinates."""

from cardan.joints.coordinates import Coordinate, coordinate
from cardan.joints.couplings import DRIVEN, belt, couple, drive, gear, held, limit, rack
from cardan.joints.geometric import (
    angle,
    distance,
    line_distance,
    orientation,
    parallel,
    perpendicular,
    plane_distance,
    point_in_plane,
    point_on_line,
)
from cardan.joints.lower_pairs import (
    coincident,
    constant_velocity,
    cylindrical,
    fixed,
    planar,
    prismatic,
    revolute,
    screw,
    spherical,
    universal,
)
from cardan.joints.own import constrain
from cardan.joints.rate_rows import constrain_rates, knife_edge
from cardan.joints.registry import REGISTRY, Joint, JointKind, Relative, coupling_kind, joint_kind

__all__ = [
    "DRIVEN",
    "REGISTRY",
    "Coordinate",
    "Joint",
    "JointKind",
    "Relative",
    "angle",
    "belt",
    "coincident",
    "constant_velocity",
    "constrain",
    "constrain_rates",
    "coordinate",
    "couple",
    "coupling_kind",
    "cylindrical",
    "distance",
    "drive",
    "fixed",
    "gear",
    "held",
    "joint_kind",
    "knife_edge",
    "limit",
    "line_distance",
    "orientation",
    "parallel",
    "perpendicular",
    "planar",
    "plane_distance",
    "point_in_plane",
    "point_on_line",
    "prismatic",
    "rack",
    "revolute",
    "screw",
    "spherical",
    "universal",
]
