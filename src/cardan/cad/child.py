"""Read a STEP file in a process of its own: ``python child.py FILE.step OUT.npz CHORD``; or write one again with other
placements: ``python child.py --write FILE.step POSES.json OUT.step``.

The kernel of OCP may crash or never end on a broken file; then only this process is lost.  It imports nothing of the
package, so that it starts at once.  OUT has the array ``json``, a description, and arrays that it names by number.
Lengths are in metres.  An error is one line on stderr, with exit status 2.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

MM = 1e-3  # OCP converts every file to millimetres
ANGLE = 0.35  # [rad]: largest angle between the normals of neighbouring triangles of a curved face


class Failure(Exception):
    """The file cannot be read; the text says why."""


class Arrays(list[Any]):
    """Arrays of the output; :meth:`put` returns the number of one."""

    def put(self, values: Any, kind: Any = float) -> int:
        self.append(np.array(values, dtype=kind))
        return len(self) - 1


def main(path: str, out: str, chord: float) -> None:
    arrays = Arrays()
    found = read(path, chord, arrays)
    text = np.frombuffer(json.dumps(found).encode(), dtype=np.uint8)
    with open(out, "wb") as file:
        np.savez(file, json=text, **{f"a{k}": array for k, array in enumerate(arrays)})


def read(path: str, chord: float, arrays: Arrays, leaves: list[Any] | None = None) -> dict[str, Any]:
    """The whole description: units, definitions of parts, and the tree of their instances.

    leaves: gets the shape of every instance, and then the parts are not described.
    """
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPCAFControl import STEPCAFControl_Reader
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TColStd import TColStd_SequenceOfAsciiString
    from OCP.TDF import TDF_LabelSequence
    from OCP.TDocStd import TDocStd_Document
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    reader = STEPCAFControl_Reader()
    for option in (reader.SetNameMode, reader.SetColorMode):
        option(True)
    if reader.ReadFile(path) != IFSelect_RetDone:
        raise Failure("it is not a STEP file, or it is broken")
    lengths, angles, solid = (TColStd_SequenceOfAsciiString() for _ in range(3))
    reader.Reader().FileUnits(lengths, angles, solid)
    if not reader.Transfer(document):
        raise Failure("it has no part that can be transferred")
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    roots = TDF_LabelSequence()
    shapes.GetFreeShapes(roots)
    walk = _Walk(shapes, colors, chord, arrays, leaves)
    tree = [walk.node(roots.Value(k + 1)) for k in range(roots.Length())]
    if not walk.parts:
        raise Failure("it has no solid, shell or face")
    unit = lengths.Value(1).ToCString() if lengths.Length() else ""
    return {"unit": unit, "parts": walk.parts, "tree": tree}


def write(path: str, poses: list[dict[str, Any]], out: str) -> None:
    """Write the parts of a file again, in the order of :func:`read`, each at a placement; one level, no assemblies."""
    from OCP.BRep import BRep_Builder
    from OCP.gp import gp_Quaternion, gp_Trsf, gp_Vec
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.Quantity import Quantity_Color, Quantity_TypeOfColor
    from OCP.STEPCAFControl import STEPCAFControl_Writer
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TDocStd import TDocStd_Document
    from OCP.TopLoc import TopLoc_Location
    from OCP.TopoDS import TopoDS_Compound
    from OCP.XCAFDoc import XCAFDoc_ColorType, XCAFDoc_DocumentTool

    arrays = Arrays()
    leaves: list[Any] = []
    read(path, 1.0, arrays, leaves)
    if len(leaves) != len(poses):
        raise Failure(f"it has {len(leaves)} parts now, and had {len(poses)} when it was read")
    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    builder, whole = BRep_Builder(), TopoDS_Compound()
    builder.MakeCompound(whole)
    root = shapes.AddShape(whole, True)
    TDataStd_Name.Set_s(root, TCollection_ExtendedString("assembly"))
    for shape, pose in zip(leaves, poses, strict=True):
        x, y, z, w, i, j, k = pose["placement"]
        moved = gp_Trsf()
        moved.SetRotation(gp_Quaternion(i, j, k, w))
        moved.SetTranslationPart(gp_Vec(x / MM, y / MM, z / MM))
        definition = shapes.AddShape(shape, False)
        name = TCollection_ExtendedString(pose["name"])
        TDataStd_Name.Set_s(definition, name)
        instance = shapes.AddComponent(root, definition, TopLoc_Location(moved))
        TDataStd_Name.Set_s(instance, name)
        if pose["color"] is not None:
            color = Quantity_Color(*pose["color"], Quantity_TypeOfColor.Quantity_TOC_sRGB)
            colors.SetColor(definition, color, XCAFDoc_ColorType.XCAFDoc_ColorSurf)
    shapes.UpdateAssemblies()
    writer = STEPCAFControl_Writer()
    writer.SetNameMode(True)
    writer.SetColorMode(True)
    if not writer.Transfer(document) or writer.Write(out) != IFSelect_RetDone:
        raise Failure("its parts cannot be written")


class _Walk:
    """Visits the labels of a document; every definition of a part is described once."""

    def __init__(self, shapes: Any, colors: Any, chord: float, arrays: Arrays, leaves: list[Any] | None) -> None:
        self.shapes, self.colors, self.chord, self.arrays, self.leaves = shapes, colors, chord, arrays, leaves
        self.parts: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def node(self, label: Any) -> dict[str, Any]:
        """An instance: name, placement in its parent, and its children or the number of its part."""
        from OCP.TCollection import TCollection_AsciiString
        from OCP.TDF import TDF_Label, TDF_LabelSequence, TDF_Tool

        definition = TDF_Label()
        if not self.shapes.GetReferredShape_s(label, definition):
            definition = label
        location = self.shapes.GetShape_s(label).Location() if definition is not label else None
        found: dict[str, Any] = {"name": _name(label) or _name(definition), "placement": _placement(location)}
        color = self._color(label)
        if self.shapes.IsAssembly_s(definition):
            children = TDF_LabelSequence()
            self.shapes.GetComponents_s(definition, children, False)
            found["children"] = [self.node(children.Value(k + 1)) for k in range(children.Length())]
        else:
            entry = TCollection_AsciiString()
            TDF_Tool.Entry_s(definition, entry)
            key = entry.ToCString()
            if self.leaves is not None:
                self.leaves.append(self.shapes.GetShape_s(definition))
            if key not in self._known:
                self._known[key] = len(self.parts)
                self.parts.append(self._part(definition) if self.leaves is None else {})
            found["part"] = self._known[key]
        if color is not None:
            found["color"] = color
        return found

    def _color(self, label: Any, shape: Any = None) -> list[float] | None:
        from OCP.Quantity import Quantity_Color
        from OCP.XCAFDoc import XCAFDoc_ColorType

        color = Quantity_Color()
        for kind in (XCAFDoc_ColorType.XCAFDoc_ColorSurf, XCAFDoc_ColorType.XCAFDoc_ColorGen):
            of_label = shape is None and self.colors.GetColor_s(label, kind, color)
            if of_label or (shape is not None and self.colors.GetColor(shape, kind, color)):
                return [_srgb(c) for c in (color.Red(), color.Green(), color.Blue())]
        return None

    def _part(self, label: Any) -> dict[str, Any]:
        from OCP.BRepMesh import BRepMesh_IncrementalMesh

        shape = self.shapes.GetShape_s(label)
        found: dict[str, Any] = {"name": _name(label), "color": self._color(label) or self._color(label, shape)}
        BRepMesh_IncrementalMesh(shape, self.chord / MM, False, ANGLE, False)
        found |= _mass(shape)
        faces = list(_explored(shape, "FACE"))
        found["mesh"] = _mesh(faces, self.arrays)
        found["faces"] = _faces(shape, faces, self.arrays)
        if found["color"] is None:
            own = [self._color(label, face) for face in faces]
            found["color"] = next((color for color in own if color is not None), None)
        found["edges"] = [_edge(edge, self.arrays) for edge in _explored(shape, "EDGE", True)]
        found["vertices"] = [_point(vertex) for vertex in _explored(shape, "VERTEX", True)]
        return found


def _srgb(c: float) -> float:
    """OCP keeps linear light."""
    return float(min(1.0, max(0.0, 12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055)))


def _name(label: Any) -> str:
    from OCP.TDataStd import TDataStd_Name

    name = TDataStd_Name()
    return str(name.Get().ToExtString()) if label.FindAttribute(TDataStd_Name.GetID_s(), name) else ""


def _placement(location: Any) -> list[float]:
    """Position [m] and quaternion (w, x, y, z)."""
    if location is None or location.IsIdentity():
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    moved = location.Transformation()
    p, q = moved.TranslationPart(), moved.GetRotation()
    return [p.X() * MM, p.Y() * MM, p.Z() * MM, q.W(), q.X(), q.Y(), q.Z()]


def _explored(shape: Any, kind: str, once: bool = False) -> Any:
    """Faces, edges or vertices of a shape; once: each one time only, with its own orientation removed."""
    from OCP import TopAbs, TopoDS
    from OCP.TopExp import TopExp, TopExp_Explorer
    from OCP.TopTools import TopTools_IndexedMapOfShape

    wanted = getattr(TopAbs.TopAbs_ShapeEnum, f"TopAbs_{kind}")
    cast = getattr(TopoDS.TopoDS, f"{kind.title()}_s", None) or getattr(TopoDS.TopoDS, f"{kind.title()}")
    if once:
        known = TopTools_IndexedMapOfShape()
        TopExp.MapShapes_s(shape, wanted, known)
        for k in range(known.Extent()):
            yield cast(known.FindKey(k + 1))
        return
    explorer = TopExp_Explorer(shape, wanted)
    while explorer.More():
        yield cast(explorer.Current())
        explorer.Next()


def _mass(shape: Any) -> dict[str, Any]:
    """Volume [m³], centre [m], inertia at density 1 about the centre [m⁵]; volume 0 where nothing is enclosed."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    found = GProp_GProps()
    if any(True for _ in _explored(shape, "SOLID")):
        BRepGProp.VolumeProperties_s(shape, found, 1e-12, True)
    volume, c, inertia = found.Mass(), found.CentreOfMass(), found.MatrixOfInertia()
    rows = [[inertia.Value(i, j) * MM**5 for j in (1, 2, 3)] for i in (1, 2, 3)]
    return {"volume": volume * MM**3, "center": [c.X() * MM, c.Y() * MM, c.Z() * MM], "inertia": rows}


