"""Small mechanisms with more equations than freedoms, generated in a pose that satisfies all joints.

Such a pose is often the only one, and the equations have least-squares minima that are not solutions.
"""

from __future__ import annotations

from fuzz.case import GROUND
from fuzz.geometry import random_direction, random_rotation
from fuzz.oracles.joints import JOINTS
from fuzz.sketch import KINDS, Sketch, draw_start

# Joints of two bodies with a false minimum that attracts most starts.
TWO_BODIES = ("spherical", "spherical", "cylindrical", "universal")
MOST_SURPLUS = 4  # equations beyond the freedoms


def draw(rng):
    variant = str(rng.choice(list(VARIANTS)))
    sketch = Sketch()
    count = 2 if variant == "two_bodies" else int(rng.integers(1, 5))
    for _ in range(count):
        sketch.body(rng.uniform(-1, 1, 3), random_rotation(rng))
    VARIANTS[variant](rng, sketch)
    start = draw_start(rng)
    scale = 10.0 ** rng.uniform(-2, 2) if rng.random() < 0.3 else 1.0
    return sketch.finish(rng, "crowded", variant, start=start, scale=scale)


def two_bodies(rng, sketch):
    """Two bodies with two spherical joints, a cylindrical and a universal joint, anywhere."""
    while True:
        pairs = [_pair(rng, sketch) for _ in TWO_BODIES]
        if len({frozenset(pair) for pair in pairs}) > 1:
            break
    for kind, pair in zip(TWO_BODIES, pairs, strict=True):
        _join(rng, sketch, kind, pair)


def any_joints(rng, sketch):
    """One to four bodies with random joints, until there are more equations than freedoms."""
    most = 6 * len(sketch.bodies) + int(rng.integers(0, MOST_SURPLUS + 1))
    equations = 0
    while True:
        kind = str(rng.choice(KINDS))
        equations += JOINTS[kind].equations
        if equations > most and sketch.joints:
            return
        _join(rng, sketch, kind, _pair(rng, sketch))


def _pair(rng, sketch):
    known = [*sketch.bodies, GROUND]
    return [known[k] for k in rng.choice(len(known), 2, replace=False)]


def _join(rng, sketch, kind, pair):
    p, q = rng.uniform(-1, 1, (2, 3))
    sketch.satisfied(rng, kind, *pair, p, q, random_direction(rng))


VARIANTS = {f.__name__: f for f in (two_bodies, any_joints)}
