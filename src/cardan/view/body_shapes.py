"""Looks of bodies without attached shapes, generated from their joints.

Flat bodies, whose hinges are parallel, are links and plates perpendicular to the hinges; those that share a hinge or
overlap are staggered along it.  Other bodies are rods and plates between their joint points.  Each kind of joint adds
its hardware: pins, balls, crosses, rails (:mod:`cardan.view.hardware`).  All sizes follow from one radius, that of the
pins, which is a fraction of the usual distance between neighbouring joints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.shapes import cylinder, link, plate, revolution, sphere
from cardan.shapes.curved import Curved
from cardan.shapes.region import Pair, Region, circle, hull
from cardan.shapes.shape import FloatArray, Shape
from cardan.shapes.solids import Extrusion
from cardan.system.check import Quadruple
from cardan.system.parts import Frame, Point
from cardan.system.state import State
from cardan.view import hardware
from cardan.view.palette import GROUND, STEEL, colors_of
from cardan.view.places import SLIDING, Form, Place, Plan, axes_from, distinct, places_of, sizes_of
from cardan.view.shading import Mesh, mesh_of

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism

SLENDER = 0.042  # radius of the pins, relative to the usual distance between joints
CLOSE = 0.11  # and at most this much of the smallest distance between joints
FORK = 3.4  # pin radii from the centre of a cross: there a rod ends
PLATED = (Form.HINGE, Form.RAIL, Form.ROLLER, Form.ROD, Form.BALL)  # joints that the link of a flat body reaches
WITHOUT_PEDESTAL = (*SLIDING, Form.ROLLER, Form.SCREW, Form.PLANE, Form.SHAPES, Form.TIP)
FLAT_ENOUGH = 1e-6  # of the size of a body: points nearer to a plane are in it


class Looks:
    """Meshes by body, struts, and what the generators of hardware need to know."""

    def __init__(self, mechanism: Mechanism, state: State) -> None:
        self.mechanism, self.state = mechanism, state
        self.bodies = {"ground": mechanism.ground, **mechanism.bodies}
        self.places = places_of(mechanism, state)
        self.by_body: dict[str, list[Place]] = {name: [] for name in self.bodies}
        for place in self.places:
            self.by_body[place.body].append(place)
        self.unit, nearest = sizes_of(self.by_body, mechanism)
        self.r = min(SLENDER * self.unit, CLOSE * nearest)
        self.colors = colors_of(mechanism)
        self.meshes: dict[str, list[Mesh]] = {name: [] for name in self.bodies}
        self.struts: list[tuple[str, tuple[str, str], tuple[Any, Any], Mesh]] = []
        self.plan = Plan(mechanism, state, self.places, self.r)
        self.toothed: set[str] = set()  # bodies that are drawn as a gear, a pulley or a rack
        size = float(np.linalg.norm(mechanism._model.drawing.gravity))
        self.up = -np.array(mechanism._model.drawing.gravity) / size if size else np.array([0.0, 0.0, 1.0])

    def is_drawn(self, body: str) -> bool:
        """Whether the user attached solids, so that nothing is generated; faces of contacts alone are not a body."""
        return any(not isinstance(one.shape, Curved) for one in self.bodies[body].attachments)

    def add(
        self, body: str, shape: Shape, origin: Any, axes: FloatArray | None = None, color: Quadruple | None = None
    ) -> None:
        """A generated shape on a body: origin [m] and axes as columns, in body axes."""
        if not self.is_drawn(body):
            self._put(body, shape, np.asarray(origin, dtype=float), np.eye(3) if axes is None else axes, color)

    def _put(self, body: str, shape: Shape, origin: FloatArray, axes: FloatArray, color: Quadruple | None) -> None:
        mesh = mesh_of(shape).painted(color or self.colors[body])
        self.meshes[body].append(mesh.placed(origin, axes))

    def rod(self, body: str, p: Any, q: Any, radius: float, color: Quadruple | None = None) -> None:
        """A round rod between two points of a body."""
        p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        length = float(np.linalg.norm(q - p))
        if length > 1e-9 * self.unit:
            self.add(body, cylinder(radius, length), 0.5 * (p + q), axes_from(q - p), color)

    def attached(self) -> None:
        """The shapes that users attached."""
        touches = self.mechanism.system.index.contacts.values()
        outer = {(t.bodies[0] or "ground", t.pair.shapes[0].key()) for t in touches if t.pair.side < 0.0}
        for name, body in self.bodies.items():
            for one in body.attachments:
                f, shape = one.frame, one.shape
                if one.color is not None and one.color[3] == 0.0:
                    continue  # not to be seen
                if isinstance(shape, Curved):
                    if not shape.geometry.freedoms:
                        continue  # a point
                    is_outside = (name, shape.geometry.key()) in outer
                    shape = shape.drawn(float(self.mechanism.system.judged_length), is_outside)
                self._put(name, shape, np.array(f.origin), np.column_stack([f.x, f.y, f.z]), one.color)

    def towards(self, place: Place) -> FloatArray | None:
        """Unit vector from a joint to the middle of the body's other joints, in body axes; None if there are none."""
        others = [
            p.origin for p in self.by_body[place.body] if np.abs(p.origin - place.origin).max() > 1e-6 * self.unit
        ]
        if not others:
            return None
        d = np.mean(distinct(others, 1e-6 * self.unit), axis=0) - place.origin
        size = float(np.linalg.norm(d))
        return d / size if size > 1e-6 * self.unit else None


