"""Mechanisms with redundant equations that can nevertheless be assembled."""

from __future__ import annotations

import copy

import numpy as np

from fuzz.case import GROUND
from fuzz.geometry import X, Z, axes, orthogonal, random_direction, random_rotation, rotation, unit
from fuzz.sketch import Sketch, close, draw_start, grow


def draw(rng):
    variant = str(rng.choice(list(VARIANTS)))
    sketch = VARIANTS[variant](rng)
    start = draw_start(rng)
    scale = 10.0 ** rng.uniform(-2, 2) if rng.random() < 0.3 else 1.0
    return sketch.finish(rng, "redundant", variant, start=start, scale=scale)


def duplicated(rng):
    """Duplicated joints, some with exchanged ends."""
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(1, 6)))
    close(rng, sketch, int(rng.integers(0, 3)))
    for _ in range(int(rng.integers(1, 5))):
        j = copy.copy(sketch.joints[rng.integers(len(sketch.joints))])
        j.name = f"j{len(sketch.joints) + 1}"
        if rng.random() < 0.5 and not j.kind.startswith("point"):
            j.a, j.b, j.p_a, j.p_b, j.R_a, j.R_b = j.b, j.a, j.p_b, j.p_a, j.R_b, j.R_a
            if j.kind == "screw":  # exchanged ends reverse both the rotation and the displacement
                j.options = {**j.options, "offset": -j.options["offset"]}
        sketch.joints.append(j)
    return sketch


def planar_linkage(rng):
    """A closed loop of links with parallel axes and offsets along them; sometimes a second loop."""
    sketch = Sketch()
    count = int(rng.integers(4, 8))
    corners = [np.array([*rng.uniform(-1, 1, 2), rng.uniform(-0.2, 0.2)]) for _ in range(count)]
    links = [GROUND]
    links += [sketch.body(0.5 * (corners[k] + corners[(k + 1) % count]), random_rotation(rng)) for k in range(1, count)]
    slider = int(rng.integers(1, count)) if rng.random() < 0.3 else -1
    for k in range(count):
        a, b = links[k - 1], links[k]
        if k == slider:
            direction = unit([*rng.normal(size=2), 0.0])
            sketch.joint("prismatic", a, b, corners[k], corners[k] + 0.3 * direction, direction, x=Z)
        else:
            sketch.joint("revolute", a, b, corners[k], z_a=Z)
    if count > 5 and rng.random() < 0.5:
        a, b = links[1], links[count - 2]
        p, q = (sketch.pose(n)[1] + 0.5 * unit([*rng.normal(size=2), 0.0]) for n in (a, b))
        extra = sketch.body(0.5 * (p + q), random_rotation(rng))
        sketch.joint("revolute", a, extra, p, z_a=Z)
        sketch.joint("revolute", extra, b, q, z_a=Z)
    return sketch


def parallelogram(rng):
    """A bar on three or more equal, parallel cranks."""
    sketch = Sketch()
    count = int(rng.integers(3, 6))
    crank = unit([*rng.normal(size=2), 0.0]) * rng.uniform(0.5, 1.0)
    feet = [np.array([1.0 * k, rng.uniform(-0.5, 0.5), 0.0]) for k in range(count)]
    bar = sketch.body(np.mean(feet, axis=0) + crank, random_rotation(rng))
    for foot in feet:
        link = sketch.body(foot, random_rotation(rng))
        sketch.joint("revolute", GROUND, link, foot, z_a=Z)
        sketch.joint("revolute", link, bar, foot + crank, z_a=Z)
    return sketch


def spherical_linkage(rng):
    """Links whose axes all pass through one point."""
    sketch = Sketch()
    count = int(rng.integers(4, 6))
    directions = [random_direction(rng) for _ in range(count)]
    links = [GROUND, *(sketch.body(rng.uniform(0.5, 1.0) * z, random_rotation(rng)) for z in directions[1:])]
    for k, z in enumerate(directions):
        sketch.joint("revolute", links[k - 1], links[k], rng.uniform(0.3, 1.0) * z, z_a=z)
    return sketch


def _hartenberg(sketch, steps):
    """A closed loop of revolutes from (angle, length, twist) per joint."""
    R, p = np.eye(3), np.zeros(3)
    places = [(R, p)]
    for angle, a, twist in steps:
        R = R @ rotation(Z, angle)
        p = p + a * R[:, 0]
        R = R @ rotation(X, twist)
        places.append((R, p))
    assert np.abs(places[-1][0] - np.eye(3)).max() < 1e-9, "the loop does not close"
    assert np.abs(places[-1][1]).max() < 1e-9, "the loop does not close"
    count = len(steps)
    links = [GROUND, *(sketch.body(places[k][1], places[k][0]) for k in range(1, count))]
    for k in range(count):
        sketch.joint("revolute", links[k - 1], links[k], places[k][1], z_a=places[k][0][:, 2])
    return sketch


