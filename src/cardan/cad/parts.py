"""Parts of a CAD file, their assembly, and the bodies made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardan.cad.picks import Edge, Face, FloatArray, Pick, Picks
from cardan.errors import ModelError
from cardan.math import euler
from cardan.shapes.mesh import Mesh
from cardan.system import check
from cardan.system.read_only import read_only

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism
    from cardan.system.parts import Body


NOISE = 1e-14  # relative: what rounding leaves of zero


@read_only("a part is as its file has it; give another name, position=, orientation= or mass= to m.add(part, …)")
class Part:
    """A part of a file, in its own axes; several instances may be the same part.

    ``name``: unique in its assembly; ``path``: the names of the assemblies it is in, and its own.  ``color``: (red,
    green, blue) or None.  ``position`` [m], ``quaternion`` (w, x, y, z): its placement in the file.
    ``volume`` [m³], ``center`` [m], ``inertia`` [m⁵]: of the solid at density 1, about its centre.
    ``mesh``: triangles within the chord error that was asked for.
    """

    name: str
    path: tuple[str, ...]
    color: tuple[float, ...] | None
    position: FloatArray
    quaternion: FloatArray
    volume: float
    center: FloatArray
    inertia: FloatArray
    _data: Mapping[str, Any]

    def __init__(
        self, name: str, path: tuple[str, ...], placement: FloatArray, color: Any, data: Mapping[str, Any]
    ) -> None:
        arrays = [np.array(one) for one in (placement[:3], placement[3:], data["center"], data["inertia"])]
        for one in arrays:
            one.setflags(write=False)
        words = ("position", "quaternion", "center", "inertia")
        own = {"name": name, "path": path, "color": None if color is None else tuple(color), "volume": data["volume"]}
        vars(self).update({**own, **dict(zip(words, arrays, strict=True)), "_data": data})

    @property
    def mesh(self) -> Mesh:
        """A shape for ``body.attach``."""
        vertices, faces, _ = self._data["mesh"]
        return Mesh(vertices, faces, f"the mesh of part {self.name!r}", self._data.get("chord", 0.0))

    @cached_property
    def _key(self) -> str:
        """Equal for parts with equal triangles: their faces, edges and vertices are in the same places."""
        vertices, faces, _ = self._data["mesh"]
        return hashlib.sha256(vertices.tobytes() + faces.tobytes()).hexdigest()

    @property
    def triangle_faces(self) -> NDArray[np.int64]:
        """The number of the face of every triangle of :attr:`mesh`, shape (triangles,)."""
        found: NDArray[np.int64] = self._data["mesh"][2].view()
        found.setflags(write=False)
        return found

    @cached_property
    def extent(self) -> float:
        """The length [m] of the diagonal of the box around its triangles."""
        vertices = self._data["mesh"][0]
        return float(np.linalg.norm(np.ptp(vertices, axis=0))) if len(vertices) else 0.0

    def face_at(self, point: Any) -> Face:
        """The face that is nearest to a point [m] in the axes of the part, by its triangles."""
        given = np.array(check.vector(point, "a point"))
        vertices, corners, owners = self._data["mesh"]
        if not len(corners):
            raise ModelError(f"part {self.name!r} has no faces to pick")
        far = distances(given, vertices[corners])
        return self.faces[int(owners[int(np.argmin(far))])]

    @cached_property
    def faces(self) -> Picks[Face]:
        """All faces."""
        return Picks([self._face(k, one) for k, one in enumerate(self._data["faces"])], f"faces of part {self.name!r}")

    def _face(self, number: int, data: Mapping[str, Any]) -> Face:
        frame: list[Any] = [None] * 3 if data["frame"] is None else [np.array(one) for one in data["frame"]]
        is_plane, is_reversed = data["kind"] == "plane", bool(data["reversed"])
        if is_plane and is_reversed:
            frame[1] = -frame[1]
        own = {"box": np.array(data["box"]).reshape(2, 3), "_limits": tuple(data["limits"]), "_nurbs": data["nurbs"]}
        common = self._common(number, data, data["area"], np.array(data["center"]), frame)
        return Face(**common, **own, is_hole=is_reversed and not is_plane)

    def _common(self, number: int, data: Mapping[str, Any], size: float, center: Any, frame: list[Any]) -> Any:
        """What faces and edges have in common."""
        axes = dict(zip(("origin", "z", "x"), frame, strict=True))
        own = {"part": self, "number": number, "kind": data["kind"], "size": size, "center": center}
        name = self._data["names"][0 if "area" in data else 1][number]
        return {**own, **axes, "numbers": tuple(data["numbers"]), "name": name}

    @property
    def edges(self) -> Picks[Edge]:
        """All edges."""
        found = [self._edge(k, one) for k, one in enumerate(self._data["edges"]) if one["kind"] != "point"]
        return Picks(found, f"edges of part {self.name!r}")

    def _edge(self, number: int, data: Mapping[str, Any]) -> Edge:
        ends = np.array(data["ends"])
        frame: list[Any] = [None if one is None else np.array(one) for one in data["frame"] or (None, None, None)]
        center = ends.mean(axis=0) if data["kind"] in ("line", "nurbs") else frame[0]
        return Edge(**self._common(number, data, data["length"], center, frame), ends=ends, _nurbs=data.get("nurbs"))

    @property
    def vertices(self) -> Picks[Pick]:
        """All vertices."""
        points = [np.array(p) for p in self._data["vertices"]]
        names = self._data["names"][2]
        found = [Pick(self, k, "vertex", 0.0, p, None, None, None, (), names[k]) for k, p in enumerate(points)]
        return Picks(found, f"vertices of part {self.name!r}")

    def planes(self) -> Picks[Face]:
        """Its plane faces."""
        return self.faces.of_kind("plane")

    def cylinders(self, radius: Any = None) -> Picks[Face]:
        """Its cylinders, of a radius [m] if that is given."""
        return self.faces.of_kind("cylinder", radius)

    def cones(self) -> Picks[Face]:
        """Its cones."""
        return self.faces.of_kind("cone")

    def spheres(self, radius: Any = None) -> Picks[Face]:
        """Its spheres, of a radius [m] if that is given."""
        return self.faces.of_kind("sphere", radius)

    def add_to(self, mechanism: Mechanism, name: str | None = None, density: Any = None, **options: Any) -> Body:
        """See :meth:`cardan.Mechanism.add`."""
        own = self.name if name is None else name
        far = max(self.extent, float(np.abs(self.position).max()))
        position, orientation = without_noise(self.position, far), without_noise(self.quaternion)
        pose = {"position": position.tolist(), "orientation": orientation.tolist()}
        mass: dict[str, Any] = {}
        if density is not None:
            density = check.positive(density, f"the density of part {own!r}")
            if not self.volume > 0.0:
                raise ModelError(f"part {own!r} encloses no volume, so it has no mass; omit density= and give mass=")
            both = [key for key in ("mass", "center", "inertia") if key in options]
            if both:
                raise ModelError(f"part {own!r} was given density= and {both[0]}=; give one of them")
            mass = {"mass": density * self.volume, "center": self.center, "inertia": density * self.inertia}
        return self._attach_to(mechanism.body(own, **{**pose, **mass, **options}), density)

    def _attach_to(self, body: Body, density: float | None = None) -> Body:
        """Make the part the shape of a body; density [kg/m³]: what its mass was computed from.  Returns the body."""
        body._part = self.name, self._key, density
        if len(self._data["mesh"][1]):
            body.attach(self.mesh, color=self.color)
        return body

    def __repr__(self) -> str:
        return f"<Part {self.name!r}: {len(self._data['faces'])} faces, {1e9 * self.volume:.4g} mm³>"


@read_only("an assembly is as its file has it; load another one with cd.load_step(path)")
class Assembly(Mapping[str, Part]):
    """The parts of a file by name.  ``path``: of the file; ``unit``: the length unit it is written in."""

    path: Path
    unit: str
    _parts: Mapping[str, Part]

    def __init__(self, path: Path, unit: str, parts: Sequence[Part]) -> None:
        vars(self).update({"path": path, "unit": unit, "_parts": {part.name: part for part in parts}})

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, in the order of the file."""
        return tuple(self._parts.values())

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            raise check.unknown(name, "part of this assembly", self._parts)
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def add_to(self, mechanism: Mechanism, name: None = None, density: Any = None, **options: Any) -> list[Body]:
        """See :meth:`cardan.Mechanism.add`."""
        if name is not None:
            raise ModelError(f"add was given name={name!r} for an assembly; its bodies have the names of its parts")
        return [part.add_to(mechanism, None, density, **options) for part in self.parts]

    def __repr__(self) -> str:
        return f"<Assembly of {len(self)} parts from {self.path.name}>"


