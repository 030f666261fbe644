"""Convex pieces of shapes with holes, fillets or teeth, whose curves are cut into chords, and of meshes.

The chord of an arc with radius r and angle φ is at most r (1 − cos φ/2) from the arc.  The largest such distance bounds
how far the surface of the pieces is from that of the shape; it is returned with them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cardan.collide.cells import cells
from cardan.errors import ModelError
from cardan.shapes import Mesh, Shape
from cardan.shapes.gears import Gear
from cardan.shapes.region import Arc, Involute, Line, Loop, Region, loop_points, polygon, signed_area, triangulate
from cardan.shapes.solids import Cylinder, Extrusion, Revolution

FloatArray = NDArray[np.float64]

CHORDS = 64  # of a whole circle
SAMPLES = 33  # of an involute: its distance from a chord is measured at these points
MARGIN = 1.01  # of that distance: the one smooth maximum may lie between two samples
FLAT = 1e-12  # of the square of the size: corners that turn less are straight


def cut(shape: Shape) -> tuple[list[FloatArray], float]:
    """Corners of convex pieces [m], shape (n, 3) each, and a bound of the distance of their surface from that of the
    shape [m]."""
    if isinstance(shape, Cylinder):
        i, r, z = shape.bore, shape.radius, 0.5 * shape.height
        return _revolved(polygon([(i, -z), (r, -z), (r, z), (i, z)]))
    if isinstance(shape, Gear):
        return _extruded(shape.region(), shape.width, shape.taper)
    if isinstance(shape, Extrusion):
        return _extruded(shape.region, shape.height, shape.taper)
    if isinstance(shape, Revolution):
        return _revolved(shape.profile)
    if isinstance(shape, Mesh):
        return cells(shape.vertices, shape.faces, shape.properties().volume, shape.name), shape.deviation
    raise ModelError(f"{shape!r:.80}: gaps of a {type(shape).__name__} are not available; attach a solid instead")


def _extruded(region: Region, height: float, taper: float) -> tuple[list[FloatArray], float]:
    loops = region.points(CHORDS)
    flat = np.concatenate(loops)
    parts = []
    for ring in merged(flat, triangulate(loops).tolist()):
        rows = flat[ring]
        ends = ((1.0, -0.5 * height), (taper, 0.5 * height))
        parts.append(np.concatenate([np.column_stack([s * rows, np.full(len(rows), z)]) for s, z in ends]))
    return parts, max(1.0, taper) * max(_sagitta(loop) for loop in (region.outer, *region.holes))


def _revolved(profile: Loop) -> tuple[list[FloatArray], float]:
    """Wedges: convex pieces of the profile, at both ends of each chord."""
    rows = loop_points(profile, CHORDS)
    rows = rows if signed_area(rows) > 0.0 else rows[::-1]
    angles = 2.0 * math.pi * np.arange(CHORDS + 1) / CHORDS
    planes = [np.array([[math.cos(x), 0.0], [math.sin(x), 0.0], [0.0, 1.0]]) for x in angles]
    rings = merged(rows, triangulate([rows]).tolist())
    parts = [
        np.unique(np.concatenate([rows[ring] @ planes[k].T, rows[ring] @ planes[k + 1].T]), axis=0)
        for ring in rings
        for k in range(CHORDS)
    ]
    return parts, _sagitta(profile) + float(rows[:, 0].max()) * (1.0 - math.cos(math.pi / CHORDS))


def _sagitta(loop: Loop) -> float:
    """The largest distance of a loop from its chords [m]."""
    most = 0.0
    for piece in loop:
        if isinstance(piece, Line):
            continue
        count = piece.count(CHORDS)
        if isinstance(piece, Arc):
            most = max(most, piece.radius * (1.0 - math.cos(0.5 * piece.sweep / count)))
            continue
        assert isinstance(piece, Involute)
        x = piece.at(np.linspace(0.0, 1.0, count * (SAMPLES - 1) + 1))[0]
        for k in range(count):
            part = x[k * (SAMPLES - 1) : (k + 1) * (SAMPLES - 1) + 1] - x[k * (SAMPLES - 1)]
            chord = part[-1] / np.linalg.norm(part[-1])
            most = max(most, MARGIN * float(np.abs(chord[0] * part[:, 1] - chord[1] * part[:, 0]).max()))
    return most


def merged(points: FloatArray, triangles: list[list[int]]) -> list[list[int]]:
    """Convex polygons, anticlockwise, of triangles in the plane: edges are left out where both ends stay convex.

    [Hertel1983]
    """
    size = float(np.ptp(points, axis=0).max())
    rings = {k: list(ring) for k, ring in enumerate(triangles)}
    owner = {(ring[i - 1], ring[i]): k for k, ring in rings.items() for i in range(3)}
    for a, b in list(owner):
        one, other = owner.get((a, b)), owner.get((b, a))
        if one is None or other is None or one == other:
            continue
        p, q = rings[one], rings[other]
        i, j = p.index(b), q.index(a)
        joined = p[i:] + p[:i] + q[j + 1 :] + q[: j - 1] if j else p[i:] + p[:i] + q[1:-1]
        if len(set(joined)) == len(joined) and _is_convex(points, joined, (a, b), size):
            rings[one] = joined
            del rings[other]
            for k in range(len(joined)):
                owner[joined[k - 1], joined[k]] = one
            del owner[a, b], owner[b, a]
    return list(rings.values())


def _is_convex(points: FloatArray, ring: list[int], at: tuple[int, int], size: float) -> bool:
    """Whether a ring is convex at two of its corners."""
    for corner in at:
        k = ring.index(corner)
        (x, y), (u, v) = (points[ring[k]] - points[ring[k - 1]], points[ring[(k + 1) % len(ring)]] - points[ring[k]])
        if x * v - y * u < -FLAT * size * size:
            return False
    return True
