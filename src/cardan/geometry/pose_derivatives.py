"""Derivatives of the closest pair with respect to the pose of b: exact, and by differences as in [NelsonCohen1998].

Exact, by the implicit function theorem.  With r = S¹ − R S² − t, V = ∂r/∂x and g = Vᵀr = 0 at a closest pair,

    H dx = −∂g/∂(t, θ),   ∂r/∂t = −1,   ∂r/∂θ = R [S²]×,   ∂(R S²_j)/∂θ = −R [S²_j]×,

where θ turns b in its own axes: R ← R exp[θ]×.  Parameters at active bounds do not change.  Where the distance is
nearly zero H is singular, and the regular pair r·S¹_i = 0, N¹·R S²_j = 0 takes its place.

Differences need only an object with ``closest_pair(pose)``, whose result has ``points``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray
from cardan.geometry.distance import Distance, Pair, pose_of
from cardan.math import euler

Scheme = Literal["forward", "central", "richardson"]
Chart = Literal["tangent", "renormalise", "drop", "angles"]

NEAR = 1e-6  # of the size: closer than this, the regular pair is used
ACTIVE = 1e-12  # of the range of a parameter: it is at its bound
SINGULAR = 1e-10  # of the largest singular value of H in lengths: the closest pair is not isolated


def exact(distance: Distance, pose: Any, pair: Pair) -> tuple[FloatArray, FloatArray]:
    """∂points/∂(t, θ), shape (2, 3, 6), in the axes of a, and ∂distance/∂(t, θ), shape (6,).

    At contact the second is the derivative of the gap.
    """
    if not isinstance(distance, Distance):
        raise ModelError(f"{distance!r:.80} is no Distance; exact derivatives need one, and a pair of it")
    if not isinstance(pair, Pair):
        raise ModelError(f"the pair is {pair!r:.80}; it must be a Pair, such as that of closest(pose)")
    if hasattr(distance.a, "faces") or hasattr(distance.b, "faces"):
        raise ModelError("a mesh has no exact derivatives of closest pairs; use differences")
    p = pose_of(pose)
    R = euler.matrix(euler.normalize(p[3:]))
    shapes = [tree.patches[k].shape for tree, k in zip(distance.trees, pair.patches, strict=True)]
    limits = [tree.patches[k].limits for tree, k in zip(distance.trees, pair.patches, strict=True)]
    x = [_parameters(s, q, pair, k, distance) for k, (s, q) in enumerate(zip(shapes, pair.parameters, strict=True))]
    A, B = (shape._evaluate(q[None], 2)[0] for shape, q in zip(shapes, x, strict=True))
    f, s = shapes[0].freedoms, shapes[1].freedoms
    moved = B @ R.T
    r = A[0] - moved[0] - p[:3]
    by_pose = np.hstack([-np.eye(3), R @ euler.tilde(B[0])])  # ∂r/∂(t, θ)
    V = np.concatenate([A[1 : 1 + f], -moved[1 : 1 + s]])
    turned = [-np.hstack([np.zeros((3, 3)), -R @ euler.tilde(B[1 + j])]) for j in range(s)]  # ∂(−R S²_j)/∂(t, θ)
    free = [k for k in range(f + s) if not _at_bound(k, f, x, limits)]
    if np.linalg.norm(r) > NEAR * distance.size or f != 2 or s != 2 or len(free) < 4:
        H = V @ V.T
        for rows, first, count, sign in ((A, 0, f, 1.0), (moved, f, s, -1.0)):
            for i in range(count):
                for j in range(count):
                    H[first + i, first + j] += sign * (rows[1 + count + i + j] @ r)
        g = V @ by_pose
        for j in range(s):
            g[f + j] += r @ turned[j]
    else:
        N = np.cross(A[1], A[2])
        dN = [np.cross(A[3 + k], A[2]) + np.cross(A[1], A[4 + k]) for k in range(2)]
        H, g = np.zeros((4, 4)), np.zeros((4, 6))
        for i in range(2):
            H[i] = V @ A[1 + i]
            H[i, :2] += [r @ A[3 + i], r @ A[3 + i + 1]]
            H[2 + i, :2] = [dN[k] @ moved[1 + i] for k in range(2)]
            H[2 + i, 2:] = [N @ moved[3 + i + k] for k in range(2)]
            g[i] = A[1 + i] @ by_pose
            g[2 + i] = -N @ turned[i]
    dx = np.zeros((f + s, 6))
    if free:
        dx[free] = _solved(H[np.ix_(free, free)], -g[free], np.linalg.norm(V[free], axis=1))
    by_a = np.tensordot(A[1 : 1 + f].T, dx[:f], axes=1)
    by_b = np.tensordot(moved[1 : 1 + s].T, dx[f:], axes=1) - by_pose
    length = np.linalg.norm(r)
    n = r / length if length > NEAR * distance.size else -np.cross(A[1], A[2]) / np.linalg.norm(np.cross(A[1], A[2]))
    return np.stack([by_a, by_b]), np.asarray(n @ by_pose)


def _solved(H: FloatArray, g: FloatArray, lengths: FloatArray) -> FloatArray:
    """H⁻¹g; ModelError if H is singular when parameters are measured by the lengths that they move."""
    sizes = np.where(lengths > 0.0, lengths, 1.0)
    values = np.linalg.svd(H / sizes[:, None] / sizes, compute_uv=False)
    if not values[-1] > SINGULAR * values[0]:
        raise ModelError(
            "the closest pair is not isolated (as of concentric spheres or parallel faces), so it has no derivative; "
            "the distance has one"
        )
    return np.asarray(np.linalg.solve(H, g))


def _parameters(shape: Any, q: FloatArray, pair: Pair, k: int, distance: Distance) -> FloatArray:
    """Parameters of a patch; those of a sphere are in its chart."""
    owner = (distance.a, distance.b)[k]
    if owner.width != owner.freedoms:
        m = q
        chart = pair.patches[k] - (distance.trees[k].smooth if pair.patches[k] >= distance.trees[k].smooth else 0)
        a, b, c = (m[0], m[1], 1.0 + m[2]) if chart == 0 else (m[1], m[0], 1.0 - m[2])
        return np.array([a / c, b / c])
    return np.asarray(q[: shape.freedoms])


def _at_bound(k: int, f: int, x: list[FloatArray], limits: list[Sequence[float]]) -> bool:
    shape, i = (0, k) if k < f else (1, k - f)
    low, high, period = limits[shape][3 * i : 3 * i + 3]
    near = ACTIVE * (high - low)
    return bool(not period and (x[shape][i] <= low + near or x[shape][i] >= high - near))


def chart_map(pose: Any, chart: Chart) -> FloatArray:
    """B, shape (6, n): rates (ṫ, ω in body axes) per unit rate of each coordinate of the chart."""
    p = euler.normalize(pose_of(pose)[3:])
    if chart == "tangent":
        turn = np.eye(3)
    elif chart == "renormalise":
        turn = 2.0 * euler.G(p)
    elif chart == "drop":
        k = int(np.argmax(np.abs(p)))
        rest = [i for i in range(4) if i != k]
        turn = 2.0 * (euler.G(p)[:, rest] - np.outer(euler.G(p)[:, k], p[rest] / p[k]))
    else:
        _, theta, psi = euler.as_zxz(p)
        c, s = np.cos(psi), np.sin(psi)
        turn = np.array([[s * np.sin(theta), c, 0.0], [c * np.sin(theta), -s, 0.0], [np.cos(theta), 0.0, 1.0]])
    B = np.zeros((6, 3 + turn.shape[1]))
    B[:3, :3] = np.eye(3)
    B[3:, 3:] = turn
    return B


def moved(pose: FloatArray, chart: Chart, k: int, h: float) -> FloatArray:
    """The pose with coordinate k of the chart increased by h."""
    found = pose.copy()
    p = euler.normalize(pose[3:])
    if k < 3:
        found[k] += h
        return found
    if chart == "tangent":
        p = euler.retract(p, h * np.eye(3)[k - 3])
    elif chart == "renormalise":
        p[k - 3] += h
        p /= np.linalg.norm(p)
    elif chart == "drop":
        largest = int(np.argmax(np.abs(p)))
        rest = [i for i in range(4) if i != largest]
        sign = np.sign(p[largest])
        p[rest[k - 3]] += h
        p[largest] = sign * np.sqrt(1.0 - (p[rest] ** 2).sum())
    else:
        angles = np.array(euler.as_zxz(p))
        angles[k - 3] += h
        p = euler.from_zxz(angles)
    found[3:] = p
    return found


def differences(
    query: Any, pose: Any, *, scheme: Scheme = "richardson", chart: Chart = "tangent", h: float = 1e-3
) -> FloatArray:
    """∂points/∂(coordinates of the chart), shape (2, 3, n), by differences.

    query: an object with closest_pair(pose), or a :class:`Distance` (a local search from its last pair).
    richardson: (4 D(h/2) − D(h))/3 with central differences D.
    """
    for value, kind, what in ((scheme, Scheme, "scheme"), (chart, Chart, "chart")):
        if value not in get_args(kind):
            raise ModelError(f"the {what} is {value!r}; it must be one of {', '.join(map(repr, get_args(kind)))}")
    if not h > 0.0:
        raise ModelError(f"the step h is {h}; it must be above zero")
    p = pose_of(pose).copy()
    if isinstance(query, Distance):
        start = query.closest(p)

        def points(at: FloatArray) -> FloatArray:
            return query.track(at, start).points

    elif callable(getattr(query, "closest_pair", None)):

        def points(at: FloatArray) -> FloatArray:
            return np.asarray(query.closest_pair(at).points, dtype=float)

    else:
        raise ModelError(f"{query!r} has no closest_pair(pose); differences need a Distance or such an object")
    count = chart_map(p, chart).shape[1]
    found = np.empty((2, 3, count))
    here = points(p) if scheme == "forward" else None
    for k in range(count):
        if here is not None:
            found[..., k] = (points(moved(p, chart, k, h)) - here) / h
            continue
        D = [
            (points(moved(p, chart, k, s)) - points(moved(p, chart, k, -s))) / (2.0 * s)
            for s in ((h, 0.5 * h) if scheme == "richardson" else (h,))
        ]
        found[..., k] = D[0] if scheme == "central" else (4.0 * D[1] - D[0]) / 3.0
    return found
