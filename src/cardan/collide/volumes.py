"""Volumes of overlaps: closed forms, convex polytopes, and round solids refined by chords."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.collide import pairs
from cardan.collide.solids import FloatArray, Piece, Solid
from cardan.errors import ModelError
from cardan.math import euler
from cardan.shapes.solids import Cylinder, Sphere, lathe

CHORDS = (48, 96)  # of a circle; the error is of the second order, and is extrapolated
PARALLEL = 1e-9  # rad: axes of cylinders
LEAST_BALL = 1e-12  # of the size: an overlap in which no larger ball fits has no volume


@dataclass(frozen=True, slots=True)
class Volume:
    """Of an overlap: ``value`` [m³], and ``error`` [m³]: 0 if it is rounding alone, else an estimate, and no bound."""

    value: float
    error: float


def overlap_volume(a: Solid, pose_a: Any, b: Solid, pose_b: Any) -> Volume:
    """The volume that two solids have in common; of a half-space, what is below its plane."""
    (a, b), poses = pairs.checked((a, b), (pose_a, pose_b))
    if a.is_half_space and b.is_half_space:
        raise ModelError("both solids are half-spaces: their overlap is not bounded; give a shape for one of them")
    closed = _closed_form(a, b, poses)
    if closed is not None:
        return Volume(closed, 0.0)
    chosen = np.argwhere(pairs.bounds(a, b, poses) < 0.0)
    rows = pairs.contacts_of(a, b, poses, chosen)
    value = error = 0.0
    for (i, j), row in zip(chosen.tolist(), rows, strict=True):
        if row["gap"] < 0.0:
            found = _of_pieces((a, b), (a.pieces[i], b.pieces[j]), poses)
            value, error = value + found.value, error + found.error
    if a.error or b.error:  # a layer on the surface of a cube of that volume; that of a thin overlap is larger
        error += (a.error + b.error) * 6.0 * value ** (2.0 / 3.0)
    return Volume(value, error)


def _closed_form(a: Solid, b: Solid, poses: FloatArray) -> float | None:
    """Spheres; a sphere and a half-space; cylinders with parallel axes."""
    if a.is_half_space or isinstance(b.shape, Sphere):
        a, b, poses = b, a, poses[::-1]
    if isinstance(a.shape, Sphere):
        r = a.shape.radius
        if b.is_half_space:
            depth = r - float((poses[0, :3] - poses[1, :3]) @ euler.matrix(poses[1, 3:])[:, 2])
            return _cap(r, min(max(depth, 0.0), 2.0 * r))
        if isinstance(b.shape, Sphere):
            return _lens(r, b.shape.radius, float(np.linalg.norm(poses[0, :3] - poses[1, :3])))
        return None
    one, other = a.shape, b.shape
    if not (isinstance(one, Cylinder) and isinstance(other, Cylinder)) or one.bore or other.bore:
        return None
    z, w = (euler.matrix(pose[3:])[:, 2] for pose in poses)
    if np.linalg.norm(np.cross(z, w)) > PARALLEL:
        return None
    d = poses[1, :3] - poses[0, :3]
    along = float(d @ z)
    height = min(0.5 * one.height, along + 0.5 * other.height) - max(-0.5 * one.height, along - 0.5 * other.height)
    return max(height, 0.0) * _lune(one.radius, other.radius, float(np.linalg.norm(d - along * z)))


def _cap(r: float, h: float) -> float:
    """Of a sphere, of height h: π h² (r − h/3)."""
    return math.pi * h * h * (r - h / 3.0)


def _lens(r: float, q: float, d: float) -> float:
    """Of two spheres at the distance d: a cap of each."""
    if d >= r + q:
        return 0.0
    if d <= abs(r - q):
        return 4.0 / 3.0 * math.pi * min(r, q) ** 3
    x = 0.5 * (d + (r - q) * (r + q) / d)  # of the plane of their circle
    return _cap(r, r - x) + _cap(q, q - (d - x))


def _lune(r: float, q: float, d: float) -> float:
    """Area [m²] of the overlap of two discs at the distance d: a segment of each."""
    if d >= r + q:
        return 0.0
    if d <= abs(r - q):
        return math.pi * min(r, q) ** 2
    x = 0.5 * (d + (r - q) * (r + q) / d)
    y = math.sqrt(max(0.0, (r - x) * (r + x)))
    return r * r * math.atan2(y, x) - x * y + q * q * math.atan2(y, d - x) - (d - x) * y


def _of_pieces(solids: tuple[Solid, Solid], pieces: tuple[Piece, Piece], poses: FloatArray) -> Volume:
    """Of polytopes, exact; of round pieces V = V₉₆ + (V₉₆ − V₄₈)/3, whose last term is the error."""
    is_round = any(bool(p.growth or p.atoms[:, 3].any()) for p in pieces)
    found = []
    for chords in CHORDS if is_round else CHORDS[:1]:
        sides = []
        for solid, piece, pose in zip(solids, pieces, poses, strict=True):
            R, t = euler.matrix(pose[3:]), pose[:3] - poses[0, :3]
            if solid.is_half_space:
                sides.append(np.array([[*R[:, 2], -R[:, 2] @ t]]))
                continue
            sides.append(_planes(_vertices(piece, chords) @ R.T + t))
        found.append(_common(np.concatenate(sides)))
    if not is_round:
        return Volume(found[0], 0.0)
    change = (found[1] - found[0]) / 3.0
    return Volume(found[1] + change, abs(change))


def _vertices(piece: Piece, chords: int) -> FloatArray:
    """Corners of a polytope with its corners on a piece."""
    angles = 2.0 * math.pi * (np.arange(chords) + 0.5) / chords
    rows = []
    for atom in piece.atoms:
        c, r, e, m = atom[:3], atom[3], atom[4:7], atom[7:10]
        if r == 0.0:
            rows.append(c[None])
            continue
        side = np.cross(e, m)
        half = math.pi if atom[10] < -1.0 else math.acos(atom[10])
        x = angles if half == math.pi else np.linspace(-half, half, max(2, math.ceil(chords * half / math.pi)) + 1)
        rows.append(c + r * (np.cos(x)[:, None] * m + np.sin(x)[:, None] * side))
    found = np.concatenate(rows)
    if piece.growth:
        angle = math.pi * (np.arange(chords // 2 + 1) / (chords // 2) - 0.5)
        profile = piece.growth * np.column_stack([np.cos(angle), np.sin(angle)])
        profile[[0, -1], 0] = 0.0
        found = (found[:, None] + lathe(profile, chords).vertices).reshape(-1, 3)
    return found


def _planes(vertices: FloatArray) -> FloatArray:
    """Rows (n, −d) with n·x ≤ d of a polytope."""
    from scipy.spatial import ConvexHull

    return np.unique(np.asarray(ConvexHull(vertices).equations), axis=0)


def _common(planes: FloatArray) -> float:
    """Volume where all n·x − d ≤ 0; 0 if no ball fits into it."""
    from scipy.optimize import linprog
    from scipy.spatial import ConvexHull, HalfspaceIntersection

    rows = np.column_stack([planes[:, :3], np.ones(len(planes))])
    inside = linprog([0.0, 0.0, 0.0, -1.0], A_ub=rows, b_ub=-planes[:, 3], bounds=[(None, None)] * 3 + [(0.0, None)])
    if inside.status != 0 or inside.x[3] <= LEAST_BALL * float(np.abs(planes[:, 3]).max()):
        return 0.0
    corners = HalfspaceIntersection(planes, inside.x[:3]).intersections
    return float(ConvexHull(corners).volume)
