"""Contacts by closest points S¹, S² and differences, as in [NelsonCohen1998]: for meshes, and for a user's own query.

    C = |S² − S¹| − clearance [m],   ∂C/∂(t, θ) = n·(∂S² − ∂S¹),   n = (S² − S¹)/|S² − S¹|,

with the derivatives of the points by the pose (t, θ) of b relative to a from Richardson's differences, (7) of the
paper.  C is the root of the paper's C^p less a small clearance: at contact the gradient of C^p vanishes, and closest
points of shapes that overlap tell nothing.

Rolling is the paper's (5): the contact moves on both bodies with the same velocity.  With the velocities v¹, v² of the
material points at S¹, S², and the velocity u of the point of b at S² relative to a,

    Ċ^roll = t·((Ṡ¹ − v¹) − (Ṡ² − v²)) = t·u − g t·ṅ,   t ⊥ n,

since S² − S¹ = g n; ṅ is relative to a.  The last term is all that depends on ∂S.  It vanishes at contact, but not at
the clearance: between two corners of meshes, where closest points do not move on their bodies, it cancels the row.  So
the rows are t·u, and n·Ω without spin.  Their γ needs Ṡ² and ṅ, by differences along the motion.
"""

from __future__ import annotations

from threading import RLock
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import Distance, Mesh
from cardan.geometry import pose_derivatives as derivatives
from cardan.geometry.shape import Shape
from cardan.geometry.tree import Tree
from cardan.joints import tables
from cardan.joints.pairs import Contact, ContactStatus, is_planar
from cardan.kernel import jit, memory
from cardan.math import euler
from cardan.system.attachments import Attachment, check_attached
from cardan.system.state import FloatArray

CLEARANCE: Final = 1e-6  # of the size
STEP: Final = 1e-3  # of differences [m, rad]; less where the shapes are near to each other
SHARE: Final = 0.2  # of the distance, that differences move the shapes by at the most
BEND_STEP: Final = 1e-3  # of the distance: half the way of a second difference
ROLL_STEP: Final = 0.02  # g · size, as half the way squared of a first difference along a motion that keeps the gap


class MeshPair:
    """Closest pairs of two meshes."""

    def __init__(self, a: Mesh, b: Mesh) -> None:
        self.a, self.b = a, b

    def closest_pair(self, pose: Any) -> Any:
        """The closest pair for a pose of b relative to a."""
        return self.a.closest_pair(self.b, pose)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshPair) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[bytes, ...]:
        arrays = (self.a.vertices, self.a.faces, self.b.vertices, self.b.faces)
        return tuple(np.asarray(array).tobytes() for array in arrays)