def _mesh(faces: list[Any], arrays: Arrays) -> list[int]:
    """Vertices [m], triangles and the face of each; corners on common edges are one vertex."""
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_Orientation
    from OCP.TopLoc import TopLoc_Location

    vertices: list[Any] = []
    triangles: list[Any] = []
    owners: list[int] = []
    for number, face in enumerate(faces):
        location = TopLoc_Location()
        found = BRep_Tool.Triangulation_s(face, location)
        if found is None:
            continue
        moved, first = location.Transformation(), len(vertices)
        for k in range(found.NbNodes()):
            p = found.Node(k + 1).Transformed(moved)
            vertices.append((p.X() * MM, p.Y() * MM, p.Z() * MM))
        is_reversed = face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED
        for k in range(found.NbTriangles()):
            a, b, c = (found.Triangle(k + 1).Value(i) - 1 + first for i in (1, 2, 3))
            triangles.append((a, c, b) if is_reversed else (a, b, c))
            owners.append(number)
    points = np.array(vertices, dtype=float).reshape(-1, 3)
    corners = np.array(triangles, dtype=np.int64).reshape(-1, 3)
    if len(points):
        size = np.abs(points).max() or 1.0
        _, kept, where = np.unique(np.round(points / size, 12), axis=0, return_index=True, return_inverse=True)
        points, corners = points[kept], where.reshape(-1)[corners]
        a, b, c = corners.T
        kept = (a != b) & (b != c) & (c != a)
        corners, owners = corners[kept], np.array(owners)[kept]
    return [arrays.put(points), arrays.put(corners, np.int64), arrays.put(owners, np.int64)]


