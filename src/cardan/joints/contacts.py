"""Contacts: two shapes on two bodies that touch in a point, and slide or roll on each other.

The contact coordinates s (parameters of both shapes at the contact) are solved for wherever a pose is evaluated, from
those of the last accepted pose, which are in q beside the counted angles.  What is left is one equation of poses, the
gap between the shapes; so a contact needs no unknowns of its own, and the mass matrix stays diagonal.  Rolling adds
rate rows.  The equations are in :mod:`cardan.joints._contact`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from cardan.constraints.registry import LENGTH_POWER, FeatureKind, Primitive, Unit
from cardan.errors import ModelError
from cardan.geometry import abi as shape_abi
from cardan.geometry.analytic import Point as PointShape
from cardan.geometry.shape import Shape
from cardan.joints import abi
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.attachments import Attachment
from cardan.system.parts import Body, CountedAngle, Feature, Frame
from cardan.system.relations import Relation
from cardan.system.state import FloatArray

_blocks = LazyModule("cardan.solvers._blocks")
_contact = LazyModule("cardan.joints._contact")

Mode = Literal["slide", "roll", "roll_without_spin"]
Side = Literal["outside", "inside"]

SAMPLES_2, SAMPLES_1 = 12, 48  # per direction of a surface, and of a curve: starts of a search
STATUS: Final = {
    abi.REGULAR: "regular",
    abi.FAR: "no pair of points with opposed normals was found; draw the bodies nearer to contact",
    abi.DEGENERATE: "the shapes do not touch in a point, but along a line or over an area; use m.planar, "
    "m.cylindrical, or their outlines as curves in a plane",
    abi.EDGE: "the contact is at the edge of a shape",
    abi.OTHER_SIDE: "the shapes touch from the other side; see side= of m.contact",
}
CROSSING: Final = (
    "the shapes cross at the contact: one is curved too strongly there, or is on the other side; start from another "
    "pose, or see side= of m.contact"
)
CROSSED = 1e-9  # of the curvatures: shapes whose difference of curvature is negative by more cross
_KINDS = {"plane": abi.ALONG_XY, "line": abi.ALONG_X, "cylinder": abi.ALONG_Z}


class Contact(NamedTuple):
    """A contact in a state.

    ``point`` [m]: of the shape on body b, and ``normal`` of the shape on body a, both in world, shape (3,).  ``gap``
    [m]: between the shapes, along the normal; negative where they penetrate.  ``parameters``: contact coordinates on
    both shapes.  ``status``: in words.
    """

    point: FloatArray
    normal: FloatArray
    gap: float
    parameters: tuple[FloatArray, FloatArray]
    status: str


class Pair:
    """Two shapes and how they touch, as a table for kernels.  Immutable; compares by value.

    side: −1 where the second shape is inside the first one, or below its normals.  across: a point on a curve.
    exchanged: whether the first shape is on the body that was named second.  continuous: for motions, in which a
    contact stays near where it was; where it cannot, the gap is not a number.
    """

    def __init__(
        self,
        a: Shape,
        b: Shape,
        side: float = 1.0,
        across: bool = False,
        spinless: bool = False,
        exchanged: bool = False,
        continuous: bool = False,
    ) -> None:
        self.shapes = a, b
        self.side, self.across, self.spinless, self.exchanged = side, across, spinless, exchanged
        self.continuous = continuous
        self._table: Any = None
        self.work = abi.WORK + max(int(shape.ints[shape_abi.WORK]) for shape in self.shapes)

    @property
    def address(self) -> float:
        """Address of its table, valid in this process."""
        from cardan._jit import address_of

        if self._table is None:
            samples = [_samples(shape) for shape in self.shapes]
            sizes = [float(np.ptp(s[:, 3:6], axis=0).max()) for s in samples if len(s) > 1]
            self._numbers: FloatArray = np.array([self.side, min(sizes, default=0.0) or 1.0, self.continuous])
            self._samples = samples
            endless = _endless(self.shapes[0])
            table = [_contact.SOLVE_PAIR, address_of(self._numbers), int(self.across), int(self.spinless), endless]
            for shape, sample in zip(self.shapes, samples, strict=True):
                table += [*shape.table.tolist(), shape.freedoms, shape.width, address_of(sample), len(sample)]
            self._table = np.array(table, dtype=np.int64)
            self._address = float(address_of(self._table))
        return self._address

    @property
    def size(self) -> float:
        """The extent of the smaller shape that has one [m]; zero where none has."""
        sizes = [float(np.ptp(s[:, 3:6], axis=0).max()) for s in map(_samples, self.shapes) if len(s) > 1]
        return min(sizes, default=0.0)

    def read(self, poses: FloatArray, near: FloatArray) -> Contact:
        """The contact for two frames in world, shape (2, 7), with the coordinates near some."""
        widths = self.shapes[0].width, self.shapes[1].width
        x = np.zeros(abi.PARAMETERS + sum(widths) + self.work)
        x[: abi.PARAMETERS], x[abi.PARAMETERS :][: near.size] = poses.ravel(), near
        address = self.address
        _blocks.call_at(_contact.SOLVE_PAIR, abi.SOLVE, self._table, np.array([address]), x, x, x, x, x)
        w = x[abi.PARAMETERS + sum(widths) :]
        A = w[abi.FRAME + 12 :][:9].reshape(3, 3)
        point = poses[0, :3] + A @ w[abi.ROWS_B :][:3]
        found = x[abi.PARAMETERS :]
        parameters = found[: widths[0]].copy(), found[widths[0] :][: widths[1]].copy()
        if self.across:
            apart = w[abi.ROWS_B :][:3] - w[abi.ROWS_A :][:3]
            gap = float(np.linalg.norm(apart))
            normal = A @ (apart / gap) if gap else np.zeros(3)
        else:
            gap, normal = float(w[abi.GAP]), A @ w[abi.UNIT :][:3]
        status = STATUS[w[abi.STATUS]]
        if w[abi.STATUS] == abi.REGULAR and not self.across and self._cross(poses, parameters, normal):
            status = CROSSING
        if self.exchanged:
            return Contact(point, -normal, gap, parameters[::-1], status)
        return Contact(point, normal, gap, parameters, status)

    def _cross(self, poses: FloatArray, parameters: tuple[FloatArray, FloatArray], normal: FloatArray) -> bool:
        """Whether the shapes cross at the contact, to second order.

        Heights over the tangent plane are ½ xᵀ K x, with K = J⁻ᵀ (S_pq · n) J⁻¹ and the tangents J in the plane.
        n points to b, so K_b − K_a must have no negative eigenvalue; along a curve it is a number.
        """
        if min(shape.freedoms for shape in self.shapes) == 0:
            return False  # a point cannot cross
        rows = [
            shape._evaluate(own[None, :], 2)[0] @ np.asarray(euler.matrix(pose[3:])).T
            for shape, own, pose in zip(self.shapes, parameters, poses, strict=True)
        ]
        axes = np.linalg.svd(normal[None, :])[2][1:]
        curves = [k for k, shape in enumerate(self.shapes) if shape.freedoms == 1]
        if curves:
            tangent = rows[curves[0]][1]
            axes = (tangent / np.linalg.norm(tangent))[None, :]
        found = [_heights(own, shape.freedoms, axes, normal) for own, shape in zip(rows, self.shapes, strict=True)]
        difference = found[1] - found[0]
        size = sum(float(np.abs(one).max()) for one in found)
        return bool(np.linalg.eigvalsh(difference)[0] < -CROSSED * size)

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as plain values."""
        told = tuple(shape.key() for shape in self.shapes)
        return told, self.side, self.across, self.spinless, self.exchanged, self.continuous

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and self.description() == other.description()

    def __hash__(self) -> int:
        return hash(self.description())

    def __reduce__(self) -> tuple[Any, ...]:
        return Pair, (*self.shapes, self.side, self.across, self.spinless, self.exchanged, self.continuous)

    def in_order(self, parameters: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Parameters in the order of the bodies that were named, in the order of the shapes; or the reverse."""
        return parameters[::-1] if self.exchanged else parameters

    def followed(self) -> Pair:
        """The same for motions."""
        return Pair(*self.shapes, self.side, self.across, self.spinless, self.exchanged, continuous=True)

    def __deepcopy__(self, memo: Any) -> Pair:
        return self


def _heights(rows: FloatArray, freedoms: int, axes: FloatArray, normal: FloatArray) -> FloatArray:
    """K of a shape along some directions in its tangent plane, shape (directions, directions)."""
    if freedoms == 1:
        return np.array([[rows[2] @ normal / (rows[1] @ rows[1])]])
    second = np.array([[rows[3] @ normal, rows[4] @ normal], [rows[4] @ normal, rows[5] @ normal]])
    inverse = np.linalg.lstsq(rows[1:3].T, axes.T, rcond=None)[0]  # of parameters by distances along the axes
    found: FloatArray = inverse.T @ second @ inverse
    return found


def _endless(shape: Shape) -> int:
    """Along which axes of its frame a shape has no end."""
    is_endless = shape.width == shape.freedoms and not np.isfinite(shape.bounds).all()
    return _KINDS[getattr(shape, "name", "")] if is_endless and shape.freedoms else abi.BOUNDED


def _samples(shape: Shape) -> FloatArray:
    """Coordinates, point and normal of some points; one where a shape has no end in every direction."""
    if shape.freedoms == 0:
        q = np.zeros((1, 0))
    elif _endless(shape) == abi.BOUNDED:
        q = shape.sample(SAMPLES_2 if shape.freedoms == 2 else SAMPLES_1)
    elif _endless(shape) == abi.ALONG_Z:
        angles = np.linspace(0.0, 2.0 * np.pi, SAMPLES_1, endpoint=False)
        q = np.stack([angles, np.zeros(SAMPLES_1)], axis=1)
    else:
        q = np.zeros((1, shape.freedoms))
    found = np.zeros((len(q), abi.SAMPLE))
    found[:, : q.shape[1]] = q
    rows = shape._evaluate(q, 1 if shape.freedoms else 0)
    found[:, 3:6] = rows[:, 0]
    if shape.freedoms == 2:
        normals = np.cross(rows[:, 1], rows[:, 2])
    elif shape.freedoms == 1 and is_planar(shape):
        normals = np.stack([rows[:, 1, 1], -rows[:, 1, 0], np.zeros(len(q))], axis=1)
    else:
        normals = np.zeros((len(q), 3))
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    found[:, 6:] = np.divide(normals, size, out=np.zeros_like(normals), where=size > 0.0)
    return found[size[:, 0] > 0.0] if shape.freedoms == 2 and (size > 0.0).any() else found


def is_planar(shape: Shape) -> bool:
    """Whether a curve is in the xy plane of its frame."""
    if shape.dimension == 2 or _endless(shape) != abi.BOUNDED:
        return True
    rows = shape._evaluate(shape.sample(SAMPLES_1), 1)
    return not rows[..., 2].any()


@dataclass(frozen=True, slots=True)
class Form:
    """What the primitive of a contact is rebuilt from: its kernels, and the numbers of coordinates and rows."""

    function: str  # "contact" or "rolling"
    widths: tuple[int, int]
    units: tuple[Unit, ...]
    equations: int
    module: str = "cardan.joints._contact"
    is_contact: ClassVar[bool] = True

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        return primitive_of, (self,)


@cache
def primitive_of(form: Form) -> Primitive:
    """The primitive of a form."""
    frame = (FeatureKind.POINT, FeatureKind.ORIENTATION)
    features = (*frame, *frame, *[FeatureKind.ANGLE] * sum(form.widths))
    rows = len(form.units)
    return Primitive(
        -1,
        form.function,
        (),
        ("pair",),
        (),
        form.units,
        tuple(range(form.equations, rows)),
        "value",
        None,
        form.function,
        features=features,
        components=sum(feature.components for feature in features),
        rows=rows,
        equations=form.equations,
        powers=tuple(LENGTH_POWER[unit] for unit in form.units),
        of_rates=form.function == "rolling",
        text=repr(form),
        origin=form,
    )


def relations(
    pair: Pair, frames: tuple[Frame, Frame], coordinates: tuple[CountedAngle, ...], mode: Mode
) -> tuple[Relation, Relation | None]:
    """The relation of a contact, and that of its rolling."""
    widths = pair.shapes[0].width, pair.shapes[1].width
    units: tuple[Unit, ...] = ("m", "m", "m") if pair.across else ("m", "m", "m", "rad", "rad")
    ends = [feature for frame in frames for feature in (frame.feature(), frame.orientation())]
    features = (*ends, *[Feature(FeatureKind.ANGLE, one, ()) for one in coordinates])
    form = primitive_of(Form("contact", widths, units, 2 if pair.across else 1))
    touching = Relation(form, features, (0.0,), size=pair.size, pair=pair)
    if mode == "slide":
        return touching, None
    slips: tuple[Unit, ...] = ("m", "m") if pair.shapes[0].freedoms == 2 else ("m",)
    spin: tuple[Unit, ...] = ("rad",) if pair.spinless else ()
    rows = (*slips, *spin)
    rolling = primitive_of(Form("rolling", widths, rows, len(rows)))
    return touching, Relation(rolling, features, (0.0,), pair=pair)


def coordinates_of(name: str, pair: Pair, frames: tuple[Frame, Frame], owner: Any) -> tuple[CountedAngle, ...]:
    """The contact coordinates, which are carried like counted angles."""
    zero = (0.0, 0.0, 0.0)
    words = [f"{name}.{'ab'[k]}{i}" for k, shape in enumerate(pair.shapes) for i in range(shape.width)]
    a, b = frames[0].body, frames[1].body
    return tuple(CountedAngle(word, owner._next_serial(), a, zero, zero, b, zero) for word in words)


def pair_of(what: str, faces: tuple[Attachment, Attachment], side: str, mode: str) -> Pair:
    """The pair of two faces, the one with the normal first; ModelError if they have no contact."""
    shapes = [face_geometry(what, face) for face in faces]
    swap = _rank(shapes[1]) > _rank(shapes[0])
    a, b = shapes[::-1] if swap else shapes
    names = f"{_told(shapes[0])} and {_told(shapes[1])}"
    if a.freedoms == 1 and (b.freedoms == 0 or not (is_planar(a) and is_planar(b))):
        ways = "use m.point_on_curve" if b.freedoms == 0 else "curves in space cross in a point without a normal"
        raise ModelError(f"{what} was given {names}; a contact of curves needs two curves in a plane: {ways}")
    if a.freedoms == 0:
        raise ModelError(f"{what} was given {names}; two points have no contact: use m.spherical")
    flat = [_told(shape) for shape in (a, b)]
    if flat[0] == "plane" and flat[1] in ("plane", "cylinder", "cone", "line"):
        raise ModelError(
            f"{what} was given {names}, which touch along a line or over an area, not in a point; use m.planar, or "
            "the outlines of the parts as curves in a plane"
        )
    if _endless(b) != abi.BOUNDED:
        raise ModelError(f"{what} was given {names}, which have no end; give one of them a size")
    if mode != "slide" and b.freedoms == 0:
        raise ModelError(f"{what} was given {names} with mode={mode!r}; a point does not roll: use mode='slide'")
    if mode == "roll_without_spin" and a.freedoms == 1:
        raise ModelError(f"{what} was given {names} with mode={mode!r}; curves in a plane have no spin: use 'roll'")
    return Pair(a, b, -1.0 if side == "inside" else 1.0, False, mode == "roll_without_spin", swap)


def _rank(shape: Shape) -> tuple[int, int]:
    return shape.freedoms, int(_endless(shape) != abi.BOUNDED)


def _told(shape: Shape) -> str:
    return getattr(shape, "name", "") or type(shape).__name__


def face_geometry(what: str, face: Any) -> Shape:
    """The curve or surface of an attached face."""
    found = getattr(getattr(face, "shape", None), "geometry", None)
    if not isinstance(face, Attachment) or not isinstance(found, Shape):
        raise ModelError(
            f"{what} was given {face!r:.120}; it must be a face: face = body.attach(cd.geometry.sphere(0.1))"
        )
    return found


def point_shape() -> Shape:
    """The shape of a point at the origin of its frame."""
    return PointShape((0.0, 0.0, 0.0))


def frame_of(body: Body, position: Any) -> Frame:
    """A frame at a point of a body, with its axes."""
    return body.frame(position, z=(0.0, 0.0, 1.0), x=(1.0, 0.0, 0.0))
