"""Pairs of shapes that touch: their tables for kernels, and what a contact is in a state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from threading import RLock
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.shape import Shape, Trimmed
from cardan.geometry.tables import Limit
from cardan.joints import tables
from cardan.joints.paths import Path
from cardan.joints.tables import PARAMETERS, PairNumbers, PairShape, PairTable, PairWork, Sample
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray

_blocks = LazyModule("cardan.solvers._blocks")
_solver = LazyModule("cardan.joints._pair_solver")

SAMPLES_2, SAMPLES_1 = 12, 48  # per direction of a surface, and of a curve: starts of a search
CROSSED = 1e-9  # of the curvatures: shapes whose difference of curvature is negative by more cross
POLE, NEAR_POLE = 1e-9, 1e-4  # |S_u × S_v| of the larger |S_u|², |S_v|²: at a pole, and near to it
JOINED, SAME_END = 9, 1e-9  # points at which ends of a parameter are compared; of the size, or rad: the same
NEARLY = 0.05  # relative curvature, times the size, of shapes that nearly cross
_KINDS = {"plane": tables.ALONG_XY, "line": tables.ALONG_X, "cylinder": tables.ALONG_Z}
_making = RLock()  # tables refer to each other by addresses: of two that threads make at once, one would be freed
Parameters = tuple[tuple[float, ...], tuple[float, ...]]


class ContactStatus(StrEnum):
    """Whether two shapes touch in a point, and if not, why."""

    REGULAR = "regular"
    FAR = "far"
    CONFORMAL = "conformal"
    EDGE = "edge"
    OTHER_SIDE = "other side"
    TRIMMED = "trimmed"
    CROSSING = "crossing"
    JUMPED = "jumped"
    LOST = "lost"
    POLE = "pole"
    OVERLAP = "overlap"


BY_NUMBER: Final = {  # in kernels
    tables.REGULAR: ContactStatus.REGULAR,
    tables.FAR: ContactStatus.FAR,
    tables.DEGENERATE: ContactStatus.CONFORMAL,
    tables.EDGE: ContactStatus.EDGE,
    tables.OTHER_SIDE: ContactStatus.OTHER_SIDE,
    tables.TRIMMED: ContactStatus.TRIMMED,
    tables.CROSSING: ContactStatus.CROSSING,
    tables.JUMPED: ContactStatus.JUMPED,
    tables.LOST: ContactStatus.LOST,
    tables.AIMED: ContactStatus.FAR,
}
REASONS: Final = {
    ContactStatus.REGULAR: "",
    ContactStatus.FAR: "no pair of points with opposed normals was found; draw the bodies nearer to contact, or give "
    "start= near it",
    ContactStatus.CONFORMAL: "the shapes do not touch in a point, but along a line or over an area; use m.planar, "
    "m.cylindrical, or their outlines as curves in a plane",
    ContactStatus.EDGE: "the contact is at the edge of a shape",
    ContactStatus.OTHER_SIDE: "the shapes touch from the other side; see side= of m.contact",
    ContactStatus.TRIMMED: "the contact is outside the loops of a trimmed face",
    ContactStatus.CROSSING: "the shapes cross at the contact: one is curved too strongly there, or is on the other "
    "side; start from another pose, or see side= of m.contact",
    ContactStatus.JUMPED: "the contact does not continue: the next one is not near it",
    ContactStatus.LOST: "the contact has ended",
    ContactStatus.POLE: "the contact is at a pole of a surface, where it has no normal; use a shape without poles, "
    "such as cd.geometry.sphere, or turn its frame",
    ContactStatus.OVERLAP: "the shapes overlap, where closest points tell nothing; draw the bodies apart, or use "
    "curves or surfaces with jacobian='exact'",
}


class Contact(NamedTuple):
    """A contact in a state.

    ``point`` [m]: of the shape on body b, and ``normal`` of the shape on body a, both in world, shape (3,).  ``gap``
    [m]: between the shapes, along the normal; negative where they penetrate.  A point on a curve has no normal (it is
    zero), and its gap is the distance.  ``parameters``: contact coordinates on both shapes.  ``status``: a
    :class:`ContactStatus`, "regular" where the shapes touch in a point.
    """

    point: FloatArray
    normal: FloatArray
    gap: float
    parameters: tuple[FloatArray, ...]
    status: ContactStatus

    @property
    def reason(self) -> str:
        """Why the shapes do not touch in a point, and what to do; "" if they do."""
        return REASONS[self.status]


@dataclass(eq=False, repr=False)
class Pair:
    """Two shapes and how they touch, as a table for kernels.  Immutable; compares by value.

    side: −1 where the second shape is inside the first one, or below its normals.  across: a point on a curve.
    crossed: curves that cross in space.  exchanged: whether the first shape is on the body that was named second.
    start: parameters of both shapes near which the contact is searched for.  trims: the trimmed faces of
    the shapes.  continuous: for motions, in which a contact stays near where it was; where it cannot, the gap is not a
    number.  path: who asks, how a frame follows the curve, and up (:class:`cardan.joints.paths.Path`).
    """

    a: Shape
    b: Shape
    side: float = 1.0
    across: bool = False
    spinless: bool = False
    exchanged: bool = False
    crossed: bool = False
    start: Parameters | None = None
    trims: tuple[Trimmed | None, Trimmed | None] = (None, None)
    path: tuple[Any, ...] | None = None
    continuous: bool = False

    def __post_init__(self) -> None:
        self.shapes = self.a, self.b
        self._table: Any = None
        self._followed: Pair | None = None
        self.work = PairWork.size + max(shape.work for shape in self.shapes)

    @cached_property
    def closed(self) -> tuple[Shape, Shape]:
        """The shapes, periodic where their ends join."""
        return closed(self.shapes[0]), closed(self.shapes[1])

    @cached_property
    def moving(self) -> Path | None:
        """The moving frame of a path."""
        return None if self.path is None else Path(self.path[0], self.closed[0], *self.path[1:])

    @property
    def slips(self) -> int:
        """Number of tangential directions."""
        return 2 if self.crossed else self.shapes[0].freedoms

    @property
    def address(self) -> float:
        """Address of its table, valid in this process."""
        if self._table is None:
            with _making:
                if self._table is None:
                    self._make_table()
        return self._address

    @property
    def table(self) -> PairTable:
        """What kernels read of it."""
        _ = self.address
        made: PairTable = self._table
        return made

    def _make_table(self) -> None:
        """The table, and what its addresses refer to."""
        from cardan.kernel.memory import address_of

        starts = self.start or (None, None)
        samples = [samples_of(*one) for one in zip(self.shapes, self.trims, starts, strict=True)]
        table = PairTable.new(
            solver=_solver.SOLVE_PAIR,
            numbers=PairNumbers.new(side=self.side, extent=self.size or 1.0, continuous=self.continuous),
            form=tables.ON_CURVE if self.across else tables.CROSSED if self.crossed else tables.TANGENT,
            spinless=self.spinless,
            endless=endless(self.shapes[0]),
            path=None if self.moving is None else self.moving.table,
        )
        self._kept: list[Any] = [samples, self.closed]
        self.shape_records: list[PairShape] = []  # of its table
        for k, (shape, sample, trim) in enumerate(zip(self.closed, samples, self.trims, strict=True)):
            record = PairShape(table.shapes, k, {})
            record.evaluate, record.ints, record.floats = shape.address, shape.ints, shape.floats
            record.freedoms, record.width = shape.freedoms, shape.width
            record.samples, record.count = sample.ravel(), len(sample)
            record.loops, record.is_trimmed = (None, 0) if trim is None else (trim._packed, 1)
            self.shape_records.append(record)
        self._address = float(address_of(table.as_ints))
        self._table = table  # last: another thread may ask without the lock

    @property
    def size(self) -> float:
        """The extent of the smaller shape that has one [m]; zero where none has."""
        found = [samples_of(shape, trim) for shape, trim in zip(self.shapes, self.trims, strict=True)]
        return min((float(np.ptp(s[:, 3:6], axis=0).max()) for s in found if len(s) > 1), default=0.0)

    def _solved(self, poses: FloatArray, near: FloatArray) -> tuple[FloatArray, Any]:
        """Coordinates near some for two frames in world, shape (2, 7), and the workspace of kernels."""
        width = self.shapes[0].width + self.shapes[1].width
        x = np.zeros(PARAMETERS + width + self.work)
        x[:PARAMETERS], x[PARAMETERS:][: near.size] = poses.ravel(), near
        c = np.array([self.address])
        for op in (tables.SOLVE, tables.JUDGE):
            _blocks.call_at(_solver.SOLVE_PAIR, op, self._table.as_ints, c, x, x, x, x, x)
        return x[PARAMETERS:], PairWork(x[PARAMETERS + width :])

    def nearly(self, poses: FloatArray, near: FloatArray) -> ContactStatus:
        """What a regular contact is near to: a pole, or shapes that cross."""
        _, w = self._solved(poses, near)
        if w.least < NEARLY:
            return ContactStatus.CROSSING
        return ContactStatus.POLE if self._is_at_pole(w, NEAR_POLE) else ContactStatus.REGULAR

    def is_behind(self, poses: FloatArray, near: FloatArray) -> bool:
        """Whether one shape is wholly on the wrong side of the other's tangent plane at the contact, by its samples.

        False where no contact is found, and for shapes without sides.  poses, near: as of :meth:`read`.
        """
        if self.across or self.crossed:
            return False
        _, w = self._solved(poses, near)
        is_flat = endless(self.shapes[0]) in (tables.ALONG_XY, tables.ALONG_X)  # with one tangent plane
        if not is_flat and BY_NUMBER[float(w.status)] not in (ContactStatus.REGULAR, ContactStatus.CROSSING):
            return False
        R_AB, p_AB, n = w.R_AB.reshape(3, 3), w.p_AB, w.unit
        points = [samples_of(*both)[:, 3:6] for both in zip(self.shapes, self.trims, strict=True)]
        depths = (w.rows_a[:3] - p_AB - points[1] @ R_AB.T) @ n  # of b behind a
        if self.side < 0.0 or endless(self.shapes[0]) != tables.BOUNDED:  # an outer shape is around the inner one
            return bool(depths.min() > 0.0)
        return bool(depths.min() > 0.0 or ((points[0] - w.rows_b[:3]) @ n).min() > 0.0)

    def read(self, poses: FloatArray, near: FloatArray) -> Contact:
        """The contact for two frames in world, shape (2, 7), with the coordinates near some."""
        widths = self.shapes[0].width, self.shapes[1].width
        found, w = self._solved(poses, near)
        R_WA = w.R_WA.reshape(3, 3)
        point = poses[0, :3] + R_WA @ w.rows_b[:3]
        parameters = found[: widths[0]].copy(), found[widths[0] :][: widths[1]].copy()
        if self.across:
            gap, normal = float(np.linalg.norm(w.rows_b[:3] - w.rows_a[:3])), np.zeros(3)
        else:
            gap, normal = float(w.gap), R_WA @ w.unit
        status = BY_NUMBER[float(w.status)]
        if status is ContactStatus.REGULAR and w.least < -CROSSED * w.most:
            status = ContactStatus.CROSSING
        if status in (ContactStatus.EDGE, ContactStatus.CONFORMAL) and self._is_at_pole(w, POLE):
            status = ContactStatus.POLE
        if self.exchanged:
            return Contact(point, -normal, gap, parameters[::-1], status)
        return Contact(point, normal, gap, parameters, status)

    def _is_at_pole(self, w: Any, bound: float) -> bool:
        """Whether a surface has no normal at the coordinates."""
        for shape, rows in zip(self.shapes, (w.rows_a, w.rows_b), strict=True):
            u, v = rows[3:6], rows[6:9]
            if shape.freedoms == 2 and not np.linalg.norm(np.cross(u, v)) > bound * max(u @ u, v @ v):
                return True
        return False

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as plain values."""
        told = tuple(shape.key() for shape in self.shapes)
        trims = tuple(None if one is None else one.key() for one in self.trims)
        of_pair = self.side, self.across, self.spinless, self.exchanged, self.crossed, self.start, trims
        path = () if self.path is None else (self.path[1:],)
        return told, *of_pair, *path, self.continuous

    def _arguments(self) -> Any:
        of_pair = self.side, self.across, self.spinless, self.exchanged, self.crossed, self.start, self.trims
        return *self.shapes, *of_pair, self.path, self.continuous

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and self.description() == other.description()

    def __hash__(self) -> int:
        return hash(self.description())

    def __reduce__(self) -> tuple[Any, ...]:
        return Pair, self._arguments()

    def in_order(self, parameters: tuple[Any, Any]) -> tuple[Any, Any]:
        """Parameters in the order of the bodies that were named, in the order of the shapes; or the reverse."""
        return parameters[::-1] if self.exchanged else parameters

    def followed(self) -> Pair:
        """The same for motions."""
        if self._followed is None:
            with _making:
                self._followed = self._followed or replace(self, continuous=True)
        return self._followed

    def __deepcopy__(self, memo: Any) -> Pair:
        return self