class ClosestPair:
    """Two shapes that touch by a query of their closest points, as a table for kernels.  Immutable; compares by value.

    query: an object with closest_pair(pose), whose result has ``points``, shape (2, 3), in the axes of a; None: that of
    the shapes.  shapes: curves or surfaces, or none.  size [m]: of the smaller one.  spinless: whether rolling is
    without spin.
    """

    side, across, exchanged, path = 1.0, False, False, None
    by_differences = True
    work = 1

    def __init__(
        self, what: str, query: Any, shapes: tuple[Shape, ...] = (), size: float = 1.0, spinless: bool = False
    ) -> None:
        self.what, self.query, self.shapes, self.size, self.spinless = what, query, shapes, size, spinless
        self.trims = (None,) * len(shapes)
        self.slips = 1 if shapes and all(shape.freedoms == 1 and is_planar(shape) for shape in shapes) else 2
        self.clearance = CLEARANCE * size
        self._distance = Distance(*shapes) if query is None else query
        self._table: Any = None
        self._lock = RLock()  # a query has one workspace, and `assemble_many` has threads

    @property
    def address(self) -> float:
        """Address of its table, valid in this process."""
        if self._table is None:
            address, self._kept = jit.evaluator_in_python(self._evaluate)
            self._table = tables.PairTable.new(solver=address)
            self._address = float(memory.address_of(self._table.as_ints))
        return self._address

    def points(self, pose: FloatArray) -> FloatArray:
        """The closest points for a pose of b relative to a, shape (2, 3), in the axes of a."""
        return self._pair(pose)[1]

    def _pair(self, pose: FloatArray) -> tuple[Any, FloatArray]:
        """What the query gives, and its points."""
        query = self._distance
        try:
            with self._lock:
                found = query.closest(pose) if isinstance(query, Distance) else query.closest_pair(pose)
        except Exception as error:
            raise ModelError(f"{self.what}: closest_pair failed: {error!r:.200}") from error
        try:
            points = np.asarray(found.points, dtype=float)
        except (AttributeError, TypeError, ValueError):
            kind = type(found).__name__
            raise ModelError(
                f"{self.what}: closest_pair gives an object of type {kind!r}; it must have points, of shape (2, 3)"
            ) from None
        if points.shape != (2, 3):
            raise ModelError(f"{self.what}: closest_pair gives points of shape {points.shape}; it must be (2, 3)")
        if np.isfinite(pose).all() and not np.isfinite(points).all():
            raise ModelError(
                f"{self.what}: closest_pair gives the points {points.tolist()} for the pose {pose.tolist()}; they must "
                "be finite, also of shapes that overlap"
            )
        return found, points

    def gap(self, pose: FloatArray) -> float:
        """|S² − S¹| [m]."""
        return float(np.linalg.norm(np.subtract(*self.points(pose))))

    def gradient(self, pose: FloatArray, points: FloatArray) -> FloatArray:
        """∂|S² − S¹|/∂(t, θ), shape (6,); t in the axes of a, θ in those of b."""
        apart = points[1] - points[0]
        distance = float(np.linalg.norm(apart))
        arm = max(1.0, float(np.linalg.norm(points - pose[:3], axis=1).max()))
        D = derivatives.differences(self._distance, pose, h=min(STEP, SHARE * distance) / arm)
        return np.asarray(apart / distance @ (D[1] - D[0]))

    def _evaluate(self, op: int, unused: Any, c: Any, x: Any, rate: Any, out: Any, jacobian: Any, work: Any) -> int:
        """The evaluator: rows with their derivatives by both frames, or curvatures; not numbers where it fails."""
        pose_a, pose_b = (np.array([x[7 * k + i] for i in range(7)]) for k in (0, 1))
        rolls = op in (tables.ROLL, tables.ROLL_RATES)
        count = self.slips + self.spinless if rolls else 1
        rows = None
        try:
            with self._lock:
                if op in (tables.RATES, tables.ROLL_RATES):
                    bend = self._roll_bend if rolls else self._bend
                    values = bend(pose_a, pose_b, np.array([rate[i] for i in range(14)]))
                else:
                    values, rows = (self._roll_rows if rolls else self._row)(pose_a, pose_b)
        except Exception:  # no exception passes a kernel; `read` raises it again
            values = np.full(count, np.nan)
            rows = None if op in (tables.RATES, tables.ROLL_RATES) else np.full((count, 14), np.nan)
        for i in range(count):
            out[i] = values[i]
        if rows is not None:
            for i, value in enumerate(rows.ravel().tolist()):
                jacobian[i] = value
        return 0

    def _row(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """C, shape (1,), and ∂C by positions and Euler parameters of both frames, shape (1, 14)."""
        pose = _relative(a, b)
        points = self.points(pose)
        distance = float(np.linalg.norm(points[1] - points[0]))
        if not distance > 1e-3 * self.clearance:
            return np.full(1, np.nan), np.full((1, 14), np.nan)
        g = self.gradient(pose, points)
        return np.array([distance - self.clearance]), _by_frames(a, b, pose, g)[None]

    def _axes(self, points: FloatArray) -> FloatArray:
        """n, then the directions in which the bodies do not slip, shape (2 or 3, 3); NaN where the shapes overlap.

        Of curves in a plane this is the tangent in the plane of a.
        """
        apart = points[1] - points[0]
        distance = float(np.linalg.norm(apart))
        if not distance > 1e-3 * self.clearance:
            return np.full((1 + self.slips, 3), np.nan)
        n = apart / distance
        if self.slips == 1:
            t = np.array([-n[1], n[0], 0.0])
            return np.stack([n, t / np.linalg.norm(t)])
        t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        t /= np.linalg.norm(t)
        return np.stack([n, t, np.cross(n, t)])

    def _roll_rows(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Zeros, and the rows t·u [m/s], n·Ω [rad/s] by the rates of both frames, shape (rows, 14)."""
        pose = _relative(a, b)
        points = self.points(pose)
        n, *tangents = self._axes(points)
        R = np.asarray(euler.matrix(pose[3:]))
        arm = points[1] - pose[:3]
        rates = [np.concatenate([t, R.T @ np.cross(arm, t)]) for t in tangents]
        if self.spinless:
            rates.append(np.concatenate([np.zeros(3), R.T @ n]))
        return np.zeros(len(rates)), np.stack([_by_frames(a, b, pose, g) for g in rates])

    def _bend(self, a: FloatArray, b: FloatArray, rate: FloatArray) -> FloatArray:
        omega = _angular(a, b, rate)
        fastest = max(1e-300, *(float(np.abs(v).max()) for v in (rate[:3], rate[7:10], *omega)))
        h = BEND_STEP * min(1.0, 200.0 * self.gap(_relative(a, b))) / fastest
        gaps = [self.gap(_relative(*_moved(a, b, rate, omega, t))) for t in (-h, 0.0, h)]
        return np.array([(gaps[0] - 2.0 * gaps[1] + gaps[2]) / (h * h)])

    def _roll_bend(self, a: FloatArray, b: FloatArray, rate: FloatArray) -> FloatArray:
        """t·(d/dt of u with u = 0), ṅ·Ω, without accelerations of the frames; S² and n by differences.

        The gap stays as it is to first order, so that the way may be long compared with it: n = (S² − S¹)/g has as
        many digits less as g is smaller than the coordinates.
        """
        omega = _angular(a, b, rate)
        A, B = (np.asarray(euler.matrix(euler.normalize(pose[3:]))) for pose in (a, b))
        of_a, of_b = A @ omega[0], B @ omega[1]
        points = self.points(_relative(a, b))
        axes = self._axes(points) @ A.T
        at = a[:3] + A @ points[1]
        u = rate[7:10] + np.cross(of_b, at - b[:3]) - rate[:3] - np.cross(of_a, at - a[:3])
        rate = rate.copy()
        rate[7:10] -= (axes[0] @ u) * axes[0]
        fastest = max(1e-300, *(float(np.abs(v).max()) for v in (rate[:3], rate[7:10], *(self.size * omega))))
        gap = float(np.linalg.norm(points[1] - points[0]))
        h = min(STEP * self.size, np.sqrt(ROLL_STEP * gap * self.size)) / fastest
        ends = []
        for t in (-h, h):
            moved = _moved(a, b, rate, omega, t)
            found = self.points(_relative(*moved))
            turned = np.asarray(euler.matrix(moved[0][3:])).T
            ends.append((moved[0][:3] + found[1] @ turned, self._axes(found)[0] @ turned))
        moves, turns = ((late - early) / (2.0 * h) for early, late in zip(*ends, strict=True))
        bent = np.cross(of_b, moves - rate[7:10]) - np.cross(of_a, moves - rate[:3])
        spin = [turns @ (of_b - of_a)] if self.spinless else []
        return np.array([*(axes[1:] @ bent), *spin])

    def read(self, poses: FloatArray, near: FloatArray) -> Contact:
        """The contact for two frames in world, shape (2, 7)."""
        pose = _relative(*poses)
        found, points = self._pair(pose)
        apart = points[1] - points[0]
        gap = float(np.linalg.norm(apart))
        A = np.asarray(euler.matrix(poses[0, 3:]))
        normal = A @ (apart / gap) if gap else np.zeros(3)
        status = ContactStatus.REGULAR if gap > 1e-3 * self.clearance else ContactStatus.OVERLAP
        if gap and self._is_inside(pose, found, points):
            status = ContactStatus.OTHER_SIDE
        return Contact(poses[0, :3] + A @ points[1], normal, gap, (), status)

    def _is_inside(self, pose: FloatArray, found: Any, points: FloatArray) -> bool:
        """Whether a shape is on the inner side of the other; a query of the user's is not asked."""
        R = np.asarray(euler.matrix(euler.normalize(pose[3:])))
        if isinstance(self.query, MeshPair):
            a, b = self.query.a, self.query.b
            return (a.is_closed and a.winding(points[1]) > 0.5) or (
                b.is_closed and b.winding(R.T @ (points[0] - pose[:3])) > 0.5
            )
        apart = points[1] - points[0]
        parameters = found.parameters if self.shapes else ()
        for shape, q, towards in zip(self.shapes, parameters, (apart, -R.T @ apart), strict=False):
            if shape.freedoms == 2:
                rows = shape._evaluate(np.asarray(q, dtype=float)[None, : shape.width], 1)[0]
                n = np.cross(rows[1], rows[2])
                if n @ towards < -0.5 * np.linalg.norm(n) * np.linalg.norm(towards):  # more than at an edge
                    return True
        return False

    def nearly(self, poses: FloatArray, near: FloatArray) -> ContactStatus:
        """What a regular contact is near to."""
        return ContactStatus.REGULAR

    def is_behind(self, poses: FloatArray, near: FloatArray) -> bool:
        """False: closest points are outside both faces."""
        return False

    def in_order(self, given: Any) -> Any:
        """Values by shape, as they are."""
        return given

    def followed(self) -> ClosestPair:
        """Motions do not use differences: a ModelError."""
        raise ModelError(
            f"{self.what} has derivatives by differences, which are for assemblies, diagnoses and rates; motions, "
            "simulations and sessions need curves or surfaces with jacobian='exact'"
        )

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as values that compare."""
        return "differences", self.query, tuple(shape.key() for shape in self.shapes), self.size, self.spinless

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClosestPair) and self.description() == other.description()

    def __hash__(self) -> int:
        return hash(self.description())

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosestPair, (self.what, self.query, self.shapes, self.size, self.spinless)

    def __deepcopy__(self, memo: Any) -> ClosestPair:
        return self


def _relative(a: FloatArray, b: FloatArray) -> FloatArray:
    """Pose of b in the axes of a, shape (7,)."""
    turned = euler.normalize(euler.multiply(euler.conjugate(a[3:]), b[3:]))
    return np.concatenate([np.asarray(euler.matrix(euler.normalize(a[3:]))).T @ (b[:3] - a[:3]), turned])


def _angular(a: FloatArray, b: FloatArray, rate: FloatArray) -> FloatArray:
    """ω of both frames in their own axes, shape (2, 3), from the rates of their features."""
    return np.stack([
        2.0 / (p @ p) * np.asarray(euler.multiply(euler.conjugate(p), dp))[1:]
        for p, dp in ((a[3:], rate[3:7]), (b[3:], rate[10:]))
    ])  # fmt: skip


def _moved(a: FloatArray, b: FloatArray, rate: FloatArray, omega: FloatArray, t: float) -> list[FloatArray]:
    """Both frames after a time t at constant velocities."""
    return [
        np.concatenate([pose[:3] + t * v, euler.retract(euler.normalize(pose[3:]), t * w)])
        for pose, v, w in ((a, rate[:3], omega[0]), (b, rate[7:10], omega[1]))
    ]


def _by_frames(a: FloatArray, b: FloatArray, pose: FloatArray, g: FloatArray) -> FloatArray:
    """A derivative by (t, θ), shape (6,), as one by positions and Euler parameters of both frames, shape (14,)."""
    A, R = np.asarray(euler.matrix(euler.normalize(a[3:]))), np.asarray(euler.matrix(pose[3:]))
    force = A @ g[:3]
    row = np.concatenate([-force, np.zeros(4), force, np.zeros(4)])
    for k, p, torque in ((3, a[3:], -np.cross(pose[:3], g[:3]) - R @ g[3:]), (10, b[3:], g[3:])):
        row[k : k + 4] = 2.0 / (p @ p) * np.asarray(euler.multiply(p, np.append(0.0, torque)))
    return row


def _size(shapes: Any) -> float:
    """Extent [m] of two shapes; of the other one where one has no end."""
    found: float | None = getattr(Distance(*shapes), "size", None)
    if found is not None:
        return found
    ends = [shape for shape in shapes if shape.width != shape.freedoms or np.isfinite(shape.bounds).all()]
    return float(Tree(ends[0], np.inf).extent)


def closest_pair(what: str, faces: tuple[Any, Any], side: str, mode: str, start: Any, query: Any) -> ClosestPair:
    """The pair of two faces by differences: curves, surfaces, solids and meshes, or a query of the user's."""
    for face in faces:
        if not isinstance(face, Attachment):
            raise ModelError(f"{what} was given {face!r:.120}; it must be a face: face = body.attach(shape)")
        check_attached(what, face)
    for word, value, valid in (("side", side, "outside"), ("start", start, None)):
        if value != valid:
            raise ModelError(
                f"{what} was given {word}={value!r} with jacobian='differences', which finds closest points and no "
                f"contact coordinates; omit {word}, or use jacobian='exact'"
            )
    spinless = mode == "roll_without_spin"
    if query is not None:
        if not isinstance(query, Distance) and not callable(getattr(query, "closest_pair", None)):
            raise ModelError(f"{what} was given query={query!r:.80}, which has no closest_pair(pose)")
        made = ClosestPair(what, query, size=float(getattr(query, "size", 1.0)), spinless=spinless)
        made.points(np.array([3.0 * made.size, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))  # to see that it works
        return made
    shapes = [getattr(face.shape, "geometry", None) for face in faces]
    if all(isinstance(shape, Shape) for shape in shapes):
        if any(getattr(face.shape, "trim", None) is not None for face in faces):
            raise ModelError(f"{what} was given a trimmed face with jacobian='differences'; use jacobian='exact'")
        made = ClosestPair(what, None, tuple(shapes), _size(shapes), spinless)  # type: ignore[arg-type]  # shapes
        if mode != "slide" and any(shape.freedoms == 0 for shape in made.shapes):
            raise ModelError(f"{what} was given a point with mode={mode!r}; a point does not roll: use mode='slide'")
        if spinless and made.slips == 1:
            raise ModelError(f"{what} was given mode={mode!r}; curves in a plane have no spin: use 'roll'")
        return made
    if any(isinstance(shape, Shape) for shape in shapes):
        raise ModelError(
            f"{what} was given a mesh or solid and a curve or surface; give both as solids, such as "
            "cd.shapes.sphere(0.1), or both as cd.geometry.sphere(0.1)"
        )
    meshes = [Mesh(*face.shape.triangles()) for face in faces]
    size = min(float(np.ptp(mesh.vertices, axis=0).max()) for mesh in meshes)
    return ClosestPair(what, MeshPair(*meshes), size=size, spinless=spinless)
