"""Faces, edges and vertices of a part: they are chosen by name, kind, size, place or direction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardan.cad.threads import Thread, thread_of
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.read_only import read_only

if TYPE_CHECKING:
    from cardan.cad.parts import Part
    from cardan.system.attachments import Attachment
    from cardan.system.parts import Body, Direction, Frame, Point

FloatArray = NDArray[np.float64]

JOINED = 1e-4  # of the parameter range: smaller gaps between trimming curves, and between them and the border, close
APEX = 1e-12  # of the height of a cone: how much is left out at its apex
ASIDE = 0.37  # of the range of a parameter: where normals are compared; poles may be at its ends and in its middle
KINDS = ("plane", "cylinder", "cone", "sphere", "torus", "nurbs", "line", "circle", "ellipse", "vertex")
SAME = 1e-6  # relative: radii of equal size; and radians: directions that are parallel


@read_only("it is as the file of its part has it; make a frame, point or vector of a body with it")
@dataclass(frozen=True, eq=False)
class Pick:
    """A face, an edge or a vertex of a part, in the axes of the part.

    ``kind``: "plane", "cylinder", "cone", "sphere", "torus" or "nurbs" of a face; "line", "circle", "ellipse" or
    "nurbs" of an edge; "vertex".  ``size``: its area [m²] (of a free form exact to 1e-3), or its length [m].
    ``center`` [m], shape (3,): of a face its centre of area; of an edge the middle of its ends, or the centre of its
    circle.
    ``origin`` [m], ``z``, ``x``: its own frame, or None for free forms: z is the axis, the normal or the direction.
    ``name``: that of the file, "" where it has none.
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
    name: str = ""

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

    def _check_body(self, body: Body) -> None:
        """ModelError if a body is made of a part of another shape, where this place is meaningless."""
        if body._part is not None and body._part[1] != self.part._key:
            own, other = self.part.name, body._part[0]
            what = "vertex" if self.kind == "vertex" else f"{self.kind} {self.name or self.number}"
            raise ModelError(
                f"the {what} is of part {own!r}, but body {body.name!r} is made of part {other!r}; give the body of "
                f"part {own!r}, or pick on part {other!r}"
            )

    def frame(self, body: Body) -> Frame:
        """The frame for a joint, on the body made of the part: its origin is :attr:`middle`."""
        _, z = self._framed()
        self._check_body(body)
        return body.frame(self.middle.tolist(), z=z.tolist(), x=None if self.x is None else self.x.tolist())

    def point(self, body: Body) -> Point:
        """Its centre as a point of a body; of an axis the point on it that is nearest to the centre."""
        self._check_body(body)
        return body.point(self.middle.tolist())

    def vector(self, body: Body) -> Direction:
        """Its axis, normal or direction on a body."""
        self._check_body(body)
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


