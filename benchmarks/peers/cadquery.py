"""CadQuery: parts in an ``Assembly``, joints as its Point, Axis, PointOnLine and PointInPlane constraints.

Timed: ``Assembly.solve``, which minimises the sum of squares of the equations with IPOPT.  Not timed: creating the
parts and the constraints, repeated for each start because a start is the location of the parts.  Its tolerance is 1e-14
on the gradient of the sum of squares and cannot be set.  Each part is a small box, whose size affects CadQuery's unit
of length.
"""

from __future__ import annotations

import time

import cadquery as cq
import numpy as np
from OCP.gp import gp_Quaternion, gp_Trsf, gp_Vec

from peers import CHAINS, SMALL, Answer, across
from peers import version as _version
from problems import Model, Pose, matrix, quaternion

name = "CadQuery"
tolerance = "1e-14 on the gradient of the squares, fixed"
problems = SMALL + CHAINS

RIGHT_ANGLE = 90.0


def available() -> str | None:
    return _version("cadquery", "cadquery")


def _location(R: np.ndarray, p: np.ndarray) -> cq.Location:
    w, x, y, z = map(float, quaternion(R))
    placed = gp_Trsf()
    placed.SetRotation(gp_Quaternion(x, y, z, w))
    placed.SetTranslationPart(gp_Vec(*map(float, p)))
    return cq.Location(placed)


def _vertex(at: np.ndarray) -> cq.Vertex:
    return cq.Vertex.makeVertex(*map(float, at))


def _line(at: np.ndarray, axis: np.ndarray) -> cq.Edge:
    """A line centred on the point, because CadQuery uses the centre as the position of a line."""
    return cq.Edge.makeLine(cq.Vector(*map(float, at - axis)), cq.Vector(*map(float, at + axis)))


def _pose(location: cq.Location) -> Pose:
    placed = location.wrapped.Transformation()
    q, p = placed.GetRotation(), placed.TranslationPart()
    return matrix([q.W(), q.X(), q.Y(), q.Z()]), np.array([p.X(), p.Y(), p.Z()])


def build(model: Model, start: dict[int, Pose]) -> cq.Assembly:
    box = cq.Solid.makeBox(0.1, 0.1, 0.1)
    assembly = cq.Assembly(name="mechanism")
    for body in model.reference:
        assembly.add(box, name=f"body{body}", loc=_location(*start[body]) if body else cq.Location())
    assembly.constrain("body0", "Fixed")
    for c in model.joints:
        i, j = f"body{c.i}", f"body{c.j}"
        point_i, point_j = _vertex(c.point_i), _vertex(c.point_j)
        if c.kind == "distance":
            assembly.constrain(i, point_i, j, point_j, "Point", c.length)
            continue
        if c.kind != "prismatic":
            assembly.constrain(i, point_i, j, point_j, "Point")
        if c.kind == "spherical":
            continue
        line_i, line_j = _line(c.point_i, c.axis_i), _line(c.point_j, c.axis_j)
        if c.kind == "universal":
            assembly.constrain(i, line_i, j, line_j, "Axis", RIGHT_ANGLE)
            continue
        assembly.constrain(i, line_i, j, line_j, "Axis", 0)
        if c.kind == "prismatic":
            assembly.constrain(j, point_j, i, line_i, "PointOnLine")
            first, second = across(c.axis_i)
            aside = _line(c.point_i, first), _line(c.point_j, c.rotation.T @ second)
            assembly.constrain(i, aside[0], j, aside[1], "Axis", RIGHT_ANGLE)
    return assembly


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    assembly = build(model, start)
    began = time.perf_counter()
    assembly.solve()
    seconds = time.perf_counter() - began
    return Answer({int(part.name.removeprefix("body")): _pose(part.loc) for part in assembly.children}, seconds)
