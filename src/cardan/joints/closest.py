"""Contacts by closest points S¹, S² and differences, as in [NelsonCohen1998]: for meshes, and for a user's own query.

    C = |S² − S¹| − clearance [m],   ∂C/∂(t, θ) = n·(∂S² − ∂S¹),   n = (S² − S¹)/|S² − S¹|,

with the derivatives of the points by the pose (t, θ) of b relative to a from Richardson's differences, (7) of the
paper.  C is the root of the paper's C^p less a small clearance: at contact the gradient of C^p vanishes, and closest
points of shapes that overlap tell nothing.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

import numpy as np

from cardan import _jit
from cardan.errors import ModelError
from cardan.geometry import Distance, Mesh
from cardan.geometry import pose_derivatives as derivatives
from cardan.geometry.shape import Shape
from cardan.joints import abi
from cardan.joints.pairs import Contact, ContactStatus
from cardan.math import euler
from cardan.system.attachments import Attachment
from cardan.system.state import FloatArray

CLEARANCE: Final = 1e-6  # of the size
STEP: Final = 1e-3  # of differences [m, rad]; less where the shapes are near to each other
SHARE: Final = 0.2  # of the distance, that differences move the shapes by at the most
BEND_STEP: Final = 1e-3  # of the distance: half the way of a second difference


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
    the shapes.  shapes: curves or surfaces, or none.  size [m]: of the smaller one.
    """

    side, across, exchanged, path = 1.0, False, False, None
    work = 1

    def __init__(self, what: str, query: Any, shapes: tuple[Shape, ...] = (), size: float = 1.0) -> None:
        self.what, self.query, self.shapes, self.size = what, query, shapes, size
        self.trims = (None,) * len(shapes)
        self.clearance = CLEARANCE * size
        self._distance = Distance(*shapes) if query is None else query
        self._table: Any = None
        self._lock = Lock()  # a query has one workspace, and `assemble_many` has threads

    @property
    def address(self) -> float:
        """Address of its table, valid in this process."""
        if self._table is None:
            address, self._kept = _jit.evaluator_in_python(self._evaluate)
            self._table = np.array([address], dtype=np.int64)
            self._address = float(_jit.address_of(self._table))
        return self._address

    def points(self, pose: FloatArray) -> FloatArray:
        """The closest points for a pose of b relative to a, shape (2, 3), in the axes of a."""
        return self._pair(pose)[1]

    def _pair(self, pose: FloatArray) -> tuple[Any, FloatArray]:
        """What the query gives, and its points."""
        query = self._distance
        try:
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
        """The evaluator: the gap with its derivatives by both frames, or d²gap/dt²; not numbers where it fails."""
        pose_a, pose_b = (np.array([x[7 * k + i] for i in range(7)]) for k in (0, 1))
        try:
            with self._lock:
                if op == abi.RATES:
                    out[0] = self._bend(pose_a, pose_b, np.array([rate[i] for i in range(14)]))
                    return 0
                value, row = self._row(pose_a, pose_b)
        except Exception:  # no exception passes a kernel; `read` raises it again
            out[0] = np.nan
            if op == abi.RATES:
                return 0
            value, row = np.nan, np.full(14, np.nan)
        out[0] = value
        for i in range(14):
            jacobian[i] = row[i]
        return 0

    def _row(self, a: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
        """C and ∂C by positions and Euler parameters of both frames."""
        pose = _relative(a, b)
        points = self.points(pose)
        distance = float(np.linalg.norm(points[1] - points[0]))
        if not distance > 1e-3 * self.clearance:
            return np.nan, np.full(14, np.nan)
        g = self.gradient(pose, points)
        A, R = np.asarray(euler.matrix(a[3:])), np.asarray(euler.matrix(euler.normalize(pose[3:])))
        force = A @ g[:3]
        row = np.concatenate([-force, np.zeros(4), force, np.zeros(4)])
        for k, p, torque in ((3, a[3:], -np.cross(pose[:3], g[:3]) - R @ g[3:]), (10, b[3:], g[3:])):
            row[k : k + 4] = 2.0 / (p @ p) * np.asarray(euler.multiply(p, np.append(0.0, torque)))
        return distance - self.clearance, row

    def _bend(self, a: FloatArray, b: FloatArray, rate: FloatArray) -> float:
        omega = [2.0 / (p @ p) * np.asarray(euler.multiply(euler.conjugate(p), dp))[1:]
                 for p, dp in ((a[3:], rate[3:7]), (b[3:], rate[10:]))]  # fmt: skip
        here = self.gap(_relative(a, b))
        fastest = max(1e-300, *(float(np.abs(v).max()) for v in (rate[:3], rate[7:10], *omega)))
        h = BEND_STEP * min(1.0, 200.0 * here) / fastest

        def at(t: float) -> float:
            moved = [
                np.concatenate([pose[:3] + t * v, euler.retract(euler.normalize(pose[3:]), t * w)])
                for pose, v, w in ((a, rate[:3], omega[0]), (b, rate[7:10], omega[1]))
            ]
            return self.gap(_relative(*moved))

        return (at(h) - 2.0 * here + at(-h)) / (h * h)

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

    def in_order(self, given: Any) -> Any:
        """Values by shape, as they are."""
        return given

    def followed(self) -> ClosestPair:
        """Motions do not use differences: a ModelError."""
        raise ModelError(
            f"{self.what} has derivatives by differences, which are for assemblies and diagnoses; motions, simulations "
            "and sessions need curves or surfaces with jacobian='exact'"
        )

    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as values that compare."""
        return "differences", self.query, tuple(shape.key() for shape in self.shapes), self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClosestPair) and self.description() == other.description()

    def __hash__(self) -> int:
        return hash(self.description())

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosestPair, (self.what, self.query, self.shapes, self.size)

    def __deepcopy__(self, memo: Any) -> ClosestPair:
        return self


def _relative(a: FloatArray, b: FloatArray) -> FloatArray:
    """Pose of b in the axes of a, shape (7,)."""
    turned = euler.normalize(euler.multiply(euler.conjugate(a[3:]), b[3:]))
    return np.concatenate([np.asarray(euler.matrix(euler.normalize(a[3:]))).T @ (b[:3] - a[:3]), turned])


def closest_pair(what: str, faces: tuple[Any, Any], side: str, mode: str, start: Any, query: Any) -> ClosestPair:
    """The pair of two faces by differences: curves, surfaces, solids and meshes, or a query of the user's."""
    for face in faces:
        if not isinstance(face, Attachment):
            raise ModelError(f"{what} was given {face!r:.120}; it must be a face: face = body.attach(shape)")
    for word, value, valid in (("mode", mode, "slide"), ("side", side, "outside"), ("start", start, None)):
        if value != valid:
            raise ModelError(
                f"{what} was given {word}={value!r} with jacobian='differences', which finds closest points and no "
                f"contact coordinates; omit {word}, or use jacobian='exact'"
            )
    if query is not None:
        if not isinstance(query, Distance) and not callable(getattr(query, "closest_pair", None)):
            raise ModelError(f"{what} was given query={query!r:.80}, which has no closest_pair(pose)")
        made = ClosestPair(what, query, size=float(getattr(query, "size", 1.0)))
        made.points(np.array([3.0 * made.size, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))  # to see that it works
        return made
    shapes = [getattr(face.shape, "geometry", None) for face in faces]
    if all(isinstance(shape, Shape) for shape in shapes):
        if any(getattr(face.shape, "trim", None) is not None for face in faces):
            raise ModelError(f"{what} was given a trimmed face with jacobian='differences'; use jacobian='exact'")
        return ClosestPair(what, None, tuple(shapes), Distance(*shapes).size)  # type: ignore[arg-type]  # all are shapes
    if any(isinstance(shape, Shape) for shape in shapes):
        raise ModelError(
            f"{what} was given a mesh or solid and a curve or surface; give both as solids, such as "
            "cd.shapes.sphere(0.1), or both as cd.geometry.sphere(0.1)"
        )
    meshes = [Mesh(*face.shape.triangles()) for face in faces]
    size = min(float(np.ptp(mesh.vertices, axis=0).max()) for mesh in meshes)
    return ClosestPair(what, MeshPair(*meshes), size=size)
