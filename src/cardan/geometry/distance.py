"""Closest pairs of two shapes: global with a certificate, local with a warm start, all local minima, signed gap.

    d = Distance(a, b)
    pair = d.closest(pose)        # pose of b relative to a: x, y, z, and the quaternion w, x, y, z
    pair.distance, pair.points, pair.margin
    pair = d.track(pose)          # from the last pair, for a small motion

The method is described in ``_search.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import tables
from cardan.geometry.analytic import Point
from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.face import EdgeCurve
from cardan.geometry.memory import Memory, address_of
from cardan.geometry.shape import Trimmed
from cardan.geometry.tables import Ball, Enclosure, HeapEntry, SearchJob, SearchOptions, SearchState
from cardan.geometry.tree import Tree
from cardan.lazy import LazyModule, direct
from cardan.math import euler

_search = LazyModule("cardan.geometry._search")
_regular = LazyModule("cardan.geometry._regular")

TOLERANCE = 1e-9  # of the size of both shapes: the margin that a search tries to reach
EPSILON = 4e-16  # of the coordinates: rounding of a distance, which a margin includes
BUDGET = 400_000  # pairs of boxes of one search; then it ends with a larger margin
FORGET = 60_000  # a tree with so many nodes that is full forgets those of earlier searches before it grows
HEAP = 4096
MOST_HEAP = 1 << 22
STARTS = 8  # per parameter, of the grid from which a penetrating pair is sought
CANDIDATES = 6  # starts of Newton's method on that grid

_DISTANCE = SearchOptions.distance.first  # a global of this module is found faster
_NUMBER = int, float, np.number

_POSE_SHAPE = (tables.POSE,)
_INPUTS = slice(SearchOptions.tolerance.first, SearchOptions.tick.first + 1)  # tolerance, budget, mode, cut, tick
_POINTS = slice(SearchOptions.point_a.first, SearchOptions.limit.first)
_PATCHES = slice(SearchOptions.patch_a.first, SearchOptions.patch_b.first + 1)
_PAIRS = SearchOptions.pairs.first
_EXCLUDE = SearchJob.exclude.first

# Numbers of searches, which are written to the nodes that they reach.  They are larger than the addresses and numbers
# that memory may contain from earlier use, so that it need not be cleared.
_TICKS = count(1 << 52)

IDENTITY = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@dataclass(slots=True, eq=False)  # not frozen, which would take a microsecond more
class Pair:
    """Two closest points.

    distance: [m], zero where the shapes meet; points: on a and on b in the axes of a, shape (2, 3); parameters: of a
    and of b; margin: no pair is closer than distance − margin [m] (inf for a local search); patches: the smooth
    parts that they are on.
    """

    distance: float
    points: FloatArray
    parameters: tuple[FloatArray, FloatArray]
    margin: float
    patches: tuple[int, int]
    gap: float | None = None

    @property
    def is_certified(self) -> bool:
        """Whether this is the global minimum, up to the margin."""
        return bool(np.isfinite(self.margin))


def pose_of(value: Any) -> FloatArray:
    """Seven numbers of a pose: None for the identity, seven numbers, three (a translation), or a 4×4 matrix."""
    if value is None:
        return IDENTITY
    try:
        p = np.asarray(value, dtype=float, order="C")
    except (TypeError, ValueError):
        raise ModelError(f"the pose is {value!r:.80}; it must be three or seven numbers, or a 4×4 matrix") from None
    if p.shape != _POSE_SHAPE:
        return _other_pose(p)
    x = p.tolist()
    if not (isfinite(sum(x)) or np.isfinite(p).all()) or not any(x[3:]):
        raise ModelError(f"the pose is {p.tolist()}; it must be finite, with a quaternion that is not zero")
    return p


def _other_pose(p: FloatArray) -> FloatArray:
    """Seven numbers of a pose that is given by three numbers or a 4×4 matrix."""
    if p.shape not in ((4, 4), (3,)):
        raise ModelError(f"the pose has the shape {p.shape}; give x, y, z and a quaternion w, x, y, z, or a 4×4 matrix")
    if not np.isfinite(p).all():
        raise ModelError(f"the pose is {p.tolist()}; its numbers must be finite")
    if p.shape == (3,):
        return np.concatenate([p, IDENTITY[3:]])
    return np.concatenate([p[:3, 3], euler.from_matrix(p[:3, :3])])


def shape_of(value: Any) -> Any:
    """A shape, or the point that numbers give."""
    if hasattr(value, "patches"):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return Point(value)
    raise ModelError(f"{value!r:.80} is no shape and no point; give a shape or a mesh, or two or three numbers")


def check_search(tolerance: Any, budget: Any) -> None:
    """ModelError if a tolerance [m] or a budget cannot be used."""
    if tolerance is not None and not (isinstance(tolerance, _NUMBER) and 0.0 <= tolerance < inf):
        raise ModelError(f"the tolerance is {tolerance!r}; it must be a length from zero on [m]")
    if not (isinstance(budget, _NUMBER) and budget >= 1):
        raise ModelError(f"the budget is {budget!r}; it must be a number of pairs of boxes, at least 1")


def _first_search(job: int) -> int:
    """The first search of a process: later ones do not look up the types of their arguments.

    The lookup takes a tenth of the time of a local search.
    """
    status: int = _search.search(job)
    Distance._search = staticmethod(direct(_search.search))
    return status


class Distance:
    """The distance between two shapes; it stores what a search has computed, so only one thread may use it.

    a, b: shapes of this package, meshes, or points (two or three numbers).
    """

    _search: ClassVar[Any] = staticmethod(_first_search)

    def __new__(cls, a: Any, b: Any) -> Distance:
        """With a mesh: its own :class:`~.mesh_distance.MeshDistance`."""
        if cls is Distance and (hasattr(a, "faces") or hasattr(b, "faces")):
            from cardan.geometry.mesh_distance import MeshDistance

            return object.__new__(MeshDistance)
        return object.__new__(cls)

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b = shape_of(a), shape_of(b)
        ends = self._is_bounded(a), self._is_bounded(b)
        if not any(ends):
            raise ModelError(f"{a!r} and {b!r} are both unbounded; give one of them a size")
        self._rounding = getattr(a, "rounding", 0.0) + getattr(b, "rounding", 0.0)
        self._extent = 0.0
        self._is_used = False
        state = np.zeros(SearchState.size)
        seen = SearchState(state)
        self._x, self._pose, self._options = seen.x, seen.pose, seen.options
        self._points = self._options[_POINTS].reshape(2, 3)
        self._state = address_of(state)
        self._heap = HEAP
        self._memory: Memory | None = None
        if all(ends):
            self._build(np.inf)
        self._last: tuple[int, int] | None = None
        self._local: tuple[int, int] | None = None  # patches of a local search that is prepared
        self._grids: list[Any] = [None, None]
        self._plain = a.width == a.freedoms and b.width == b.freedoms
        self._parameters = state[: a.freedoms], state[2 : 2 + b.freedoms]

    def __del__(self) -> None:
        memory = getattr(self, "_memory", None)  # none, where the making failed
        if memory is not None:
            memory.give()

    @staticmethod
    def _is_bounded(shape: Any) -> bool:
        return shape.width != shape.freedoms or isfinite(sum(map(sum, shape.bounds)))

    def _build(self, extent: float) -> None:
        self._extent = extent
        self.trees = Tree(self.a, extent), Tree(self.b, extent)
        self.size = self.trees[0].extent + self.trees[1].extent
        self._grids = [None, None]
        self._connect()

    def _connect(self) -> None:
        """Make the job: addresses of everything."""
        if self._memory is not None:
            self._memory.give()
        one, two = self.trees
        n = two.capacity
        moved, heap, balls = Enclosure.size * n, HeapEntry.size * (self._heap + 1), tables.BALLS * Ball.size
        memory = Memory.take(n + SearchJob.size, moved + heap + balls + max(one.scratch, two.scratch))
        self._balls = memory.floats[moved + heap : moved + heap + balls]
        stamps, floats = memory.addresses
        at = floats + 8 * moved, floats + 8 * (moved + heap), floats + 8 * (moved + heap + balls)
        self._job: IntArray = memory.ints[n:]
        self._job[:] = [*one.table, *two.table, floats, stamps, at[0], self._heap, at[1], at[2], self._state, 0]
        self._address = stamps + 8 * n
        self._memory = memory

    def _prepare(self, pose: FloatArray) -> None:
        """Trees of unbounded shapes reach as far as the partner may be."""
        if self._extent == np.inf:
            return
        bounded = self.a if self._is_bounded(self.a) else self.b
        roots = Tree(bounded, np.inf).boxes
        known = roots[: bounded.patches(np.inf)[0].root_count]
        reach = float(np.linalg.norm(pose[:3])) + float(np.linalg.norm(known[:, :3], axis=1).max() + known[:, 14].max())
        if reach > self._extent:
            self._build(2.0 ** np.ceil(np.log2(2.0 * reach)))

    def closest(
        self, pose: Any = None, *, tolerance: float | None = None, budget: int = BUDGET, signed: bool = False
    ) -> Pair:
        """The closest pair for a pose of b relative to a.

        tolerance: margin to reach [m]; default 1e-9 of the size.  budget: pairs of boxes after which the search
        ends with the margin that it has.  signed: compute the gap also where the shapes penetrate each other.
        """
        p = pose_of(pose)
        check_search(tolerance, budget)
        self._prepare(p)
        eps = TOLERANCE * self.size if tolerance is None else float(tolerance)
        self._run(p, tables.COLD, eps, budget, inf)
        o = self._options.tolist()
        distance = o[_DISTANCE]
        if not isfinite(distance):
            raise ModelError(
                f"no closest pair was found in {int(o[_PAIRS]):,} pairs of boxes; increase budget=, if both "
                "shapes have points inside their domains"
            )
        far = o[_POINTS]
        margin = max(distance - o[SearchOptions.lower.first], 0.0) + self._rounding + EPSILON * max(*far, -min(far))
        first, second = o[_PATCHES]
        patches = int(first), int(second)
        self._last = patches
        pair = self._pair(distance, margin, patches)
        if signed:
            return self._with_gap(p, pair, eps)
        return pair

    def _pair(self, distance: float, margin: float, patches: tuple[int, int], gap: float | None = None) -> Pair:
        points = self._points.copy()
        if self._plain:
            a, b = self._parameters
            return Pair(distance, points, (a.copy(), b.copy()), margin, patches, gap)
        x = self._x.copy()
        own = points[1]
        if self.b.width != self.b.freedoms:
            shape = self.trees[1].patches[patches[1]].shape
            own = shape._evaluate(x[None, 2:], 0)[0, 0]
        a, b = self.a.from_patch(x[:2], points[0]), self.b.from_patch(x[2:], own)
        return Pair(distance, points, (a, b), margin, patches, gap)

    def _run(self, pose: FloatArray, mode: int, tolerance: float, budget: float, cut: float) -> int:
        o = self._options
        self._pose[:] = pose
        self._local = None
        has_old = self._is_used
        self._is_used = True
        while True:
            o[_INPUTS] = tolerance, budget, mode, cut, next(_TICKS)
            status: int = Distance._search(self._address)
            if status == tables.NODES_FULL:
                full = [tree for tree in self.trees if tree.is_full]
                if has_old and any(tree.capacity >= FORGET for tree in full):
                    has_old = False
                    for tree in self.trees:
                        tree.forget()
                elif not all(tree.enlarge() for tree in full):
                    return status
            elif status == tables.HEAP_FULL:
                if self._heap >= MOST_HEAP:
                    return status
                self._heap *= 4
            else:
                return status
            exclude = self._job[_EXCLUDE]
            self._connect()
            self._job[_EXCLUDE] = exclude

    def track(self, pose: Any, start: Pair | None = None) -> Pair:
        """The local minimum from the last pair, or from ``start``: for small motions.  Its margin is infinite."""
        p = pose if type(pose) is np.ndarray and pose.shape == (7,) else pose_of(pose)
        if start is not None:
            self._start(start)
        elif self._last is None:
            return self.closest(p)
        o = self._options
        if self._local is None:
            self._local = self._whole()
            o[SearchOptions.mode.first] = tables.LOCAL
            o[_PATCHES] = self._local
        self._pose[:] = p
        Distance._search(self._address)
        distance = o.item(_DISTANCE)
        if distance != distance:
            pose_of(p)  # names what is not finite
            raise ModelError(f"the distance is not a number for the pose {p.tolist()}")
        if not self._plain:
            return self._pair(distance, inf, self._local)
        a, b = self._parameters
        return Pair(distance, self._points.copy(), (a.copy(), b.copy()), inf, self._local)

    def _whole(self) -> tuple[int, int]:
        """The patches of local searches: the whole domain if a shape has several patches."""
        assert self._last is not None
        found = []
        for tree, last in zip(self.trees, self._last, strict=True):
            extra = len(tree.patches) - tree.smooth
            found.append(last if extra == 0 or last >= tree.smooth else tree.smooth + (last if extra > 1 else 0))
        self._last = found[0], found[1]
        return self._last

    def _start(self, start: Pair) -> None:
        self._local = None
        for k, (shape, q) in enumerate(zip((self.a, self.b), start.parameters, strict=True)):
            if shape.width != shape.freedoms:
                number, q = shape.to_patch(q)
                self._last = (number, start.patches[1]) if k == 0 else ((self._last or start.patches)[0], number)
            self._x[2 * k : 2 * k + len(q)] = q
        if self._last is None:
            self._last = start.patches

    def minima(self, pose: Any = None, *, within: float = np.inf, budget: int = BUDGET) -> list[Pair]:
        """All local minima closer than ``within`` [m], the closest first; edges and corners included.

        ModelError if the budget ends before the search is complete, for example if the minima are not isolated.
        """
        from importlib import import_module

        p = pose_of(pose)
        check_search(None, budget)
        self._prepare(p)
        eps = TOLERANCE * self.size
        self._job[_EXCLUDE] = import_module("cardan.geometry._minima").EXCLUDE
        status = self._run(p, tables.ALL, eps, budget, within)
        count = int(SearchOptions(self._options).balls)
        if status != tables.FOUND or count >= tables.BALLS:
            raise ModelError(
                "the local minima could not be separated within the budget: they are not isolated, or the shapes meet; "
                "ask for the closest pair, or give a larger budget"
            )
        found: list[Pair] = []
        for ball in self._balls[: Ball.size * count].view(Ball.dtype).copy():
            if ball["distance"] < 0.0 or ball["distance"] >= within:
                continue
            self._x[:] = ball["x"]
            self._local = None
            self._last = int(ball["patches"][0]), int(ball["patches"][1])
            pair = self.track(p)
            same = abs(pair.distance - ball["distance"]) <= 1e-9 * max(self.size, pair.distance)
            new = all(np.abs(pair.points - other.points).max() > 1e-7 * self.size for other in found)
            if same and new:
                found.append(pair)
        return sorted(found, key=lambda pair: pair.distance)

    def regular(self, pose: Any, start: Pair) -> Pair | None:
        """The regular pair near ``start``, with its signed gap (S² − S¹)·n¹; None if Newton does not converge.

        Valid at zero gap and under penetration, away from edges; None at edges of faces and outside their loops.
        """
        p = pose_of(pose)
        self._check_normal()
        self._start(start)
        whole = self._whole()
        self._local = None
        o = self._options
        o[_PATCHES] = whole
        if any(isinstance(tree.patches[k].shape, EdgeCurve) for tree, k in zip(self.trees, whole, strict=True)):
            return None
        if _regular.regular(self._address, p, self._x, o) != 0 or not self._is_inside():
            return None
        gap = float(o[_DISTANCE])
        return self._pair(abs(gap), np.inf, whole, gap)

    def _check_normal(self) -> None:
        if self.a.freedoms == 1 and self.a.dimension != 2 and getattr(self.a, "name", "") not in ("circle", "ellipse"):
            raise ModelError("a curve in space has no normal, so there is no signed gap; exchange the shapes")
        if self.a.freedoms == 0:
            raise ModelError("a point has no normal, so there is no signed gap; exchange the shapes")

    def _normal(self, k: int, x: FloatArray, patch: int) -> FloatArray:
        """Unit normal S_u × S_v of a surface, also at an edge of a face; (y', −x', 0) of a curve in a plane."""
        shape = self.trees[k].patches[patch].shape
        q = x[None, 2 * k : 2 * k + shape.width]
        if isinstance(shape, EdgeCurve):
            q = shape.curve._evaluate(q, 0)[:, 0, :2]
            shape = shape.surface
        S = shape._evaluate(q, 1)[0]
        return np.asarray(_unit_normals(S[None], shape.freedoms)[0])

    def _with_gap(self, pose: FloatArray, pair: Pair, eps: float) -> Pair:
        """The pair with its signed gap; where the shapes meet, the regular pair of least penetration."""
        self._check_normal()
        if pair.distance > eps:
            n = self._normal(0, self._x, pair.patches[0])
            side = float(np.dot(pair.points[1] - pair.points[0], n))
            sign = 1.0 if side >= 0.0 else -1.0
            return Pair(pair.distance, pair.points, pair.parameters, pair.margin, pair.patches, sign * pair.distance)
        if not self.b.freedoms:
            return Pair(0.0, pair.points, pair.parameters, pair.margin, pair.patches, 0.0)
        best: Pair | None = None
        R = euler.matrix(euler.normalize(pose[3:]))
        for x, patches in self._penetrating(pose, R):
            self._x[:] = x
            self._last = patches
            whole = self._whole()
            o = self._options
            o[_PATCHES] = whole
            if _regular.regular(self._address, pose, self._x, o) == 0:
                gap = float(o[_DISTANCE])
                closer = gap <= eps and (best is None or abs(gap) < abs(best.gap or 0.0))
                if closer and self._is_inside() and self._opposed(R, whole):
                    best = self._pair(0.0, pair.margin, whole, min(gap, 0.0) if abs(gap) <= eps else gap)
        if best is not None:
            return best
        return pair

    def _is_inside(self) -> bool:
        """Whether the current parameters are inside the loops of shapes that are faces."""
        for k, shape in enumerate((self.a, self.b)):
            if isinstance(shape, Trimmed):
                q = self._x[2 * k : 2 * k + 2].tolist()
                for i, ((low, _), period) in enumerate(zip(shape.bounds, shape.surface.periods, strict=True)):
                    q[i] = low + (q[i] - low) % period if period else q[i]  # a seam may have been crossed
                if not shape.contains(*q):
                    return False
        return True

    def _opposed(self, R: FloatArray, patches: tuple[int, int]) -> bool:
        """Whether the normals of both shapes are opposed at the current parameters; always for curves in space."""
        if self.b.freedoms == 1 and self.a.freedoms == 2:
            return True
        a, b = (self._normal(k, self._x, patches[k]) for k in (0, 1))
        return bool(np.dot(a, R @ b) < 0.0)

    def _grid(self, k: int) -> list[tuple[int, FloatArray, FloatArray, FloatArray]]:
        """Number, parameters, points and normals of a grid on each smooth patch of a shape, without edges of faces."""
        if self._grids[k] is None:
            found = []
            tree = self.trees[k]
            for number, patch in enumerate(tree.patches[: tree.smooth]):
                f = patch.shape.freedoms
                if isinstance(patch.shape, EdgeCurve):
                    continue
                axes = [np.linspace(patch.limits[3 * i], patch.limits[3 * i + 1], STARTS + 1)[:-1] for i in range(f)]
                half = [0.5 * (patch.limits[3 * i + 1] - patch.limits[3 * i]) / STARTS for i in range(f)]
                q = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1) + half
                S = patch.shape._evaluate(q, 1)
                normals = _unit_normals(S, f) if f == 2 or k == 0 else np.zeros_like(S[:, 0])
                found.append((number, np.pad(q, ((0, 0), (0, 2 - f))), S[:, 0], normals))
            self._grids[k] = found
        return self._grids[k] or []

    def _penetrating(self, pose: FloatArray, R: FloatArray) -> list[tuple[FloatArray, tuple[int, int]]]:
        """Starts for regular pairs: pairs of a grid that are nearly along both normals, the best first."""
        scale = min(tree.extent for tree in self.trees)
        found = []
        for j, qb, pb, nb in self._grid(1):
            points, normals = pb @ R.T + pose[:3], nb @ R.T
            for i, qa, pa, na in self._grid(0):
                along = na @ points.T - (pa * na).sum(axis=1)[:, None]
                square = (pa * pa).sum(axis=1)[:, None] + (points * points).sum(axis=1) - 2.0 * (pa @ points.T)
                score = (square - 0.75 * along * along + (scale * (1.0 + na @ normals.T)) ** 2).ravel()
                for k in np.argpartition(score, min(CANDIDATES, score.size - 1))[:CANDIDATES].tolist():
                    a, b = divmod(k, len(qb))
                    found.append((float(score[k]), np.concatenate([qa[a], qb[b]]), (i, j)))
        found.sort(key=lambda item: item[0])
        return [(x, patches) for _, x, patches in found[:CANDIDATES]]


def _unit_normals(S: FloatArray, freedoms: int) -> FloatArray:
    """Unit normals (n, 3) from rows S, S_u, S_v: S_u × S_v of a surface, (y', −x', 0) of a curve in a plane."""
    if freedoms == 2:
        (a, b, c), (d, e, f) = S[:, 1].T, S[:, 2].T
        n = np.stack([b * f - c * e, c * d - a * f, a * e - b * d], axis=1)
    else:
        n = np.stack([S[:, 1, 1], -S[:, 1, 0], np.zeros(len(S))], axis=1)
    return np.asarray(n / np.sqrt((n * n).sum(axis=1, keepdims=True)))


def closest_pair(a: Any, b: Any, pose: Any = None, **options: Any) -> Pair:
    """The closest pair of two shapes or meshes for a pose of b relative to a.

    Options are those of :meth:`Distance.closest`.
    """
    return Distance(a, b).closest(pose, **options)


def closest_point(shape: Any, point: Any, **options: Any) -> Pair:
    """The point of a shape or mesh that is closest to a point [m]."""
    return Distance(shape, point).closest(None, **options)
