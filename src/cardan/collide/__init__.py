"""Solids that may touch or overlap: signed gaps, contact points, overlap volumes.  Independent of bodies.

Solids      solid(shape), half_space()
Pairs       gap, contact_points, overlap_volume
Many        candidates: pairs that are near each other
"""

from __future__ import annotations

from cardan.collide.gaps import Gap, gap
from cardan.collide.solids import Solid, half_space, solid

__all__ = ["Gap", "Solid", "gap", "half_space", "solid"]
