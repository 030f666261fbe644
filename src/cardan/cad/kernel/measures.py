"""Triangles of faces, and mass properties of solids."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.cad.kernel.common import MM, Arrays, Failure, explored, xyz

# of OCP's integration; the volumes of rational B-splines are exact to 1e-10 with it, but only to 1e-9 with 1e-12
ACCURACY = 1e-14
FARTHEST = 1e12  # [mm]: no part reaches as far from the origin of its file


def mass_of(shape: Any) -> dict[str, Any]:
    """Volume [m³], centre [m], inertia at density 1 about the centre [m⁵]; volume 0 where nothing is enclosed."""
    from OCP.BRep import BRep_Builder
    from OCP.BRepGProp import BRepGProp
    from OCP.gp import gp_Trsf
    from OCP.GProp import GProp_GProps
    from OCP.TopLoc import TopLoc_Location
    from OCP.TopoDS import TopoDS_Compound

    found, middle, to_origin = GProp_GProps(), _middle(shape), gp_Trsf()
    to_origin.SetTranslation(middle.Reversed())
    if any(True for _ in explored(shape, "SOLID")):
        # near the origin: OCP computes moments about it, so those of a part far away would be lost in rounding; in a
        # compound: OCP moves its origin by the location of the shape that it is given
        whole = TopoDS_Compound()
        BRep_Builder().MakeCompound(whole)
        BRep_Builder().Add(whole, shape.Moved(TopLoc_Location(to_origin)))
        BRepGProp.VolumeProperties_s(whole, found, ACCURACY, True)
    volume, c, inertia = found.Mass(), found.CentreOfMass().Translated(middle), found.MatrixOfInertia()
    rows = [[inertia.Value(i, j) * MM**5 for j in (1, 2, 3)] for i in (1, 2, 3)]
    return {"volume": volume * MM**3, "center": xyz(c), "inertia": rows}


def _middle(shape: Any) -> Any:
    """The middle of the box around a shape, as gp_Vec; the origin if it has none.  Failure if no part is so large."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib
    from OCP.gp import gp_Vec

    box = Bnd_Box()
    BRepBndLib.Add_s(shape, box)
    if box.IsVoid() or box.IsOpen():
        return gp_Vec(0.0, 0.0, 0.0)
    low, high = box.CornerMin(), box.CornerMax()
    far = max(abs(value) for corner in (low, high) for value in (corner.X(), corner.Y(), corner.Z()))
    if not far < FARTHEST:  # also NaN; OCP would integrate over it for a long time, or in vain
        raise Failure(f"a part extends to {far * MM:g} m, so numbers of its faces must be wrong")
    return gp_Vec(0.5 * (low.X() + high.X()), 0.5 * (low.Y() + high.Y()), 0.5 * (low.Z() + high.Z()))


def mesh_of(faces: list[Any], arrays: Arrays) -> list[int]:
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
