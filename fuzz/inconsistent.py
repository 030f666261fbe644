"""Mechanisms that cannot be assembled, each with its proof; some have additional consistent parts."""

from __future__ import annotations

import numpy as np

from fuzz.case import EXPECT_FAILURE, GROUND
from fuzz.geometry import axes, orthogonal, random_direction, random_rotation, rotation
from fuzz.sketch import Sketch, draw_start, grow, merge


def draw(rng):
    variant = str(rng.choice(list(VARIANTS)))
    sketch, proof = VARIANTS[variant](rng)
    if rng.random() < 0.4:
        grow(rng, sketch, int(rng.integers(1, 4)))
    if rng.random() < 0.1:
        sketch, proof = _beside_larger(rng, sketch, proof)
    scale = 10.0 ** rng.uniform(-2, 2) if rng.random() < 0.3 else 1.0
    start = draw_start(rng)
    return sketch.finish(rng, "inconsistent", variant, expect=EXPECT_FAILURE, start=start, scale=scale, proof=proof)


def _beside_larger(rng, sketch, proof):
    """Put the contradiction next to a separate, larger mechanism."""
    both = Sketch()
    grow(rng, both, int(rng.integers(1, 4)))
    names, renamed = merge(both, sketch, np.array([2.0, 0.0, 0.0]), 10.0 ** rng.uniform(-4, 0))
    return both, {**proof, "host": names[proof["host"]], "joints": [renamed[name] for name in proof["joints"]]}


def _gap(rng, size):
    """A random gap, from large to barely detectable."""
    return float(size * 10.0 ** rng.uniform(-6, 0))


def _hosts(rng, sketch, count):
    """Bodies of a loop; the first is usually the ground."""
    made = [] if rng.random() < 0.2 and count > 1 else [GROUND]
    while len(made) < count:
        made.append(sketch.body(rng.uniform(-1, 1, 3), random_rotation(rng)))
    return made


def polygon(rng):
    """A loop of links and rods, one longer than the sum of all others."""
    sketch = Sketch()
    hosts = _hosts(rng, sketch, int(rng.integers(2, 6)))
    count = len(hosts)
    kinds = [str(rng.choice(["spherical", "revolute", "universal", "fixed", "distance", "distance"])) for _ in hosts]
    rigid = [0.0 if rng.random() < 0.3 else rng.uniform(0.1, 1.0) for _ in hosts]
    rods = [rng.uniform(0.1, 1.0) if kind == "distance" else 0.0 for kind in kinds]
    others = sum(rigid) + sum(rods)
    k = int(rng.integers(count))
    if kinds[k] == "distance" and rng.random() < 0.5:
        others -= rods[k]
        rods[k] = others + _gap(rng, max(others, 0.5))
    else:
        others -= rigid[k]
        rigid[k] = others + _gap(rng, max(others, 0.5))
    points = []
    for host, side in zip(hosts, rigid, strict=True):
        p = sketch.pose(host)[1] + rng.uniform(0, 0.3) * random_direction(rng)
        points.append((p, p + side * random_direction(rng)))
    names = []
    for k, kind in enumerate(kinds):
        p, q = points[k][1], points[(k + 1) % count][0]
        options = {"length": rods[k]} if kind == "distance" else {}
        if options and rng.random() < 0.1 and rods[k] > 0.1 * max(rods):
            options["squared"] = True
        ends = hosts[k], hosts[(k + 1) % count], p, q
        names.append(sketch.joint(kind, *ends, random_direction(rng), random_direction(rng), **options))
    return sketch, {"kind": "polygon", "unit": "m", "host": hosts[0], "joints": names}


