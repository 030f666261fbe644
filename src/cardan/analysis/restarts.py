"""Where to begin again: poses drawn per body, from its name and the seed alone, in the mechanism's own frame.

Neither the order of the bodies, nor the unit of length, nor a rigid motion of the whole mechanism changes them: a
draw turns a body from its authored orientation and moves its reference point along its authored axes, in units of L,
about the centre of the ground's points (or of the bodies, where the ground has none).
"""

from __future__ import annotations

import hashlib

import numpy as np

from cardan.system.state import FloatArray
from cardan.system.system import System

REACH = 2.0  # restarts place reference points within ± this many L


class Restarts:
    """Reproducible random poses of a system."""

    def __init__(self, system: System, authored: FloatArray, length: float, seed: int) -> None:
        """authored: solver coordinates of the authored poses, flat; length [m]: the measure of distances."""
        self.length = length
        self.authored = authored
        poses = authored[: 7 * len(system.names)].reshape(-1, 7)
        self.center = np.zeros(3) if system.grounded else poses[:, :3].mean(axis=0)
        drawn = [*system.names, *(f"turn:{key}" for key in system.counted_angles)]
        digests = [hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest() for name in drawn]
        self.seeds = np.array(np.frombuffer(b"".join(digests), dtype=np.uint64))
        self._bodies = len(system.names)

    def anywhere(self, attempt: int) -> FloatArray:
        """Uniform orientations, reference points within ± REACH·L of the centre; solver coordinates, flat."""
        from cardan.analysis import _draws

        out: FloatArray = np.empty_like(self.authored)
        reach = REACH * self.length
        with np.errstate(over="ignore"):  # seeds are multiplied modulo 2⁶⁴, which the interpreter warns of
            _draws.draw_anywhere(self._bodies, self.seeds, attempt, self.authored, self.center, reach, out)
        return out

    def near(self, q: FloatArray, attempt: int, size: float) -> FloatArray:
        """q with every body turned by up to about ``size`` rad and moved by up to ``size``·L."""
        from cardan.analysis import _draws

        out: FloatArray = q.copy()
        with np.errstate(over="ignore"):
            _draws.draw_near(self._bodies, self.seeds, attempt, q, size, self.length, out)
        return out
