"""The functions that users call: arguments are checked here, then the shape is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.shapes.gears import ADDENDUM, DEDENDUM, Gear
from cardan.shapes.region import Loop, Pair, Region, circle, crossing, hull, loop_points, polygon, rounded, signed_area
from cardan.shapes.shape import SEGMENTS
from cardan.shapes.solids import Box, Cylinder, Extrusion, Revolution, Sphere, stadium
from cardan.system import check

LOOSE = 1e-5  # of the size of an outline: gaps between pieces whose numbers have six digits
ROUNDED = 1e-12  # of the size of a profile: ρ at the end of an arc on the axis

FEWEST_TEETH = 5


def box(x: Any, y: Any, z: Any) -> Box:
    """A box with edges x, y, z [m], centred on its origin."""
    sizes = [check.positive(value, f"the edge {word} of a box") for word, value in (("x", x), ("y", y), ("z", z))]
    return Box((sizes[0], sizes[1], sizes[2]))


def cylinder(radius: Any, height: Any) -> Cylinder:
    """A cylinder along z, centred on its origin; radius, height [m]."""
    return Cylinder(check.positive(radius, "the radius of a cylinder"), _height(height, "a cylinder"))


def tube(outer: Any, inner: Any, height: Any) -> Cylinder:
    """A hollow cylinder along z, centred on its origin; radii outer and inner, and height [m]."""
    r, i = check.positive(outer, "the outer radius of a tube"), check.positive(inner, "the inner radius of a tube")
    if i >= r:
        raise ModelError(f"the inner radius of a tube is {i} m, the outer {r} m; the inner must be smaller")
    return Cylinder(r, _height(height, "a tube"), i)


def sphere(radius: Any) -> Sphere:
    """A ball about its origin; radius [m]."""
    return Sphere(check.positive(radius, "the radius of a sphere"))


def link(a: Any, b: Any, *, width: Any, thickness: Any, hole: Any = 0.0) -> Extrusion:
    """A bar with round ends about the points a and b = (x, y) [m] of its xy plane, and a hole of that radius at each.

    width [m]: of the bar, 2·radius of its ends.  thickness [m]: along z, centred on z = 0.
    """
    p, q = _pair(a, "the point a of a link"), _pair(b, "the point b of a link")
    w, t = check.positive(width, "the width of a link"), check.positive(thickness, "the thickness of a link")
    r = check.positive(hole, "the hole of a link", zero=True)
    if math.dist(p, q) == 0.0:
        raise ModelError(f"the points a and b of a link are both {p}; they must differ")
    if r >= 0.5 * w or (r and math.dist(p, q) <= 2.0 * r):
        raise ModelError(f"the hole of a link has radius {r} m; it must be below half the width {w} m and the length")
    return Extrusion(Region(stadium(p, q, 0.5 * w), (circle(p, r), circle(q, r)) if r else ()), t)


def plate(points: Any, *, thickness: Any, radius: Any = 0.0, holes: Any = ()) -> Extrusion:
    """A plate: a polygon of points (x, y) [m] with holes; or, with a radius, what is within it of their convex hull.

    holes: circles (x, y, radius), or polygons.  thickness [m]: along z, centred on z = 0.
    """
    rows = _pairs(points, "the points of a plate", 3 if not radius else 2)
    t = check.positive(thickness, "the thickness of a plate")
    r = check.positive(radius, "the radius of a plate", zero=True)
    outline = rounded(hull(rows), r) if r else polygon(rows)
    return Extrusion(_region(outline, holes, "a plate"), t)


def extrusion(outline: Any, height: Any, *, holes: Any = (), taper: Any = 1.0) -> Extrusion:
    """A prism: an outline of points (x, y) [m] with holes, between z = −height/2 and height/2.

    holes: circles (x, y, radius), or polygons.  taper: scale of the upper face about the z axis.
    """
    rows = _pairs(outline, "the outline of an extrusion", 3)
    made = _region(polygon(rows), holes, "an extrusion")
    return Extrusion(made, _height(height, "an extrusion"), check.positive(taper, "the taper of an extrusion"))


def revolution(profile: Any) -> Revolution:
    """A closed profile of points (ρ, z) [m], ρ ≥ 0, rotated about the z axis."""
    what = "the profile of a revolution"
    return Revolution(checked_profile(polygon(_pairs(profile, what, 3)), what))


def gear(
    module: Any, teeth: Any, width: Any, *, bore: Any = 0.0, internal: bool = False, outer: Any = None, taper: Any = 1.0
) -> Gear:
    """An involute spur gear about z: pitch radius module·teeth/2 [m], pressure angle 20°, a tooth on the x axis.

    width [m]: along z, centred on z = 0.  bore [m]: radius of its hole.  internal: a ring with teeth inside, of radius
    ``outer`` [m]; 3 modules beyond the pitch radius where it is not given.  taper: scale of the upper face, for bevel
    gears.
    """
    m, z = check.positive(module, "the module of a gear"), check.count(teeth, "the teeth of a gear", FEWEST_TEETH)
    w, k = check.positive(width, "the width of a gear"), check.positive(taper, "the taper of a gear")
    r = 0.5 * m * z
    if check.flag(internal, "internal"):
        if bore:
            raise ModelError(f"an internal gear was given bore={bore!r}; its outside is outer=")
        rim = r + 3.0 * m if outer is None else check.positive(outer, "the outer radius of an internal gear")
        if rim <= r + DEDENDUM * m:
            least = r + DEDENDUM * m
            raise ModelError(
                f"the outer radius of an internal gear is {rim} m; it must be above {least:.6g} m, its root"
            )
        return Gear(m, z, w, rim, True, k)
    if outer is not None:
        raise ModelError(f"a gear was given outer={outer!r}; only internal gears have it")
    rim = check.positive(bore, "the bore of a gear", zero=True)
    if rim >= max(r - DEDENDUM * m, 0.2 * r):
        raise ModelError(f"the bore of a gear has radius {rim} m; it must be below {r - DEDENDUM * m:.6g} m, its root")
    return Gear(m, z, w, rim, False, k)


def _height(value: Any, what: str) -> float:
    return check.positive(value, f"the height of {what}")


def _pair(value: Any, what: str) -> Pair:
    x, y = check.numbers(value, 2, what)
    return x, y


def _pairs(values: Any, what: str, least: int) -> list[Pair]:
    try:
        rows = [_pair(value, f"one of {what}") for value in values]
    except TypeError:
        raise ModelError(f"{what}: {values!r:.120}; they must be pairs (x, y)") from None
    if len(rows) > 1 and rows[0] == rows[-1]:
        rows.pop()  # closed already
    if len(rows) < least:
        raise ModelError(f"{what}: there are {len(rows)}; there must be {least} or more")
    return rows


def _region(outline: Loop, holes: Any, what: str) -> Region:
    """A region whose loops do not cross, each hole inside."""
    loops: list[Loop] = [outline]
    try:
        given = list(holes)
    except TypeError:
        raise ModelError(f"the holes of {what} are {holes!r:.120}; they must be a list") from None
    for hole in given:
        where = f"a hole of {what}"
        if _is_circle(hole):
            x, y, r = check.numbers(hole, 3, where)
            loops.append(circle((x, y), check.positive(r, f"the radius of {where}")))
        else:
            loops.append(polygon(_pairs(hole, where, 3)))
    return checked_region(Region(loops[0], tuple(loops[1:])), what)


def checked_region(region: Region, what: str) -> Region:
    """The region; ModelError if a loop is not closed or crosses itself or another, or if a hole is not inside."""
    loops = (region.outer, *region.holes)
    for loop in loops:
        check_closed(loop, f"the outline of {what}")
    rows = [loop_points(loop, SEGMENTS) for loop in loops]
    _check_simple(rows, f"the outline of {what}")
    for k, hole in enumerate(rows[1:], 1):
        around = _loops_around(rows, hole[0])
        around[k] = False
        if not around[0] or around[1:].any():
            raise ModelError(f"a hole of {what} at {hole.mean(axis=0).tolist()} is not inside it; move it inside")
    return region


def checked_profile(loop: Loop, what: str) -> Loop:
    """The profile of a revolution; ModelError if it is not closed, crosses itself, or has ρ < 0."""
    check_closed(loop, what)
    rows = loop_points(loop, SEGMENTS)
    least = float(rows[:, 0].min())
    if least < -ROUNDED * float(np.abs(rows).max()):
        raise ModelError(f"{what} has ρ = {least} m; ρ must be zero or more")
    _check_simple([rows], what)
    return loop


def check_closed(loop: Loop, what: str) -> None:
    """ModelError if a piece does not begin where the one before it ends."""
    ends = np.array([piece.at(np.array([0.0, 1.0]))[0] for piece in loop])
    gaps = np.abs(ends[:, 0] - np.roll(ends[:, 1], 1, axis=0)).max(axis=1)
    k = int(gaps.argmax())
    if not gaps[k] <= LOOSE * float(np.abs(ends).max()):
        last, first = ends[k - 1, 1].tolist(), ends[k, 0].tolist()
        raise ModelError(
            f"{what} is not closed: piece {k + 1} begins at {first} m, and the one before it ends at {last} m; each "
            "piece must begin where the one before it ends"
        )


def _is_circle(hole: Any) -> bool:
    return isinstance(hole, Sequence | np.ndarray) and len(hole) == 3 and not np.ndim(hole[0])


def _check_simple(rows: list[Any], what: str) -> None:
    """ModelError if polygons, shape (points, 2) each, cross or touch, or if the first has no area."""
    is_flat = min(map(len, rows)) < 3
    found = None if is_flat else crossing(rows)
    if found is not None:
        raise ModelError(f"{what} crosses or touches itself near {found[0].tolist()}; give lines that do not cross")
    if is_flat or not abs(signed_area(rows[0])) > 0.0:
        raise ModelError(f"{what} has no area; its points must not lie on one line")


def _loops_around(loops: list[Any], p: Any) -> Any:
    """Whether a point is within each polygon, shape (loops,): a ray from it crosses the boundary an odd number of
    times."""
    a, b = np.concatenate(loops), np.concatenate([np.roll(rows, -1, axis=0) for rows in loops])
    across = (a[:, 1] > p[1]) != (b[:, 1] > p[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = a[:, 0] + (p[1] - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    starts = np.cumsum([0, *(len(rows) for rows in loops[:-1])])
    return np.add.reduceat(across & (x > p[0]), starts) % 2 == 1


__all__ = ["ADDENDUM", "box", "cylinder", "extrusion", "gear", "link", "plate", "revolution", "sphere", "tube"]
