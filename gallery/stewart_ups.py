"""Stewart platform with legs as bodies: 13 bodies, six chains of a universal, a prismatic and a spherical joint.

6·13 − 6·(4 + 5 + 3) = 6 degrees of freedom: without motors in the slides the platform moves freely.  The geometry is
that of :mod:`gallery.stewart_distance`.  The inverse kinematics gives the leg lengths from the pose:
displacement of slide k = |r + A p_k − b_k|.
"""

from __future__ import annotations

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, rotated
from gallery.looks import STEEL, rod, yoke
from gallery.masses import with_masses
from gallery.stewart_distance import BASE, PLATFORM, lengths_at

LEGS = 6
HEIGHT = 1.2  # m, of the platform in the sketch
ROTATION = (0.053, 0.107, 0.160)  # rad: rotation vector of the platform in the sketch; the legs assume a level one

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The platform tilted; the halves of each leg vertical, at the base and at the joints of a level platform."""
    m = cd.Mechanism("stewart_ups")
    platform = m.body("platform", position=(0.05, -0.04, HEIGHT), orientation=euler.from_rotation_vector(ROTATION))
    for k in range(LEGS):
        b, p = BASE[k], PLATFORM[k]
        radial = float(np.arctan2(b[1], b[0]))
        upright = euler.from_axis_angle(Z, radial)  # the leg's y axis lies along the base circle
        lower = m.body(f"lower_{k + 1}", position=b, orientation=upright)
        upper = m.body(f"upper_{k + 1}", position=(p[0], p[1], HEIGHT), orientation=upright)
        _draw_leg(lower, upper)
        # universal joint on the base: radial axis fixed to the ground, tangential axis fixed to the leg
        m.universal(f"U_{k + 1}", m.ground.frame(b, z=b), lower.frame((0, 0, 0), z=Y))
        m.prismatic(f"P_{k + 1}", lower.frame((0, 0, 0), z=Z, x=X), upper.frame((0, 0, 0), z=Z, x=X))
        m.spherical(f"S_{k + 1}", upper.point((0, 0, 0)), platform.point(p))
    _draw_plates(m)
    return with_masses(m)


def _draw_plates(m: cd.Mechanism) -> None:
    """The platform, and a base with a fork for each leg."""
    platform, base = m["platform"], m.ground
    platform.attach(cd.shapes.plate([(p[0], p[1]) for p in PLATFORM], thickness=0.04, radius=0.07))
    plate = cd.shapes.plate([(b[0], b[1]) for b in BASE], thickness=0.04, radius=0.12)
    base.attach(plate, base.frame((0, 0, -0.09)))
    for b in BASE:
        yoke(base, b, (0, 0, -1), np.array(b) / np.linalg.norm(b), 0.05)


def _draw_leg(lower: cd.Body, upper: cd.Body) -> None:
    """A cylinder with a fork at its foot, and a piston rod with a ball."""
    rod(lower, (0, 0, 0.06), (0, 0, 0.66), 0.036)
    rod(lower, (0, 0, 0.645), (0, 0, 0.67), 0.042, STEEL)
    yoke(lower, (0, 0, 0), Z, Y, 0.05)
    rod(upper, (0, 0, -0.72), (0, 0, 0), 0.02, STEEL)
    upper.attach(cd.shapes.sphere(0.036), color=STEEL)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """For each leg: displacement against the inverse kinematics, alignment of the halves, axes of the joint."""
    state = result.state
    lengths = lengths_at(state["platform"])
    for k in range(LEGS):
        lower, upper = state[f"lower_{k + 1}"], state[f"upper_{k + 1}"]
        axis = rotated(lower, Z)
        slid = mechanism[f"P_{k + 1}"].coordinate(state)  # negative if the leg was assembled upside down
        expect(f"displacement of slide {k + 1}", abs(slid), lengths[k])
        expect(f"foot of leg {k + 1}", lower.position, BASE[k])
        expect(f"end of leg {k + 1}", upper.position, BASE[k] + slid * axis)
        expect(f"axis of the upper half of leg {k + 1}", rotated(upper, Z), axis)
        expect(f"cosine between the axes of universal joint {k + 1}", rotated(lower, Y) @ BASE[k], 0.0)
    shortest, longest = float(lengths.min()), float(lengths.max())
    return [
        f"the legs are {shortest:.6f} to {longest:.6f} m long, as the inverse kinematics gives",
        "both halves of each leg are collinear; the axes of each universal joint are perpendicular",
    ]
