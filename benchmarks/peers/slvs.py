"""SolveSpace's solver by ``slvs``: a body is a workplane (origin and normal), its points lie in the plane.

Timed: ``solve_sketch``.  Not timed: adding entities and constraints, repeated for each start because a start is part of
them.  Axes are made parallel by perpendicular constraints, which remain valid far from the solution; SolveSpace's own
parallel constraint selects its equations at the start.  Its tolerance is 1e-8 in the unit of length and cannot be set.
It rejects chains of 1,000 links: too many unknowns.
"""

from __future__ import annotations

import time

import numpy as np
import slvs

from peers import SMALL, Answer, across
from peers import version as _version
from problems import Model, Pose, matrix, quaternion

name = "SolveSpace"
tolerance = "1e-8, fixed"
problems = SMALL

GIVEN, SOUGHT = 1, 2  # groups
Z = np.array([0.0, 0.0, 1.0])


def available() -> str | None:
    return _version("slvs", "slvs")


class _Sketch:
    """Points and directions of bodies in the module's single sketch; body 0 is fixed."""

    def __init__(self, start: dict[int, Pose]) -> None:
        slvs.clear_sketch()
        self.bodies = {}
        for body, (R, p) in start.items():
            origin = slvs.add_point_3d(SOUGHT, *map(float, p))
            normal = slvs.add_normal_3d(SOUGHT, *map(float, quaternion(R)))
            self.bodies[body] = origin, normal, slvs.add_workplane(SOUGHT, origin, normal)

    def point(self, body: int, at: np.ndarray) -> dict:
        if body == 0:
            return slvs.add_point_3d(GIVEN, *map(float, at))
        if abs(at[2]) > 1e-12:
            raise ValueError(f"the point {at} of body {body} is not in the plane of the body")
        return slvs.add_point_2d(GIVEN, float(at[0]), float(at[1]), self.bodies[body][2])

    def direction(self, body: int, along: np.ndarray) -> dict:
        """A line, or the normal of the body's plane."""
        if body and abs(along @ Z) > 1 - 1e-12:
            return self.bodies[body][1]
        return self.line(body, np.zeros(3), along)

    def line(self, body: int, at: np.ndarray, along: np.ndarray) -> dict:
        ends = self.point(body, at), self.point(body, at + along)
        return slvs.add_line_2d(SOUGHT, *ends, self.bodies[body][2]) if body else slvs.add_line_3d(GIVEN, *ends)

    def constrain(self, kind: str, value: float = 0.0, **entities: dict) -> None:
        """Use the general call: the specific ones reject a point in a plane and a normal, which the solver supports."""
        slvs.add_constraint(SOUGHT, slvs.ConstraintType[kind], slvs.E_FREE_IN_3D, value, **entities)

    def right_angle(self, first: dict, second: dict) -> None:
        self.constrain("PERPENDICULAR", entityA=first, entityB=second)

    def poses(self) -> dict[int, Pose]:
        found = {}
        for body, (origin, normal, _) in self.bodies.items():
            p, q = ([slvs.get_param_value(h) for h in part["param"][:n]] for part, n in ((origin, 3), (normal, 4)))
            found[body] = matrix(q), np.array(p)
        return found


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    sketch = _Sketch(start)
    for c in model.joints:
        point_i, point_j = sketch.point(c.i, c.point_i), sketch.point(c.j, c.point_j)
        if c.kind == "distance":
            sketch.constrain("PT_PT_DISTANCE", c.length, ptA=point_i, ptB=point_j)
            continue
        if c.kind != "prismatic":
            sketch.constrain("POINTS_COINCIDENT", ptA=point_i, ptB=point_j)
        if c.kind == "spherical":
            continue
        if c.kind == "universal":
            sketch.right_angle(sketch.direction(c.i, c.axis_i), sketch.direction(c.j, c.axis_j))
            continue
        axis_i = sketch.direction(c.i, c.axis_i)
        for aside in across(c.axis_j):
            sketch.right_angle(axis_i, sketch.direction(c.j, aside))
        if c.kind == "prismatic":
            first, second = across(c.axis_i)
            line = sketch.line(c.i, c.point_i, c.axis_i)
            sketch.constrain("PT_ON_LINE", ptA=point_j, entityA=line)
            sketch.right_angle(sketch.direction(c.i, first), sketch.direction(c.j, c.rotation.T @ second))
    began = time.perf_counter()
    slvs.solve_sketch(SOUGHT, False)
    seconds = time.perf_counter() - began
    return Answer(sketch.poses(), seconds)
