"""Contacts by the papers' own equations, next to the library's: convergence, error of the derivatives, cost.

[NelsonCohen1998] keeps two surfaces in contact by their closest points S¹, S² and their derivatives by differences:

    (3)  C^p = |S¹ − S²|²                                       [m²]
    (4)  C^tan: the tangents of one surface are normal to the normal of the other
    (5)  Ċ^roll: the contact moves on both surfaces with the same velocity

The gradient 2 (S¹ − S²)·(∂S¹ − ∂S²) of C^p vanishes on the constraint itself, so Newton's method halves the gap in each
step.  The library solves for the contact coordinates, and has the gap itself as its equation.

A query is a :class:`cardan.geometry.Distance`, a
:class:`~cardan.joints.closest.MeshPair`, or any object with ``closest_pair(pose)`` whose
result has ``points`` [m], shape (2, 3), in the axes of a.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.geometry import Distance
from cardan.joints.contacts import face_geometry
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.attachments import Attachment

FloatArray = NDArray[np.float64]
Scheme = Literal["forward", "central", "richardson"]

STEP = 1e-3  # of the pose, for differences [m, rad]
CLOSED = 1e-14  # m: at a smaller gap the iteration ends
RANK = 1e-12  # of the largest singular value: smaller ones are zero in the pseudo-inverse


class Papers:
    """The papers' equations for two faces of a mechanism, whose other joints are evaluated by the library.

    m: the mechanism without this contact.  faces: attached to movable bodies or to the ground.  query: the closest
    pairs; those of the faces' own geometry if None.  scheme, step: of the differences.
    """

    def __init__(
        self,
        m: Mechanism,
        faces: tuple[Attachment, Attachment],
        query: Any = None,
        scheme: Scheme = "richardson",
        step: float = STEP,
    ) -> None:
        check.choice(scheme, "the scheme", get_args(Scheme))
        step = check.positive(step, "the step")
        self.system = m.system
        self.problem = formulations.problem(self.system, "manifold")
        self.faces, self.scheme, self.step = faces, scheme, step
        if query is None:
            query = Distance(*(face_geometry("the papers' contact", face) for face in faces))
        elif not isinstance(query, Distance) and not callable(getattr(query, "closest_pair", None)):
            raise ModelError(f"{query!r:.80} has no closest_pair(pose); give a Distance, a MeshPair or such an object")
        self.query = query

    def start(self, coordinates: FloatArray) -> FloatArray:
        """Solver coordinates of poses, shape (bodies, 7)."""
        return formulations.to_reference(self.system, coordinates)

    def _frames(self, q: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Origin and axes in world of both faces."""
        poses = formulations.from_reference(self.system, q).reshape(-1, 7)
        found = []
        for face in self.faces:
            local = np.column_stack([face.frame.x, face.frame.y, face.frame.z])
            if face.body.is_ground:
                found.append((np.array(face.frame.origin), local))
                continue
            pose = poses[self.system.names.index(face.body.name)]
            A = np.asarray(euler.matrix(pose[3:]))
            found.append((pose[:3] + A @ face.frame.origin, A @ local))
        return found

    def _pose(self, q: FloatArray) -> FloatArray:
        """Pose of face b in the axes of face a, shape (7,)."""
        (p, A), (r, B) = self._frames(q)
        return np.concatenate([A.T @ (r - p), euler.from_matrix(A.T @ B)])

    def points(self, q: FloatArray) -> FloatArray:
        """The closest points S¹, S² in world, shape (2, 3)."""
        p, A = self._frames(q)[0]
        pose = self._pose(q)
        pair = self.query.closest(pose) if isinstance(self.query, Distance) else self.query.closest_pair(pose)
        return np.asarray(p + np.asarray(pair.points) @ A.T)

    def derivatives(self, q: FloatArray) -> FloatArray:
        """∂S¹/∂q and ∂S²/∂q by differences, shape (2, 3, unknowns)."""
        count = self.problem.unknowns
        found = np.empty((2, 3, count))
        here = self.points(q) if self.scheme == "forward" else None
        for k in range(count):
            along = np.eye(count)[k]

            def at(h: float, along: FloatArray = along) -> FloatArray:
                return self.points(self.problem.retract(q, h * along))

            h = self.step
            if here is not None:
                found[..., k] = (at(h) - here) / h
                continue
            D = [(at(s) - at(-s)) / (2.0 * s) for s in ((h, 0.5 * h) if self.scheme == "richardson" else (h,))]
            found[..., k] = D[0] if self.scheme == "central" else (4.0 * D[1] - D[0]) / 3.0
        return found

    def position(self, q: FloatArray) -> tuple[float, FloatArray]:
        """C^p [m²] and its gradient."""
        S, dS = self.points(q), self.derivatives(q)
        apart = S[0] - S[1]
        return float(apart @ apart), 2.0 * apart @ (dS[0] - dS[1])

    def gap(self, q: FloatArray) -> tuple[float, FloatArray]:
        """√C^p [m] and its gradient, which exists at a positive gap only."""
        value, row = self.position(q)
        distance = float(np.sqrt(value))
        if distance == 0.0:
            raise ModelError("the closest points coincide: √C^p has no gradient at contact; start with a gap")
        return distance, row / (2.0 * distance)

    def tangency(self, q: FloatArray) -> FloatArray:
        """C^tan: cosines between S¹ − S² and the tangents of both faces at the closest points.

        They vanish by themselves at closest points inside both faces, so C^tan removes no freedom.
        """
        if not isinstance(self.query, Distance):
            raise ModelError("C^tan needs the tangents of the faces, which this query does not give: use a Distance")
        S = self.points(q)
        found = []
        pair = self.query.closest(self._pose(q))
        for (_, A), face, own in zip(self._frames(q), self.faces, pair.parameters, strict=True):
            shape = face_geometry("the papers' contact", face)
            rows = shape._evaluate(np.asarray(own, dtype=float)[None, : shape.width], 1)[0, 1 : 1 + shape.freedoms]
            for tangent in rows @ A.T:
                found.append(tangent @ (S[0] - S[1]) / (np.linalg.norm(tangent) * np.linalg.norm(S[0] - S[1])))
        return np.array(found)

    def rolling(self, q: FloatArray) -> FloatArray:
        """∂Ċ^roll/∂q̇ in world, shape (3, unknowns): velocity of the contact on face a minus that on face b.

        A point that moves on a face has the velocity ∂S q̇ less that of the body's material point there.
        """
        S, dS = self.points(q), self.derivatives(q)
        rows = [dS[k] - self._material(q, k, S[k]) for k in (0, 1)]
        return np.asarray(rows[0] - rows[1])

    def _material(self, q: FloatArray, k: int, point: FloatArray) -> FloatArray:
        """Velocity of the material point of face k at a world point, by unit rates of the unknowns."""
        count = self.problem.unknowns
        found = np.zeros((3, count))
        p, A = self._frames(q)[k]
        local = A.T @ (point - p)
        for i in range(count):
            ends = []
            for h in (self.step, -self.step, 0.5 * self.step, -0.5 * self.step):
                r, B = self._frames(self.problem.retract(q, h * np.eye(count)[i]))[k]
                ends.append(r + B @ local)
            D = (ends[0] - ends[1]) / (2.0 * self.step), (ends[2] - ends[3]) / self.step
            found[:, i] = (4.0 * D[1] - D[0]) / 3.0
        return found

    def newton(
        self, q: FloatArray, steps: int, law: Literal["position", "gap"] = "position"
    ) -> tuple[Any, list[float]]:
        """Newton's method (14) with the pseudo-inverse: the coordinates, and the gap [m] before each step and after."""
        gaps = [float(np.linalg.norm(np.subtract(*self.points(q))))]
        for _ in range(steps):
            f, J = self.problem.jacobian(q)
            if gaps[-1] <= CLOSED:
                break
            value, row = getattr(self, law)(q)
            step = np.linalg.lstsq(np.vstack([J, row]), -np.append(f, value), rcond=RANK)[0]
            q = self.problem.retract(q, step)
            gaps.append(float(np.linalg.norm(np.subtract(*self.points(q)))))
        return q, gaps