def _faces(shape: Any, faces: list[Any], arrays: Arrays) -> list[dict[str, Any]]:
    """Of every face the kind with its numbers, and its trimmed NURBS surface."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_NurbsConvert

    changed = BRepBuilderAPI_NurbsConvert(shape, True)
    return [{**_face(face), **_nurbs(changed, face, arrays)} for face in faces]


def _face(face: Any) -> dict[str, Any]:
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
    BRepGProp.SurfaceProperties_s(face, area)
    c, box = area.CentreOfMass(), Bnd_Box()
    BRepBndLib.AddOptimal_s(face, box, False, False)
    limits = [surface.FirstUParameter(), surface.LastUParameter(), surface.FirstVParameter(), surface.LastVParameter()]
    if name == "cylinder":
        limits[2:] = [v * MM for v in limits[2:]]
    # the direction of a face points out of the part; that of a left-handed frame is turned too
    is_reversed = face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED
    if own is not None and not own.Position().Direct():
        is_reversed = not is_reversed
    return {
        "kind": name,
        "frame": None if own is None else _axes(own.Position()),
        "numbers": numbers,
        "limits": limits,
        "reversed": is_reversed,
        "area": area.Mass() * MM**2,
        "center": [c.X() * MM, c.Y() * MM, c.Z() * MM],
        "box": [x * MM for x in box.Get()],
    }


def _axes(position: Any) -> list[list[float]]:
    """Origin [m], z and x of a frame."""
    o, z, x = position.Location(), position.Direction(), position.XDirection()
    return [[o.X() * MM, o.Y() * MM, o.Z() * MM], [z.X(), z.Y(), z.Z()], [x.X(), x.Y(), x.Z()]]


def _nurbs(changed: Any, face: Any, arrays: Arrays) -> dict[str, Any]:
    """The surface as NURBS, and the loops of curves in its parameter plane."""
    from OCP import TopoDS
    from OCP.BRep import BRep_Tool
    from OCP.BRepTools import BRepTools_WireExplorer
    from OCP.Geom import Geom_BSplineSurface
    from OCP.TopAbs import TopAbs_Orientation

    cast = getattr(TopoDS.TopoDS, "Face_s", None) or TopoDS.TopoDS.Face
    form = cast(changed.ModifiedShape(face).Oriented(TopAbs_Orientation.TopAbs_FORWARD))
    surface = BRep_Tool.Surface_s(form)
    if not isinstance(surface, Geom_BSplineSurface):
        return {"nurbs": None}
    surface = surface.Copy()
    if surface.IsUPeriodic():
        surface.SetUNotPeriodic()
    if surface.IsVPeriodic():
        surface.SetVNotPeriodic()
    points = [
        [[p.X() * MM, p.Y() * MM, p.Z() * MM] for p in (surface.Pole(i + 1, j + 1) for j in range(surface.NbVPoles()))]
        for i in range(surface.NbUPoles())
    ]
    weights = [[surface.Weight(i + 1, j + 1) for j in range(surface.NbVPoles())] for i in range(surface.NbUPoles())]
    knots = [
        _knots(surface.NbUKnots(), surface.UKnot, surface.UMultiplicity),
        _knots(surface.NbVKnots(), surface.VKnot, surface.VMultiplicity),
    ]
    loops = []
    for wire in _explored(form, "WIRE"):
        loop = []
        explorer = BRepTools_WireExplorer(wire, form)
        while explorer.More():
            edge = explorer.Current()
            curve = _plane_curve(edge, form)
            if edge.Orientation() == TopAbs_Orientation.TopAbs_REVERSED:
                curve.Reverse()
            poles = [[curve.Pole(k + 1).X(), curve.Pole(k + 1).Y()] for k in range(curve.NbPoles())]
            own = [curve.Weight(k + 1) for k in range(curve.NbPoles())]
            line = _knots(curve.NbKnots(), curve.Knot, curve.Multiplicity)
            loop.append([curve.Degree(), *[arrays.put(values) for values in (poles, own, line)]])
            explorer.Next()
        loops.append(loop)
    numbers = [arrays.put(values) for values in (points, weights, *knots)]
    return {"nurbs": [[surface.UDegree(), surface.VDegree()], *numbers], "loops": loops}


def _knots(count: int, value: Any, times: Any) -> list[float]:
    return [value(k + 1) for k in range(count) for _ in range(times(k + 1))]


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


def _edge(edge: Any, arrays: Arrays) -> dict[str, Any]:
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
        frame: Any = [[o.X() * MM, o.Y() * MM, o.Z() * MM], [z.X(), z.Y(), z.Z()], None]
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
        frame = _axes(own.Position())
    low, high = curve.FirstParameter(), curve.LastParameter()
    ends = [curve.Value(t) for t in (low, high)]
    found = {
        "kind": name,
        "frame": frame,
        "numbers": numbers,
        "length": GCPnts_AbscissaPoint.Length_s(curve) * MM,
        "ends": [[p.X() * MM, p.Y() * MM, p.Z() * MM] for p in ends],
    }
    spline = _spline(edge)
    if spline is not None:
        poles = [[p.X() * MM, p.Y() * MM, p.Z() * MM] for p in (spline.Pole(k + 1) for k in range(spline.NbPoles()))]
        own_weights = [spline.Weight(k + 1) for k in range(spline.NbPoles())]
        knots = _knots(spline.NbKnots(), spline.Knot, spline.Multiplicity)
        found["nurbs"] = [spline.Degree(), *[arrays.put(values) for values in (poles, own_weights, knots)]]
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


def _point(vertex: Any) -> list[float]:
    from OCP.BRep import BRep_Tool

    p = BRep_Tool.Pnt_s(vertex)
    return [p.X() * MM, p.Y() * MM, p.Z() * MM]


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--write":
            with open(sys.argv[3], encoding="utf-8") as plan:
                write(sys.argv[2], json.load(plan), sys.argv[4])
        else:
            main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(2)
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(3)
