"""Random start poses, independent of the solution."""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system.state import Pose

REACH = 1.0  # bodies lie within ± this many extents of their authored positions


def random_start(mechanism: Mechanism, seed: int) -> dict[str, Pose]:
    """Random poses: uniform orientations, positions within ± the mechanism's extent of the authored ones."""
    if seed < 0:
        raise ModelError(f"the seed of a random start is {seed}; it must be an integer ≥ 0")
    rng = np.random.default_rng(seed)
    reach = REACH * mechanism.system.length
    return {
        name: Pose(np.array(body.position) + rng.uniform(-reach, reach, 3), euler.random(rng))
        for name, body in mechanism.bodies.items()
    }
