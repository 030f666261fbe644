"""Curves, surfaces and meshes: evaluation, distance, derivatives of closest pairs.  Knows no bodies.

Shapes      Curve, Surface (NURBS), line, circle, ellipse, plane, sphere, ellipsoid, cylinder, cone, torus, traced
Build       revolve, extrude, ruled, loft
Distance    closest_point, closest_pair, Distance
"""

from __future__ import annotations

from cardan.geometry.analytic import circle, cone, cylinder, ellipse, ellipsoid, line, plane, sphere, torus
from cardan.geometry.build import extrude, loft, revolve, ruled
from cardan.geometry.distance import Distance, Pair, closest_pair, closest_point
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.traced import traced

__all__ = [
    "Curve",
    "Distance",
    "Pair",
    "Surface",
    "circle",
    "closest_pair",
    "closest_point",
    "cone",
    "cylinder",
    "ellipse",
    "ellipsoid",
    "extrude",
    "line",
    "loft",
    "plane",
    "revolve",
    "ruled",
    "sphere",
    "torus",
    "traced",
]
