"""Numerically difficult cases: dead points, lengths near zero, extreme scales, coincident axes and points.

A case that differs only by a change of units, position or body origins must still be solved.  For the others, only a
correct verdict is required.
"""

from __future__ import annotations

import numpy as np

from fuzz import redundant
from fuzz.case import EXPECT_ANY, GROUND
from fuzz.geometry import X, Z, orthogonal, random_direction, random_rotation, rotation, unit
from fuzz.sketch import KINDS, Sketch, close, draw_start, grow


def draw(rng):
    variant = str(rng.choice(list(VARIANTS)))
    return VARIANTS[variant](rng, variant)


def _plain(rng):
    if rng.random() < 0.3:
        return redundant.VARIANTS[str(rng.choice(["planar_linkage", "bennett", "sarrus", "duplicated"]))](rng)
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(1, 5)))
    close(rng, sketch, int(rng.integers(0, 3)))
    return sketch


def scale(rng, variant):
    """Sizes from micrometres to thousands of kilometres."""
    return _plain(rng).finish(rng, "degenerate", variant, start=draw_start(rng), scale=10.0 ** rng.uniform(-6, 6))


def extreme(rng, variant):
    """Unrealistic sizes: only a correct verdict and finite numbers are required."""
    size = 10.0 ** (rng.choice([-1, 1]) * rng.uniform(10, 60))
    return _plain(rng).finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng), scale=size)


def origins(rng, variant):
    """Body origins at a distance of 1000 extents from the parts."""
    return _plain(rng).finish(rng, "degenerate", variant, start=draw_start(rng), origins=1e3)


def away(rng, variant):
    """The whole mechanism at a distance of 10000 extents from the origin."""
    return _plain(rng).finish(rng, "degenerate", variant, start=draw_start(rng), away=1e4)


def exact(rng, variant):
    """Start at the solution."""
    return _plain(rng).finish(rng, "degenerate", variant, start="exact")


def flipped(rng, variant):
    """Start at the solution, with some bodies rotated by exactly half a turn: saddle points."""
    sketch = _plain(rng)
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start="flipped", plain=bool(rng.random() < 0.5))


def stretched(rng, variant):
    """A loop of collinear links that closes only in this pose, or nearly so; the Jacobian is singular there."""
    sketch = Sketch()
    count = int(rng.integers(2, 6))
    lengths = [rng.uniform(0.2, 1.0) for _ in range(count - 1)]
    slack = float(rng.choice([0.0, 1e-12, 1e-9, 1e-6, 1e-3]))
    along = random_direction(rng)
    z = orthogonal(rng, along)
    kind = str(rng.choice(["revolute", "spherical", "universal"]))
    p = np.zeros(3)
    links = [GROUND, *(sketch.body(rng.uniform(0, 1) * along, random_rotation(rng)) for _ in lengths)]
    for k, length in enumerate([*lengths, None]):
        other = links[(k + 1) % count]
        sketch.joint(kind, links[k], other, p, z_a=z, z_b=along if kind == "universal" else None)
        if length is not None:
            p = p + length * along
    sketch.joints[-1].p_b = p * (1.0 - slack)
    start = str(rng.choice(["exact", "near", "bad", "uniform"]))
    case = sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=start)
    case.reference = None
    return case


def collinear(rng, variant):
    """A body on rods whose ends lie on two lines; some ends coincide, and some rods are duplicates."""
    sketch = Sketch()
    plate = sketch.body([0.0, 0.0, 1.0], random_rotation(rng))
    u, v = random_direction(rng), random_direction(rng)
    s, t = 0.0, 0.0
    for k in range(int(rng.integers(2, 9))):
        if rng.random() < 0.7 or k == 0:
            s = rng.uniform(-1, 1)
        if rng.random() < 0.7 or k == 0:
            t = rng.uniform(-1, 1)
        p, q = s * u, Z + 0.5 * t * v
        sketch.joint("distance", GROUND, plate, p, q, length=float(np.linalg.norm(q - p)))
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))


def coincident_axes(rng, variant):
    """A chain with one common axis for all joints, closed to the ground."""
    sketch = Sketch()
    z = random_direction(rng)
    parent, p = GROUND, np.zeros(3)
    for _ in range(int(rng.integers(1, 6))):
        name = sketch.body(p + rng.uniform(0, 0.5) * random_direction(rng), random_rotation(rng))
        p = p + float(rng.choice([0.0, 0.5])) * z
        sketch.joint(str(rng.choice(["revolute", "cylindrical", "universal"])), parent, name, p, z_a=z)
        if sketch.joints[-1].kind == "universal":
            sketch.joints[-1].kind = "revolute"
        parent = name
    sketch.joint(str(rng.choice(["revolute", "cylindrical", "spherical"])), parent, GROUND, p, z_a=z)
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))