def without_noise(values: Any, size: float = 1.0) -> FloatArray:
    """Numbers of a given size, with zeros where a CAD kernel or a rotation leaves less than NOISE of it."""
    given = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(given) <= NOISE * size, 0.0, given)


def distances(point: FloatArray, triangles: FloatArray) -> FloatArray:
    """Distances [m] of a point to triangles, shape (n, 3, 3): to the plane inside, to the nearest edge outside."""
    a = triangles
    along = np.roll(a, -1, axis=1) - a
    to = point - a
    share = np.sum(to * along, axis=2) / np.maximum(np.sum(along * along, axis=2), 1e-300)
    edge = np.linalg.norm(to - np.clip(share, 0.0, 1.0)[..., None] * along, axis=2).min(axis=1)
    normal = np.cross(along[:, 0], along[:, 1])
    length = np.linalg.norm(normal, axis=1)
    is_inside = np.all(np.sum(np.cross(along, to) * normal[:, None, :], axis=2) >= 0.0, axis=1) & (length > 0.0)
    height = np.abs(np.sum(to[:, 0] * normal, axis=1)) / np.maximum(length, 1e-300)
    return np.where(is_inside, height, edge)


def composed(a: FloatArray, b: FloatArray) -> FloatArray:
    """The placement b, given in the axes of a, in those of a's parent: position and quaternion, shape (7,)."""
    return np.concatenate([a[:3] + euler.rotate(a[3:], b[:3]), euler.multiply(a[3:], b[3:])])
