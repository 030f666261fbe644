"""Solids for the examples with parts from CAD: made with OCP, and written as STEP files.  Lengths in mm.

This module needs the extra ``cad``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from OCP.BRep import BRep_Builder
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepBuilderAPI import (
    BRepBuilderAPI_MakeEdge,
    BRepBuilderAPI_MakePolygon,
    BRepBuilderAPI_MakeWire,
    BRepBuilderAPI_Transform,
)
from OCP.BRepLib import BRepLib
from OCP.BRepOffsetAPI import BRepOffsetAPI_MakePipeShell
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCylinder, BRepPrimAPI_MakeSphere
from OCP.GCE2d import GCE2d_MakeSegment
from OCP.Geom import Geom_CylindricalSurface
from OCP.gp import gp_Ax2, gp_Ax3, gp_Dir, gp_Pnt, gp_Pnt2d, gp_Quaternion, gp_Trsf, gp_Vec
from OCP.IFSelect import IFSelect_RetDone
from OCP.Interface import Interface_Static
from OCP.Message import Message, Message_Gravity
from OCP.Quantity import Quantity_Color, Quantity_TypeOfColor
from OCP.STEPCAFControl import STEPCAFControl_Writer
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDocStd import TDocStd_Document
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Compound
from OCP.XCAFDoc import XCAFDoc_ColorType, XCAFDoc_DocumentTool

from cardan import examples
from cardan.cad.parts import Part
from cardan.cad.picks import Face
from cardan.errors import CardanError
from cardan.math import euler
from cardan.system.parts import Body, Frame

Tree = list[list[Any]]

HERE = ((0, 0, 0), (1, 0, 0, 0))
APART = 120.0  # mm: how far the parts of an example are scattered


def axes(at: Any = (0, 0, 0), z: Any = (0, 0, 1)) -> gp_Ax2:
    """A frame at a point, with its z axis."""
    return gp_Ax2(gp_Pnt(*map(float, at)), gp_Dir(*map(float, z)))


def box(size: Any, at: Any = (0, 0, 0)) -> Any:
    """A box whose centre is a point."""
    low = [float(c) - s / 2.0 for c, s in zip(at, size, strict=True)]
    return BRepPrimAPI_MakeBox(gp_Pnt(*low), *map(float, size)).Shape()


def cylinder(radius: float, height: float, at: Any = (0, 0, 0), z: Any = (0, 0, 1)) -> Any:
    """A cylinder from a point along z."""
    return BRepPrimAPI_MakeCylinder(axes(at, z), radius, height).Shape()


def sphere(radius: float, at: Any = (0, 0, 0)) -> Any:
    return BRepPrimAPI_MakeSphere(gp_Pnt(*map(float, at)), radius).Shape()


def cut(a: Any, *others: Any) -> Any:
    for other in others:
        a = BRepAlgoAPI_Cut(a, other).Shape()
    return a


def fuse(a: Any, *others: Any) -> Any:
    for other in others:
        a = BRepAlgoAPI_Fuse(a, other).Shape()
    return a


def ridge(core: float, crest: float, pitch: float, height: float) -> Any:
    """The ridge of a thread about z, from z = 0 up; a negative pitch is left-handed."""
    sense = math.copysign(2.0 * math.pi * height / abs(pitch), pitch)
    line = GCE2d_MakeSegment(gp_Pnt2d(0, 0), gp_Pnt2d(sense, height)).Value()
    edge = BRepBuilderAPI_MakeEdge(line, Geom_CylindricalSurface(gp_Ax3(axes()), core)).Edge()
    BRepLib.BuildCurves3d_s(edge, 1e-6)
    outline = BRepBuilderAPI_MakePolygon()
    low, top, inner = 0.35 * abs(pitch), 0.08 * abs(pitch), core - 0.2 * (crest - core)
    for r, z in ((inner, -low), (crest, -top), (crest, top), (inner, low)):
        outline.Add(gp_Pnt(r, 0, z))
    outline.Close()
    pipe = BRepOffsetAPI_MakePipeShell(BRepBuilderAPI_MakeWire(edge).Wire())
    pipe.SetMode(True)
    pipe.Add(outline.Wire(), False, False)
    pipe.Build()
    pipe.MakeSolid()
    return pipe.Shape()


def trsf(position: Any = (0, 0, 0), quaternion: Any = (1, 0, 0, 0)) -> gp_Trsf:
    """The transformation of a position [mm] and a quaternion (w, x, y, z)."""
    w, x, y, z = map(float, quaternion)
    found = gp_Trsf()
    found.SetRotation(gp_Quaternion(x, y, z, w))
    found.SetTranslationPart(gp_Vec(*map(float, position)))
    return found


def moved(shape: Any, *pose: Any) -> Any:
    return BRepBuilderAPI_Transform(shape, trsf(*pose), True).Shape()


def write(path: Any, tree: Tree, unit: str = "MM", levels: int = 0, times: int = 1, short: bool = False) -> None:
    """tree: [name, shape or list of children, (position, quaternion), colour or None], nested.

    levels, times: an assembly has the whole ``times`` times, another one has that assembly as often, and so on.
    short: without the curves of edges in the parameters of their faces, which makes half the size.
    """
    for printer in Message.DefaultMessenger_s().Printers():
        printer.SetTraceLevel(Message_Gravity.Message_Fail)  # the writer reports every transfer on stdout
    document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    known: dict[int, Any] = {}

    def add(content: Any, name: str, color: Any) -> Any:
        """The label of a definition; one for each shape or list, however often it is used."""
        if id(content) in known:
            return known[id(content)]
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
        known[id(content)] = label
        return label

    inner = add(tree, "assembly", None)
    for _ in range(levels):
        whole = TopoDS_Compound()
        BRep_Builder().MakeCompound(whole)
        outer = shapes.AddShape(whole, True)
        for k in range(times):
            shapes.AddComponent(outer, inner, TopLoc_Location(trsf((float(k), 0, 0))))
        inner = outer
    shapes.UpdateAssemblies()
    writer = STEPCAFControl_Writer()  # makes the settings below known
    Interface_Static.SetCVal_s("write.step.unit", unit)
    Interface_Static.SetIVal_s("write.surfacecurve.mode", int(not short))
    writer.SetNameMode(True)
    writer.SetColorMode(True)
    if not writer.Transfer(document) or writer.Write(str(path)) != IFSelect_RetDone:
        raise CardanError(f"{path} cannot be written")


def scattered(parts: dict[str, tuple[Any, tuple[float, float, float]]], seed: int) -> Tree:
    """Parts {name: (shape, colour)} as a tree for :func:`write`: the first in place, the others anywhere."""
    rng = np.random.default_rng(seed)
    tree = []
    for k, (name, (shape, color)) in enumerate(parts.items()):
        q = rng.standard_normal(4)
        pose = (rng.uniform(-APART, APART, 3), q / np.linalg.norm(q)) if k else HERE
        tree.append([name, shape, pose, color])
    return tree


def parts(module: str) -> Mapping[str, Part]:
    """The parts of the STEP file of a script, by name."""
    name = module.rpartition(".")[2]
    return examples.parts(examples.CAD[name].file.with_name(f"{name}.step"))


def on(face: Face, body: Body, z: Any, x: Any) -> Frame:
    """A frame in the middle of a cylinder that is along z; z and x in the axes of the part."""
    if not face.is_parallel(z):
        raise CardanError(f"{face!r} of part {face.part.name!r} is not parallel to {z}")
    return body.frame(face.middle.tolist(), z=z, x=x)


def bore(part: Part, radius: float, near: Any) -> Face:
    """The cylinder of a radius [m] whose axis is nearest to a point [m]."""
    given = np.array(near)
    return min(part.cylinders(radius=radius), key=lambda face: float(np.linalg.norm(face.middle - given)))


def about(axis: Any, angle: float) -> Any:
    """Quaternion of a rotation by an angle [rad]."""
    return euler.from_axis_angle(axis, angle)
