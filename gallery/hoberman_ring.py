"""Hoberman's ring: it opens and closes while every pivot stays on a fixed ray.  [Hoberman1991]

Twelve pairs of bent bars, one pair in each sector of α = 30°.  A bar has two arms of p = 0.25 m at an angle of π − α.
The two bars of a pair are pinned at their bends.  They are pinned to the neighbouring pairs at an inner and an outer
pivot on the rays between sectors.  Three inner pivots slide in radial slots of the ground.  The Grübler count is
6·24 − 5·36 − 2·3 = −42; the ring has one degree of freedom.

Let β be the angle between a bar's arms and the rays on which they end.  The distance from a bend at radius R to each
ray of its sector is R sin α/2 = p sin β, and the pivots on the ray lie p cos β to each side of the foot of that
perpendicular.  Hence the bends have radius R = p sin β / sin α/2, and the inner and outer pivots
p sin (β ∓ α/2) / sin α/2.  [You1997]
"""

from __future__ import annotations

from math import atan2, cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, rotated, run_move
from gallery.masses import with_masses
from gallery.planar import Plane, link, pin

SECTORS = 12
ALPHA = 2 * pi / SECTORS  # rad
ARM = 0.25  # m
DRAWN = radians(42.0)  # β in the sketch
BENDS = 0.71  # m: radius of the bends in the sketch, too large for that β
SLOTS = (0, 4, 8)  # rays with a slot
MIDDLE, SWING = radians(52.5), radians(27.5)  # mean and amplitude of β
DURATION, POSES = 4.0, 16  # s
NARROW = radians(-20.0)  # initial phase of the oscillation


def inner_radius(t: Any) -> Any:
    """Radius [m] of the inner pivots at time t [s]: an oscillation."""
    beta = MIDDLE + SWING * cd.sin(2 * cd.pi * t / DURATION + NARROW)
    return ARM * cd.sin(beta - ALPHA / 2) / sin(ALPHA / 2)


def arm(angle: float) -> Plane:
    """End [m] of a bar's arm in bar axes: origin at the bend, y along the bisector of the arms."""
    return ARM * cos(angle), ARM * sin(angle)


# The left bar of sector k goes from the inner pivot on ray k to the outer pivot on ray k + 1.
LEFT_INNER, LEFT_OUTER = arm(pi - ALPHA / 2), arm(ALPHA / 2)
RIGHT_INNER, RIGHT_OUTER = arm(ALPHA / 2 - pi), arm(-ALPHA / 2)


def build() -> cd.Mechanism:
    """Half open, with the bends on too large a circle for the angle of the bars."""
    m = cd.Mechanism("hoberman_ring", gravity=(0.0, -9.81, 0.0))
    left: list[cd.Body] = []
    right: list[cd.Body] = []
    for k in range(SECTORS):
        middle = (k + 0.5) * ALPHA
        bend = (BENDS * cos(middle), BENDS * sin(middle))
        for bars, name, lean in ((left, "left", DRAWN), (right, "right", -DRAWN)):
            towards = (bend[0] + cos(middle + lean), bend[1] + sin(middle + lean))
            bars.append(link(m, f"{name}_{k}", bend, towards))
    for k in range(SECTORS):
        pin(m, f"bend_{k}", left[k], (0.0, 0.0), right[k])
        pin(m, f"inner_{k}", right[k - 1], RIGHT_INNER, left[k], LEFT_INNER)
        pin(m, f"outer_{k}", left[k - 1], LEFT_OUTER, right[k], RIGHT_OUTER)
    for k in SLOTS:
        ray = m.ground.frame(z=(cos(k * ALPHA), sin(k * ALPHA), 0.0))
        m.point_on_line(f"slot_{k}", left[k].point((*LEFT_INNER, 0.0)), ray)
    m.drive("pull", m[f"slot_{SLOTS[0]}"], inner_radius)
    return with_masses(m)


def _check_rays(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float, float]:
    """β [rad], inner and outer radius [m]; checks every pivot."""
    along = rotated(state["left_0"], (1.0, 0.0, 0.0))
    beta = atan2(along[1], along[0]) - ALPHA / 2
    bend, inner, outer = (ARM * sin(beta + shift) / sin(ALPHA / 2) for shift in (0.0, -ALPHA / 2, ALPHA / 2))
    for k in range(SECTORS):
        left, right = state[f"left_{k}"], state[f"right_{k}"]
        for what, found, ray, radius in (
            ("bend", placed(left, (0, 0, 0)), k + 0.5, bend),
            ("inner pivot", placed(left, (*LEFT_INNER, 0)), k, inner),
            ("outer pivot", placed(right, (*RIGHT_OUTER, 0)), k, outer),
            ("next inner pivot", placed(right, (*RIGHT_INNER, 0)), k + 1, inner),
            ("next outer pivot", placed(left, (*LEFT_OUTER, 0)), k + 1, outer),
        ):
            on_ray = (radius * cos(ray * ALPHA), radius * sin(ray * ALPHA), 0.0)
            expect(f"{what} of sector {k}", found, on_ray)
    expect("slots", [mechanism[f"slot_{k}"].coordinate(state) for k in SLOTS], inner)
    return beta, inner, outer


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """All pivots are on their rays, at the radii of the closed form."""
    beta, inner, outer = _check_rays(mechanism, result.state)
    return [
        f"at β = {degrees(beta):.4f}° all pivots lie on rays {degrees(ALPHA):g}° apart, {inner:.6f} and {outer:.6f} m "
        "from the centre"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The ring driven at one inner pivot."""
    outer = []
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        found, _, radius = _check_rays(mechanism, pose)
        expect("β", found, MIDDLE + SWING * sin(2 * pi * pose.time / DURATION + NARROW))
        outer.append(radius)
    return [
        f"while the outer radius varies from {min(outer):.4f} to {max(outer):.4f} m every pivot stays on its ray, "
        f"in {POSES} poses"
    ]
