"""Edges and vertices: their kinds with their numbers, and their NURBS curves."""

from __future__ import annotations

from typing import Any

from cardan.cad.kernel.common import MM, Arrays, axes, knots, xyz

ACCURACY = 1e-9  # of lengths, relative
LEAST = 1e-12  # [mm]: the accuracy of edges without a length


def edge_of(edge: Any, arrays: Arrays) -> dict[str, Any]:
    """Kind, frame, radii [m], length [m], ends [m] and NURBS of an edge."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.GCPnts import GCPnts_AbscissaPoint
    from OCP.GeomAbs import GeomAbs_CurveType

    if BRep_Tool.Degenerated_s(edge):
        return {"kind": "point", "frame": None, "numbers": [], "length": 0.0, "ends": []}
    curve = BRepAdaptor_Curve(edge)
    kind, own, numbers, name = curve.GetType(), None, [], "nurbs"
    if kind == GeomAbs_CurveType.GeomAbs_Line:
        line = curve.Line()
        o, z = line.Location(), line.Direction()
        frame: Any = [xyz(o), [z.X(), z.Y(), z.Z()], None]
        name = "line"
    elif kind == GeomAbs_CurveType.GeomAbs_Circle:
        name, own = "circle", curve.Circle()
        numbers = [own.Radius() * MM]
    elif kind == GeomAbs_CurveType.GeomAbs_Ellipse:
        name, own = "ellipse", curve.Ellipse()
        numbers = [own.MajorRadius() * MM, own.MinorRadius() * MM]
    else:
        frame = None
    if own is not None:
        frame = axes(own.Position())
    low, high = curve.FirstParameter(), curve.LastParameter()
    ends = [curve.Value(t) for t in (low, high)]
    rough = GCPnts_AbscissaPoint.Length_s(curve)  # that of an ellipse may be wrong by 1e-3
    found = {
        "kind": name,
        "frame": frame,
        "numbers": numbers,
        "length": GCPnts_AbscissaPoint.Length_s(curve, max(ACCURACY * rough, LEAST)) * MM,
        "ends": [xyz(p) for p in ends],
    }
    spline = _spline(edge)
    if spline is not None:
        poles = [xyz(p) for p in (spline.Pole(k + 1) for k in range(spline.NbPoles()))]
        own_weights = [spline.Weight(k + 1) for k in range(spline.NbPoles())]
        own_knots = knots(spline.NbKnots(), spline.Knot, spline.Multiplicity)
        found["nurbs"] = [spline.Degree(), *[arrays.put(values) for values in (poles, own_weights, own_knots)]]
    return found


def _spline(edge: Any) -> Any:
    """The curve of an edge in space as B-spline, or None."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.Geom import Geom_TrimmedCurve
    from OCP.GeomConvert import GeomConvert

    adaptor = BRepAdaptor_Curve(edge)
    if not adaptor.Is3DCurve():
        return None
    own = adaptor.Curve().Curve().Transformed(adaptor.Trsf())
    found = GeomConvert.CurveToBSplineCurve_s(
        Geom_TrimmedCurve(own, adaptor.FirstParameter(), adaptor.LastParameter(), True, False)
    )
    if found.IsPeriodic():
        found.SetNotPeriodic()
    return found


def point_of(vertex: Any) -> list[float]:
    """The point of a vertex [m]."""
    from OCP.BRep import BRep_Tool

    p = BRep_Tool.Pnt_s(vertex)
    return xyz(p)
