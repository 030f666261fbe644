"""Convex cells of a closed mesh, which is cut by planes of its own faces: exact, without chords.

A node is a convex cell and the triangles in it.  If no triangle has another one in front of its plane, the inside of
the mesh in this cell is convex: it is the hull of the corners of the triangles, and of the corners of the cell that no
triangle has in front of it.  Otherwise the cell is cut by the plane of a triangle that has others in front and cuts the
fewest [Fuchs1980].  A cell without triangles is inside the mesh or outside, as its middle is: the solid angles of all
triangles have the sum 4π or 0.

The volumes of the cells have the sum of that of the mesh, unless its triangles cross each other.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NEAR: Final = 1e-9  # of the size: points that are nearer to a plane are on it
MOST: Final = 4000  # cells
TRIED: Final = 48  # planes that are compared for a cut
AT_ONCE: Final = 4_000_000  # heights in one array
CUT: Final = 4  # a triangle that is cut counts as this many that are not balanced
SAME: Final = 1e-6  # of the volume of the hull: the most by which volumes differ


def cells(vertices: FloatArray, faces: IntArray, volume: float, name: str) -> list[FloatArray]:
    """Corners of convex cells, shape (n, 3) each, whose union a closed mesh encloses; volume: of the mesh [m³]."""
    return _Cutting(vertices, faces, name).run(volume)


class _Cutting:
    """One mesh, and the cells found so far."""

    def __init__(self, vertices: FloatArray, faces: IntArray, name: str) -> None:
        self._name = name
        corners = vertices[faces]
        n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = np.linalg.norm(n, axis=1)
        self._size = float(np.ptp(vertices, axis=0).max())
        self._near = NEAR * self._size
        longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
        kept = area > self._near * longest  # triangles without area bound nothing
        self._corners: FloatArray = corners[kept]
        self._normals: FloatArray = n[kept] / area[kept, None]
        self._heights: FloatArray = np.einsum("ij,ikj->i", self._normals, self._corners) / 3.0
        self._low, self._high = vertices.min(axis=0), vertices.max(axis=0)
        self._found: list[FloatArray] = []
        self._volume = 0.0

    def run(self, volume: float) -> list[FloatArray]:
        """Cut the box around the mesh until all cells are decided."""
        margin = 0.01 * self._size
        low, high = self._low - margin, self._high + margin
        box = np.array([[(low, high)[(k >> i) & 1][i] for i in range(3)] for k in range(8)])
        waiting = [(box, self._corners, np.arange(len(self._corners)))]
        while waiting:
            cell, corners, planes = waiting.pop()
            waiting += self._decided(cell, corners, planes)
            if len(self._found) > MOST:
                raise ModelError(
                    f"{self._name} has more than {MOST} convex cells; simplify it, or attach several convex meshes in "
                    "its place"
                )
        hull = float(np.prod(self._high - self._low))
        if not abs(self._volume - volume) <= SAME * hull:
            raise ModelError(
                f"{self._name} encloses {volume:.6g} m³, and its convex cells have {self._volume:.6g} m³: its "
                "triangles cross or touch each other; repair it, or attach several closed meshes in its place"
            )
        return self._found

    def _decided(
        self, cell: FloatArray, corners: FloatArray, planes: IntArray
    ) -> list[tuple[FloatArray, FloatArray, IntArray]]:
        """Both halves of a cell that is cut; none if it is decided.  corners, planes: of the triangles in it."""
        if not len(corners):
            if self._is_inside(cell.mean(axis=0)):
                self._keep(cell)
            return []
        plane = self._cut(corners, planes)
        if plane < 0:
            own = np.unique(planes)
            above = (cell @ self._normals[own].T - self._heights[own]).max(axis=1)
            self._keep(np.concatenate([corners.reshape(-1, 3), cell[above <= self._near]]))
            return []
        n, height = self._normals[plane], float(self._heights[plane])
        back, front = _split(corners, planes, n, height, self._near)
        halves = [_cut_cell(cell, -n, -height, self._near), _cut_cell(cell, n, height, self._near)]
        parts = zip(halves, (back, front), strict=True)
        return [(half, *rest) for half, rest in parts if half is not None]

    def _cut(self, corners: FloatArray, planes: IntArray) -> int:
        """The plane to cut by: of those that have triangles in front, the one that cuts the fewest; −1 if none has."""
        rows = corners.reshape(-1, 3).T
        every = np.unique(planes)
        at_once = max(1, AT_ONCE // rows.shape[1])
        best, found, tried = np.inf, -1, 0
        for first in range(0, len(every), at_once):
            own = every[first : first + at_once]
            heights: Any = self._normals[own] @ rows - self._heights[own, None]
            heights = heights.reshape(len(own), -1, 3)
            is_over, is_under = (heights > self._near).any(axis=2), (heights < -self._near).any(axis=2)
            for k in np.flatnonzero(is_over.any(axis=1)).tolist():
                over, under = is_over[k], is_under[k]
                cut, front, back = (int(np.count_nonzero(x)) for x in (over & under, over, under))
                cost = CUT * cut + abs(front - back)
                if cost < best:
                    best, found = cost, int(own[k])
                tried += 1
            if tried >= TRIED:
                break
        return found

    def _is_inside(self, point: FloatArray) -> bool:
        """Whether the solid angles of all triangles have the sum 4π.  [VanOosterom1983]"""
        d = self._corners - point
        a, b, c = d[:, 0], d[:, 1], d[:, 2]
        la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
        top = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a))]
        angles = 2.0 * np.arctan2(top, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
        return float(angles.sum()) > 2.0 * np.pi

    def _keep(self, rows: FloatArray) -> None:
        from scipy.spatial import ConvexHull, QhullError

        try:
            hull = ConvexHull(rows)
        except QhullError:  # flat: it has no volume
            return
        self._volume += float(hull.volume)
        self._found.append(rows[np.sort(hull.vertices)])


def _split(
    corners: FloatArray, planes: IntArray, n: FloatArray, height: float, near: float
) -> list[tuple[FloatArray, IntArray]]:
    """Triangles behind a plane, and in front of it; those on it are left out."""
    h = corners @ n - height
    h[np.abs(h) <= near] = 0.0
    is_over, is_under = (h > 0.0).any(axis=1), (h < 0.0).any(axis=1)
    found = []
    for sign, whole in ((-1.0, is_under & ~is_over), (1.0, is_over & ~is_under)):
        rows, numbers = [corners[whole]], [planes[whole]]
        for k in np.flatnonzero(is_over & is_under).tolist():
            ring: list[FloatArray] = []
            for i in range(3):
                p, q, s, t = corners[k, i - 1], corners[k, i], sign * h[k, i - 1], sign * h[k, i]
                if s * t < 0.0:
                    ring.append(p + s / (s - t) * (q - p))
                if t >= 0.0:
                    ring.append(q)
            fan = [(ring[0], ring[i], ring[i + 1]) for i in range(1, len(ring) - 1)]
            rows.append(np.array(fan))
            numbers.append(np.full(len(fan), planes[k]))
        found.append((np.concatenate(rows), np.concatenate(numbers)))
    return found


def _cut_cell(cell: FloatArray, n: FloatArray, height: float, near: float) -> FloatArray | None:
    """Corners of the part of a cell in front of a plane; None if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    h = cell @ n - height
    if h.max() <= 4.0 * near:
        return None
    over, under = np.flatnonzero(h > near), np.flatnonzero(h < -near)
    if not len(under):
        return cell
    i, j = (x.ravel() for x in np.meshgrid(over, under, indexing="ij"))
    crossing = cell[i] + (h[i] / (h[i] - h[j]))[:, None] * (cell[j] - cell[i])
    rows = np.concatenate([cell[h >= -near], crossing])
    try:
        return np.asarray(rows[ConvexHull(rows).vertices])
    except QhullError:
        return None
