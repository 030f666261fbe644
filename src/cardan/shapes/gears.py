"""Involute spur gears, external and internal.  [ISO21771]

The pitch radius is r = m z/2, the base radius r_b = r cos α.  At the radius ρ half a tooth subtends the angle
π/2z + inv α − inv α_ρ with cos α_ρ = r_b/ρ and inv x = tan x − x.  The x axis goes through the middle of a tooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.quantities import InSI, Length
from cardan.shapes.region import Involute, Line, Loop, Piece, Region, arcs, circle, loop_points
from cardan.shapes.registry import in_files, maker
from cardan.shapes.shape import SEGMENTS, FloatArray, Properties, Shape, Triangles
from cardan.shapes.solids import Extrusion, extruded
from cardan.system import check

PRESSURE_ANGLE = math.radians(20.0)
ADDENDUM, DEDENDUM = 1.0, 1.25  # of the basic rack, in modules
BACKLASH = 0.04  # modules: each flank is set back by this much along the pitch circle, so that drawn gears have play
FILLET = 0.03  # of the pitch: a tooth is wider by this at its root, if that is below the base circle
FEWEST_TEETH = 5
THINNEST = 0.1  # modules: width of a tooth at its tip, at least


def inv(angle: float) -> float:
    """tan x − x."""
    return math.tan(angle) - angle


@in_files
@dataclass(frozen=True, slots=True)
class Gear(Shape):
    """An involute gear about z, centred on the plane z = 0; ``taper``: scale of its upper face (bevel gears).

    ``rim`` [m]: radius of the bore of an external gear, of the outside of an internal one.
    """

    module: float
    teeth: int
    width: float
    rim: float = 0.0
    internal: bool = False
    taper: float = 1.0

    @property
    def pitch_radius(self) -> float:
        """m z/2 [m]."""
        return 0.5 * self.module * self.teeth

    def region(self) -> Region:
        """The toothed disc or ring."""
        teeth = self._profile()
        if self.internal:
            return Region(circle((0.0, 0.0), self.rim), (teeth,))
        return Region(teeth, (circle((0.0, 0.0), self.rim),) if self.rim else ())

    def _profile(self) -> Loop:
        """The toothed circle, counter-clockwise; for an internal gear its gaps, so that a tooth is on the x axis."""
        r, m, z = self.pitch_radius, self.module, self.teeth
        base = r * math.cos(PRESSURE_ANGLE)
        above, below = (DEDENDUM, ADDENDUM) if self.internal else (ADDENDUM, DEDENDUM)
        play = (1.0 if self.internal else -1.0) * BACKLASH * m / r
        half = 0.5 * math.pi / z + play + inv(PRESSURE_ANGLE)  # at the base circle
        root = max(r - below * m, 0.2 * r)
        tip = r + above * m
        while half - inv(math.acos(min(1.0, base / tip))) < 0.5 * THINNEST * m / tip:
            tip -= 0.02 * m  # few teeth: a tooth that would be pointed is cut
        low = max(root, base)
        u0, u1 = (math.sqrt(max(0.0, (rho / base) ** 2 - 1.0)) for rho in (low, tip))
        at_low, at_tip = (half - (u - math.atan(u)) for u in (u0, u1))
        pitch = 2.0 * math.pi / z
        at_root = min(at_low + (FILLET * pitch if root < low else 0.0), 0.49 * pitch)
        pieces: list[Piece] = []
        for k in range(z):
            middle = k * pitch + (0.5 * pitch if self.internal else 0.0)
            if root < low:
                pieces.append(Line(_polar(root, middle - at_root), _polar(low, middle - at_low)))
            pieces.append(Involute(base, middle - half, 1.0, u0, u1))
            pieces += arcs((0.0, 0.0), tip, middle - at_tip, 2.0 * at_tip)
            pieces.append(Involute(base, middle + half, -1.0, u1, u0))
            if root < low:
                pieces.append(Line(_polar(low, middle + at_low), _polar(root, middle + at_root)))
            pieces += arcs((0.0, 0.0), root, middle + at_root, pitch - 2.0 * at_root)
        return tuple(pieces)

    def properties(self) -> Properties:
        return Extrusion(self.region(), self.width, self.taper).properties()

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        teeth = loop_points(self._profile(), segments)
        if not self.rim:
            return _fan(np.concatenate([teeth, [[0.0, 0.0]]]), self.width, self.taper)
        smooth = self.rim / np.linalg.norm(teeth, axis=1, keepdims=True) * teeth
        n = len(teeth)
        a = np.arange(n)
        b = np.roll(a, -1)
        loops = [smooth, teeth[::-1]] if self.internal else [teeth, smooth[::-1]]
        inner = 2 * n - 1 - a  # the second loop is clockwise
        after = np.roll(inner, -1)
        faces = np.concatenate([np.column_stack([a, b, after]), np.column_stack([a, after, inner])])
        return extruded(loops, faces, self.width, self.taper)

    @classmethod
    def _of_file(
        cls, module: Length, teeth: int, width: Length, rim: Length = 0.0, internal: bool = False, taper: InSI = 1.0
    ) -> Gear:
        return gear(module, teeth, width, internal=internal, taper=taper, **{"outer" if internal else "bore": rim})


@maker
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


def _polar(radius: float, angle: float) -> tuple[float, float]:
    return radius * math.cos(angle), radius * math.sin(angle)


def _fan(flat: FloatArray, width: float, taper: float) -> Triangles:
    """A toothed disc without a bore: two fans and the walls."""
    n = len(flat) - 1
    a = np.arange(n)
    b = np.roll(a, -1)
    low, high = (np.column_stack([s * flat, np.full(n + 1, z)]) for s, z in ((1.0, -0.5 * width), (taper, 0.5 * width)))
    faces = [
        np.column_stack([np.full(n, n), b, a]),
        np.column_stack([np.full(n, 2 * n + 1), a + n + 1, b + n + 1]),
        np.column_stack([a, b, b + n + 1]),
        np.column_stack([a, b + n + 1, a + n + 1]),
    ]
    return Triangles(np.concatenate([low, high]), np.concatenate(faces))
