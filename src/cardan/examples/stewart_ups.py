"""Stewart platform with its legs as bodies: 13 bodies, six chains of universal, prismatic and spherical joint.

6·13 − 6·(4 + 5 + 3) = 6 degrees of freedom: without motors in the slides the platform goes where it is put.  The
geometry is that of :mod:`cardan.examples.stewart_distance`; here the lengths follow from the pose, by its inverse
kinematics alone: displacement of slide k = |r + A p_k − b_k|.
"""

from __future__ import annotations

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, expect, rotated
from cardan.examples.stewart_distance import BASE, PLATFORM, lengths_at
from cardan.math import euler

LEGS = 6
HEIGHT = 1.2  # m, of the sketch
TURNED = (0.053, 0.107, 0.160)  # rotation vector [rad] of the platform in the sketch; the legs are drawn to a level one

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The platform tilted; the halves of each leg drawn upright, on the base and where the level platform would be."""
    m = cd.Mechanism("stewart_ups")
    platform = m.body("platform", position=(0.05, -0.04, HEIGHT), orientation=euler.from_rotation_vector(TURNED))
    for k in range(LEGS):
        b, p = BASE[k], PLATFORM[k]
        radial = float(np.arctan2(b[1], b[0]))
        upright = euler.from_axis_angle(Z, radial)  # the leg's y axis lies along the base circle
        lower = m.body(f"lower_{k + 1}", position=b, orientation=upright)
        upper = m.body(f"upper_{k + 1}", position=(p[0], p[1], HEIGHT), orientation=upright)
        # the cross on the base: one axis radial, on the ground; one along the circle, on the leg
        m.universal(f"U_{k + 1}", m.ground.frame(b, z=b), lower.frame((0, 0, 0), z=Y))
        m.prismatic(f"P_{k + 1}", lower.frame((0, 0, 0), z=Z, x=X), upper.frame((0, 0, 0), z=Z, x=X))
        m.spherical(f"S_{k + 1}", upper.point((0, 0, 0)), platform.point(p))
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Leg by leg: the slide's displacement against the inverse kinematics, halves in line, axes of the cross."""
    state = result.state
    lengths = lengths_at(state["platform"])
    for k in range(LEGS):
        lower, upper = state[f"lower_{k + 1}"], state[f"upper_{k + 1}"]
        axis = rotated(lower, Z)
        slid = mechanism[f"P_{k + 1}"].coordinate(state)  # negative where a leg was assembled upside down
        expect(f"displacement of slide {k + 1}", abs(slid), lengths[k])
        expect(f"foot of leg {k + 1}", lower.position, BASE[k])
        expect(f"end of leg {k + 1}", upper.position, BASE[k] + slid * axis)
        expect(f"axis of the upper half of leg {k + 1}", rotated(upper, Z), axis)
        expect(f"cosine between the axes of cross {k + 1}", rotated(lower, Y) @ BASE[k], 0.0)
    shortest, longest = float(lengths.min()), float(lengths.max())
    return [
        f"the slides stand at {shortest:.6f} to {longest:.6f} m, the lengths that the platform's pose alone gives",
        "both halves of each leg are in line, the axes of each cross at right angles",
    ]


EXAMPLE = Example("stewart_ups", "Stewart platform of 13 bodies, U-P-S legs", build, check, dof=6, gruebler=6)
