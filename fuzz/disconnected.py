"""Several pieces, some not connected to the ground, and bodies without joints."""

from __future__ import annotations

import numpy as np

from fuzz.geometry import random_rotation
from fuzz.sketch import Sketch, close, draw_start, grow, merge


def draw(rng):
    sketch = Sketch()
    variant = str(rng.choice(["parts", "floating", "isolated", "sizes", "bare"], p=[0.3, 0.3, 0.2, 0.15, 0.05]))
    components = 1 if variant == "bare" else int(rng.integers(1, 4))
    if variant != "bare":
        for k in range(components):
            part = Sketch()
            floating = variant == "floating" or rng.random() < 0.3
            grow(rng, part, int(rng.integers(1, 4)), ground=not floating)
            close(rng, part, int(rng.integers(0, 3)), ground=not floating)
            scale = 10.0 ** rng.uniform(-4, 0) if variant == "sizes" else 1.0  # pieces of very different sizes
            merge(sketch, part, np.array([2.0 * k, 0.0, 0.0]), scale)
    if variant in ("isolated", "bare") or rng.random() < 0.2:
        for _ in range(int(rng.integers(1, 4))):
            sketch.body(rng.uniform(-2, 2, 3), random_rotation(rng))
    return sketch.finish(rng, "disconnected", variant, start=draw_start(rng))