def short_rods(rng, variant):
    """Rods of nearly zero length in a mechanism of size one, with plain or squared distances."""
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(1, 4)))
    for _ in range(int(rng.integers(1, 3))):
        known = [*sketch.bodies, GROUND]
        a, b = (known[k] for k in rng.choice(len(known), 2, replace=False))
        p = sketch.pose(a)[1] + rng.uniform(0.2, 0.9) * random_direction(rng)
        length = 10.0 ** rng.uniform(-9, -2)
        q = p + length * random_direction(rng)
        options = {"squared": True} if rng.random() < 0.3 else {}
        sketch.joint("distance", a, b, p, q, length=float(np.linalg.norm(q - p)), **options)
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))


def one_place(rng, variant):
    """All points coincide, in the world and on every body."""
    sketch = Sketch()
    for _ in range(int(rng.integers(1, 5))):
        known = [*sketch.bodies, GROUND]
        name = sketch.body(np.zeros(3), random_rotation(rng))
        for _ in range(int(rng.integers(1, 3))):
            kind = str(rng.choice([k for k in KINDS if k not in ("distance", "angle", "screw")]))
            z = random_direction(rng)
            z_b = orthogonal(rng, z) if kind in ("universal", "perpendicular") else z
            sketch.joint(kind, known[rng.integers(len(known))], name, np.zeros(3), z_a=z, z_b=z_b)
    start = str(rng.choice(["exact", "near", "bad", "uniform"]))
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=start, plain=bool(rng.random() < 0.5))


def sharp_angles(rng, variant):
    """Angles close to 0 and π."""
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(1, 4)))
    for _ in range(int(rng.integers(1, 3))):
        known = [*sketch.bodies, GROUND]
        a, b = (known[k] for k in rng.choice(len(known), 2, replace=False))
        angle = 10.0 ** rng.uniform(-8, -1)
        if rng.random() < 0.5:
            angle = np.pi - angle
        z = random_direction(rng)
        p, q = (sketch.pose(n)[1] for n in (a, b))
        options = {"cosine": True} if rng.random() < 0.2 else {}
        sketch.joint("angle", a, b, p, q, z, rotation(orthogonal(rng, z), angle) @ z, angle=float(angle), **options)
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))


def mixed_sizes(rng, variant):
    """Parts of 0.1 mm next to parts of 100 m."""
    sketch = Sketch()
    parent, at = GROUND, np.zeros(3)
    for _ in range(int(rng.integers(2, 6))):
        size = 10.0 ** rng.uniform(-4, 2)
        p = at + size * random_direction(rng)
        name = sketch.body(p, random_rotation(rng))
        kind = str(rng.choice(["revolute", "spherical", "universal", "fixed"]))
        sketch.satisfied(rng, kind, parent, name, p, p, random_direction(rng))
        parent, at = name, p + size * random_direction(rng)
    if sketch.fits("spherical", parent, GROUND):
        sketch.joint("spherical", parent, GROUND, at)
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))


def change_point(rng, variant):
    """A parallelogram or kite folded flat, where two motions branch."""
    sketch = Sketch()
    a, b = rng.uniform(0.3, 1.0, 2)
    A, B, C, D = (x * X for x in (0.0, a, a + b, b))
    if rng.random() < 0.5:
        C, D = a * X - b * X, -b * X
    bodies = [sketch.body(p, random_rotation(rng)) for p in (A, B, D)]
    for k, (one, other, p) in enumerate(((GROUND, 0, A), (0, 1, B), (1, 2, C), (2, GROUND, D))):
        one, other = (n if n == GROUND else bodies[n] for n in (one, other))
        sketch.joint("spherical" if k == 2 and rng.random() < 0.3 else "revolute", one, other, p, z_a=Z)
    start = str(rng.choice(["exact", "near", "bad", "uniform"]))
    return sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=start, plain=bool(rng.random() < 0.5))


def thin_references(rng, variant):
    """Axes x nearly parallel to z; axes and quaternions of any length."""
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(1, 4)), kinds=("fixed", "prismatic", "revolute"))
    case = sketch.finish(rng, "degenerate", variant, expect=EXPECT_ANY, start=draw_start(rng))
    for body in case.bodies:
        body.orientation = (np.array(body.orientation) * 10.0 ** rng.uniform(-200, 200)).tolist()
    for joint in case.joints:
        for end in (joint.a, joint.b):
            if end.z is not None and end.x is not None:
                z = unit(end.z)
                x = unit(np.array(end.x) - z * (z @ np.array(end.x)))
                end.x = (z + 10.0 ** rng.uniform(-4, 0) * x).tolist()
                end.z = (np.array(end.z) * 10.0 ** rng.uniform(-200, 200)).tolist()
    return case


VARIANTS = {
    f.__name__: f
    for f in (
        scale,
        extreme,
        origins,
        away,
        exact,
        flipped,
        stretched,
        collinear,
        coincident_axes,
        short_rods,
        one_place,
        sharp_angles,
        mixed_sizes,
        change_point,
        thin_references,
    )
}
