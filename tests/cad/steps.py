"""STEP files for the tests, written with OCP alone: shapes, placements, names, colours, units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from OCP.BRep import BRep_Builder
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
from OCP.BRepPrimAPI import (
    BRepPrimAPI_MakeBox,
    BRepPrimAPI_MakeCone,
    BRepPrimAPI_MakeCylinder,
    BRepPrimAPI_MakeSphere,
    BRepPrimAPI_MakeTorus,
)
from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt, gp_Quaternion, gp_Trsf, gp_Vec
from OCP.IFSelect import IFSelect_RetDone
from OCP.Interface import Interface_Static
from OCP.Quantity import Quantity_Color, Quantity_TypeOfColor
from OCP.STEPCAFControl import STEPCAFControl_Writer
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDocStd import TDocStd_Document
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Compound
from OCP.XCAFDoc import XCAFDoc_ColorType, XCAFDoc_DocumentTool


def axes(at: Any = (0, 0, 0), z: Any = (0, 0, 1)) -> gp_Ax2:
    return gp_Ax2(gp_Pnt(*map(float, at)), gp_Dir(*map(float, z)))


def box(size: Any, at: Any = (0, 0, 0)) -> Any:
    """Centred at a point; all lengths in mm."""
    low = [float(c) - s / 2.0 for c, s in zip(at, size, strict=True)]
    return BRepPrimAPI_MakeBox(gp_Pnt(*low), *map(float, size)).Shape()


def cylinder(radius: float, height: float, at: Any = (0, 0, 0), z: Any = (0, 0, 1)) -> Any:
    return BRepPrimAPI_MakeCylinder(axes(at, z), radius, height).Shape()


def sphere(radius: float, at: Any = (0, 0, 0)) -> Any:
    return BRepPrimAPI_MakeSphere(gp_Pnt(*map(float, at)), radius).Shape()


def torus(major: float, minor: float) -> Any:
    return BRepPrimAPI_MakeTorus(axes(), major, minor).Shape()


def cone(first: float, last: float, height: float) -> Any:
    return BRepPrimAPI_MakeCone(axes(), first, last, height).Shape()


def cut(a: Any, *others: Any) -> Any:
    for other in others:
        a = BRepAlgoAPI_Cut(a, other).Shape()
    return a


def fuse(a: Any, *others: Any) -> Any:
    for other in others:
        a = BRepAlgoAPI_Fuse(a, other).Shape()
    return a


def trsf(position: Any = (0, 0, 0), quaternion: Any = (1, 0, 0, 0)) -> gp_Trsf:
    w, x, y, z = map(float, quaternion)
    found = gp_Trsf()
    found.SetRotation(gp_Quaternion(x, y, z, w))
    found.SetTranslationPart(gp_Vec(*map(float, position)))
    return found


def moved(shape: Any, *pose: Any) -> Any:
    return BRepBuilderAPI_Transform(shape, trsf(*pose), True).Shape()


def link(length: float, *, radius: float = 5.0, thickness: float = 6.0, width: float = 20.0, z: float = 0.0) -> Any:
    """A bar from the origin along x with a bore at each end."""
    bar = box((length + width, width, thickness), (length / 2.0, 0.0, z + thickness / 2.0))
    return cut(bar, *[cylinder(radius, 3 * thickness, (x, 0, z - thickness)) for x in (0.0, length)])


def write(path: Any, tree: Any, unit: str = "MM") -> None:
    """tree: [name, shape or list of children, (position, quaternion), colour or None], nested."""
    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())

    def add(content: Any, name: str, color: Any) -> Any:
        if isinstance(content, list):
            whole = TopoDS_Compound()
            BRep_Builder().MakeCompound(whole)
            label = shapes.AddShape(whole, True)
            for child_name, child, pose, child_color in content:
                own = add(child, child_name, child_color)
                instance = shapes.AddComponent(label, own, TopLoc_Location(trsf(*pose)))
                TDataStd_Name.Set_s(instance, TCollection_ExtendedString(child_name))
        else:
            label = shapes.AddShape(content, False)
            if color is not None:
                paint = Quantity_Color(*color, Quantity_TypeOfColor.Quantity_TOC_sRGB)
                colors.SetColor(label, paint, XCAFDoc_ColorType.XCAFDoc_ColorSurf)
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))
        return label

    add(tree, "assembly", None)
    shapes.UpdateAssemblies()
    Interface_Static.SetCVal_s("write.step.unit", unit)
    writer = STEPCAFControl_Writer()
    writer.SetNameMode(True)
    writer.SetColorMode(True)
    assert writer.Transfer(document)
    assert writer.Write(str(path)) == IFSelect_RetDone


HERE = ((0, 0, 0), (1, 0, 0, 0))


def about_z(angle: float) -> tuple[float, float, float, float]:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def unit_quaternion(rng: np.random.Generator) -> Any:
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)