def sets(rng):
    """A chain between two points, lines or planes of one body whose distance exceeds the length of the chain."""
    sketch = Sketch()
    hosts = _hosts(rng, sketch, int(rng.integers(2, 5)))
    n = random_direction(rng)
    sides = [0.0, *(0.0 if rng.random() < 0.4 else rng.uniform(0.1, 0.6) for _ in hosts[1:])]
    links = [str(rng.choice(["spherical", "universal", "revolute", "distance"])) for _ in hosts[2:]]
    rods = [rng.uniform(0.1, 0.6) if kind == "distance" else 0.0 for kind in links]
    apart = sum(sides) + sum(rods)
    apart += _gap(rng, max(apart, 0.5))
    o = sketch.pose(hosts[0])[1]
    first = o + rng.uniform(-0.5, 0.5) * orthogonal(rng, n)
    last = o + apart * n + rng.uniform(-0.5, 0.5) * orthogonal(rng, n)
    names = []
    points = []
    for host, side in zip(hosts[1:], sides[1:], strict=True):
        p = sketch.pose(host)[1]
        points.append((p, p + side * random_direction(rng)))
    names.append(_on_set(rng, sketch, hosts[0], hosts[1], first, points[0][0], n))
    for k, kind in enumerate(links):
        options = {"length": rods[k]} if kind == "distance" else {}
        ends = hosts[k + 1], hosts[k + 2], points[k][1], points[k + 1][0]
        names.append(sketch.joint(kind, *ends, random_direction(rng), random_direction(rng), **options))
    names.append(_on_set(rng, sketch, hosts[0], hosts[-1], last, points[-1][1], n))
    return sketch, {"kind": "sets", "unit": "m", "host": hosts[0], "joints": names}


_LINES = ("point_on_line", "cylindrical", "prismatic")
_PLANES = ("point_in_plane", "planar")


def _on_set(rng, sketch, host, body, at, point, n):
    """Constrain a point of the body to a point, line or plane of the host at ``at``, orthogonal to n as drawn."""
    kind = str(rng.choice([*_LINES, *_PLANES, "spherical", "revolute"]))
    other = random_direction(rng)
    if kind in _LINES:
        z = orthogonal(rng, n)
    elif kind in _PLANES:
        z = n if rng.random() < 0.5 else -n
    else:
        z = random_direction(rng)
    if kind.startswith("point"):
        return sketch.joint(kind, body, host, point, at, other, z)
    return sketch.joint(kind, host, body, at, point, z, other)


def sphere(rng):
    """A loop of axes at angles that no closed spherical polygon can have."""
    while True:
        count = int(rng.integers(2, 4))
        kinds = [str(rng.choice(_DIRECTED)) for _ in range(count)]
        rigid = [0.0 if rng.random() < 0.4 else rng.uniform(0.0, np.pi) for _ in range(count)]
        angles = [
            _FIXED_ANGLES[k] if k in _FIXED_ANGLES else rng.uniform(0.1, 3.0) if k == "angle" else 0.0 for k in kinds
        ]
        order = sorted([*rigid, *angles], reverse=True)
        gap = max(sum(order[:c]) - sum(order[c:]) - (c - 1) * np.pi for c in range(1, len(order) + 1, 2))
        if gap > 1e-6:
            break
    sketch = Sketch()
    hosts = _hosts(rng, sketch, count)
    directions = []
    for side in rigid:
        z = random_direction(rng)
        directions.append((z, rotation(orthogonal(rng, z), side) @ z))
    names = []
    for k, kind in enumerate(kinds):
        a, b = hosts[k], hosts[(k + 1) % count]
        p, q = (sketch.pose(n)[1] + rng.uniform(0, 0.8) * random_direction(rng) for n in (a, b))
        options = {"angle": angles[k]} if kind == "angle" else {}
        names.append(sketch.joint(kind, a, b, p, q, directions[k][1], directions[(k + 1) % count][0], **options))
    return sketch, {"kind": "sphere", "unit": "rad", "host": hosts[0], "joints": names}


_FIXED_ANGLES = {"perpendicular": 0.5 * np.pi, "universal": 0.5 * np.pi}
_DIRECTED = (
    *("parallel", "perpendicular", "angle", "angle", "revolute"),
    *("cylindrical", "planar", "universal", "prismatic", "fixed"),
)


def rotations(rng):
    """A loop of joints that lock all rotation inconsistently, for example two fixed joints with different poses."""
    sketch = Sketch()
    hosts = _hosts(rng, sketch, int(rng.integers(2, 5)))
    count = len(hosts)
    names = []
    p = sketch.pose(hosts[0])[1] + rng.uniform(0, 0.5) * random_direction(rng)
    off = rotation(random_direction(rng), max(1e-4, np.pi * 10.0 ** rng.uniform(-4, 0)))
    for k in range(count):
        z = random_direction(rng)
        kind = str(rng.choice(["fixed", "fixed", "prismatic"]))
        names.append(sketch.joint(kind, hosts[k], hosts[(k + 1) % count], p, z_a=z))
        if k == count - 1:
            sketch.joints[-1].R_b = off @ axes(z)
    return sketch, {"kind": "rotations", "unit": "rad", "host": hosts[0], "joints": names}


VARIANTS = {f.__name__: f for f in (polygon, sets, sphere, rotations)}