@dataclass(frozen=True, slots=True)
class Study:
    """Gaps [m] of both iterations; time of f and J [µs]; errors of the derivatives by scheme; |C^tan|."""

    papers: tuple[float, ...]
    ours: tuple[float, ...]
    papers_microseconds: float
    ours_microseconds: float
    errors: dict[str, float]
    tangency: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def ratios(self) -> tuple[list[float], list[float]]:
        """g_{k+1}/g_k of the papers, which tends to one half, and g_{k+1}/g_k² [1/m] of ours, which stays bounded."""
        linear = [b / a for a, b in pairwise(self.papers) if b > STEP]  # below, differences reach across the contact
        return linear, [b / a**2 for a, b in pairwise(self.ours) if a > 1e-7]


def mechanism() -> tuple[Mechanism, Mechanism, FloatArray]:
    """The curve–curve mechanism of figure 8 with and without its contact, and a start with a gap."""
    from gallery import curve_pair
    from gallery.checks import without_drivers

    whole = without_drivers(curve_pair.build())
    whole["second"].position = (2.0 * curve_pair.A + 0.25, 0.03, 0.0)
    bare = whole.copy()
    bare.remove("touch")
    return whole, bare, whole.state.coordinates.copy()


def faces_of(m: Mechanism, names: tuple[str, str] = ("first", "second")) -> tuple[Attachment, Attachment]:
    """The curve or surface of each of two bodies."""
    a, b = (next(one for one in m[name].attachments if hasattr(one.shape, "geometry")) for name in names)
    return a, b