def generate(mechanism: Mechanism, state: State) -> Looks:
    """The looks of a mechanism in a state."""
    looks = Looks(mechanism, state)
    looks.attached()
    hardware.couplings(looks)
    for name in looks.bodies:
        if not looks.is_drawn(name):
            if name == "ground":
                _ground(looks)
            elif name in looks.plan.normals:
                _flat(looks, name)
            else:
                _spatial(looks, name)
    _pins(looks)
    hardware.joints(looks)
    for name in looks.bodies:  # a body that nothing is joined to is drawn as well
        if not looks.meshes[name] and name != "ground":
            looks.add(name, sphere(2.0 * looks.r), (0.0, 0.0, 0.0))
    return looks


# -- flat bodies -------------------------------------------------------------------------------------------------------


def _flat(looks: Looks, name: str) -> None:
    """Links and plates perpendicular to the hinges, one for each height at which the body has joints."""
    plan = looks.plan
    axes = plan.axes(name)
    places = [p for p in looks.by_body[name] if p.form in PLATED]
    levels: dict[int, list[Place]] = {}
    for place in places:
        levels.setdefault(plan.level(place), []).append(place)
    if len(levels) > 1:
        _crankshaft(looks, name, axes, levels)
        return
    for level, here in levels.items():
        points = _plane_points(looks, here, axes)
        height = plan.height(name, level) + plan.offset(name, level)
        if name in looks.toothed and len(points) == 1:
            continue
        shape = _flat_shape(looks, name, points)
        if shape is not None:
            looks.add(name, shape, height * axes[:, 2], axes)


def _plane_points(looks: Looks, places: list[Place], axes: FloatArray) -> list[Pair]:
    rows = distinct([axes.T @ place.origin for place in places], 1e-6 * looks.unit, columns=2)
    return [(float(x), float(y)) for x, y, _ in rows]


def _flat_shape(looks: Looks, name: str, points: list[Pair]) -> Shape | None:
    r, t = looks.r, looks.plan.thickness
    if len(points) == 1:
        slides = any(p.form in (Form.SLIDE, Form.SLEEVE) for p in looks.by_body[name])
        return None if slides else Extrusion(Region(circle(points[0], 2.2 * r)), t)
    corners = hull(points)
    if len(corners) == 2:
        return link(*corners, width=4.0 * r, thickness=t)
    return plate(corners, thickness=t, radius=2.0 * r, holes=_window(corners, r))


def _window(corners: list[Pair], r: float) -> list[list[Pair]]:
    """The hole of a triangle that leaves bars along its sides, where there is room for one."""
    if len(corners) != 3:
        return []
    v = np.array(corners)
    sides = np.array([np.linalg.norm(v[(k + 1) % 3] - v[(k + 2) % 3]) for k in range(3)])
    d, e = v[1] - v[0], v[2] - v[0]
    inradius = abs(d[0] * e[1] - d[1] * e[0]) / sides.sum()
    if inradius < 3.2 * r:
        return []
    middle = sides @ v / sides.sum()
    return [[(float(x), float(y)) for x, y in middle + (1.0 - 2.0 * r / inradius) * (v - middle)]]


def _crankshaft(looks: Looks, name: str, axes: FloatArray, levels: dict[int, list[Place]]) -> None:
    """A body with joints at several heights: a shaft through its bearing on the ground, and a web to each other pin."""
    plan, r = looks.plan, looks.r
    every = [place for here in levels.values() for place in here]
    bearing = next((p for p in every if looks.plan.partner(p) == "ground"), every[0])
    anchor = axes.T @ bearing.origin
    heights = {level: plan.height(name, level) for level in levels}
    offsets = [heights[level] + plan.offset(name, level) for level in levels]
    low, high = min(offsets) - 1.5 * plan.thickness, max(offsets) + 1.5 * plan.thickness
    looks.rod(name, axes @ (*anchor[:2], low), axes @ (*anchor[:2], high), r, STEEL)
    for here, at in zip(levels.values(), offsets, strict=True):
        for point in _plane_points(looks, here, axes):
            if np.hypot(point[0] - anchor[0], point[1] - anchor[1]) > 1e-6 * looks.unit:
                web = link((float(anchor[0]), float(anchor[1])), point, width=3.6 * r, thickness=plan.thickness)
                looks.add(name, web, at * axes[:, 2], axes)


