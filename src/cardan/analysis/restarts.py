"""Random poses for restarts, drawn per body from its name and the seed, relative to its authored pose.

A draw rotates a body from its authored orientation, and moves its reference point along its authored axes, in units of
L, about the centre of the ground's points (or of the bodies, if the ground has none).  So draws do not depend on the
order of the bodies, the unit of length, or a rigid motion of the whole mechanism.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cardan.lazy import LazyModule
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_blocks = LazyModule("cardan.solvers._blocks")
_draws = LazyModule("cardan.analysis._draws")

REACH = 2.0  # in L: draws place reference points within ± this distance, along each axis


class Restarts:
    """Reproducible random poses of a system; ``table``: input of the kernel."""

    def __init__(self, system: System, authored: FloatArray, length: float, seed: int) -> None:
        """authored: solver coordinates of the authored poses, flat; length [m]: the unit of distances."""
        self.length = length
        self.authored = authored
        poses = authored[: 7 * len(system.names)].reshape(-1, 7)
        self.center: FloatArray = np.zeros(3) if system.grounded else poses[:, :3].mean(axis=0)
        drawn = [*system.names, *(f"turn:{key}" for key in system.counted_angles)]
        digests = [hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest() for name in drawn]
        seeds = np.frombuffer(b"".join(digests), dtype=np.int64)
        sizes = (len(system.names), len(system.counted_angles))
        self.table: IntArray = np.concatenate([np.array(sizes, dtype=np.int64), seeds])

    def anywhere(self, attempt: int) -> FloatArray:
        """Uniform orientations, reference points within ± REACH·L of the centre; solver coordinates, flat."""
        return self._draw(_draws.ANYWHERE, self.authored, [attempt, REACH * self.length, *self.center.tolist()])

    def near(self, q: FloatArray, attempt: int, size: float) -> FloatArray:
        """q with every body rotated by up to about ``size`` rad and moved by up to ``size``·L."""
        return self._draw(_draws.NEAR, q, [attempt, size, self.length])

    def _draw(self, op: int, q: FloatArray, given: list[float]) -> FloatArray:
        out: FloatArray = np.empty_like(self.authored)
        with np.errstate(over="ignore"):  # products modulo 2⁶⁴ overflow, which the interpreter warns of
            _blocks.call_at(_draws.DRAW, op, self.table, np.array(given, dtype=np.float64), q, q, out, q, q)
        return out
