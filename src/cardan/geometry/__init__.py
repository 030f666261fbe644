"""Curves, surfaces and meshes: evaluation, distance, derivatives of closest pairs.  Independent of bodies.

Shapes      Curve, Surface (NURBS), line, circle, ellipse, plane, sphere, ellipsoid, cylinder, cone, torus, traced
Build       revolve, extrude, ruled, loft
            Face (a trimmed surface), Mesh
Measure     arc_length, area, volume, mass_properties, normal, curvature, tessellate
Distance    closest_point, closest_pair, Distance; derivatives of pairs: exact, differences
Exchange    from_scipy, to_scipy, from_json, to_json, as_dict, from_dict, plot
"""

from __future__ import annotations

from types import FunctionType

from cardan.calls import explained
from cardan.geometry.analytic import circle, cone, cylinder, ellipse, ellipsoid, line, plane, sphere, torus
from cardan.geometry.build import extrude, loft, revolve, ruled
from cardan.geometry.distance import Distance, Pair, closest_pair, closest_point
from cardan.geometry.face import Face
from cardan.geometry.interchange import as_dict, from_dict, from_json, from_scipy, plot, to_json, to_scipy
from cardan.geometry.measure import arc_length, area, curvature, mass_properties, normal, tessellate, volume
from cardan.geometry.mesh import Mesh
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.pose_derivatives import differences, exact
from cardan.geometry.traced import traced

__all__ = [
    "Curve",
    "Distance",
    "Face",
    "Mesh",
    "Pair",
    "Surface",
    "arc_length",
    "area",
    "as_dict",
    "circle",
    "closest_pair",
    "closest_point",
    "cone",
    "curvature",
    "cylinder",
    "differences",
    "ellipse",
    "ellipsoid",
    "exact",
    "extrude",
    "from_dict",
    "from_json",
    "from_scipy",
    "line",
    "loft",
    "mass_properties",
    "normal",
    "plane",
    "plot",
    "revolve",
    "ruled",
    "sphere",
    "tessellate",
    "to_json",
    "to_scipy",
    "torus",
    "traced",
    "volume",
]

for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = explained(globals()[_name], f"geometry.{_name}")