def study(steps: int = 12) -> Study:
    """Both iterations from the same start, and the differenced gradient of the gap against the exact one."""
    whole, bare, start = mechanism()
    papers = Papers(bare, faces_of(bare))
    q = papers.start(start)
    _, gaps = papers.newton(q, steps)
    ours, rows = [], formulations.problem(whole.system, "manifold")
    x = formulations.to_reference(whole.system, start)
    gap_row = _gap_row(whole)
    for _ in range(6):
        f, J = rows.jacobian(x)
        ours.append(abs(float(f[gap_row])))
        if ours[-1] <= CLOSED:
            break
        x = rows.retract(x, np.asarray(np.linalg.lstsq(J, -f, rcond=RANK)[0], dtype=np.float64))
    x = formulations.to_reference(whole.system, start)
    exact = rows.jacobian(x)[1][gap_row]
    errors = {}
    for scheme in get_args(Scheme):
        found = Papers(whole, faces_of(whole), scheme=scheme).gap(x)[1]  # in the same unknowns
        errors[scheme] = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    cost = [_best(lambda: papers.position(q)), _best(lambda: rows.jacobian(x))]
    tangency = float(np.abs(papers.tangency(q)).max())
    return Study(tuple(gaps), tuple(ours), 1e6 * cost[0], 1e6 * cost[1], errors, tangency)


def _gap_row(m: Mechanism) -> int:
    """Number of the row of the gap of the contact "touch"."""
    before = 0
    for name, joint in m.joints.items():
        if name == "touch":
            return before
        before += sum(relation.primitive.rows for relation in joint.relations)
    raise ModelError("there is no contact 'touch'")


def _best(work: Any, times: int = 5) -> float:
    """The least time [s] of some calls."""
    found = np.inf
    for _ in range(times):
        began = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - began)
    return float(found)


def picture(found: Study) -> Any:
    """Gaps against iterations."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 3.6), dpi=150)
    axes.semilogy(found.papers, "o-", color="#c8553d", label="C^p of the papers, by differences")
    ours = [max(gap, 1e-17) for gap in found.ours]
    axes.semilogy(ours, "s-", color="#2a6f97", label="the gap, with contact coordinates solved for")
    axes.set_xlabel("iteration")
    axes.set_ylabel("gap [m]")
    axes.set_title("two ellipses on hinges, Newton's method", fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure
