"""Benchmark mechanisms independent of any solver: geometry, random starts, and one judge for all programs.

A :class:`Model` has bodies 1, 2, … (0 is the ground), each with a reference pose (R, p) that satisfies all joints, and
joints with points and axes in the axes of the two bodies they connect.  An adapter converts a model to the input of a
program and returns poses ``{body: (R, p)}``; :meth:`Model.residual` judges all programs by the same equations.  Units
are metres, kilograms, seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Pose = tuple[np.ndarray, np.ndarray]

Z = np.array([0.0, 0.0, 1.0])


def unit(v) -> np.ndarray:
    return np.asarray(v, dtype=float) / np.linalg.norm(v)


def rotation(axis, angle: float) -> np.ndarray:
    """Rotation matrix about an axis (Rodrigues)."""
    x, y, z = unit(axis)
    tilde = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * tilde + (1.0 - np.cos(angle)) * tilde @ tilde


def matrix(quaternion) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = unit(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion(R: np.ndarray) -> np.ndarray:
    """Unit quaternion (w, x, y, z) of a rotation matrix, by its largest component."""
    squares = np.array([np.trace(R), R[0, 0], R[1, 1], R[2, 2]])
    k = int(np.argmax(squares))
    if k == 0:
        q = np.array([1 + squares[0], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    else:
        i = k - 1
        j, m = (i + 1) % 3, (i + 2) % 3
        q = np.empty(4)
        q[0] = R[m, j] - R[j, m]
        q[1 + i] = 1 + R[i, i] - R[j, j] - R[m, m]
        q[1 + j] = R[j, i] + R[i, j]
        q[1 + m] = R[m, i] + R[i, m]
    return unit(q)


def link_frame(x, z_hint) -> np.ndarray:
    """Axes with x along the first direction and z near the second, as columns."""
    x = unit(x)
    z = unit(z_hint - x * (x @ z_hint))
    return np.column_stack([x, np.cross(z, x), z])


@dataclass(frozen=True)
class Joint:
    """A joint between bodies i and j: points [m] and, if the kind needs them, unit axes, each in its body's axes."""

    kind: str
    i: int
    j: int
    point_i: np.ndarray
    point_j: np.ndarray
    axis_i: np.ndarray | None = None
    axis_j: np.ndarray | None = None
    length: float | None = None
    rotation: np.ndarray | None = None  # R_iᵀ R_j in the reference pose, for slides


@dataclass
class Model:
    name: str
    span: float = 3.0  # largest offset of a uniform start [m]
    reference: dict[int, Pose] = field(default_factory=lambda: {0: (np.eye(3), np.zeros(3))})
    joints: list[Joint] = field(default_factory=list)

    def body(self, R: np.ndarray, p) -> int:
        number = len(self.reference)
        self.reference[number] = (np.asarray(R, dtype=float), np.asarray(p, dtype=float))
        return number

    def joint(self, kind: str, i: int, j: int, point, axis=None, axis_j=None) -> None:
        """Point and axes are given in world coordinates at the reference pose."""
        (R_i, p_i), (R_j, p_j) = self.reference[i], self.reference[j]
        first = None if axis is None else R_i.T @ unit(axis)
        second = None if axis is None else R_j.T @ unit(axis if axis_j is None else axis_j)
        self.joints.append(
            Joint(kind, i, j, R_i.T @ (point - p_i), R_j.T @ (point - p_j), first, second, rotation=R_i.T @ R_j)
        )

    def distance(self, i: int, j: int, point_i, point_j) -> None:
        """Fix the distance of two points at its value in the reference pose."""
        (R_i, p_i), (R_j, p_j) = self.reference[i], self.reference[j]
        length = float(np.linalg.norm(point_j - point_i))
        self.joints.append(Joint("distance", i, j, R_i.T @ (point_i - p_i), R_j.T @ (point_j - p_j), length=length))

    def residual(self, poses: dict[int, Pose]) -> float:
        """Largest violation: metres for points, sines for axes; inf if a number is not finite."""
        placed = {**poses, 0: self.reference[0]}
        worst = 0.0
        for c in self.joints:
            (R_i, p_i), (R_j, p_j) = placed[c.i], placed[c.j]
            gap = R_j @ c.point_j + p_j - R_i @ c.point_i - p_i
            parts = []
            if c.kind in ("spherical", "revolute", "universal"):
                parts.append(np.abs(gap).max())
            if c.kind == "distance":
                parts.append(abs(np.linalg.norm(gap) - c.length))
            if c.kind in ("revolute", "prismatic"):
                parts.append(np.linalg.norm(np.cross(R_i @ c.axis_i, R_j @ c.axis_j)))
            if c.kind == "universal":
                parts.append(abs((R_i @ c.axis_i) @ (R_j @ c.axis_j)))
            if c.kind == "prismatic":
                axis = R_i @ c.axis_i
                parts.append(np.linalg.norm(gap - axis * (axis @ gap)))
                off = c.rotation.T @ (R_i.T @ R_j)
                parts.append(np.abs(off - np.diag(np.diag(off))).max())  # half turns are accepted
            worst = max(worst, *map(float, parts))
            if not np.isfinite(parts).all():
                return float("inf")
        return worst

    def start(self, seed: int, kind: str = "uniform") -> dict[int, Pose]:
        """``bad``: within ± 1 m and 90° of the reference; ``uniform``: within ± span of it, at random orientations."""
        rng = np.random.default_rng(seed)
        poses = {}
        for body, (R, p) in self.reference.items():
            if body == 0:
                continue
            if kind == "bad":
                orientation = R @ rotation(rng.normal(size=3), rng.uniform(0, np.pi / 2))
                poses[body] = (orientation, p + rng.uniform(-1, 1, 3))
            else:
                orientation = matrix(rng.normal(size=4))
                poses[body] = (orientation, p + rng.uniform(-1, 1, 3) * self.span)
        return poses


