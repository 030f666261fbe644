"""Random trees with closed loops and every kind of joint, generated in a pose that satisfies all joints."""

from __future__ import annotations

from fuzz.sketch import Sketch, close, close_wide, draw_start, grow

# Shares of the cases: 9 to 24 bodies; loops closed until almost no freedom is left.
WIDE, TIGHT = 0.1, 0.2


def draw(rng):
    sketch = Sketch()
    which = rng.random()
    if which < WIDE:
        shape = "wide_"
        grow(rng, sketch, int(rng.integers(9, 25)), chain=0.7)
        close_wide(rng, sketch, int(rng.integers(1, 5)))
    elif which < WIDE + TIGHT:
        shape = "tight_"
        grow(rng, sketch, int(rng.integers(1, 6)))
        close(rng, sketch, 6 * len(sketch.bodies))
    else:
        shape = ""
        grow(rng, sketch, int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8], p=[0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.05, 0.05])))
        close(rng, sketch, int(rng.integers(0, 4)))
    start = draw_start(rng)
    scale = 10.0 ** rng.uniform(-2, 2) if rng.random() < 0.3 else 1.0
    return sketch.finish(rng, "consistent", shape + start, start=start, scale=scale)
