"""Contact points: where the faces, edges and corners of two solids that touch meet.

At the normal n of a pair, each solid has a face: the hull of the atoms that are highest along n, a polygon, a segment
or a point.  The contact points are the corners of the overlap of both faces, seen along n.  Of more than four corners,
four that are far from each other are kept.  A corner is where two edges cross; the numbers of these edges identify it
from one pose to the next.  Discs are seen as polygons whose corners are on the rim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cardan.collide import pairs
from cardan.collide.pairs import Gap
from cardan.collide.solids import FloatArray, Piece, Solid
from cardan.math import euler

FLAT = 1e-9  # of the size: atoms that are lower by this belong to the face
ROUNDING = 1e-13  # of the size: a gap of zero
TILTED = 1e-2  # of the size: the most that a face which is tilted within the tolerance may deviate
RIM = 16  # corners of a disc
MOST = 4  # points of a pair of convex pieces

Edges = tuple[tuple[int, ...], tuple[int, ...]]
Corner = tuple[FloatArray, Edges]  # place along the tangents; the edges of a and of b that meet there


def contact_points(a: Solid, pose_a: Any, b: Solid, pose_b: Any, *, within: float = 0.0) -> list[Gap]:
    """Points at which two solids touch, overlap, or are nearer than ``within`` [m]; none if they are farther apart.

    Each has the gap along the common normal of its pieces.  Its ``features`` identify it from one pose to the next:
    the pieces, and the two edges that meet there (numbers of atoms of a, then of b).
    """
    (a, b), poses = pairs.checked((a, b), (pose_a, pose_b))
    if len(a.pieces) == len(b.pieces) == 1:
        near = [pairs.gap(a, pose_a, b, pose_b)]
    else:
        apart = pairs.bounds(a, b, poses)
        chosen = np.argwhere(apart <= within)
        rows = pairs.contacts_of(a, b, poses, chosen)
        near = [pairs.read(row, pair, a.error + b.error) for row, pair in zip(rows, chosen.tolist(), strict=True)]
    found: list[Gap] = []
    size = sum(float(s.radii.max()) for s in (a, b) if not s.is_half_space)
    for pair in near:
        if pair.gap <= within + ROUNDING * size:
            found += [p for p in _of_pair(a, b, poses, pair, within) if not _is_known(p, found, FLAT * size)]
    return found


def _is_known(point: Gap, others: list[Gap], tolerance: float) -> bool:
    """Whether a neighbouring piece has the same point."""
    return any(np.abs(point.points - other.points).max() <= tolerance for other in others)


def _of_pair(a: Solid, b: Solid, poses: FloatArray, pair: Gap, within: float) -> list[Gap]:
    """The corners of the overlap of both faces."""
    n = pair.normal
    u = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    u /= np.linalg.norm(u)
    axes = np.stack([u, np.cross(n, u), n])
    origin = pair.points[0]
    pieces = a.pieces[pair.features[0]], b.pieces[pair.features[1]]
    size = sum(float(s.radii.max()) for s in (a, b) if not s.is_half_space)
    for depth in (max(FLAT * size, min(within - pair.gap, TILTED * size)), FLAT * size):
        faces: list[Any] = []
        planes: list[Any] = []
        for side, (solid, piece) in enumerate(((a, pieces[0]), (b, pieces[1]))):
            if solid.is_half_space:
                faces.append(None)
                planes.append(np.array([0.0, 0.0, 0.0]) if side == 0 else np.array([0.0, 0.0, pair.gap]))
                continue
            local, atoms = _face(piece, poses[side], -n if side else n, depth)
            rows = (local - origin) @ axes.T
            plane, *_ = np.linalg.lstsq(np.column_stack([rows[:, :2], np.ones(len(rows))]), rows[:, 2], rcond=1e-9)
            is_flat = np.abs(rows[:, :2] @ plane[:2] + plane[2] - rows[:, 2]).max() <= FLAT * size
            planes.append(plane if is_flat else None)
            faces.append(_polygon(rows[:, :2], atoms, FLAT * size))
        if all(plane is not None for plane in planes):
            break
    corners = _overlap(faces[0], faces[1], FLAT * size)
    if len(corners) > MOST:
        corners = _spread(corners)
    made = []
    for place, edges in corners:
        low, high = (float(place @ plane[:2] + plane[2]) if plane is not None else None for plane in planes)
        low, high = 0.0 if low is None else low, pair.gap if high is None else high
        if high - low <= within + FLAT * size:
            points = np.stack([origin + np.array([*place, z]) @ axes for z in (low, high)])
            features = (*pair.features[:2], *edges)
            made.append(replace(pair, gap=high - low, points=points, features=features))
    return made or [pair]


def _face(piece: Piece, pose: FloatArray, n: FloatArray, depth: float) -> tuple[FloatArray, list[int]]:
    """Points of a piece that are highest along n, in world axes, and their numbers; those of a rim are distinct."""
    R = euler.matrix(pose[3:])
    local = R.T @ n
    c, r, e, m = piece.atoms[:, :3], piece.atoms[:, 3], piece.atoms[:, 4:7], piece.atoms[:, 7:10]
    across = local - (e @ local)[:, None] * e
    length = np.linalg.norm(across, axis=1)
    w = across / np.maximum(length, 1e-300)[:, None]
    out = (length > 0.0) & (piece.atoms[:, 10] > -2.0) & (np.einsum("ij,ij->i", w, m) < piece.atoms[:, 10])
    is_disc = (r > 0.0) & (length * r <= 0.5 * depth)
    height = c @ local + np.where(is_disc, 0.0, r * length)
    height[out & ~is_disc] = -np.inf
    rows, numbers = [], []
    for k in np.flatnonzero(height >= height.max() - depth).tolist():
        if not is_disc[k]:
            rows.append(c[k] + (r[k] * w[k] if r[k] else 0.0))
            numbers.append(k * RIM)
            continue
        side = np.cross(e[k], m[k])
        angles = 2.0 * np.pi * np.arange(RIM) / RIM
        for j, x in enumerate(angles.tolist()):
            if np.cos(x) >= piece.atoms[k, 10] - 1e-12:
                rows.append(c[k] + r[k] * (np.cos(x) * m[k] + np.sin(x) * side))
                numbers.append(k * RIM + j)
    return (np.array(rows) + piece.growth * local) @ R.T + pose[:3], numbers


def _polygon(rows: FloatArray, numbers: list[int], tolerance: float) -> list[tuple[FloatArray, int]]:
    """The hull of points in the plane, anticlockwise, each with its number: also that of the edge that leaves it."""
    kept: list[int] = []
    for k in range(len(rows)):
        if all(np.abs(rows[k] - rows[j]).max() > tolerance for j in kept):
            kept.append(k)
    kept.sort(key=lambda k: (rows[k, 0], rows[k, 1]))
    if len(kept) < 3:
        return [(rows[k], numbers[k]) for k in kept]
    chain: list[int] = []
    for way in (kept, kept[::-1]):
        part: list[int] = []
        for k in way:
            while len(part) > 1 and _offset(rows[part[-2]], rows[part[-1]], rows[k]) <= tolerance:
                part.pop()
            part.append(k)
        chain += part[:-1]
    return [(rows[k], numbers[k]) for k in chain]


def _offset(o: FloatArray, p: FloatArray, q: FloatArray) -> float:
    """Distance of p from the line o q, positive on its right."""
    d = q - o
    length = float(np.hypot(*d))
    return float(d[1] * (p - o)[0] - d[0] * (p - o)[1]) / length if length else 0.0


def _overlap(a: Any, b: Any, tolerance: float) -> list[Corner]:
    """Corners of the overlap of two faces; None is the whole plane."""
    if a is None or b is None:
        return [(p, ((k,), ()) if b is None else ((), (k,))) for p, k in (a if b is None else b)]
    if len(a) >= 3:
        return [(p, edges[::-1]) for p, edges in _clipped(b, a, tolerance)]
    if len(b) >= 3:
        return _clipped(a, b, tolerance)
    if len(a) == 2 and len(b) == 2:
        d, e = a[1][0] - a[0][0], b[1][0] - b[0][0]
        if abs(d[0] * e[1] - d[1] * e[0]) <= 1e-9 * float(np.hypot(*d) * np.hypot(*e)):  # along each other
            unit = d / np.hypot(*d)
            ends = sorted([(float(p @ unit), p, 0, k) for p, k in a] + [(float(p @ unit), p, 1, k) for p, k in b],
                          key=lambda end: end[0])  # fmt: skip
            return [(p, ((k,), ()) if side == 0 else ((), (k,))) for _, p, side, k in ends[1:3]]
    return []  # one point


def _clipped(subject: Any, window: Any, tolerance: float) -> list[Corner]:
    """The part of a polygon, segment or point within a polygon.  [Sutherland1974]"""
    is_closed = len(subject) > 2
    rows: list[tuple[FloatArray, int]] = list(subject)  # a corner, and the edge that leaves it: −1 − k of the window
    for o, edge in window:
        d = window[([k for _, k in window].index(edge) + 1) % len(window)][0] - o
        d = d / np.hypot(*d)
        inside = [float(d[0] * (p - o)[1] - d[1] * (p - o)[0]) for p, _ in rows]
        kept: list[tuple[FloatArray, int]] = []
        for k, (p, mine) in enumerate(rows):
            if inside[k] >= -tolerance:
                kept.append((p, mine))
            if k + 1 == len(rows) and not is_closed:
                continue
            l = (k + 1) % len(rows)
            if (inside[k] >= -tolerance) != (inside[l] >= -tolerance):
                t = inside[k] / (inside[k] - inside[l])
                leaving = mine if is_closed and inside[l] >= -tolerance else -1 - edge
                kept.append((p + min(max(t, 0.0), 1.0) * (rows[l][0] - p), leaving))
        rows = kept
        if not rows:
            return []
    found: list[Corner] = []
    for k, (p, leaving) in enumerate(rows):
        if all(np.abs(p - q).max() > tolerance for q, _ in found):
            met = sorted({rows[k - 1][1], leaving} if is_closed else {leaving})
            found.append((p, (tuple(e for e in met if e >= 0), tuple(-1 - e for e in met if e < 0))))
    return found


def _spread(corners: list[Corner]) -> list[Corner]:
    """Four corners that are far from each other: the ends of the longest diagonal, and the farthest on both sides."""
    corners = sorted(corners, key=lambda corner: corner[1])  # so that the choice does not depend on the pose
    rows = np.array([p for p, _ in corners])
    apart = np.linalg.norm(rows[:, None] - rows, axis=2)
    i, j = (int(k) for k in np.unravel_index(_first(apart), apart.shape))
    d = rows[j] - rows[i]
    side = d[0] * (rows - rows[i])[:, 1] - d[1] * (rows - rows[i])[:, 0]
    return [corners[k] for k in sorted({i, j, _first(side), _first(-side)})]


def _first(values: FloatArray) -> int:
    """Place of the first of the largest values, up to rounding."""
    return int(np.argmax(values >= values.max() - 1e-9 * abs(values).max()))
