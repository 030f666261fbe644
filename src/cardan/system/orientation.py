"""Orientations as users write them: a quaternion, a matrix, an axis and an angle, Euler angles, a SciPy rotation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.check import Quadruple

FORMS = (
    "a quaternion (w, x, y, z), a 3×3 matrix, (axis, angle), Euler angles such as ('xyz', (a, b, c)), or a SciPy "
    "Rotation"
)


def orientation(value: Any, what: str) -> Quadruple:
    """The unit quaternion (w, x, y, z) of an orientation body → world, in any of its forms.

    ``(axis, angle)``: three numbers and radians.  ``("xyz", (a, b, c))``: angles [rad] about one to three axes, in this
    order; about the axes of world if the letters are small, about those of the body if they are capital, as in SciPy.
    """
    if (type(value) is tuple and len(value) == 4) or (type(value) is np.ndarray and value.shape == (4,)):
        return check.quaternion(value, what)
    if hasattr(value, "as_quat"):
        try:
            return check.quaternion(euler.from_scipy(value).tolist(), what)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{what} is {value!r}; it must be a single rotation ({error})") from None
    try:
        items = list(value)
    except TypeError:
        raise ModelError(f"{what} is {value!r}; it must be {FORMS}") from None
    if isinstance(value, str | bytes | dict | set) or len(items) not in (2, 3, 4):
        raise ModelError(f"{what} is {value!r}; it must be {FORMS}")
    if len(items) == 4 or (len(items) == 3 and not any(np.ndim(row) for row in items)):
        return check.quaternion(value, what)
    if len(items) == 3:
        try:
            found = euler.from_matrix(np.array([check.numbers(row, 3, f"a row of {what}") for row in items]))
        except ValueError as error:
            raise ModelError(f"{what} is {value!r}: {error}; it must be {FORMS}") from None
        return check.quaternion(found.tolist(), what)
    first, second = items
    if isinstance(first, str):
        return _from_euler_angles(first, second, what)
    axis = check.direction(first, f"the axis of {what}")
    found = euler.from_axis_angle(np.array(axis), check.number(second, f"the angle of {what}"))
    return check.quaternion(found.tolist(), what)


def _from_euler_angles(letters: str, angles: Any, what: str) -> Quadruple:
    small = letters.lower()
    valid = 1 <= len(letters) <= 3 and set(small) <= set("xyz") and letters in (small, letters.upper())
    if not valid or any(a == b for a, b in pairwise(small)):
        raise ModelError(
            f"{what} has Euler angles about {letters!r}; it must be one to three of x, y, z, two neighbours different, "
            "all small (axes of world) or all capital (axes of the body)"
        )
    values = check.numbers([angles] if len(letters) == 1 and np.ndim(angles) == 0 else angles, len(letters), what)
    found = np.array([1.0, 0.0, 0.0, 0.0])
    for letter, angle in zip(small, values, strict=True):
        turn = euler.from_axis_angle(np.eye(3)["xyz".index(letter)], angle)
        found = euler.multiply(turn, found) if letters == small else euler.multiply(found, turn)
    return check.quaternion(found.tolist(), what)
