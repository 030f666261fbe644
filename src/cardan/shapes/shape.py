"""What a shape is: a solid with a volume, a centre, an inertia, and a surface of triangles; independent of bodies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

SEGMENTS = 48  # of a whole circle, in the triangles of curved shapes


class Properties(NamedTuple):
    """Mass properties for the density 1 kg/m³.

    ``volume`` [m³]; ``center`` [m], shape (3,); ``inertia`` [m⁵] about the centre, shape (3, 3); in the shape's axes.
    """

    volume: float
    center: FloatArray
    inertia: FloatArray

    def placed(self, position: FloatArray, matrix: FloatArray) -> Properties:
        """In axes in which the shape's origin is at ``position`` [m] and its axes are the columns of ``matrix``."""
        return Properties(self.volume, position + matrix @ self.center, matrix @ self.inertia @ matrix.T)


def combined(parts: list[tuple[float, Properties]]) -> tuple[float, FloatArray, FloatArray]:
    """Mass [kg], centre [m] and inertia [kg m²] about it of solids with densities [kg/m³]: the parallel-axis law."""
    masses = np.array([density * part.volume for density, part in parts])
    mass = float(masses.sum())
    center = masses @ np.array([part.center for _, part in parts]) / mass
    inertia = np.zeros((3, 3))
    for m, (density, part) in zip(masses, parts, strict=True):
        d = part.center - center
        inertia += density * part.inertia + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, center, 0.5 * (inertia + inertia.T)


class Triangles(NamedTuple):
    """A surface: vertices [m], shape (n, 3); faces, shape (m, 3), whose corners are counter-clockwise from outside."""

    vertices: FloatArray
    faces: IndexArray


class Shape(ABC):
    """A solid in its own axes.  Shapes are immutable, and compare by value."""

    __slots__ = ()

    @abstractmethod
    def properties(self) -> Properties:
        """Volume, centre and inertia for the density 1 kg/m³."""

    @abstractmethod
    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        """The closed surface; segments: of a whole circle."""


def is_closed(faces: IndexArray) -> bool:
    """Whether every edge belongs to two faces that run along it in opposite directions."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there = edges[np.lexsort(edges.T)]
    back = edges[:, ::-1]
    return bool(np.array_equal(there, back[np.lexsort(back.T)]) and len(np.unique(there, axis=0)) == len(there))


def solid_properties(vertices: FloatArray, faces: IndexArray) -> Properties:
    """Of a closed surface, by the divergence theorem: sums over the tetrahedra (0, a, b, c).  [Mirtich1996]

    With D = a·(b × c): V = Σ D/6, ∫x dV = Σ D (a + b + c)/24, ∫x xᵀ dV = Σ D (a aᵀ + b bᵀ + c cᵀ + s sᵀ)/120,
    s = a + b + c.
    """
    middle = vertices.mean(axis=0)  # the tetrahedra are then small, and little cancels
    a, b, c = (vertices[faces[:, k]] - middle for k in range(3))
    d = np.einsum("ij,ij->i", a, np.cross(b, c))
    s = a + b + c
    volume = float(d.sum() / 6.0)
    first = d @ s / 24.0
    second = sum(np.einsum("i,ij,ik->jk", d, v, v) for v in (a, b, c, s)) / 120.0
    return from_moments(volume, first, second, middle)


def from_moments(volume: float, first: FloatArray, second: FloatArray, origin: FloatArray) -> Properties:
    """From V [m³], ∫x dV [m⁴] and ∫x xᵀ dV [m⁵] about a point ``origin`` [m]."""
    center = first / volume
    about = second - volume * np.outer(center, center)
    return Properties(volume, center + origin, np.trace(about) * np.eye(3) - about)