def endless(shape: Shape) -> int:
    """Along which axes of its frame a shape has no end."""
    is_endless = shape.width == shape.freedoms and not np.isfinite(shape.bounds).all()
    return _KINDS[getattr(shape, "name", "")] if is_endless and shape.freedoms else tables.BOUNDED


def samples_of(shape: Shape, trim: Trimmed | None = None, start: tuple[float, ...] | None = None) -> FloatArray:
    """Coordinates, point and normal of some points; one where a shape has no end in every direction, or of a start."""
    if start is not None and shape.freedoms:
        q = np.array([start], dtype=float)
    elif shape.freedoms == 0:
        q = np.zeros((1, 0))
    elif endless(shape) == tables.BOUNDED:
        q = shape.sample(SAMPLES_2 if shape.freedoms == 2 else SAMPLES_1)
        if trim is not None:
            inside = [trim.contains(u, v) for u, v in q.tolist()]
            q = q[inside] if any(inside) else q
    elif endless(shape) == tables.ALONG_Z:
        angles = np.linspace(0.0, 2.0 * np.pi, SAMPLES_1, endpoint=False)
        q = np.stack([angles, np.zeros(SAMPLES_1)], axis=1)
    else:
        q = np.zeros((1, shape.freedoms))
    found = np.zeros((len(q), Sample.size))
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
    found[:, 6:9] = np.divide(normals, size, out=np.zeros_like(normals), where=size > 0.0)
    found[:, Sample.least_bent.first :] = _curvatures(shape, q, found[:, 6:9])
    return found[size[:, 0] > 0.0] if shape.freedoms == 2 and (size > 0.0).any() else found


