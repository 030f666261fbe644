"""Triangle meshes with the distance interface of the other shapes."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import checks
from cardan.geometry.checks import IntArray
from cardan.geometry.distance import Pair, pose_of
from cardan.lazy import LazyModule
from cardan.math import euler

_mesh = LazyModule("cardan.geometry._mesh")

STACK = 4096  # pairs of nodes that wait; the depth of both trees, times two


class Mesh:
    """Triangles: vertices (n, 3) [m] and faces (m, 3), indices of vertices, anticlockwise seen from outside."""

    def __init__(self, vertices: Any, faces: Any) -> None:
        self.vertices = checks.numbers(vertices, "mesh: vertices", 2)
        if self.vertices.shape[1] != 3:
            raise ModelError(f"mesh: vertices have {self.vertices.shape[1]} coordinates; they must have 3")
        given = np.asarray(faces)
        if given.ndim != 2 or given.shape[1] != 3 or not len(given):
            raise ModelError(f"mesh: faces have the shape {given.shape}; they must be (m, 3) with at least one face")
        if not np.issubdtype(given.dtype, np.integer):
            raise ModelError(f"mesh: faces are {given.dtype}; they must be integers")
        self.faces: IntArray = given.astype(np.int64)
        bad = np.argwhere((self.faces < 0) | (self.faces >= len(self.vertices)))
        if bad.size:
            i, j = (int(x) for x in bad[0])
            raise ModelError(
                f"mesh: faces[{i}, {j}] is {self.faces[i, j]}; it must be an index below {len(self.vertices)}"
            )
        from cardan._jit import address_of

        count = len(self.faces)
        t = self.vertices[self.faces]
        boxes = np.concatenate([t.min(axis=1), t.max(axis=1)], axis=1)
        centers = np.ascontiguousarray(t.mean(axis=1))
        self._order: IntArray = np.arange(count)
        self._nodes: IntArray = np.empty(4 * count + 4, dtype=np.int64)
        self._bounds = np.empty(6 * (2 * count + 2))
        stack = np.empty(3 * 128, dtype=np.int64)
        size = np.array([count], dtype=np.int64)
        _mesh.build(centers.reshape(-1), boxes.reshape(-1), self._order, self._nodes, self._bounds, stack, size)
        self._triangles = np.ascontiguousarray(t[self._order]).reshape(-1)
        tree = self._nodes, self._bounds, self._order, self._triangles
        self._addresses = tuple(address_of(array) for array in tree)
        self._closed: bool | None = None

    def __reduce__(self) -> Any:
        return Mesh, (self.vertices, self.faces)  # addresses are those of this process

    @property
    def is_closed(self) -> bool:
        """Whether every edge belongs to two faces of opposite direction, so that the mesh has an inside."""
        if self._closed is None:
            edges = np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])
            key = edges[:, 0] * len(self.vertices) + edges[:, 1]
            back = edges[:, 1] * len(self.vertices) + edges[:, 0]
            self._closed = bool(np.unique(key).size == key.size and np.array_equal(np.sort(key), np.sort(back)))
        return self._closed

    def open_edge(self) -> tuple[int, int] | None:
        """An edge without a neighbour, as two vertices; None if the mesh is closed."""
        edges = np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])
        known = set(map(tuple, edges.tolist()))
        return next(((a, b) for a, b in edges.tolist() if (b, a) not in known), None)

    def _require_closed(self) -> None:
        if not self.is_closed:
            raise ModelError(
                f"the mesh has a hole at the edge {self.open_edge()}: it has no inside, so there is no side or volume; "
                "close it, or ask for the unsigned distance"
            )

    def closest_point(self, point: Any, *, signed: bool = False) -> Pair:
        """The closest point of the mesh; parameters[0] is the face.  signed: gap < 0 inside a closed mesh."""
        p = np.array(point, dtype=float)
        if p.shape != (3,) or not (isfinite(p[0]) and isfinite(p[1]) and isfinite(p[2])):
            raise ModelError(f"the point is {point!r}; it must be three finite numbers")
        out = np.empty(8 + 2 * _mesh.DEPTH)
        face = _mesh.closest_point(*self._addresses, p, out)
        distance = float(out[3])
        points = out[:6].reshape(2, 3).copy()
        points[1] = p
        gap = None
        if signed:
            self._require_closed()
            gap = distance if self.winding(p) < 0.5 else -distance
        return Pair(distance, points, (np.array([float(face)]), np.empty(0)), 0.0, (int(face), -1), gap)

    def winding(self, point: Any) -> float:
        """How often the mesh winds around a point: 1 inside, 0 outside of a closed mesh ([VanOosterom1983])."""
        t = self.vertices[self.faces] - np.asarray(point, dtype=float)
        size = np.linalg.norm(t, axis=2)
        a, b, c = t[:, 0], t[:, 1], t[:, 2]
        volume = np.einsum("ij,ij->i", a, np.cross(b, c))
        den = size.prod(axis=1) + np.einsum("ij,ij->i", a, b) * size[:, 2]
        den += np.einsum("ij,ij->i", b, c) * size[:, 0] + np.einsum("ij,ij->i", c, a) * size[:, 1]
        return float(np.arctan2(volume, den).sum() / (2.0 * np.pi))

    def closest_pair(self, other: Mesh, pose: Any = None) -> Pair:
        """The closest pair with another mesh, for a pose of the other relative to this one; exact for triangles."""
        p = pose_of(pose)
        T = np.concatenate([euler.matrix(euler.normalize(p[3:])).ravel(), p[:3]])
        out = np.empty(32)
        stack, keys = np.empty(2 * STACK, dtype=np.int64), np.empty(STACK)
        mine, theirs = (self._nodes, self._bounds, self._triangles), (other._nodes, other._bounds, other._triangles)
        square = _mesh.closest_pair(*mine, *theirs, T, out, stack, keys)
        faces = int(self._order[int(out[6])]), int(other._order[int(out[7])])
        points = out[:6].reshape(2, 3).copy()
        parameters = np.array([float(faces[0])]), np.array([float(faces[1])])
        return Pair(float(np.sqrt(square)), points, parameters, 0.0, faces)

    @property
    def area(self) -> float:
        """[m²]"""
        t = self.vertices[self.faces]
        return float(0.5 * np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1).sum())

    def mass_properties(self, density: float = 1.0) -> Any:
        """Volume, mass, centre and inertia; the mesh must be closed."""
        from cardan.geometry.measure import MassProperties

        self._require_closed()
        t = self.vertices[self.faces]
        six = np.einsum("ij,ij->i", t[:, 0], np.cross(t[:, 1], t[:, 2]))
        total = t.sum(axis=1)
        volume = six.sum() / 6.0
        first = (six[:, None] * total).sum(axis=0) / 24.0
        second = np.einsum("k,ki,kj->ij", six, total, total) + np.einsum("k,kai,kaj->ij", six, t, t)
        return MassProperties.from_moments(float(volume), first, second / 120.0, density)
