"""Distances and overlaps of the bodies of a mechanism in one state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from cardan import collide
from cardan.analysis.clash_pairs import TOUCH, LeftOut, Parts, body_number, chosen_pairs, left_out_lines, parts_of
from cardan.analysis.ownership import check_own_state
from cardan.analysis.tracks import REST
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system.check import Triple
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State

VOLUMES: Final = ("volume", "volume_error")


class Separation(NamedTuple):
    """The signed gap [m] of two bodies: their distance, or minus the least depth where they overlap.

    ``points`` [m]: on a and on b, in world.  ``normal``: from a to b.  ``error`` [m]: how far the gap may be off,
    where a curved shape is replaced by flat ones; 0 if it is exact.
    """

    a: str
    b: str
    gap: float
    points: tuple[Triple, Triple]
    normal: Triple
    error: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two bodies that overlap: how deep [m] with its error, where [m] in world, along which normal from a to b."""

    a: str
    b: str
    depth: float
    place: Triple
    normal: Triple
    error: float
    _shapes: tuple[tuple[Any, ...], ...] = field(repr=False)  # that overlap, each with its pose

    @property
    def volume(self) -> float:
        """What they share [m³], summed over their shapes; computed when it is read."""
        return _volume(self._shapes)[0]

    @property
    def volume_error(self) -> float:
        """Of the volume [m³]; 0 if it is exact."""
        return _volume(self._shapes)[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {word: getattr(self, word) for word in ("a", "b", "depth", "place", "normal", "error", *VOLUMES)}

    def text(self) -> str:
        """One line of a report."""
        at = ", ".join(f"{x:.6g}" for x in self.place)
        return f"{self.a!r} – {self.b!r}: overlap by {self.depth:.6g} m at ({at}) m, {self.volume:.6g} m³"


@lru_cache(maxsize=1024)
def _volume(shapes: tuple[tuple[Any, ...], ...]) -> tuple[float, float]:
    whole = collide.half_space()  # which has no shape of its own
    found = [collide.overlap_volume(a or whole, p, b or whole, q) for a, p, b, q in shapes]
    return float(sum(one.value for one in found)), float(sum(one.error for one in found))


@explains()
@dataclass(frozen=True, slots=True)
class Interference:
    """Which bodies overlap in a state, the deepest first: ``for overlap in interference``.

    ``ok``: none does.  ``pairs``: how many pairs of bodies were compared.  ``left_out``: what was not compared, and
    why.
    """

    found: tuple[Overlap, ...]
    left_out: tuple[LeftOut, ...]
    pairs: int

    @property
    def ok(self) -> bool:
        """No bodies overlap."""
        return not self.found

    def __iter__(self) -> Iterator[Overlap]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, k: int) -> Overlap:
        return self.found[k]

    def text(self) -> str:
        """A line for each overlap, and what was left out."""
        lines = [f"{len(self.found) or 'none'} of {self.pairs} pairs overlap"]
        return "\n  ".join([*lines, *[one.text() for one in self.found], *left_out_lines(self.left_out)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ok": self.ok,
            "pairs": self.pairs,
            "overlaps": [one.to_dict() for one in self.found],
            "left_out": [one._asdict() for one in self.left_out],
        }


def distance_between(drawing: Drawing, a: Any, b: Any, state: State | None) -> Separation:
    """See :meth:`cardan.Mechanism.distance_between`."""
    what = "distance_between"
    parts = parts_of(drawing)
    first, second = (body_number(item, parts, drawing, what) for item in (a, b))
    if first == second:
        raise ModelError(f"{what} was given {parts.names[first]!r} twice; give two bodies")
    for k in (first, second):
        parts.check_solid(k, what, whole=True)
    own = [np.flatnonzero(parts.owners == k).tolist() for k in (first, second)]
    poses = _poses(drawing, parts, state, what)
    gaps = [collide.gap(parts.solids[i], poses[i], parts.solids[j], poses[j]) for i in own[0] for j in own[1]]
    found = min(gaps, key=lambda one: one.gap)
    points = [_triple(point) for point in found.points]
    names = parts.names[first], parts.names[second]
    return Separation(*names, found.gap, (points[0], points[1]), _triple(found.normal), found.error)


def interference(drawing: Drawing, state: State | None, pairs: Any) -> Interference:
    """See :meth:`cardan.Mechanism.interference`."""
    parts = parts_of(drawing)
    bodies, left_out = chosen_pairs(drawing, parts, pairs)
    poses = _poses(drawing, parts, state, "interference")
    if not len(bodies):
        return Interference((), left_out, 0)
    is_wanted = np.zeros((len(parts.names), len(parts.names)), dtype=bool)
    is_wanted[bodies[:, 0], bodies[:, 1]] = is_wanted[bodies[:, 1], bodies[:, 0]] = True
    near = collide.candidates(parts.solids, poses)
    near = near[is_wanted[tuple(parts.owners[near].T)]]
    swap = parts.owners[near[:, 0]] > parts.owners[near[:, 1]]
    near[swap] = near[swap, ::-1]
    gaps, points, normals, error = collide.gaps(parts.solids, poses, near)
    reaches = np.array([0.0 if solid.is_half_space else solid.reach for solid in parts.solids])
    found: dict[tuple[int, int], list[int]] = {}
    for k in np.flatnonzero(gaps + error < -TOUCH * reaches[near].sum(axis=1)).tolist():
        a, b = parts.owners[near[k]].tolist()
        found.setdefault((a, b), []).append(k)
    overlaps = []
    for (a, b), own in found.items():
        k = min(own, key=lambda k: float(gaps[k]))
        shapes = tuple([parts.shapes_at(near[i], poses) for i in own])
        where = _triple(points[k].mean(axis=0)), _triple(normals[k])
        overlaps.append(Overlap(parts.names[a], parts.names[b], -float(gaps[k]), *where, float(error[k]), shapes))
    return Interference(tuple(sorted(overlaps, key=lambda one: -one.depth)), left_out, len(bodies))


def _poses(drawing: Drawing, parts: Parts, state: State | None, what: str) -> FloatArray:
    """Of the solids in a state, shape (solids, 7)."""
    given = drawing.checked_state(what, state)
    check_own_state(what, given, drawing)
    if not np.isfinite(given.coordinates).all():
        raise ModelError(f"{what} was given a state with poses that are not finite")
    return parts.placed(np.vstack([given.coordinates, REST]))


def _triple(values: Any) -> Triple:
    x, y, z = (float(value) for value in values)
    return x, y, z
