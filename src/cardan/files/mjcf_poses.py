"""Poses of MJCF elements: pos with one of the orientations, or two points."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Final

import numpy as np

from cardan.errors import ModelError
from cardan.files import robots
from cardan.files.mjcf_elements import ORIENTATION
from cardan.files.robots import Array, Transform
from cardan.math import euler

ROTATIONS: Final = {"x": robots.rotation_x, "y": robots.rotation_y, "z": robots.rotation_z}


class Poses:
    """``radians``: the unit of angles; ``sequence``: of Euler angles, as in <compiler>."""

    def __init__(self, radians: bool, sequence: str) -> None:
        if len(sequence) != 3 or not set(sequence.lower()) <= set(ROTATIONS):
            raise ModelError(f"<compiler> has eulerseq={sequence[:80]!r}; it must have three letters of 'xyzXYZ'")
        self.radians, self.sequence = radians, sequence

    def __call__(self, element: ET.Element) -> Transform:
        """The pose of an element in the frame around it."""
        p = robots.numbers(element, "pos", 3, (0.0, 0.0, 0.0))
        scale = 1.0 if self.radians else math.pi / 180.0
        if element.get("fromto") is not None and element.tag in ("site", "geom"):  # replaces pos and orientation
            ends = robots.numbers(element, "fromto", 6)
            along = robots.unit(ends[:3] - ends[3:], f"the length of {robots.describe(element)}")
            return Transform(0.5 * (ends[:3] + ends[3:]), _least_rotation(along))
        given = [key for key in ORIENTATION if element.get(key)]
        if len(given) > 1:
            raise ModelError(f"{robots.describe(element)} has {' and '.join(given)}; it must have one orientation")
        if not given:
            return Transform(p, np.eye(3))
        key = given[0]
        if key == "quat":
            return Transform(
                p,
                euler.matrix(
                    robots.unit(robots.numbers(element, "quat", 4), f"the quat of {robots.describe(element)}")
                ),
            )
        if key == "axisangle":
            x, y, z, angle = robots.numbers(element, "axisangle", 4).tolist()
            turned = robots.unit(np.array([x, y, z]), "an axis")
            return Transform(p, euler.matrix(np.array(euler.from_axis_angle(tuple(turned.tolist()), angle * scale))))
        if key == "euler":
            R = np.eye(3)
            for letter, angle in zip(self.sequence, robots.numbers(element, "euler", 3).tolist(), strict=True):
                one = ROTATIONS[letter.lower()](angle * scale)
                R = R @ one if letter.islower() else one @ R
            return Transform(p, R)
        if key == "xyaxes":
            both = robots.numbers(element, "xyaxes", 6)
            x_axis = robots.unit(both[:3], "xyaxes")
            y_axis = robots.unit(both[3:] - x_axis * float(x_axis @ both[3:]), "xyaxes")
            return Transform(p, np.column_stack([x_axis, y_axis, np.cross(x_axis, y_axis)]))
        return Transform(p, _least_rotation(robots.unit(robots.numbers(element, "zaxis", 3), "zaxis")))


def _least_rotation(z: Array) -> Array:
    """The rotation of least angle that takes the z axis to a direction."""
    axis = np.cross((0.0, 0.0, 1.0), z)
    n = float(np.linalg.norm(axis))
    if n < 1e-12:
        return np.eye(3) if z[2] > 0.0 else robots.rotation_x(math.pi)
    return np.asarray(euler.matrix(np.array(euler.from_axis_angle(tuple((axis / n).tolist()), math.atan2(n, z[2])))))
