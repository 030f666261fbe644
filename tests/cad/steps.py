"""STEP files for the tests, written with OCP alone: those of the examples, and more shapes.  Lengths in mm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from OCP.BRepBuilderAPI import (
    BRepBuilderAPI_MakeEdge,
    BRepBuilderAPI_MakeFace,
    BRepBuilderAPI_MakePolygon,
    BRepBuilderAPI_MakeWire,
    BRepBuilderAPI_NurbsConvert,
)
from OCP.BRepPrimAPI import BRepPrimAPI_MakeCone, BRepPrimAPI_MakePrism, BRepPrimAPI_MakeTorus
from OCP.gp import gp_Elips, gp_Pnt, gp_Vec

from gallery.solids import HERE, axes, box, cut, cylinder, fuse, moved, ridge, sphere, write

__all__ = ["HERE", "axes", "box", "cut", "cylinder", "fuse", "moved", "ridge", "sphere", "write"]


def torus(major: float, minor: float) -> Any:
    return BRepPrimAPI_MakeTorus(axes(), major, minor).Shape()


def cone(first: float, last: float, height: float) -> Any:
    return BRepPrimAPI_MakeCone(axes(), first, last, height).Shape()


def rational(shape: Any) -> Any:
    """The same shape with all its faces as rational B-splines."""
    return BRepBuilderAPI_NurbsConvert(shape, True).Shape()


def elliptic(major: float, minor: float, height: float) -> Any:
    """An elliptical cylinder along z."""
    edge = BRepBuilderAPI_MakeEdge(gp_Elips(axes(), major, minor)).Edge()
    face = BRepBuilderAPI_MakeFace(BRepBuilderAPI_MakeWire(edge).Wire()).Face()
    return BRepPrimAPI_MakePrism(face, gp_Vec(0, 0, height)).Shape()


def spur(teeth: int, radius: float, height: float, at: Any = (0, 0, 0)) -> Any:
    """A gear with straight flanks, along z from a point."""
    outline = BRepBuilderAPI_MakePolygon()
    for k in range(teeth):
        for share, more in ((-0.3, -1.5), (-0.15, 1.5), (0.15, 1.5), (0.3, -1.5)):
            angle = 2.0 * math.pi * (k + share) / teeth
            r = radius + more
            outline.Add(gp_Pnt(at[0] + r * math.cos(angle), at[1] + r * math.sin(angle), at[2]))
    outline.Close()
    face = BRepBuilderAPI_MakeFace(outline.Wire()).Face()
    return BRepPrimAPI_MakePrism(face, gp_Vec(0, 0, height)).Shape()


def link(length: float, *, radius: float = 5.0, thickness: float = 6.0, width: float = 20.0, z: float = 0.0) -> Any:
    """A bar from the origin along x with a bore at each end."""
    bar = box((length + width, width, thickness), (length / 2.0, 0.0, z + thickness / 2.0))
    return cut(bar, *[cylinder(radius, 3 * thickness, (x, 0, z - thickness)) for x in (0.0, length)])


def about_z(angle: float) -> tuple[float, float, float, float]:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def unit_quaternion(rng: np.random.Generator) -> Any:
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)