@read_only("it is as the file of its part has it; make a frame, point or vector of a body with it")
@dataclass(frozen=True, eq=False)
class Face(Pick):
    """A face.  ``is_hole``: its normal points to its axis or centre, as in a bore.  ``box`` [m], shape (2, 3)."""

    is_hole: bool = False
    box: FloatArray = field(default_factory=lambda: np.zeros((2, 3)), repr=False)
    _limits: tuple[float, ...] = field(default=(), repr=False)  # of cylinders and cones: u [rad], v [m]
    _nurbs: Any = field(default=None, repr=False)

    def attach_to(self, body: Body, *, trimmed: bool = False) -> Attachment:
        """Attach its surface to a body, where it is, for :meth:`cardan.Mechanism.contact`.

        Normals point out of the part.
        trimmed: the part of it that the loops of the face bound, as NURBS; a contact ends there.  Otherwise the whole
        surface: a plane, cylinder, cone, sphere or torus where the file has one.  A hole is NURBS, since the normals of
        a cylinder, cone, sphere or torus always point away from its axis or centre.
        """
        self._check_body(body)
        if trimmed:
            return body.attach(self._trimmed(self._is_turned()))
        own = None if self.is_hole else self._surface()
        if own is None:
            return body.attach(self.nurbs.flipped() if self._is_turned() else self.nurbs)
        origin, z = self._framed()
        place = body.frame(origin.tolist(), z=z.tolist(), x=None if self.x is None else self.x.tolist())
        return body.attach(own, place)

    def _surface(self) -> Any:
        """A plane, cylinder, cone, sphere or torus in the frame of the face, as the file has it; None for others."""
        from cardan import geometry

        if self.kind == "plane":
            return geometry.plane()
        if self.kind == "cylinder":
            return geometry.cylinder(self.radius, self._limits[2:])
        if self.kind == "cone":
            radius, slope = self.numbers[0], math.tan(self.numbers[1])
            low, high = self._limits[2:]
            apex = -radius / slope
            short = APEX * (high - low)  # rounding must not put an end beyond the apex
            low, high = (max(low, apex + short), high) if slope > 0.0 else (low, min(high, apex - short))
            return geometry.cone(radius, slope, (low, high))
        if self.kind == "sphere":
            return geometry.sphere(self.radius)
        if self.kind == "torus" and self.numbers[1] < self.numbers[0]:
            return geometry.torus(*self.numbers)
        return None

    def _is_turned(self) -> bool:
        """Whether the normal S_u × S_v of the NURBS surface points into the part."""
        if self.kind == "nurbs":
            return self.is_hole
        (low, high), (first, last) = (np.array(one) for one in self.nurbs.bounds)
        at = np.array([[low + ASIDE * (high - low), first + ASIDE * (last - first)]])
        point, along_u, along_v = self.nurbs.evaluate(at, 1)[0]
        return bool(np.cross(along_u, along_v) @ self._outward(point) < 0.0)

    def _outward(self, point: FloatArray) -> FloatArray:
        """A direction from a point on a plane, cylinder, cone, sphere or torus out of the part."""
        origin, z = self._framed()
        if self.kind == "plane":
            return z
        away = point - origin
        if self.kind != "sphere":
            away = away - (away @ z) * z
        if self.kind == "torus":  # from the nearest point of its centre circle
            away = point - origin - self.radius * away / np.linalg.norm(away)
        return -away if self.is_hole else away

    @cached_property
    def thread(self) -> Thread | None:
        """Axis and pitch [m] of a helical face; None for other faces."""
        return thread_of(self)

    @property
    def triangles(self) -> FloatArray:
        """Corners of its triangles [m] in the axes of the part, shape (triangles, 3, 3)."""
        vertices, corners, owners = self.part._data["mesh"]
        return vertices[corners[owners == self.number]]

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
        return self._trimmed(False)

    def _trimmed(self, is_turned: bool) -> Any:
        """The trimmed surface; is_turned: with u and v exchanged, for the opposite normal."""
        from cardan import geometry

        surface = self.nurbs
        low, high = np.array(surface.bounds).T
        slack = JOINED * float((high - low).max())
        loops = []
        *_, trims = self._nurbs
        for curves in trims:
            ends = [(points[0].copy(), points[-1].copy()) for _, points, _, _ in curves]
            loop = []
            for k, (degree, points, weights, knots) in enumerate(curves):
                joined = points.copy()
                if np.abs(ends[k - 1][1] - points[0]).max() <= slack:
                    joined[0] = ends[k - 1][1]  # ends meet within the tolerance of the file; here they must coincide
                inside = np.clip(joined, low, high)  # curves along the border may leave the domain by this tolerance
                joined = np.where(np.abs(joined - inside) <= slack, inside, joined)
                loop.append(geometry.Curve(joined[:, ::-1] if is_turned else joined, weights, knots, degree=degree))
            loops.append(loop)
        try:
            return geometry.Face(surface.flipped() if is_turned else surface, loops)
        except ModelError as error:
            whole = "the whole surface is face.nurbs, or face.attach_to(body)"
            raise ModelError(f"{self!r} of part {self.part.name!r} cannot be trimmed: {error}; {whole}") from None


@read_only("it is as the file of its part has it; make a frame, point or vector of a body with it")
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
        if kind not in KINDS:
            raise ModelError(f"the kind of a pick is {kind!r}; it must be one of {', '.join(KINDS)}")
        found = self.where(lambda item: item.kind == kind, f"{kind}s")
        if radius is None:
            return found
        wanted = check.positive(radius, "radius")
        what = f"{kind}s of radius {wanted:g} m"
        return found.where(lambda item: abs(item.radius - wanted) <= SAME * wanted, what)

    def named(self, name: str) -> Kind:
        """The one with this name in the file; ModelError if there is none, or several."""
        names = sorted({item.name for item in self._items if item.name})
        if name not in names:
            told = f"; the file has {', '.join(map(repr, names[:8]))}" if names else "; the file has no names of them"
            raise ModelError(f"no {self._what} is named {name!r}{told}")
        return self.where(lambda item: item.name == name, f"named {name!r}").only()

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

    def only(self) -> Kind:
        """The only one; ModelError if there are several, or none."""
        if len(self._items) > 1:
            raise ModelError(f"{len(self._items)} {self._what} fit; choose one with nearest(point), largest() or [k]")
        return self._best(lambda item: 0.0)

    def _best(self, cost: Callable[[Kind], float]) -> Kind:
        if not self._items:
            raise ModelError(f"there are no {self._what}")
        return min(self._items, key=cost)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}>"
