"""Joints and geometric constraints as bundles of primitives between frames and points, and couplings of coordinates.

Every kind is in ``REGISTRY``, and is an attribute of this package by its name: ``cardan.joints.revolute``.
"""

from cardan.joints.coordinates import Coordinate, coordinate
from cardan.joints.couplings import DRIVEN, coordinate_row, couple, drive, held, limit
from cardan.joints.geometric import distance
from cardan.joints.lower_pairs import coincident, fixed
from cardan.joints.rate_rows import constrain_rates, knife_edge, rolling
from cardan.joints.registry import REGISTRY, Joint, JointKind, Relative, Role, coupling_kind, joint_kind
from cardan.joints.single_primitive import constrain, contact, path, point_on_curve, point_on_surface

__all__ = [
    "DRIVEN", "REGISTRY", "Coordinate", "Joint", "JointKind", "Relative", "Role", "coincident", "coordinate",
    "coordinate_row", "held", "constrain", "constrain_rates", "contact", "couple", "coupling_kind", "distance",
    "drive", "fixed", "joint_kind", "knife_edge", "limit", "path", "point_on_curve", "point_on_surface", "rolling",
]  # fmt: skip

globals().update(REGISTRY)
__all__ += [name for name in REGISTRY if name not in __all__]
