"""Several components, some without a way to the ground, and bodies that nothing touches."""

from __future__ import annotations

import numpy as np

from fuzz.geometry import random_rotation
from fuzz.sketch import Sketch, close, draw_start, grow


def draw(rng):
    sketch = Sketch()
    variant = str(rng.choice(["parts", "floating", "isolated", "bare"], p=[0.4, 0.35, 0.2, 0.05]))
    components = 1 if variant == "bare" else int(rng.integers(1, 4))
    if variant != "bare":
        for k in range(components):
            part = Sketch()
            floating = variant == "floating" or rng.random() < 0.3
            grow(rng, part, int(rng.integers(1, 4)), ground=not floating)
            close(rng, part, int(rng.integers(0, 3)), ground=not floating)
            _merge(sketch, part, np.array([2.0 * k, 0.0, 0.0]))
    if variant in ("isolated", "bare") or rng.random() < 0.2:
        for _ in range(int(rng.integers(1, 4))):
            sketch.body(rng.uniform(-2, 2, 3), random_rotation(rng))
    return sketch.finish(rng, "disconnected", variant, start=draw_start(rng))


def _merge(sketch, part, offset):
    names = {"ground": "ground"}
    for name, (R, p) in part.bodies.items():
        names[name] = sketch.body(p + offset, R)
    for j in part.joints:
        j.name, j.a, j.b = f"j{len(sketch.joints) + 1}", names[j.a], names[j.b]
        j.p_a, j.p_b = j.p_a + offset, j.p_b + offset
        sketch.joints.append(j)
