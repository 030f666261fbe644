"""Faces: their kinds with their numbers, and their trimmed NURBS surfaces."""

from __future__ import annotations

import math
from typing import Any

from cardan.cad.kernel.common import MM, Arrays, axes, explored, knots, xyz

ACCURACY = 1e-9  # of OCP's integration of areas; areas of free forms may still be wrong by 1e-3


def faces_of(shape: Any, faces: list[Any], arrays: Arrays) -> list[dict[str, Any]]:
    """Of every face the kind with its numbers, and its trimmed NURBS surface."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_NurbsConvert
    from OCP.TopAbs import TopAbs_Orientation

    changed = BRepBuilderAPI_NurbsConvert(shape, True)
    found = []
    for face in faces:
        form = _cast(changed.ModifiedShape(face).Oriented(TopAbs_Orientation.TopAbs_FORWARD))
        found.append({**_face(face, form), **_nurbs(form, arrays)})
    return found


def _cast(shape: Any) -> Any:
    """A shape that is a face, as TopoDS_Face; the name of the function depends on the version of OCP."""
    from OCP import TopoDS

    return (getattr(TopoDS.TopoDS, "Face_s", None) or TopoDS.TopoDS.Face)(shape)


def _face(face: Any, form: Any) -> dict[str, Any]:
    """Kind, frame, radii [m] or angles [rad], bounds, area [m²], centre [m] and box [m] of a face; form: as NURBS."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepGProp import BRepGProp
    from OCP.GeomAbs import GeomAbs_SurfaceType
    from OCP.GProp import GProp_GProps
    from OCP.TopAbs import TopAbs_Orientation

    surface = BRepAdaptor_Surface(face)
    kind, name = surface.GetType(), "nurbs"
    numbers: list[float] = []
    own: Any = None
    if kind == GeomAbs_SurfaceType.GeomAbs_Plane:
        name, own = "plane", surface.Plane()
    elif kind == GeomAbs_SurfaceType.GeomAbs_Cylinder:
        name, own = "cylinder", surface.Cylinder()
        numbers = [own.Radius() * MM]
    elif kind == GeomAbs_SurfaceType.GeomAbs_Cone:
        name, own = "cone", surface.Cone()
        numbers = [own.RefRadius() * MM, own.SemiAngle()]
    elif kind == GeomAbs_SurfaceType.GeomAbs_Sphere:
        name, own = "sphere", surface.Sphere()
        numbers = [own.Radius() * MM]
    elif kind == GeomAbs_SurfaceType.GeomAbs_Torus:
        name, own = "torus", surface.Torus()
        numbers = [own.MajorRadius() * MM, own.MinorRadius() * MM]
    area = GProp_GProps()
    # The integration of surfaces of extrusion does not converge; that of their NURBS form does.
    BRepGProp.SurfaceProperties_s(form if name == "nurbs" else face, area, ACCURACY)
    c, box = area.CentreOfMass(), Bnd_Box()
    BRepBndLib.AddOptimal_s(face, box, False, False)
    limits = [surface.FirstUParameter(), surface.LastUParameter(), surface.FirstVParameter(), surface.LastVParameter()]
    if name in ("cylinder", "cone"):  # along the axis; OCP has v of a cone along its side
        along = math.cos(numbers[1]) if name == "cone" else 1.0
        limits[2:] = [v * along * MM for v in limits[2:]]
    # the direction of a face points out of the part; that of a left-handed frame is turned too
    is_reversed = face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED
    if own is not None and not own.Position().Direct():
        is_reversed = not is_reversed
    return {
        "kind": name,
        "frame": None if own is None else axes(own.Position()),
        "numbers": numbers,
        "limits": limits,
        "reversed": is_reversed,
        "area": area.Mass() * MM**2,
        "center": xyz(c),
        "box": [*xyz(box.CornerMin()), *xyz(box.CornerMax())] if not box.IsVoid() else [*xyz(c), *xyz(c)],
    }


def _nurbs(form: Any, arrays: Arrays) -> dict[str, Any]:
    """The surface of a face in its NURBS form, and the loops of curves in its parameter plane."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepTools import BRepTools_WireExplorer
    from OCP.Geom import Geom_BSplineSurface
    from OCP.TopAbs import TopAbs_Orientation

    surface = BRep_Tool.Surface_s(form)
    if not isinstance(surface, Geom_BSplineSurface):
        return {"nurbs": None}
    surface = surface.Copy()
    if surface.IsUPeriodic():
        surface.SetUNotPeriodic()
    if surface.IsVPeriodic():
        surface.SetVNotPeriodic()
    points = [
        [xyz(p) for p in (surface.Pole(i + 1, j + 1) for j in range(surface.NbVPoles()))]
        for i in range(surface.NbUPoles())
    ]
    weights = [[surface.Weight(i + 1, j + 1) for j in range(surface.NbVPoles())] for i in range(surface.NbUPoles())]
    lines = [
        knots(surface.NbUKnots(), surface.UKnot, surface.UMultiplicity),
        knots(surface.NbVKnots(), surface.VKnot, surface.VMultiplicity),
    ]
    loops = []
    for wire in explored(form, "WIRE"):
        loop = []
        explorer = BRepTools_WireExplorer(wire, form)
        while explorer.More():
            edge = explorer.Current()
            curve = _plane_curve(edge, form)
            if edge.Orientation() == TopAbs_Orientation.TopAbs_REVERSED:
                curve.Reverse()
            poles = [[curve.Pole(k + 1).X(), curve.Pole(k + 1).Y()] for k in range(curve.NbPoles())]
            own = [curve.Weight(k + 1) for k in range(curve.NbPoles())]
            line = knots(curve.NbKnots(), curve.Knot, curve.Multiplicity)
            loop.append([curve.Degree(), *[arrays.put(values) for values in (poles, own, line)]])
            explorer.Next()
        loops.append(loop)
    numbers = [arrays.put(values) for values in (points, weights, *lines)]
    return {"nurbs": [[surface.UDegree(), surface.VDegree()], *numbers], "loops": loops}


def _plane_curve(edge: Any, face: Any) -> Any:
    """The curve of an edge in the parameter plane of a face, as B-spline between its ends."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve2d
    from OCP.Geom2d import Geom2d_TrimmedCurve
    from OCP.Geom2dConvert import Geom2dConvert

    adaptor = BRepAdaptor_Curve2d(edge, face)
    own = adaptor.Curve()
    trimmed = Geom2d_TrimmedCurve(own, adaptor.FirstParameter(), adaptor.LastParameter(), True, False)
    found = Geom2dConvert.CurveToBSplineCurve_s(trimmed)
    if found.IsPeriodic():
        found.SetNotPeriodic()
    return found