def _curvatures(shape: Shape, q: FloatArray, normals: FloatArray) -> FloatArray:
    """Least and largest curvature at some parameters, shape (n, 2), positive where the shape bends away from its
    normal; infinite at its edges, and where it has no normal."""
    bent = np.zeros((len(q), 2))
    if shape.freedoms == 0 or (endless(shape) != tables.BOUNDED and shape.freedoms == 1):
        return bent
    rows = shape._evaluate(q, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        if shape.freedoms == 1:
            bent[:] = -((rows[:, 2] * normals).sum(axis=1) / (rows[:, 1] ** 2).sum(axis=1))[:, None]
        else:
            (E, F, G), (e, f, g) = (
                [(x * y).sum(axis=1) for x, y in products]
                for products in (
                    [(rows[:, 1 + i], rows[:, 1 + j]) for i, j in ((0, 0), (0, 1), (1, 1))],
                    [(-rows[:, 3 + k], normals) for k in range(3)],
                )
            )
            area = E * G - F * F
            mean, product = 0.5 * (e * G - 2.0 * f * F + g * E) / area, (e * g - f * f) / area
            root = np.sqrt(np.maximum(mean * mean - product, 0.0))
            bent[:] = np.stack([mean - root, mean + root], axis=1)
    unusable = ~np.isfinite(bent).all(axis=1)
    if shape.width == shape.freedoms:
        for i, ((low, high), period) in enumerate(zip(shape.bounds, shape.periods, strict=True)):
            if not period and np.isfinite(high - low):
                unusable |= (q[:, i] <= low) | (q[:, i] >= high)
    bent[unusable] = -np.inf, np.inf
    return bent


def is_planar(shape: Shape) -> bool:
    """Whether a curve is in the xy plane of its frame."""
    if shape.dimension == 2 or endless(shape) != tables.BOUNDED:
        return True
    rows = shape._evaluate(shape.sample(SAMPLES_1), 1)
    return not rows[..., 2].any()


def closed(shape: Shape) -> Shape:
    """The same curve or surface, periodic in the directions in which its ends join smoothly: seams are crossed."""
    if shape.freedoms == 0 or shape.width != shape.freedoms or not np.isfinite(shape.bounds).all():
        return shape
    floats = shape.floats.copy()
    for i, ((low, high), period) in enumerate(zip(shape.bounds, shape.periods, strict=True)):
        if not period and _joins(shape, i):
            Limit(floats, i).period = high - low
    return shape if np.array_equal(floats, shape.floats) else shape.with_table(floats)


def _joins(shape: Shape, i: int) -> bool:
    """Whether both ends of a parameter are the same points, with the same tangents."""
    q = np.array([[0.5 * (low + high) for low, high in shape.bounds]] * JOINED)
    if shape.freedoms == 2:
        q[:, 1 - i] = np.linspace(*shape.bounds[1 - i], JOINED)
    ends = []
    for end in shape.bounds[i]:
        q[:, i] = end
        ends.append(shape._evaluate(q, 1)[:, [0, 1 + i]])
    apart = np.abs(ends[0][:, 0] - ends[1][:, 0]).max()
    size = np.ptp(samples_of(shape)[:, 3:6], axis=0).max()
    first, last = (np.linalg.norm(end[:, 1], axis=1) for end in ends)
    bent = np.linalg.norm(ends[0][:, 1] * last[:, None] - ends[1][:, 1] * first[:, None], axis=1)
    return bool(apart <= SAME_END * size and (bent <= SAME_END * first * last).all() and first.min() > 0.0)


def check_regular(what: str, shape: Shape) -> None:
    """ModelError if a curve or surface has no tangents anywhere: it is a point, or a line."""
    if shape.freedoms == 0 or endless(shape) != tables.BOUNDED:
        return
    q = shape.sample(SAMPLES_2 if shape.freedoms == 2 else SAMPLES_1)
    rows = shape._evaluate(q, 1)
    size = float(np.ptp(rows[:, 0], axis=0).max())
    first = np.linalg.norm(rows[:, 1], axis=1)
    area = np.linalg.norm(np.cross(rows[:, 1], rows[:, 2]), axis=1) if shape.freedoms == 2 else first
    longest = float(np.linalg.norm(rows[:, 1:], axis=2).max())
    if not size > 0.0 or not area.max() > POLE * longest**shape.freedoms:
        lacks = "normal" if shape.freedoms == 2 else "tangent"
        raise ModelError(
            f"{what} was given {shape!r:.120}, which is degenerate: it has no {lacks} anywhere; give control points "
            "that span it"
        )