def rsur() -> Model:
    """Spatial four-bar: crank 1 m, rocker 2 m; revolute, ball, universal joint, revolute; one degree of freedom."""
    model = Model("RSUR")
    A, B = np.zeros(3), np.array([np.cos(0.7), np.sin(0.7), 0.0])
    D, axis_D = np.array([3.0, 0.0, 1.0]), unit([0.0, 1.0, 0.3])
    up = np.array([0.2, 0.0, 1.0])
    C = D + 2.0 * unit(up - axis_D * (axis_D @ up))
    pin = unit(np.cross(axis_D, C - B))
    crank = model.body(link_frame(B - A, Z), A)
    coupler = model.body(link_frame(C - B, pin), B)
    rocker = model.body(link_frame(C - D, axis_D), D)
    model.joint("revolute", 0, crank, A, Z)
    model.joint("spherical", crank, coupler, B)
    model.joint("universal", coupler, rocker, C, pin, axis_D)
    model.joint("revolute", 0, rocker, D, axis_D)
    return model


def _hexapod() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Base points, platform points in platform axes [m], and the platform's pose."""
    base, top = np.deg2rad([-10, 10, 110, 130, 230, 250]), np.deg2rad([-50, 50, 70, 170, 190, 290])
    b = np.column_stack([np.cos(base), np.sin(base), 0 * base])
    p = np.column_stack([0.6 * np.cos(top), 0.6 * np.sin(top), 0 * top])
    return b, p, rotation([1, 2, 3], 0.2), np.array([0.05, -0.04, 1.2])


def stewart_distance() -> Model:
    """Stewart platform as one body on six rods of fixed length; no degree of freedom."""
    model = Model("Stewart 6-distance")
    b, p, R, r = _hexapod()
    platform = model.body(R, r)
    for k in range(6):
        model.distance(0, platform, b[k], R @ p[k] + r)
    return model


def stewart_ups() -> Model:
    """Stewart platform with universal joint, slide and ball in each leg: 13 bodies, 72 equations, six freedoms."""
    model = Model("Stewart UPS")
    b, p, R, r = _hexapod()
    platform = model.body(R, r)
    for k in range(6):
        top = R @ p[k] + r
        along = unit(top - b[k])
        pin = unit(np.cross(along, Z))
        axes = link_frame(along, pin)
        lower, upper = model.body(axes, b[k]), model.body(axes, top)
        model.joint("universal", 0, lower, b[k], np.cross(Z, pin), pin)
        model.joint("prismatic", lower, upper, 0.5 * (b[k] + top), along)
        model.joint("spherical", upper, platform, top)
    return model


def planar_4r() -> Model:
    """Planar four-bar of four parallel hinges: Grübler −2, one degree of freedom, three redundant equations."""
    model = Model("planar 4R")
    A, B, D = np.zeros(3), np.array([np.cos(1.0), np.sin(1.0), 0.0]), np.array([3.0, 0.0, 0.0])
    rod, rocker_length = 3.0, 2.0
    apart = float(np.linalg.norm(D - B))
    along = (rod**2 - rocker_length**2 + apart**2) / (2 * apart)
    e = (D - B) / apart
    C = B + along * e + np.sqrt(rod**2 - along**2) * np.array([-e[1], e[0], 0.0])
    crank, coupler, rocker = (model.body(link_frame(tip - foot, Z), foot) for foot, tip in ((A, B), (B, C), (D, C)))
    model.joint("revolute", 0, crank, A, Z)
    model.joint("revolute", crank, coupler, B, Z)
    model.joint("revolute", coupler, rocker, C, Z)
    model.joint("revolute", 0, rocker, D, Z)
    return model


def chain(count: int, *, closed: bool = True) -> Model:
    """A zigzag of unit links with ball joints from the origin; closed: the far end is pinned too, at x = 0.6·count."""
    model = Model(f"chain {count}", span=0.6 * count)
    at = np.zeros(3)
    ends = [at]
    for k in range(count):
        along = np.array([0.6, 0.0, -0.8 if k % 2 == 0 else 0.8])
        model.body(link_frame(along, np.array([0.0, 1.0, 0.0])), at)
        at = at + along
        ends.append(at)
    for k in range(count):
        model.joint("spherical", k, k + 1, ends[k])
    if closed:
        model.joint("spherical", count, 0, ends[count])
    return model
