"""Every shape by its definition: samples, and their volume, centre and inertia in closed form.

A new shape needs one row here; the laws of all tests then cover it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan import shapes

ELL = [(0, 0), (1, 0), (1, 0.3), (0.3, 0.3), (0.3, 1), (0, 1)]
TRIANGLE = [(0, 0), (1, 0), (0.3, 1)]
SQUARE = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
R, I, H = 0.7, 0.3, 1.3  # [m] radius, inner radius, height


@dataclass(frozen=True)
class Row:
    """A maker of shapes.  ``samples``: by name.  ``exact``: shapes, each with its volume [m³], its centre [m], and the
    diagonal of its inertia for the density 1 kg/m³ [m⁵].  ``smooth``: the surface has no edges.
    ``bounded``: there is a volume."""

    samples: Mapping[str, Any]
    exact: Sequence[tuple[Any, float, Any, Any]] = ()
    smooth: bool = False
    bounded: bool = True


def _round(volume: float, inner: float) -> list[float]:
    squares = R * R + inner * inner
    return [volume * (3 * squares + H * H) / 12] * 2 + [volume * squares / 2]


BALL, CONE, PYRAMID = 4 / 3 * math.pi * R**3, math.pi * R * R * H / 3, 4 * H / 3
ROD, PIPE = math.pi * R * R * H, math.pi * (R * R - I * I) * H

SHAPES: dict[str, Row] = {
    "box": Row({"box": shapes.box(1, 2, 3)}, [(shapes.box(1, 2, 3), 6.0, np.zeros(3), [6.5, 5.0, 2.5])]),
    "cylinder": Row({"cylinder": shapes.cylinder(0.7, 2)}, [(shapes.cylinder(R, H), ROD, np.zeros(3), _round(ROD, 0))]),
    "tube": Row({"tube": shapes.tube(1, 0.6, 0.5)}, [(shapes.tube(R, I, H), PIPE, np.zeros(3), _round(PIPE, I))]),
    "sphere": Row(
        {"sphere": shapes.sphere(0.4)}, [(shapes.sphere(R), BALL, np.zeros(3), [BALL * 0.4 * R * R] * 3)], smooth=True
    ),
    "half_space": Row({"half-space": shapes.half_space(2.0)}, bounded=False),
    "link": Row(
        {
            "link": shapes.link((0.1, 0.2), (1, 0.5), width=0.2, thickness=0.1, hole=0.05),
            "link without holes": shapes.link((0, 0), (1, 0), width=0.2, thickness=0.1),
        }
    ),
    "plate": Row(
        {
            "rounded plate": shapes.plate(TRIANGLE, thickness=0.1, radius=0.1, holes=[(0, 0, 0.05), (0.4, 0.3, 0.1)]),
            "plate": shapes.plate(
                ELL, thickness=0.2, holes=[(0.15, 0.15, 0.05), [(0.1, 0.5), (0.2, 0.5), (0.15, 0.6)]]
            ),
        }
    ),
    "extrusion": Row(
        {
            "extrusion": shapes.extrusion(ELL, 1.5),
            "clockwise extrusion": shapes.extrusion(ELL[::-1], 1.5, holes=[(0.15, 0.15, 0.1)]),
            "tapered extrusion": shapes.extrusion(ELL, 1.0, taper=0.5),
        },
        [  # a pyramid
            (
                shapes.extrusion(SQUARE, H, taper=1e-15),
                PYRAMID,
                [0, 0, -H / 4],
                [PYRAMID * (4 / 20 + 3 / 80 * H * H)] * 2 + [PYRAMID * 4 / 10],
            )
        ],
    ),
    "revolution": Row(
        {
            "revolution": shapes.revolution([(0, 0), (1, 0), (0.5, 0.5), (0.2, 2), (0, 2)]),
            "ring": shapes.revolution([(0.5, 0), (1, 0), (1, 0.2)]),
        },
        [
            (
                shapes.revolution([(0, 0), (R, 0), (0, H)]),
                CONE,
                [0, 0, H / 4],
                [CONE * 3 / 80 * (4 * R * R + H * H)] * 2 + [CONE * 0.3 * R * R],
            )
        ],
    ),
    "gear": Row(
        {
            "gear": shapes.gear(0.01, 24, 0.02, bore=0.02),
            "gear without a bore": shapes.gear(0.01, 40, 0.02),
            "gear of few teeth": shapes.gear(0.01, 7, 0.02, bore=0.005),
            "internal gear": shapes.gear(0.01, 60, 0.02, internal=True),
            "bevel gear": shapes.gear(0.01, 16, 0.02, bore=0.02, taper=0.7),
        }
    ),
    "thread": Row({"thread": shapes.thread(0.1, 0.05, 1.0)}),
    "mesh": Row({"mesh": shapes.mesh(*shapes.box(1, 2, 3).triangles())}),
}
