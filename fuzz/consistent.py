"""Random trees with closing loops, every kind of joint, drawn in a pose that satisfies all of them."""

from __future__ import annotations

from fuzz.sketch import Sketch, close, draw_start, grow


def draw(rng):
    sketch = Sketch()
    count = int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8], p=[0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.05, 0.05]))
    grow(rng, sketch, count)
    loops = int(rng.integers(0, 4))
    close(rng, sketch, loops)
    start = draw_start(rng)
    scale = 10.0 ** rng.uniform(-2, 2) if rng.random() < 0.3 else 1.0
    return sketch.finish(rng, "consistent", start, start=start, scale=scale)