def bennett(rng):
    """Four skew hinges: opposite links equal, a / sin α = b / sin β."""
    while True:
        alpha, beta = rng.uniform(0.3, 1.4), rng.uniform(0.3, 1.4)
        if abs(alpha - beta) > 0.15:
            break
    b = np.sin(beta) / np.sin(alpha)
    first = rng.uniform(0.5, 2.5)
    second = 2 * np.arctan(np.sin(0.5 * (beta + alpha)) / np.sin(0.5 * (beta - alpha)) / np.tan(0.5 * first))
    steps = [(first, 1.0, alpha), (second, b, beta), (-first, 1.0, alpha), (-second, b, beta)]
    return _hartenberg(Sketch(), steps)


def bricard(rng):
    """Six unit links with successive axes perpendicular."""
    while True:
        theta = rng.uniform(1.2, 2.4)
        cosine = -np.cos(theta) / (1 + np.cos(theta))
        if abs(cosine) < 0.95:
            break
    phi = np.arccos(cosine)
    return _hartenberg(Sketch(), [(theta, 1.0, np.pi / 2) if k % 2 == 0 else (phi, 1.0, -np.pi / 2) for k in range(6)])


def sarrus(rng):
    """A plate on two or three pairs of hinged leaves in vertical planes; it moves along a vertical line."""
    sketch = Sketch()
    height = rng.uniform(0.5, 1.5)
    plate = sketch.body([0.0, 0.0, height], random_rotation(rng))
    for angle in rng.uniform(0, np.pi, 1) + np.array([0.0, 1.2, 2.3])[: rng.integers(2, 4)]:
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        hinge = np.array([-out[1], out[0], 0.0])
        foot, knee, top = 0.5 * out, rng.uniform(0.8, 1.4) * out + 0.5 * height * Z, 0.5 * out + height * Z
        lower, upper = (sketch.body(0.5 * (p + q), random_rotation(rng)) for p, q in ((foot, knee), (knee, top)))
        for a, b, p in ((GROUND, lower, foot), (lower, upper, knee), (upper, plate, top)):
            sketch.joint("revolute", a, b, p + rng.uniform(-0.2, 0.2) * hinge, z_a=hinge)
    return sketch


def coaxial(rng):
    """A door on several hinges, a shaft in several bearings, a carriage on parallel rails."""
    sketch = Sketch()
    parent = GROUND
    for _ in range(int(rng.integers(1, 5))):
        at = sketch.pose(parent)[1]
        z = random_direction(rng)
        name = sketch.body(at + rng.uniform(0.5, 1.0) * random_direction(rng), random_rotation(rng))
        p = at + rng.uniform(0.3, 0.8) * random_direction(rng)
        kind = str(rng.choice(["revolute", "cylindrical", "prismatic", "planar", "parallel"]))
        for _ in range(int(rng.integers(2, 5))):
            if kind in ("revolute", "cylindrical"):
                p = p + rng.uniform(0.2, 0.8) * z
                also = str(rng.choice([kind, "spherical", "point_on_line"]))
                sketch.joint(also if also == kind or len(sketch.joints) else kind, parent, name, p, z_a=z)
            else:
                p = p + rng.uniform(0.2, 0.8) * orthogonal(rng, z)
                if kind == "prismatic":
                    sketch.joint(kind, parent, name, p, p + 0.2 * z, z, x=axes(z)[:, 0])
                elif kind == "planar":
                    p = p - z * (z @ (p - at))
                    sketch.joint(kind, parent, name, p, p + 0.2 * orthogonal(rng, z), z)
                else:
                    sketch.joint(kind, parent, name, p, at, z)
        parent = name
    return sketch


def braced(rng):
    """A body on seven to ten rods."""
    sketch = Sketch()
    plate = sketch.body([0.0, 0.0, 1.0], random_rotation(rng))
    for _ in range(int(rng.integers(7, 11))):
        p, q = rng.uniform(-1, 1, 3) * [1, 1, 0.2], rng.uniform(-0.6, 0.6, 3) * [1, 1, 0.2] + Z
        sketch.joint("distance", GROUND, plate, p, q, length=float(np.linalg.norm(q - p)))
    return sketch


VARIANTS = {
    f.__name__: f
    for f in (duplicated, planar_linkage, parallelogram, spherical_linkage, bennett, bricard, sarrus, coaxial, braced)
}
