"""Every joint by its definition, in NumPy, independent of the library: one row each, for the tests and the fuzzer.

Frame b is at d [m] in frame a, with the rotation R from a to b.  A row tells in which of these poses the joint is
closed, and gives random ones.  A new joint needs one row here; the laws of all tests then cover it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fuzz.geometry import (
    X,
    Y,
    Z,
    angle_between,
    cross,
    random_direction,
    random_rotation,
    rotation,
    rotation_angle,
    unit,
)
from fuzz.geometry import length as size_of

RIGHT = 0.5 * np.pi
NO_OPTIONS: Mapping[str, Any] = {}


class Pose(NamedTuple):
    """A pose that closes a joint: d, R, the values of its coordinates, and its options."""

    d: Any
    R: Any
    coordinates: Mapping[str, float] = NO_OPTIONS
    options: Mapping[str, Any] = NO_OPTIONS


@dataclass(frozen=True)
class Row:
    """A joint.  ``equations``: their number; ``rotational``: those of orientations alone.

    ``pose(rng)``: composed from random free coordinates.  ``miss(d, R, **options)``: error (length [m], angle [rad]);
    with an argument ``counted``, that is the counted angle [rad], or None.
    ``one_sided``: opposed axes are excluded.  ``uses_x``: the x axes matter to its equations.
    ``sample``: one simple pose.  ``coinciding``: options with which frames that coincide close it.
    ``forms``: options that choose other equations for the same poses.
    ``draw(rng, p, q, x, y, z, slide)``: for the fuzzer, of a joint at the point p of a, near q on b, with the axis z:
    the point and the axis on b, the options, and the angle between the frames; None: it is composed from ``pose``.
    """

    equations: int
    rotational: int
    pose: Callable[[Any], Pose]
    miss: Callable[..., tuple[float, float]]
    one_sided: bool = False
    uses_x: bool = True
    sample: Pose = field(default_factory=lambda: Pose(np.zeros(3), np.eye(3)))
    coinciding: Mapping[str, Any] = field(default_factory=dict)
    forms: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[..., tuple[Any, Any, dict[str, Any], float]] | None = None

    def misses(self, d: Any, R: Any, options: Mapping[str, Any], counted: float | None = None) -> tuple[float, float]:
        """Error (length [m], angle [rad]) of a pose."""
        more = {"counted": counted} if "counted" in inspect.signature(self.miss).parameters else {}
        return self.miss(d, R, **options, **more)

    def options(self, rng: Any) -> Mapping[str, Any]:
        """Random options; no number is drawn if it has none."""
        return self.pose(rng).options if self.sample.options else {}


# -- errors ------------------------------------------------------------------------------------------------------------


def off_axis(R: Any) -> float:
    """Angle [rad] between the z axes."""
    return angle_between(R[:, 2], Z)


def off_thread(d: Any, R: Any, pitch: float, offset: float, counted: float | None) -> float:
    """Distance [m] of a nut from its thread, at the counted angle if given, else at the nearest turn of the thread."""
    angle = np.arctan2(R[1, 0], R[0, 0])
    off = d[2] - offset - pitch * angle / (2 * np.pi)
    if counted is None:
        return off - pitch * np.round(off / pitch)
    return off - pitch * np.round((counted - angle) / (2 * np.pi))


def out_of_phase(R: Any) -> float:
    """Angle [rad] about z_b to x_b, from x_a carried over by the smallest rotation that maps z_a to z_b."""
    z_b = R[:, 2]
    half = z_b + Z
    # that rotation is a reflection at z_a, which does not change x_a, and then one at z_a + z_b
    carried = X - 2.0 * half[0] / (half @ half) * half
    return np.arctan2(cross(carried, R[:, 0]) @ z_b, carried @ R[:, 0])


# -- random poses ------------------------------------------------------------------------------------------------------


def angle(rng: Any) -> float:
    return rng.uniform(-np.pi, np.pi)


def place(rng: Any) -> Any:
    return rng.uniform(-2, 2, 3)


def turned(rng: Any, d: Any, **coordinates: float) -> Pose:
    """A random angle about z."""
    a = angle(rng)
    return Pose(d, rotation(Z, a), {"angle": a, **coordinates})


def prismatic(rng):
    s = rng.uniform(-2, 2)
    return Pose(s * Z, np.eye(3), {"displacement": s})


def cylindrical(rng):
    s = rng.uniform(-2, 2)
    return turned(rng, s * Z, displacement=s)


def screw(rng):
    a = angle(rng)
    pitch, offset = rng.choice([-1, 1]) * rng.uniform(0.2, 1.0), rng.uniform(-1, 1)
    s = pitch * a / (2 * np.pi) + offset
    return Pose(s * Z, rotation(Z, a), {"angle": a, "displacement": s}, {"pitch": pitch, "offset": offset})


def crossed(rng):
    """R with z_b at angle_a about z_a from x_a, and z_a at angle_b about z_b from x_b, the two axes crossing."""
    a, b = rng.uniform(-np.pi, np.pi, 2)
    z_b = np.array([np.cos(a), np.sin(a), 0.0])
    aside = np.cross(z_b, Z)
    x_b, y_b = np.cos(b) * Z - np.sin(b) * aside, np.sin(b) * Z + np.cos(b) * aside
    return Pose(np.zeros(3), np.column_stack([x_b, y_b, z_b]), {"angle_a": a, "angle_b": b})


def planar(rng):
    x, y = rng.uniform(-2, 2, 2)
    a = angle(rng)
    return Pose(x * X + y * Y, rotation(Z, a), {"x": x, "y": y, "angle": a})


def distance(rng):
    size = rng.uniform(0.5, 2)
    return Pose(size * unit(rng.normal(size=3)), random_rotation(rng), {"distance": size}, {"length": size})


def tilted(rng, by):
    """R with z_b at that angle from z_a, otherwise anywhere."""
    return rotation(Z, rng.uniform(0, 6)) @ rotation(X, by) @ rotation(Z, rng.uniform(0, 6))


def parallel(rng):
    pose = turned(rng, np.zeros(3))
    return pose._replace(d=place(rng))


def inclined(rng):
    a = rng.uniform(0.2, 2.9)
    return Pose(place(rng), tilted(rng, a), {"angle": a}, {"angle": a})


def bent(rng):
    about, bend = rng.uniform(0, 6), rng.uniform(0.2, 2.2)
    return Pose(np.zeros(3), rotation([np.cos(about), np.sin(about), 0], bend), {"bend": bend})


def oriented(rng):
    d = place(rng)
    return Pose(d, np.eye(3), dict(zip("xyz", d, strict=True)))


def on_line(rng):
    R, s = random_rotation(rng), rng.uniform(-2, 2)
    return Pose(-R @ (s * Z), R, {"displacement": s})


def in_plane(rng):
    R, (x, y) = random_rotation(rng), rng.uniform(-2, 2, 2)
    return Pose(-R @ (x * X + y * Y), R, {"x": x, "y": y})


def off_line(rng):
    R, s, r, about = random_rotation(rng), rng.uniform(-2, 2), rng.uniform(0.5, 2), rng.uniform(0, 6)
    return Pose(-R @ [r * np.cos(about), r * np.sin(about), s], R, {"displacement": s}, {"distance": r})


def off_plane(rng):
    R, (x, y, h) = random_rotation(rng), rng.uniform(-2, 2, 3)
    return Pose(-R @ [x, y, h], R, {"x": x, "y": y}, {"distance": h})


# -- drawings of the fuzzer --------------------------------------------------------------------------------------------


def drawn_together(rng, p, q, x, y, z, slide):
    return p, z, {}, 0.0


def drawn_along(rng, p, q, x, y, z, slide):
    return p + slide[0] * z, z, {}, 0.0


def drawn_across(rng, p, q, x, y, z, slide):
    return p + slide[0] * x + slide[1] * y, z, {}, 0.0


def drawn_apart(rng, p, q, x, y, z, slide):
    return q, z, {}, 0.0


def drawn_crossed(rng, p, q, x, y, z, slide):
    return p, y, {}, 0.0


def drawn_perpendicular(rng, p, q, x, y, z, slide):
    return q, unit(np.cos(3 * slide[0]) * x + np.sin(3 * slide[0]) * y), {}, 0.0


def drawn_inclined(rng, p, q, x, y, z, slide):
    z_b = random_direction(rng)
    while not 0.1 < angle_between(z, z_b) < np.pi - 0.1:
        z_b = random_direction(rng)
    options = {"angle": angle_between(z, z_b)}
    return q, z_b, options | ({"cosine": True} if rng.random() < 0.15 else {}), 0.0


def drawn_as_rod(rng, p, q, x, y, z, slide):
    p_b = q if np.linalg.norm(q - p) > 0.1 else p + 0.5 * random_direction(rng)
    options = {"length": float(np.linalg.norm(p_b - p))}
    return p_b, z, options | ({"squared": True} if rng.random() < 0.15 else {}), 0.0


def drawn_as_screw(rng, p, q, x, y, z, slide):
    a, pitch = rng.uniform(-3, 3), rng.choice([-1, 1]) * rng.uniform(0.2, 1.5)
    options = {"pitch": float(pitch), "offset": float(slide[0] - pitch * a / (2 * np.pi))}
    return p + slide[0] * z, z, options, a


# -- the rows ----------------------------------------------------------------------------------------------------------

QUARTER = Pose(np.zeros(3), rotation(X, RIGHT))
JOINTS: dict[str, Row] = {
    "fixed": Row(
        6,
        3,
        lambda rng: Pose(np.zeros(3), np.eye(3)),
        lambda d, R: (size_of(d), rotation_angle(R)),
        one_sided=True,
        draw=drawn_together,
    ),
    "revolute": Row(
        5,
        2,
        lambda rng: turned(rng, np.zeros(3)),
        lambda d, R: (size_of(d), off_axis(R)),
        one_sided=True,
        uses_x=False,
        draw=drawn_together,
    ),
    "prismatic": Row(
        5, 3, prismatic, lambda d, R: (size_of(d[:2]), rotation_angle(R)), one_sided=True, draw=drawn_along
    ),
    "cylindrical": Row(
        4, 2, cylindrical, lambda d, R: (size_of(d[:2]), off_axis(R)), one_sided=True, uses_x=False, draw=drawn_along
    ),
    "screw": Row(
        5,
        2,
        screw,
        lambda d, R, pitch, offset=0.0, counted=None: (
            size_of(np.array([*d[:2], off_thread(d, R, pitch, offset, counted)])),
            off_axis(R),
        ),
        one_sided=True,
        sample=Pose(np.zeros(3), np.eye(3), {}, {"pitch": 0.1}),
        coinciding={"pitch": 0.3},
        draw=drawn_as_screw,
    ),
    "spherical": Row(
        3,
        0,
        lambda rng: Pose(np.zeros(3), random_rotation(rng)),
        lambda d, R: (size_of(d), 0.0),
        uses_x=False,
        draw=drawn_together,
    ),
    "universal": Row(
        4,
        1,
        crossed,
        lambda d, R: (size_of(d), abs(off_axis(R) - RIGHT)),
        uses_x=False,
        sample=QUARTER,
        draw=drawn_crossed,
    ),
    "planar": Row(3, 2, planar, lambda d, R: (abs(d[2]), off_axis(R)), one_sided=True, uses_x=False, draw=drawn_across),
    "distance": Row(
        1,
        0,
        distance,
        lambda d, R, length, squared=False: (abs(size_of(d) - length), 0.0),
        uses_x=False,
        sample=Pose(0.5 * Z, np.eye(3), {}, {"length": 0.5}),
        forms={"squared": True},
        draw=drawn_as_rod,
    ),
    "angle": Row(
        1,
        1,
        inclined,
        lambda d, R, angle, cosine=False: (0.0, abs(off_axis(R) - angle)),
        uses_x=False,
        sample=Pose(np.zeros(3), rotation(X, 0.7), {}, {"angle": 0.7}),
        coinciding={"angle": 0.0},
        forms={"cosine": True},
        draw=drawn_inclined,
    ),
    "parallel": Row(2, 2, parallel, lambda d, R: (0.0, off_axis(R)), one_sided=True, uses_x=False, draw=drawn_apart),
    "perpendicular": Row(
        1,
        1,
        lambda rng: Pose(place(rng), tilted(rng, RIGHT)),
        lambda d, R: (0.0, abs(off_axis(R) - RIGHT)),
        uses_x=False,
        sample=QUARTER,
        draw=drawn_perpendicular,
    ),
    "point_on_line": Row(2, 0, on_line, lambda d, R: (size_of(R[:, :2].T @ d), 0.0), uses_x=False, draw=drawn_along),
    "point_in_plane": Row(1, 0, in_plane, lambda d, R: (abs(R[:, 2] @ d), 0.0), uses_x=False, draw=drawn_across),
    "constant_velocity": Row(4, 1, bent, lambda d, R: (size_of(d), abs(out_of_phase(R)))),
    "orientation": Row(3, 3, oriented, lambda d, R: (0.0, rotation_angle(R)), one_sided=True),
    "line_distance": Row(
        1,
        0,
        off_line,
        lambda d, R, distance: (abs(size_of(R[:, :2].T @ d) - distance), 0.0),
        uses_x=False,
        sample=Pose(-0.5 * Y, np.eye(3), {}, {"distance": 0.5}),
        coinciding={"distance": 0.0},
    ),
    "plane_distance": Row(
        1,
        0,
        off_plane,
        lambda d, R, distance: (abs(-R[:, 2] @ d - distance), 0.0),
        uses_x=False,
        sample=Pose(-0.5 * Z, np.eye(3), {}, {"distance": 0.5}),
        coinciding={"distance": 0.0},
    ),
}
