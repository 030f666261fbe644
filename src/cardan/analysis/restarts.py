"""Where to begin again: poses drawn per body, from its name and the seed alone, in the mechanism's own frame.

Neither the order of the bodies, nor the unit of length, nor a rigid motion of the whole mechanism changes them: a
draw turns a body from its authored orientation and moves its reference point by body axes, in units of L, about the
centre of the ground's points (or of the bodies, where the ground has none).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from cardan.math import euler
from cardan.system.state import FloatArray
from cardan.system.system import System

REACH = 2.0  # restarts place reference points within ± this many L


class Restarts:
    """Reproducible random poses of a system."""

    def __init__(self, system: System, authored: FloatArray, seed: int) -> None:
        """authored: solver coordinates of the authored poses, flat."""
        self._system = system
        self._q = authored.reshape(-1, 7)
        on_ground = bool((system.level > 0).any())
        self._center = system.ground_center if on_ground else self._q[:, :3].mean(axis=0)
        digests = [hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest() for name in system.names]
        self._seeds: NDArray[np.uint64] = np.frombuffer(b"".join(digests), dtype=np.uint64)

    def anywhere(self, attempt: int) -> FloatArray:
        """Uniform orientations, reference points within ± REACH·L of the centre; solver coordinates, flat."""
        uniform = self._uniform(attempt, 7)
        matrices = euler.matrix(self._q[:, 3:])
        offset = REACH * self._system.length * (2.0 * uniform[:, :3] - 1.0)
        position = self._center + np.einsum("bij,bj->bi", matrices, offset)
        # Shoemake's map from the unit cube to uniform unit quaternions [Shoemake1992]
        u, v, w = uniform[:, 3], 2.0 * np.pi * uniform[:, 4], 2.0 * np.pi * uniform[:, 5]
        a, b = np.sqrt(1.0 - u), np.sqrt(u)
        turn = np.column_stack([a * np.sin(v), a * np.cos(v), b * np.sin(w), b * np.cos(w)])
        return np.column_stack([position, euler.multiply(self._q[:, 3:], turn)]).ravel()

    def near(self, q: FloatArray, attempt: int, size: float) -> FloatArray:
        """q with every body turned by up to ``size`` rad and moved by up to ``size``·L, to leave a saddle point."""
        uniform = 2.0 * self._uniform(attempt, 6) - 1.0
        poses = q.reshape(-1, 7)
        matrices = euler.matrix(poses[:, 3:])
        offset = size * self._system.length * uniform[:, :3]
        position = poses[:, :3] + np.einsum("bij,bj->bi", matrices, offset)
        return np.column_stack([position, euler.retract(poses[:, 3:], size * uniform[:, 3:])]).ravel()

    def _uniform(self, attempt: int, count: int) -> FloatArray:
        """Numbers in [0, 1), shape (bodies, count): SplitMix64 of each body's seed.  [Steele2014]"""
        index = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(attempt * 64)
        with np.errstate(over="ignore"):
            z = self._seeds[:, None] + index * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
        result: FloatArray = (z >> np.uint64(11)) * 2.0**-53
        return result
