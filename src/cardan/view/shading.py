"""Triangles ready to draw: normals that are smooth up to a crease angle, and the edges that are drawn as lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cardan.shapes.shape import SEGMENTS, FloatArray, Shape, Triangles
from cardan.system.check import Quadruple

CREASE = math.radians(32.0)  # between faces: beyond it, an edge is sharp; chords of 48 to a circle differ by 7.5°


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """A drawable mesh in body axes.

    ``vertices`` [m] and unit ``normals``, float32, shape (n, 3); ``faces``, uint32, shape (m, 3), counter-clockwise
    from outside; ``edges``, uint32, shape (k, 2): sharp edges; ``color``: (red, green, blue, opacity), each 0 to 1.
    """

    vertices: NDArray[np.float32]
    normals: NDArray[np.float32]
    faces: NDArray[np.uint32]
    edges: NDArray[np.uint32]
    color: Quadruple

    def placed(self, origin: FloatArray, matrix: FloatArray) -> Mesh:
        """Moved: p → origin + matrix p."""
        vertices, normals = origin + self.vertices @ matrix.T, self.normals @ matrix.T
        return Mesh(vertices.astype(np.float32), normals.astype(np.float32), self.faces, self.edges, self.color)

    def painted(self, color: Quadruple) -> Mesh:
        """In another colour."""
        return Mesh(self.vertices, self.normals, self.faces, self.edges, color)


@lru_cache(maxsize=1024)
def mesh_of(shape: Shape, segments: int = SEGMENTS) -> Mesh:
    """The mesh of a shape, in its axes."""
    return shaded(shape.triangles(segments))


def shaded(surface: Triangles) -> Mesh:
    """Vertices are repeated where the surface has a crease.

    The normal of a corner is the mean of the normals of those faces around its vertex whose direction is within the
    crease angle of that of the corner's face, weighted by their angle at the vertex.
    """
    vertices, faces = surface.vertices, surface.faces
    p = vertices[faces]  # (m, 3 corners, 3)
    n = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    size = np.linalg.norm(n, axis=1, keepdims=True)
    n = n / np.where(size > 0.0, size, 1.0)
    corner = faces.ravel()
    to, fro = (np.roll(p, -k, axis=1) - p for k in (1, 2))
    angle = np.arctan2(np.linalg.norm(np.cross(to, fro), axis=2), np.einsum("ijk,ijk->ij", to, fro)).ravel()
    order = np.argsort(corner, kind="stable")
    counts = np.bincount(corner, minlength=len(vertices))
    starts = np.concatenate([[0], np.cumsum(counts)])
    mine = np.repeat(np.arange(len(corner)), counts[corner])  # every corner with every face at its vertex
    first = np.cumsum(counts[corner]) - counts[corner]
    place = np.arange(len(mine)) - first[mine] + starts[corner[mine]]
    other = order[place]
    near = np.einsum("ij,ij->i", n[mine // 3], n[other // 3]) > math.cos(CREASE)
    weights = np.where(near, angle[other], 0.0)
    total = np.column_stack([np.bincount(mine, weights * n[other // 3, k], minlength=len(corner)) for k in range(3)])
    length = np.linalg.norm(total, axis=1, keepdims=True)
    normals = np.where(length > 0.0, total / np.where(length > 0.0, length, 1.0), n[np.arange(len(corner)) // 3])
    keys = np.column_stack([corner, np.round(1e3 * normals).astype(np.int64)])
    _, firsts, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    made = inverse.reshape(-1, 3)
    return Mesh(
        vertices[corner[firsts]].astype(np.float32),
        normals[firsts].astype(np.float32),
        made.astype(np.uint32),
        _sharp(faces, made, n, size.ravel()).astype(np.uint32),
        (0.6, 0.6, 0.6, 1.0),
    )


def _sharp(faces: NDArray[np.int64], made: NDArray[np.int64], n: FloatArray, size: FloatArray) -> NDArray[np.int64]:
    """Edges between faces that meet at a crease, and edges of one face alone; as rows of the repeated vertices."""
    solid = np.flatnonzero(size > 0.0)
    faces, made, n = faces[solid], made[solid], n[solid]
    pairs = np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)])
    drawn = np.concatenate([made[:, [k, (k + 1) % 3]] for k in range(3)])
    owner = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort(np.sort(pairs, axis=1).T)
    ends = np.sort(pairs, axis=1)[order]
    new = np.concatenate([[True], (ends[1:] != ends[:-1]).any(axis=1)])
    groups = np.cumsum(new) - 1
    counts = np.bincount(groups)
    heads = np.flatnonzero(new)
    sharp = counts != 2
    two = np.flatnonzero(~sharp)
    a, b = owner[order[heads[two]]], owner[order[heads[two] + 1]]
    sharp[two] = np.einsum("ij,ij->i", n[a], n[b]) < math.cos(CREASE)
    return np.asarray(drawn[order[heads[sharp]]])


def merged(meshes: list[Mesh]) -> list[Mesh]:
    """Meshes of one colour as one, in the order of their first colours."""
    found: dict[Quadruple, list[Mesh]] = {}
    for one in meshes:
        found.setdefault(one.color, []).append(one)
    result = []
    for color, group in found.items():
        starts = np.cumsum([0, *(len(one.vertices) for one in group)]).astype(np.uint32)
        result.append(
            Mesh(
                np.concatenate([one.vertices for one in group]),
                np.concatenate([one.normals for one in group]),
                np.concatenate([one.faces + start for one, start in zip(group, starts, strict=False)]),
                np.concatenate([one.edges + start for one, start in zip(group, starts, strict=False)]),
                color,
            )
        )
    return result
