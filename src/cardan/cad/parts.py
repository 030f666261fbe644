"""Parts of a CAD file: their faces, edges and vertices, which can be picked, and the bodies made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.math import euler
from cardan.shapes.mesh import Mesh
from cardan.system import check

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism
    from cardan.system.attachments import Attachment
    from cardan.system.parts import Body, Direction, Frame, Point

FloatArray = NDArray[np.float64]

JOINED = 1e-4  # of the parameter range: ends of trimming curves that are nearer are joined
SAME = 1e-6  # relative: radii of equal size; and radians: directions that are parallel


@dataclass(frozen=True, eq=False)
class Pick:
    """A face, an edge or a vertex of a part, in the axes of the part.

    ``kind``: "plane", "cylinder", "cone", "sphere", "torus" or "nurbs" of a face; "line", "circle", "ellipse" or
    "nurbs" of an edge; "vertex".  ``size``: its area [m²] or length [m].  ``center`` [m], shape (3,): of a face its
    centre of area, of an edge the middle of its ends or the centre of its circle.
    ``origin`` [m], ``z``, ``x``: its own frame, or None for free forms: z is the axis, the normal or the direction.
    """

    part: Part = field(repr=False)
    number: int
    kind: str
    size: float
    center: FloatArray = field(repr=False)
    origin: FloatArray | None = field(repr=False)
    z: FloatArray | None = field(repr=False)
    x: FloatArray | None = field(repr=False)
    numbers: tuple[float, ...]

    @property
    def radius(self) -> float:
        """[m] of a cylinder, cone, sphere or circle; of a torus or ellipse the larger one."""
        if not self.numbers:
            raise ModelError(f"{self!r} has no radius; it is a {self.kind}")
        return self.numbers[0]

    def _framed(self) -> tuple[FloatArray, FloatArray]:
        if self.origin is None or self.z is None:
            raise ModelError(f"{self!r} has no axis; pick a plane, a line, or a face or edge of revolution")
        return self.origin, self.z

    def frame(self, body: Body) -> Frame:
        """The frame for a joint, on the body made of the part: its origin is :attr:`middle`."""
        _, z = self._framed()
        return body.frame(self.middle.tolist(), z=z.tolist(), x=None if self.x is None else self.x.tolist())

    def point(self, body: Body) -> Point:
        """Its centre as a point of a body; of an axis the point on it that is nearest to the centre."""
        return body.point(self.middle.tolist())

    def vector(self, body: Body) -> Direction:
        """Its axis, normal or direction on a body."""
        return body.vector(self._framed()[1].tolist())

    @property
    def middle(self) -> FloatArray:
        """Its centre [m]; on the axis, where it has one."""
        if self.kind in ("cylinder", "cone"):
            origin, z = self._framed()
            return np.asarray(origin + np.dot(self.center - origin, z) * z)
        if self.kind in ("sphere", "torus", "circle", "ellipse") and self.origin is not None:
            return self.origin
        return self.center

    def is_parallel(self, direction: Any) -> bool:
        """Whether its axis, normal or direction is parallel to a direction, with either sign."""
        if self.z is None:
            return False
        given = np.array(check.direction(direction, "a direction"))
        return bool(np.linalg.norm(np.cross(self.z, given)) <= SAME)


@dataclass(frozen=True, eq=False)
class Face(Pick):
    """A face.  ``is_hole``: its normal points to its axis or centre, as in a bore.  ``box`` [m], shape (2, 3)."""

    is_hole: bool = False
    box: FloatArray = field(default_factory=lambda: np.zeros((2, 3)), repr=False)
    _limits: tuple[float, ...] = field(default=(), repr=False)  # of a cylinder: u₀, u₁ [rad], v₀, v₁ [m]
    _nurbs: Any = field(default=None, repr=False)

    def attach_to(self, body: Body) -> Attachment:
        """Attach its untrimmed surface to a body, where it is, for :meth:`cardan.Mechanism.contact`."""
        if self.kind in ("plane", "cylinder", "sphere", "torus"):
            origin, z = self._framed()
            place = body.frame(origin.tolist(), z=z.tolist(), x=None if self.x is None else self.x.tolist())
            return body.attach(self._surface(), place)
        return body.attach(self.nurbs)

    def _surface(self) -> Any:
        """A plane, cylinder, sphere or torus in the frame of the face, as the file has it."""
        from cardan import geometry

        if self.kind == "plane":
            return geometry.plane()
        if self.kind == "cylinder":
            return geometry.cylinder(self.radius, self._limits[2:])
        if self.kind == "sphere":
            return geometry.sphere(self.radius)
        return geometry.torus(*self.numbers)

    @property
    def triangles(self) -> FloatArray:
        """Corners of its triangles [m] in the axes of the part, shape (triangles, 3, 3)."""
        vertices, corners, owners = self.part._data["mesh"]
        found: FloatArray = vertices[corners[owners == self.number]]
        return found

    @property
    def nurbs(self) -> Any:
        """The untrimmed surface as NURBS, in the axes of the part."""
        from cardan import geometry

        if self._nurbs is None:
            raise ModelError(f"{self!r} of part {self.part.name!r} has no NURBS form in the file")
        degrees, points, weights, u, v, _ = self._nurbs
        return geometry.Surface(points, weights, u, v, degree=tuple(degrees))

    @property
    def geometry(self) -> Any:
        """The trimmed surface, a :class:`cardan.geometry.Face` in the axes of the part."""
        from cardan import geometry

        surface = self.nurbs
        size = max(high - low for low, high in surface.bounds)
        loops = []
        for curves in self._nurbs[5]:
            ends = [(points[0].copy(), points[-1].copy()) for _, points, _, _ in curves]
            loop = []
            for k, (degree, points, weights, knots) in enumerate(curves):
                joined = points.copy()
                if np.abs(ends[k - 1][1] - points[0]).max() <= JOINED * size:
                    joined[0] = ends[k - 1][1]  # ends meet within the tolerance of the file: here they coincide
                loop.append(geometry.Curve(joined, weights, knots, degree=degree))
            loops.append(loop)
        return geometry.Face(surface, loops)


@dataclass(frozen=True, eq=False)
class Edge(Pick):
    """An edge.  ``ends`` [m], shape (2, 3)."""

    ends: FloatArray = field(default_factory=lambda: np.zeros((2, 3)), repr=False)
    _nurbs: Any = field(default=None, repr=False)

    @property
    def geometry(self) -> Any:
        """Its curve, a NURBS in the axes of the part."""
        from cardan import geometry

        if self._nurbs is None:
            raise ModelError(f"{self!r} of part {self.part.name!r} has no curve")
        degree, points, weights, knots = self._nurbs
        return geometry.Curve(points, weights, knots, degree=degree)


Kind = TypeVar("Kind", bound=Pick)


class Picks(Sequence[Kind], Generic[Kind]):
    """Faces, edges or vertices of a part, to choose from: ``part.cylinders(radius=5e-3).nearest((0, 0, 0))``."""

    def __init__(self, items: Iterable[Kind], what: str) -> None:
        self._items, self._what = list(items), what

    def __getitem__(self, k: Any) -> Any:
        if not self._items:
            raise ModelError(f"there are no {self._what}")
        return self._items[k]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._items)

    def where(self, test: Callable[[Kind], bool], what: str = "such") -> Picks[Kind]:
        """Those for which the test is true."""
        return Picks([item for item in self._items if test(item)], f"{what} among {self._what}")

    def of_kind(self, kind: str, radius: Any = None) -> Picks[Kind]:
        """Those of a kind and, if it is given, of a radius [m]."""
        found = self.where(lambda item: item.kind == kind, f"{kind}s")
        if radius is None:
            return found
        wanted = check.positive(radius, "radius")
        what = f"{kind}s of radius {wanted:g} m"
        return found.where(lambda item: abs(item.radius - wanted) <= SAME * wanted, what)

    def parallel(self, direction: Any) -> Picks[Kind]:
        """Those whose axis, normal or direction is parallel to a direction in the axes of the part."""
        return self.where(lambda item: item.is_parallel(direction), f"parallel to {direction}")

    def largest(self) -> Kind:
        """The one with the largest area or length."""
        return self._best(lambda item: -item.size)

    def nearest(self, point: Any) -> Kind:
        """The one whose centre is nearest to a point [m] in the axes of the part."""
        given = np.array(check.vector(point, "a point"))
        return self._best(lambda item: float(np.linalg.norm(item.center - given)))

    def _best(self, cost: Callable[[Kind], float]) -> Kind:
        if not self._items:
            raise ModelError(f"there are no {self._what}")
        return min(self._items, key=cost)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}>"


class Part:
    """A part of a file, in its own axes; several instances may be the same part.

    ``name``: unique in its assembly; ``path``: the names of the assemblies it is in, and its own.  ``color``: (red,
    green, blue) or None.  ``position`` [m], ``quaternion`` (w, x, y, z): its placement in the file.
    ``volume`` [m³], ``center`` [m], ``inertia`` [m⁵]: of the solid at density 1, about its centre.
    ``mesh``: triangles within the chord error that was asked for.
    """

    def __init__(
        self, name: str, path: tuple[str, ...], placement: FloatArray, color: Any, data: Mapping[str, Any]
    ) -> None:
        self.name, self.path, self.color = name, path, None if color is None else tuple(color)
        self.position, self.quaternion = placement[:3], placement[3:]
        self.volume: float = data["volume"]
        self.center, self.inertia = np.array(data["center"]), np.array(data["inertia"])
        self._data = data

    @property
    def mesh(self) -> Mesh:
        """A shape for ``body.attach``."""
        vertices, faces, _ = self._data["mesh"]
        return Mesh(vertices, faces, f"the mesh of part {self.name!r}")

    @property
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
        return {**own, **axes, "numbers": tuple(data["numbers"])}

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
        found = [Pick(self, k, "vertex", 0.0, p, None, None, None, ()) for k, p in enumerate(points)]
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
        pose = {"position": self.position.tolist(), "orientation": self.quaternion.tolist()}
        mass: dict[str, Any] = {}
        if density is not None:
            density = check.positive(density, f"the density of part {own!r}")
            if not self.volume > 0.0:
                raise ModelError(f"part {own!r} encloses no volume, so it has no mass; omit density= and give mass=")
            both = [key for key in ("mass", "center", "inertia") if key in options]
            if both:
                raise ModelError(f"part {own!r} was given density= and {both[0]}=; give one of them")
            mass = {"mass": density * self.volume, "center": self.center, "inertia": density * self.inertia}
        body = mechanism.body(own, **{**pose, **mass, **options})
        if len(self._data["mesh"][1]):
            body.attach(self.mesh, color=self.color)
        return body

    def __repr__(self) -> str:
        return f"<Part {self.name!r}: {len(self._data['faces'])} faces, {1e9 * self.volume:.4g} mm³>"


class Assembly(Mapping[str, Part]):
    """The parts of a file by name.  ``path``: of the file; ``unit``: the length unit it is written in."""

    def __init__(self, path: Path, unit: str, parts: Sequence[Part]) -> None:
        self.path, self.unit = path, unit
        self._parts = {part.name: part for part in parts}

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


def composed(a: FloatArray, b: FloatArray) -> FloatArray:
    """The placement b, given in the axes of a, in those of a's parent: position and quaternion, shape (7,)."""
    found: FloatArray = np.concatenate([a[:3] + euler.rotate(a[3:], b[:3]), euler.multiply(a[3:], b[3:])])
    return found
