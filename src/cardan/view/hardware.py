"""What joints and couplings look like: one function per form.  Lengths are in units of the pin radius r."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.joints import Coordinate, Joint, Role
from cardan.shapes import box, cylinder, extrusion, gear, link, revolution, sphere, thread, tube
from cardan.shapes.region import Region
from cardan.shapes.shape import FloatArray
from cardan.shapes.solids import Extrusion
from cardan.view.palette import RUBBER, STEEL
from cardan.view.places import Form, Place, axes_from, look_of, numbers_in, parameter_in
from cardan.view.shading import mesh_of

if TYPE_CHECKING:
    from cardan.view.body_shapes import Looks

MOST_TEETH, FEWEST_TEETH = 120, 12
INTERSECTING = 1e-6  # rad: axes at a smaller angle are parallel


def joints(looks: Looks) -> None:
    """The hardware of all joints."""
    for name, joint in looks.mechanism.joints.items():
        look = look_of(joint)
        places = [p for p in (looks.plan.by_key.get((name, k)) for k in range(len(joint.ends))) if p is not None]
        if look.form in DRAW and len(places) == 2:
            DRAW[look.form](looks, joint, *(places[::-1] if look.end else places))
        elif look.form is Form.MARKS:
            for place in places:
                looks.add(place.body, sphere(1.3 * looks.r), place.origin, None, STEEL)


def _across(looks: Looks, place: Place) -> FloatArray:
    """A direction across the axis of a joint: towards the rest of the body, where that is across."""
    u = looks.towards(place)
    if u is not None and np.linalg.norm(np.cross(u, place.z)) > 0.2:
        return np.asarray(u)
    return place.axes[:, 0]


def _revolute(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A barrel on a, and a pin on b."""
    if looks.plan.is_flat(a):
        return
    r = looks.r
    looks.add(a.body, tube(1.9 * r, r, 2.6 * r), a.origin, axes_from(a.z))
    profile = [(0.0, -2.2), (1.3, -2.2), (1.3, -1.8), (0.99, -1.8), (0.99, 1.8), (1.3, 1.8), (1.3, 2.2), (0.0, 2.2)]
    looks.add(b.body, revolution([(r * x, r * z) for x, z in profile]), b.origin, axes_from(b.z), STEEL)
    for s in (-1.0, 1.0):
        looks.add(b.body, tube(1.9 * r, r, 0.7 * r), b.origin + s * 1.66 * r * b.z, axes_from(b.z))


