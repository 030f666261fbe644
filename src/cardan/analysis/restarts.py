"""Random poses for restarts, drawn per body from its name and the seed, relative to its authored pose.

A draw rotates a body from its authored orientation, and moves its reference point along its authored axes, in units of
L, about the centre of the ground's points (or of the bodies, if the ground has none).  So draws do not depend on the
order of the bodies, the unit of length, or a rigid motion of the whole mechanism.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cardan.analysis.tables import Draw, Drawn
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_blocks = LazyModule("cardan.solvers._blocks")
_draws = LazyModule("cardan.analysis._draws")

REACH = 2.0  # in L: draws place reference points within ± this distance, along each axis
CLOSE_REACH = 0.5  # the same for close draws: where L is much larger than the bodies, these do not begin far apart


class Restarts:
    """Reproducible random poses of a system; ``table``: input of the kernel."""

    def __init__(self, system: System, authored: FloatArray, length: float, seed: int) -> None:
        """authored: solver coordinates of the authored poses, flat; length [m]: the unit of distances."""
        self.length = length
        self.authored = authored
        poses = authored[: 7 * len(system.names)].reshape(-1, 7)
        self.center: FloatArray = np.zeros(3) if system.grounded else poses[:, :3].mean(axis=0)
        names = system.variable_names
        others = [*(f"parameter:{name}" for name in names), *(f"turn:{key}" for key in system.counted_angles)]
        drawn = [*system.names, *others]
        digests = [hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest() for name in drawn]
        seeds = np.frombuffer(b"".join(digests), dtype=np.int64)
        self._how = Draw.new(center=self.center, length=length)
        table = Drawn.new(
            open=seeds.size,
            bodies=len(system.names),
            variables=len(names),
            free=len(system.variables.free),
            angles=len(system.counted_angles),
            seeds=seeds,
        )
        self.table: IntArray = table.as_ints

    def anywhere(self, attempt: int, reach: float = REACH) -> FloatArray:
        """Uniform orientations, reference points within ± reach·L of the centre; solver coordinates, flat."""
        self._how.attempt, self._how.reach = attempt, reach * self.length
        return self._draw(_draws.ANYWHERE, self.authored)

    def some(self, best: FloatArray, attempt: int) -> FloatArray:
        """Some bodies as in :meth:`anywhere`, the others as in ``best``."""
        self._how.attempt, self._how.reach = attempt, REACH * self.length
        return self._draw(_draws.SOME, self.authored, best)

    def near(self, q: FloatArray, attempt: int, size: float, length: float) -> FloatArray:
        """q with every body rotated by up to about ``size`` rad and moved by up to ``size``·length."""
        self._how.attempt, self._how.spread, self._how.length = attempt, size, length
        return self._draw(_draws.NEAR, q)

    def between(self, q: FloatArray, target: FloatArray, share: float) -> FloatArray:
        """Poses at a share of the way from q to target."""
        self._how.share = share
        return self._draw(_draws.BETWEEN, q, target)

    def apart(self, q: FloatArray, other: FloatArray) -> float:
        """Squared distance of two poses: displacements in units of L, rotations as chords."""
        self._how.length = self.length
        return float(self._draw(_draws.APART, q, other)[0])

    def _draw(self, op: int, q: FloatArray, other: FloatArray | None = None) -> FloatArray:
        out: FloatArray = np.empty_like(self.authored)
        how = self._how.as_floats
        with np.errstate(over="ignore"):  # products modulo 2⁶⁴ overflow, which the interpreter warns of
            _blocks.call_at(_draws.DRAW, op, self.table, how, q, q if other is None else other, out, q, q)
        return out
