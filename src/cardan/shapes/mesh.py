"""Shapes given by triangles: arrays, or files of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cardan import contents
from cardan.errors import ModelError
from cardan.quantities import Corners, Length, Points
from cardan.shapes import mesh_files
from cardan.shapes.registry import in_files, maker
from cardan.shapes.shape import (
    SEGMENTS,
    FloatArray,
    IndexArray,
    Properties,
    Shape,
    Triangles,
    is_closed,
    solid_properties,
)
from cardan.system import check

SUFFIXES = (".stl", ".obj", ".ply", ".glb")


@in_files
class Mesh(Shape):
    """Triangles: vertices [m], shape (n, 3); faces, shape (m, 3), counter-clockwise from outside.

    Mass properties are those of the solid that the triangles enclose, by the divergence theorem.  They need a closed
    surface.  ``deviation`` [m]: how far the triangles are at most from the surface that they stand for.
    """

    __slots__ = ("_faces", "_vertices", "deviation", "name")

    def __init__(self, vertices: FloatArray, faces: IndexArray, name: str = "a mesh", deviation: float = 0.0) -> None:
        self._vertices, self._faces, self.name, self.deviation = vertices, faces, name, deviation
        for array in (vertices, faces):
            array.setflags(write=False)

    @property
    def vertices(self) -> FloatArray:
        """[m], shape (n, 3)."""
        return self._vertices

    @property
    def faces(self) -> IndexArray:
        """Corners of the triangles, shape (m, 3)."""
        return self._faces

    @property
    def is_closed(self) -> bool:
        """Whether the triangles enclose a solid."""
        return is_closed(self._faces)

    def properties(self) -> Properties:
        if not self.is_closed:
            raise ModelError(
                f"{self.name} is not closed: some edges do not belong to exactly two triangles, so it has no volume; "
                "repair it, or omit density= and give mass=, center= and inertia= to m.body"
            )
        found = solid_properties(self._vertices, self._faces)
        if found.volume <= 0.0:
            raise ModelError(
                f"{self.name} encloses the volume {found.volume:.3g} m³; its triangles must be counter-clockwise from "
                "outside: reverse them with faces[:, ::-1]"
            )
        return found

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        return Triangles(self._vertices, self._faces)

    @classmethod
    def _of_file(cls, vertices: Points, faces: Corners, deviation: Length = 0.0) -> Mesh:
        return mesh(vertices, faces, deviation=deviation)

    def _in_file(self) -> Mapping[str, Any]:
        own = {"vertices": self._vertices, "faces": self._faces}
        return {**own, "deviation": self.deviation} if self.deviation else own

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        same = np.array_equal(self._vertices, other._vertices) and np.array_equal(self._faces, other._faces)
        return bool(same and self.deviation == other.deviation)

    def __hash__(self) -> int:
        return hash((self._vertices.tobytes(), self._faces.tobytes(), self.deviation))

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (np.array(self._vertices), np.array(self._faces), self.name, self.deviation)

    def __repr__(self) -> str:
        return f"<Mesh {self.name}: {len(self._vertices)} vertices, {len(self._faces)} faces>"


@maker
def mesh(source: Any, faces: Any = None, *, scale: float = 1.0, deviation: float = 0.0) -> Mesh:
    """A solid from triangles: ``mesh("part.stl", scale=0.001)``, or ``mesh(vertices, faces)`` with arrays.

    source: a file (STL, OBJ, PLY, GLB; no other file is read for it), or vertices [m], shape (n, 3).
    faces, shape (m, 3): corners of the triangles, counter-clockwise from outside.
    scale: of the lengths of the source, 0.001 for a file in millimetres.
    deviation [m]: how far the triangles are at most from the surface that they stand for; gaps have it in their error.
    """
    off = check.positive(deviation, "the deviation of a mesh", zero=True)
    factor = check.positive(scale, "the scale of a mesh")
    if isinstance(source, str | Path):
        if faces is not None:
            raise ModelError(f"mesh was given the file {str(source)!r} and faces; omit faces")
        vertices, faces, name = *_read(Path(source)), f"the mesh {str(source)!r}"
    else:
        vertices, name = source, "a mesh"
    v = _array(vertices, np.float64, "vertices")
    f = _array(faces, np.int64, "faces")
    if not np.isfinite(v).all():
        raise ModelError(f"{name} has vertices that are not finite; remove them")
    if not len(f):
        raise ModelError(f"{name} has no triangles; give at least four")
    if f.min() < 0 or f.max() >= len(v):
        raise ModelError(f"{name} has a face with corner {int(f.max() if f.max() >= len(v) else f.min())}; corners "
                         f"must be from 0 to {len(v) - 1}")  # fmt: skip
    return Mesh(factor * v, f, name, off)


def _array(given: Any, kind: Any, what: str) -> Any:
    try:
        rows = np.array(given, dtype=np.float64)
        if kind is np.int64 and not np.array_equal(rows, np.round(rows)):
            raise ValueError
    except (TypeError, ValueError):
        raise ModelError(f"the {what} of a mesh are {given!r:.120}; they must be numbers, shape (n, 3)") from None
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ModelError(f"the {what} of a mesh have shape {rows.shape}; it must be (n, 3)")
    return np.ascontiguousarray(rows.astype(kind))


def _read(path: Path) -> tuple[Any, Any]:
    """Vertices and faces of a file; equal vertices are merged."""
    if path.suffix.lower() not in SUFFIXES:
        raise ModelError(f"the mesh {str(path)!r} has the ending {path.suffix!r}; it must be {', '.join(SUFFIXES)}")
    content = contents.read(path, mesh_files.MOST_BYTES, "the mesh")
    try:
        with np.errstate(all="ignore"):  # numbers that are not finite are refused
            return mesh_files.read(content, path.suffix.lower())
    except (ModelError, ValueError) as error:  # a ValueError: values that are no numbers
        raise ModelError(f"the mesh {str(path)!r} cannot be read: {error}") from None
    except MemoryError:
        raise ModelError(f"the mesh {str(path)!r} cannot be read: there is not enough memory") from None