def _spherical(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A ball on a, in a ring on b."""
    r = looks.r
    looks.add(a.body, sphere(1.55 * r), a.origin, None, STEEL)
    u = looks.towards(b)
    profile = [(1.25, -0.9), (2.0, -0.9), (2.0, 0.9), (1.25, 0.9), (1.58, 0.0)]
    looks.add(b.body, revolution([(r * x, r * z) for x, z in profile]), b.origin, axes_from(_socket_axis(looks, b, u)))


def _socket_axis(looks: Looks, place: Place, u: FloatArray | None) -> FloatArray:
    """The axis of a socket's ring: across the body's direction."""
    if u is None:
        return looks.up if place.body == "ground" else place.z
    points = [p.origin for p in looks.by_body[place.body]]
    return np.asarray(u) if len(points) < 3 else axes_from(u)[:, 0] * 0.0 + _thin(points)


def _thin(points: list[FloatArray]) -> FloatArray:
    """The direction in which points extend least."""
    rows = np.array(points)
    return np.asarray(np.linalg.svd(rows - rows.mean(axis=0))[2][2])


def _universal(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A cross of two pins, each held by the fork of its body."""
    r = looks.r
    for place in (a, b):
        looks.add(place.body, cylinder(0.62 * r, 4.6 * r), place.origin, axes_from(place.z), STEEL)
        u = _across(looks, place)
        axes = axes_from(place.z, u)
        for s in (-1.0, 1.0):
            lug = link((0.0, 0.0), (3.0 * r, 0.0), width=2.2 * r, thickness=0.7 * r)
            looks.add(place.body, lug, place.origin + s * 1.75 * r * axes[:, 2], axes)
        looks.add(place.body, box(0.9 * r, 2.2 * r, 4.2 * r), place.origin + 3.4 * r * axes[:, 0], axes)
    looks.add(a.body, sphere(0.95 * r), a.origin, None, STEEL)


def _span(looks: Looks, joint: Joint) -> tuple[float, float, float]:
    """The first displacement [m] of a joint in the state, and the range that is drawn around it."""
    word = next(word for word in joint.kind.coordinates if joint.of(word).kind == "displacement")
    now = joint.coordinate(looks.state, word)
    low, high = min(now, 0.0), max(now, 0.0)
    for other in looks.mechanism.joints.values():
        if other.kind.role is Role.LIMIT and other.joints == (joint.name,) and other.ends[0].name == word:
            bounds = [
                parameter_in(other, "lower", looks.state, -math.inf),
                parameter_in(other, "upper", looks.state, math.inf),
            ]
            low, high = (v if math.isfinite(v) else near for v, near in zip(bounds, (low, high), strict=True))
    return now, low, high


def _slide(looks: Looks, joint: Joint, a: Place, b: Place, bar: Callable[[float, float], Any]) -> None:
    """A bar on the ground and a block on the slider; between moving bodies, one tube in another."""
    r = looks.r
    now, low, high = _span(looks, joint)
    if "ground" in (a.body, b.body) or abs(now) < 8.0 * r:
        rail, block = (a, b) if a.body == "ground" or b.body != "ground" else (b, a)
        sign = 1.0 if rail is a else -1.0
        margin = max(5.0 * r, 0.35 * looks.unit)
        first, last = sorted((sign * low, sign * high))
        length = last - first + 2.0 * margin
        middle = rail.origin + 0.5 * (first + last) * rail.z
        shift, depth = np.zeros(3), 3.6 * r
        if block.body in looks.plan.normals:  # behind the links
            n = looks.plan.normals[block.body]
            level = looks.plan.level(block)
            shift = (looks.plan.offset(block.body, level) - 1.6 * looks.plan.pitch) * n
            n_rail = rail.axes @ block.axes.T @ n
            middle = middle + (looks.plan.offset(block.body, level) - 1.6 * looks.plan.pitch) * n_rail
        looks.add(rail.body, bar(1.7 * r, length), middle, rail.axes)
        for s in (-1.0, 1.0):
            looks.add(rail.body, box(3.2 * r, 3.2 * r, 0.8 * r), middle + s * 0.5 * length * rail.z, rail.axes)
        looks.add(block.body, box(depth, depth, 6.0 * r), block.origin + shift, block.axes)
        if np.abs(shift).max() > 0.0:
            n = looks.plan.normals[block.body]
            top = looks.plan.offset(block.body, looks.plan.level(block)) * n
            looks.rod(block.body, block.origin + shift, block.origin + top + 0.5 * looks.plan.thickness * n, 1.5 * r)
        return
    reach, sign = abs(now), math.copysign(1.0, now)
    looks.add(a.body, bar(3.4 * r, 0.62 * reach), a.origin + sign * 0.31 * reach * a.z, a.axes)
    looks.add(a.body, bar(4.0 * r, 1.0 * r), a.origin + sign * 0.62 * reach * a.z, a.axes, STEEL)
    looks.add(b.body, bar(2.0 * r, 0.7 * reach), b.origin - sign * 0.35 * reach * b.z, b.axes, STEEL)


def _planar(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A table on a, and a disc on b."""
    r = looks.r
    looks.add(a.body, box(14.0 * r, 14.0 * r, 0.8 * r), a.origin - 0.9 * r * a.z, a.axes)
    looks.add(b.body, cylinder(2.5 * r, 0.9 * r), b.origin, b.axes)


def _rail(looks: Looks, joint: Joint, b: Place, a: Place) -> None:
    """A rail on b, and a roller on a."""
    r = looks.r
    _, low, high = _span(looks, joint)
    margin = max(4.0 * r, 0.2 * looks.unit)
    length = high - low + 2.0 * margin
    middle = b.origin + 0.5 * (low + high) * b.z
    if a.body in looks.plan.normals:
        n = looks.plan.normals[a.body]
        level = looks.plan.level(a)
        offset = looks.plan.offset(a.body, level) * n
        looks.add(a.body, cylinder(1.5 * r, 1.6 * looks.plan.pitch), a.origin + offset, axes_from(n), STEEL)
        pose_a, pose_b = looks.state[a.body], looks.state[b.body]
        n_b = pose_b.matrix.T @ pose_a.matrix @ n
        if abs(n_b @ b.z) < 0.5:
            axes = axes_from(b.z, n_b)
            for s in (-1.0, 1.0):  # the two flanges of a channel
                at = middle + s * 2.0 * r * axes[:, 1] + axes[:, 0] * looks.plan.offset(a.body, level)
                looks.add(b.body, box(1.4 * looks.plan.pitch, 0.6 * r, length), at, axes)
            return
    looks.add(b.body, cylinder(0.7 * r, length), middle, axes_from(b.z), STEEL if b.body != "ground" else None)
    looks.add(a.body, sphere(1.5 * r), a.origin, None, STEEL)


def _table(looks: Looks, joint: Joint, b: Place, a: Place) -> None:
    """A table on b, and a ball on a."""
    r = looks.r
    looks.add(b.body, box(14.0 * r, 14.0 * r, 0.8 * r), b.origin - 0.4 * r * b.z, b.axes)
    looks.add(a.body, sphere(1.5 * r), a.origin, None, STEEL)


def _fixed(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """Two flanges."""
    r = looks.r
    looks.add(a.body, cylinder(2.2 * r, 0.9 * r), a.origin - 0.46 * r * a.z, a.axes)
    looks.add(b.body, cylinder(2.2 * r, 0.9 * r), b.origin + 0.46 * r * b.z, b.axes)


def _arrow(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """An arrow along the axis on each body."""
    r = looks.r
    profile = [(0.0, 0.0), (0.45, 0.0), (0.45, 3.4), (1.1, 3.4), (0.0, 5.4)]
    shape = revolution([(r * x, r * z) for x, z in profile])
    for place in (a, b):
        looks.add(place.body, shape, place.origin, axes_from(place.z))
        looks.add(place.body, sphere(1.1 * r), place.origin, None, STEEL)


def _distance(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A rod between two balls."""
    r, length = looks.r, parameter_in(joint, "length", looks.state, joint.coordinate(looks.state))
    for place in (a, b):
        looks.add(place.body, sphere(max(1.5 * r, 0.028 * length)), place.origin, None, STEEL)
    radius = max(0.8 * r, 0.016 * length)
    rod = mesh_of(cylinder(radius, 1.0)).placed(np.array([0.0, 0.0, 0.5]), np.eye(3))
    ends = tuple(tuple(p.origin.tolist()) for p in (a, b))
    looks.struts.append((joint.name, (a.body, b.body), ends, rod.painted(STRUT)))  # type: ignore[arg-type]


STRUT = (0.85, 0.55, 0.2, 1.0)


def _screw(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A thread on a, and a nut on b."""
    r = looks.r
    _, low, high = _span(looks, joint)
    margin = max(5.0 * r, 0.3 * looks.unit)
    pitch = parameter_in(joint, "pitch", looks.state)
    length = high - low + 2.0 * margin
    looks.add(a.body, thread(1.3 * r, pitch, length), a.origin + 0.5 * (low + high) * a.z, a.axes, STEEL)
    hexagon = [(2.6 * r * math.cos(k * math.pi / 3), 2.6 * r * math.sin(k * math.pi / 3)) for k in range(6)]
    looks.add(b.body, extrusion(hexagon, 2.6 * r, holes=[(0.0, 0.0, 1.25 * r)]), b.origin, b.axes)


def _tip(looks: Looks, joint: Joint, a: Place, b: Place) -> None:
    """A ball at the point on a; the shape of b is drawn by itself."""
    looks.add(a.body, sphere(1.3 * looks.r), a.origin, None, STEEL)


DRAW: dict[Form, Callable[[Any, Joint, Place, Place], None]] = {
    Form.TIP: _tip,
    Form.HINGE: _revolute,
    Form.BALL: _spherical,
    Form.CROSS: _universal,
    Form.SLIDE: partial(_slide, bar=lambda w, length: box(w, w, length)),
    Form.SLEEVE: partial(_slide, bar=lambda w, length: cylinder(0.55 * w, length)),
    Form.PLANE: _planar,
    Form.RAIL: _rail,
    Form.TABLE: _table,
    Form.WELD: _fixed,
    Form.ARROWS: _arrow,
    Form.ROD: _distance,
    Form.SCREW: _screw,
}


# -- couplings ---------------------------------------------------------------------------------------------------------


def couplings(looks: Looks) -> None:
    """Gears, racks and belts, on bodies that have no shapes of their own."""
    draw = {"gear": _gears, "rack": _rack, "belt": _belt}
    for joint in looks.mechanism.joints.values():
        if joint.kind.name in draw:
            draw[joint.kind.name](looks, joint)


def _axis(looks: Looks, c: Coordinate) -> tuple[str, FloatArray, FloatArray, FloatArray]:
    """The rotating body of an angle (end b), and its axes and origin: the body's own, and the axis in world."""
    end = c.b
    pose = looks.state[end.body.name]
    x, y = (numbers_in(feature.value, looks.state) for feature in c.features[:2])
    world = looks.state[c.a.body.name].matrix @ np.cross(x, y)
    return (end.body.name, numbers_in(end.feature().value, looks.state), pose.matrix.T @ world, world)


def teeth_of(ratio: float, space: float) -> tuple[int, int]:
    """Numbers of teeth z₁, z₂ with z₁/z₂ = ratio, as exactly as small numbers allow; space: usual teeth in all."""
    found = Fraction(ratio).limit_denominator(MOST_TEETH)
    if not found:
        found = Fraction(1, MOST_TEETH)
    z1, z2 = found.numerator, found.denominator
    k = max(1, math.ceil(FEWEST_TEETH / min(z1, z2)), round(space / (z1 + z2)))
    return k * z1, k * z2


def _gears(looks: Looks, joint: Joint) -> None:
    c1, c2 = joint.ends
    ratio = parameter_in(joint, "ratio", looks.state)
    (one, p1, z1, w1), (two, p2, z2, w2) = _axis(looks, c1), _axis(looks, c2)
    if np.linalg.norm(np.cross(w1, w2)) > INTERSECTING:
        return  # bevel gears are attached by hand
    q1, q2 = looks.state[one].point(p1), looks.state[two].point(p2)
    apart = q2 - q1 - ((q2 - q1) @ w1) * w1
    distance = float(np.linalg.norm(apart))
    turning = ratio * float(np.sign(w1 @ w2))
    size = abs(ratio)
    if distance < 1e-6 * looks.unit:
        return
    if turning < 0.0:
        r1 = distance * size / (1.0 + size)
        r2 = distance / (1.0 + size)
    elif abs(size - 1.0) > 1e-9:
        r1, r2 = distance * size / abs(1.0 - size), distance / abs(1.0 - size)
    else:
        return
    n1, n2 = teeth_of(size, 60.0)
    width = max(1.8 * looks.r, 0.12 * min(r1, r2))
    along = apart / distance
    inner = turning > 0.0
    # From each centre to the contact, which for an internal pair lies beyond the centre of the smaller gear.
    contacts = (along, -along) if not inner else (along, along) if r1 > r2 else (-along, -along)
    for k, (name, place, z, radius, count) in enumerate(((one, p1, z1, r1, n1), (two, p2, z2, r2, n2))):
        if looks.is_drawn(name) or name in looks.toothed:
            continue
        looks.toothed.add(name)
        ring = inner and radius == max(r1, r2)
        axes = axes_from(z, looks.state[name].matrix.T @ contacts[k])
        if k:  # a gap of the second meets a tooth of the first
            c, s = math.cos(math.pi / count), math.sin(math.pi / count)
            axes = axes @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        module = 2.0 * radius / count
        if ring:
            shape = gear(module, count, width, internal=True)
        else:
            shape = gear(module, count, width, bore=min(looks.r, 0.4 * radius))
        looks.add(name, shape, place, axes)


def _rack(looks: Looks, joint: Joint) -> None:
    c1, c2 = joint.ends
    radius = abs(parameter_in(joint, "radius", looks.state))
    one, p1, z1, w1 = _axis(looks, c1)
    two = c2.b.body.name
    count = max(FEWEST_TEETH, 18)
    module = 2.0 * radius / count
    width = max(1.8 * looks.r, 0.3 * radius)
    along = looks.state[c2.a.body.name].matrix @ numbers_in(c2.features[0].value, looks.state)
    side = np.cross(w1, along)
    size = float(np.linalg.norm(side))
    if size < 0.5:
        return
    side = side / size * -math.copysign(1.0, parameter_in(joint, "radius", looks.state)) * -1.0
    if not looks.is_drawn(one) and one not in looks.toothed:
        looks.toothed.add(one)
        shape = gear(module, count, width, bore=min(looks.r, 0.4 * radius))
        looks.add(one, shape, p1, axes_from(z1, looks.state[one].matrix.T @ side))
    if not looks.is_drawn(two):
        length = max(0.8 * looks.unit, 3.0 * math.pi * radius)
        teeth = max(6, round(length / (math.pi * module)))
        centre = looks.state[one].point(p1) + radius * side
        pose = looks.state[two]
        axes = pose.matrix.T @ np.column_stack([along, -side, np.cross(along, -side)])
        looks.add(two, extrusion(rack_outline(module, teeth), width), pose.matrix.T @ (centre - pose.position), axes)


def rack_outline(module: float, teeth: int) -> list[tuple[float, float]]:
    """A rack along x with a gap at the origin: its pitch line is the x axis, its teeth point to +y.  [ISO53]"""
    p, t = math.pi * module, math.tan(math.radians(20.0))
    rows = []
    for k in range(-(teeth // 2), teeth - teeth // 2):
        middle = (k + 0.5) * p
        for x, y in ((-0.25 * p, -1.25), (-0.25 * p, 1.0), (0.25 * p, 1.0), (0.25 * p, -1.25)):
            rows.append((middle + x + math.copysign(t * module * -y, x), y * module))
    left, right = rows[0][0] - 0.1 * p, rows[-1][0] + 0.1 * p
    return [(left, -3.2 * module), (right, -3.2 * module), (right, -1.25 * module), *rows[::-1], (left, -1.25 * module)]


def _belt(looks: Looks, joint: Joint) -> None:
    c1, c2 = joint.ends
    values = dict(joint.parameters)
    radii = parameter_in(joint, "radius_1", looks.state), parameter_in(joint, "radius_2", looks.state)
    crossed = bool(values.get("crossed", False))
    width = max(2.0 * looks.r, 0.25 * min(radii))
    found = [_axis(looks, c) for c in (c1, c2)]
    for (name, place, z, _), radius in zip(found, radii, strict=True):
        if not looks.is_drawn(name):
            looks.toothed.add(name)
            w, r = width, radius
            profile = [(0.0, -0.6 * w), (1.08 * r, -0.6 * w), (1.08 * r, -0.5 * w), (r, -0.45 * w), (r, 0.45 * w),
                       (1.08 * r, 0.5 * w), (1.08 * r, 0.6 * w), (0.0, 0.6 * w)]  # fmt: skip
            looks.add(name, revolution(profile), place, axes_from(z))
    if c1.a.body is not c2.a.body or crossed:
        return
    base = c1.a.body.name
    pose = looks.state[base]
    p, q = (pose.matrix.T @ (looks.state[name].point(place) - pose.position) for name, place, _, _ in found)
    axes = axes_from(pose.matrix.T @ found[0][3], q - p)
    d = float((q - p) @ axes[:, 0])
    loops = []
    for grow in (1.05, 0.999):
        r1, r2 = grow * radii[0], grow * radii[1]
        if d <= abs(r1 - r2):
            return
        loops.append(_around(d, r1, r2))
    from cardan.shapes.region import polygon

    band = Extrusion(Region(polygon(loops[0]), (polygon(loops[1]),)), 0.85 * width)
    looks.meshes[base].append(mesh_of(band).painted(RUBBER).placed(p, axes))


def _around(d: float, r1: float, r2: float) -> list[tuple[float, float]]:
    """The outline of a belt around circles at 0 and at (d, 0)."""
    lean = math.acos((r1 - r2) / d)
    one = np.linspace(lean, 2.0 * math.pi - lean, 33)
    two = np.linspace(-lean, lean, 33)
    rows = [(r1 * math.cos(t), r1 * math.sin(t)) for t in one]
    return rows + [(d + r2 * math.cos(t), r2 * math.sin(t)) for t in two]
