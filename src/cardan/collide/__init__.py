"""Solids that may touch or overlap: signed gaps, contact points, overlap volumes.  Independent of bodies.

Solids      solid(shape), half_space()
Pairs       gap, contact_points, overlap_volume
Many        candidates (pairs that are near each other), gaps
"""

from __future__ import annotations

from types import FunctionType

from cardan.calls import explained
from cardan.collide.broad import candidates
from cardan.collide.pairs import Gap, gap, gaps
from cardan.collide.points import contact_points
from cardan.collide.solids import Solid, half_space, solid
from cardan.collide.volumes import Volume, overlap_volume

__all__ = [
    "Gap",
    "Solid",
    "Volume",
    "candidates",
    "contact_points",
    "gap",
    "gaps",
    "half_space",
    "overlap_volume",
    "solid",
]

for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = explained(globals()[_name], f"collide.{_name}")