def _pins(looks: Looks) -> None:
    """One pin through all flat bodies that share a hinge, with a head at each end."""
    plan, r = looks.plan, looks.r
    for pin in plan.pins:
        owners = [p for p in pin if not looks.is_drawn(p.body)]
        if not owners:
            continue
        owner = next((p for p in owners if p.body == "ground"), owners[0])
        low, high = plan.reach(pin)
        z = plan.normal_at(owner)
        a, b = low - 0.25 * plan.thickness, high + 0.25 * plan.thickness
        head, body = 1.25 * r, r
        profile = [(0.0, a), (head, a), (head, low), (body, low), (body, high), (head, high), (head, b), (0.0, b)]
        looks.add(owner.body, revolution(profile), owner.origin, axes_from(z), STEEL)


# -- spatial bodies ----------------------------------------------------------------------------------------------------


def _spatial(looks: Looks, name: str) -> None:
    """A rod between two joints, a plate through several in one plane, else rods from the middle."""
    r = looks.r
    places = [p for p in looks.by_body[name] if p.is_point]
    points = distinct([p.origin for p in places], 1e-6 * looks.unit)
    if len(points) < 2 or name in looks.toothed:
        return
    middle = points.mean(axis=0)
    _, s, axes = np.linalg.svd(points - middle)
    if len(points) == 2 or s[1] < FLAT_ENOUGH * s[0]:
        line = points[np.argsort(points @ axes[0])]
        u = (line[-1] - line[0]) / np.linalg.norm(line[-1] - line[0])
        crosses = [p.origin for p in places if p.form is Form.CROSS]
        trims = [FORK if any(np.abs(p - q).max() <= 1e-6 * looks.unit for p in crosses) else 0.0
                 for q in (line[0], line[-1])]  # fmt: skip
        looks.rod(name, line[0] + trims[0] * r * u, line[-1] - trims[1] * r * u, 1.1 * r)
    elif s[2] < FLAT_ENOUGH * s[0]:
        basis = np.column_stack([axes[0], axes[1], np.cross(axes[0], axes[1])])
        rows = [(float(x), float(y)) for x, y, _ in (points - middle) @ basis]
        looks.add(name, plate(rows, thickness=1.6 * r, radius=2.6 * r), middle, basis)
    else:
        for q in points:
            looks.rod(name, middle, q, 1.1 * r)
        looks.add(name, sphere(1.6 * r), middle)


def _ground(looks: Looks) -> None:
    """Bearings behind flat mechanisms; a base plate, or pedestals, under joints in space."""
    plan, r = looks.plan, looks.r
    free = []
    for place in looks.by_body["ground"]:
        if plan.is_flat(place):
            z = plan.normal_at(place)
            at = plan.ground_offset(place)
            t = plan.thickness
            profile = [(0.0, -0.5 * t), (2.4 * r, -0.5 * t), (2.4 * r, 0.2 * t), (1.9 * r, 0.5 * t), (0.0, 0.5 * t)]
            looks.add("ground", revolution(profile), place.origin + at * z, axes_from(z))
        elif place.is_point and place.form not in WITHOUT_PEDESTAL:
            free.append(place)
    points = distinct([p.origin for p in free], 1e-6 * looks.unit)
    if len(points) >= 3:
        middle = points.mean(axis=0)
        _, s, axes = np.linalg.svd(points - middle)
        if s[2] < FLAT_ENOUGH * s[0] and s[1] > 0.1 * s[0]:
            n = np.cross(axes[0], axes[1])
            basis = np.column_stack([axes[0], axes[1], n])
            rows = [(float(x), float(y)) for x, y, _ in (points - middle) @ basis]
            below = -np.sign(n @ looks.up) * 2.6 * r * n
            looks.add("ground", plate(rows, thickness=1.2 * r, radius=3.4 * r), middle + below, basis)
    for q in points:
        rows = [(0.0, 0.0), (0.9, 0.0), (1.3, -2.0), (2.8, -2.4), (2.8, -3.0), (0.0, -3.0)]
        profile = [(r * x, r * z) for x, z in rows]
        looks.add("ground", revolution(profile), q, axes_from(looks.up))


__all__ = ["GROUND", "Frame", "Looks", "Point", "generate"]
