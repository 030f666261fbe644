"""Distances of meshes: to points, meshes and smooth shapes, with the interface of :class:`.distance.Distance`.

A smooth shape: the boxes of the mesh are visited best first.  A box with centre c and radius ρ has no point closer to
the shape than d(c) − ρ, where d(c) is the certified distance of a point.  A face with corners A, B, C is the surface
A + u ((1 − v)(B − A) + v (C − A)), whose pair with the shape is certified itself; A, where it is singular, is the
corner farthest from the shape.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray
from cardan.geometry.distance import BUDGET, TOLERANCE, Distance, Pair, check_search, pose_of, shape_of
from cardan.geometry.mesh import Mesh
from cardan.geometry.nurbs import Curve, Surface
from cardan.math import euler


class MeshDistance(Distance):
    """The distance of a mesh to a point, to another mesh, or to a smooth shape."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = (x if isinstance(x, Mesh) else shape_of(x) for x in (a, b))
        self._mesh: Mesh = self.a if isinstance(self.a, Mesh) else self.b
        self._other: Any = self.b if self._mesh is self.a else self.a
        self._memory = None
        self._to_point: Distance | None = None

    def closest(
        self, pose: Any = None, *, tolerance: float | None = None, budget: int = BUDGET, signed: bool = False
    ) -> Pair:
        """The closest pair for a pose of b relative to a.  signed: with a point, the gap is negative inside."""
        p = pose_of(pose)
        check_search(tolerance, budget)
        if isinstance(self._other, Mesh):
            if signed:
                raise ModelError("two meshes have no signed gap; ask for the distance, which is zero where they meet")
            return self.a.closest_pair(self.b, p)  # a and b may be any shapes
        R, t = euler.matrix(euler.normalize(p[3:])), p[:3]
        mesh_first = self._mesh is self.a
        if not mesh_first:  # the pose of the other shape relative to the mesh
            R, t = R.T, -(R.T @ t)
        if self._other.freedoms == 0:
            found = self._mesh.closest_point(R @ self._other(0.0) + t, signed=signed)
        elif signed:
            raise ModelError("a mesh and a smooth shape have no signed gap; ask for the distance")
        else:
            found = self._smooth(R, t, tolerance, budget)
        if mesh_first:
            return found
        points = (found.points - t) @ R  # in the axes of a
        places, patches = found.parameters[::-1], found.patches[::-1]
        return Pair(found.distance, points[::-1].copy(), (places[0], places[1]), found.margin, patches, found.gap)

    def track(self, pose: Any, start: Pair | None = None) -> Pair:
        """As :meth:`closest`: the search of a mesh is global."""
        return self.closest(pose)

    def minima(self, pose: Any = None, *, within: float = np.inf, budget: int = BUDGET) -> list[Pair]:
        """ModelError: a mesh has no isolated minima."""
        raise ModelError("local minima of a mesh are not separated; ask for the closest pair")

    def regular(self, pose: Any, start: Pair) -> Pair | None:
        """ModelError: a mesh has no normals that change smoothly."""
        raise ModelError("a mesh has no regular pairs; ask for the closest pair")

    def _smooth(self, R: FloatArray, t: FloatArray, tolerance: float | None, budget: int) -> Pair:
        mesh, shape = self._mesh, self._other
        if self._to_point is None:
            self._to_point = Distance(shape, (0.0, 0.0, 0.0))
        to_point = self._to_point
        pose = np.concatenate([t, euler.from_matrix(R)])

        def point(p: FloatArray) -> float:
            """A lower bound of the distance of a point."""
            pair = to_point.closest(R.T @ (p - t))
            return pair.distance - pair.margin

        def least(low: FloatArray, high: FloatArray) -> float:
            """A lower bound of the distance of a box."""
            return point(0.5 * (low + high)) - 0.5 * float(np.linalg.norm(high - low))

        boxes = mesh._bounds.reshape(-1, 6)
        triangles = mesh._triangles.reshape(-1, 3, 3)
        size = float(np.linalg.norm(boxes[0, 3:] - boxes[0, :3]))
        eps = TOLERANCE * size if tolerance is None else float(tolerance)
        waiting: list[tuple[float, int, int]] = [(least(boxes[0, :3], boxes[0, 3:]), 0, 0)]  # bound, is a face, number
        best: Pair | None = None
        lower = np.inf  # of what is left out
        done = 0
        while waiting:
            bound, is_face, k = heappop(waiting)
            if best is not None and (bound >= best.distance - eps or best.distance <= eps or done >= budget):
                lower = min(lower, bound)
                break
            done += 1
            if is_face:
                far = int(np.argmax([point(corner) for corner in triangles[k]]))
                pair = self._triangle(np.roll(triangles[k], -far, axis=0)).closest(pose, tolerance=tolerance)
                lower = min(lower, pair.distance - pair.margin)
                if best is None or pair.distance < best.distance:
                    face = int(mesh._order[k])
                    place = np.array([float(face)])
                    best = Pair(pair.distance, pair.points, (place, pair.parameters[1]), 0.0, (face, pair.patches[1]))
                continue
            left, right = mesh._nodes[2 * k : 2 * k + 2].tolist()
            if left < 0:
                first = -1 - left
                for j in range(first, first + right):
                    low, high = triangles[j].min(axis=0), triangles[j].max(axis=0)
                    heappush(waiting, (max(least(low, high), bound), 1, j))
            else:
                for child in (left, right):
                    heappush(waiting, (max(least(boxes[child, :3], boxes[child, 3:]), bound), 0, child))
        assert best is not None  # a mesh has at least one face
        best.margin = max(best.distance - max(lower, 0.0), 0.0)
        return best

    def _triangle(self, corners: FloatArray) -> Distance:
        """The distance of one face to the shape, with its first corner singular; a face without area is a segment, or a
        point."""
        a, b, c = corners
        edges = np.linalg.norm([b - a, c - b, a - c], axis=1)
        if not np.linalg.norm(np.cross(b - a, c - a)) > 1e-12 * edges.max() ** 2:
            k = int(np.argmax(edges))
            if edges[k] == 0.0:
                return Distance(a, self._other)
            return Distance(Curve([corners[k], corners[(k + 1) % 3]], degree=1), self._other)
        return Distance(Surface([[a, a], [b, c]], degree=1), self._other)
