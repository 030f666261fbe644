"""Triangle meshes with the distance interface of the other shapes."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import checks
from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.distance import Pair, pose_of
from cardan.geometry.shape import Immutable
from cardan.lazy import LazyModule
from cardan.math import euler

_mesh = LazyModule("cardan.geometry._mesh")

STACK = 4096  # pairs of nodes that wait; the depth of both trees, times two


class Mesh(Immutable):
    """Triangles: vertices (n, 3) [m] and faces (m, 3), indices of vertices, anticlockwise seen from outside."""

    LAST = "_closed"

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
        from cardan.kernel.memory import address_of

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

    def __repr__(self) -> str:
        return f"<mesh: {len(self.vertices)} vertices, {len(self.faces)} faces>"

    def __reduce__(self) -> Any:
        return Mesh, (self.vertices, self.faces)  # addresses are those of this process

    @property
    def is_closed(self) -> bool:
        """Whether every edge is passed as often in one direction as in the other, so that the mesh has an inside."""
        if self._closed is None:
            edges = self._edges()
            key = edges[:, 0] * len(self.vertices) + edges[:, 1]
            back = edges[:, 1] * len(self.vertices) + edges[:, 0]
            self._closed = bool(np.array_equal(np.sort(key), np.sort(back)))
        return self._closed

    def open_edge(self) -> tuple[int, int] | None:
        """The first edge that its faces do not pass equally often in both directions, as two vertices; None if the mesh
        is closed."""
        edges = self._edges()
        values, key = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
        balance = np.bincount(key.ravel(), np.sign(edges[:, 1] - edges[:, 0]), len(values))
        bad = np.flatnonzero(balance[key.ravel()])
        return (int(edges[bad[0], 0]), int(edges[bad[0], 1])) if bad.size else None

    def _require_closed(self) -> None:
        edge = None if self.is_closed else self.open_edge()
        if edge is not None:
            at = np.flatnonzero((np.sort(self._edges(), axis=1) == np.sort(edge)).all(axis=1)) % len(self.faces)
            names = " and ".join(map(str, at.tolist()))
            fault = {
                1: f"the mesh has a hole at the edge {edge} of face {names}",
                2: f"faces {names} of the mesh have opposite orientations at their edge {edge}",
            }.get(at.size, f"faces {names} of the mesh do not close at their edge {edge}")
            raise ModelError(
                f"{fault}: it has no inside, so there is no side or volume; mend it, or ask for the unsigned distance"
            )
        if not self._six_volumes().sum() > 0.0:
            raise ModelError("the mesh is inside out: its faces are clockwise seen from outside; give faces[:, ::-1]")

    def _edges(self) -> IntArray:
        return np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]])

    def _six_volumes(self) -> FloatArray:
        """Six times the volume of the tetrahedra between the faces and the origin [m³]."""
        t = self.vertices[self.faces]
        return np.asarray(np.einsum("ij,ij->i", t[:, 0], np.cross(t[:, 1], t[:, 2])))

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
        if not isinstance(other, Mesh):
            raise ModelError(f"{other!r:.80} is no mesh; closest_pair(a, b, pose) takes a mesh and another shape")
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
        six = self._six_volumes()
        total = t.sum(axis=1)
        volume = six.sum() / 6.0
        first = (six[:, None] * total).sum(axis=0) / 24.0
        second = np.einsum("k,ki,kj->ij", six, total, total) + np.einsum("k,kai,kaj->ij", six, t, t)
        return MassProperties.from_moments(float(volume), first, second / 120.0, density)
