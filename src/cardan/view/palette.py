"""Colours that people with any colour vision can tell apart.  [Okabe2008]"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cardan.system.check import Quadruple

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism


def rgb(text: str) -> Quadruple:
    """(red, green, blue, 1) of "#rrggbb"."""
    r, g, b = (value / 255.0 for value in bytes.fromhex(text[1:]))
    return r, g, b, 1.0


PARTS = tuple(map(rgb, ("#2f7fc1", "#e8a13a", "#2a9d78", "#d5643a", "#7cbfe6", "#c583ac", "#e3cf57", "#5c6bb5")))
GROUND = rgb("#a4abb3")
STEEL = rgb("#565e69")
RUBBER = rgb("#3a3d42")


def colors_of(mechanism: Mechanism) -> dict[str, Quadruple]:
    """A colour for each body, different from those of the bodies it is joined to; the ground is grey.

    Bodies whose names differ only in numbers have the same colour where they can.
    """
    near: dict[str, set[str]] = {name: set() for name in mechanism.bodies}
    for joint in mechanism.joints.values():
        names = [body.name for body in joint.bodies if not body.is_ground]
        for name in names:
            near[name] |= {other for other in names if other != name}
    chosen: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for name in mechanism.bodies:
        first = kinds.setdefault(re.sub(r"\d+", "", name), len(kinds))
        taken = {chosen[other] for other in near[name] if other in chosen}
        order = [(first + k) % len(PARTS) for k in range(len(PARTS))]
        chosen[name] = next((c for c in order if c not in taken), order[0])
    return {"ground": GROUND, **{name: PARTS[c] for name, c in chosen.items()}}
